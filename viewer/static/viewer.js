"use strict";

/* Pages are complete without this script. It keeps them up to date, adds keys, and copies. */

const AT_ONCE = 700; // milliseconds between two readings of a page that changes

/* Live: when an event says that something has happened, the page is read again, and what differs is put in its place. */
let reading = false, again = false;

async function refresh() {
  if (reading) { again = true; return; }
  reading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.ok) renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } finally {
    setTimeout(() => {
      reading = false;
      if (again) { again = false; refresh(); }
    }, AT_ONCE);
  }
}

function renew(fresh) {
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (!now || now.isEqualNode(old)) continue;
    for (const each of old.querySelectorAll("details[id]")) {
      const same = now.querySelector(`#${CSS.escape(each.id)}`);
      if (same) same.open = each.open;
    }
    old.replaceWith(now);
  }
}

function write(event) {
  const place = document.getElementById("writing");
  if (place) { place.hidden = false; place.lastElementChild.textContent += JSON.parse(event.data).text; }
}

function follow(address) {
  const source = new EventSource(address);
  for (const name of ["step", "question", "progress"]) source.addEventListener(name, refresh);
  source.addEventListener("token", write);
  source.addEventListener("end", () => { source.close(); refresh(); });
}

/* Parts that are read when they are opened: details with an address. */
addEventListener("toggle", async (event) => {
  const details = event.target;
  if (!details.open || !details.dataset.load) return;
  const answer = await fetch(details.dataset.load, { headers: { Accept: "text/html" } });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  delete details.dataset.load;
  details.lastElementChild.replaceChildren(...fresh.childNodes);
}, true);

/* Keys. */
const visible = (each) => each.getClientRects().length > 0;

function step(selector, direction) {
  const all = [...document.querySelectorAll(selector)].filter(visible);
  const at = all.findIndex((each) => each.contains(document.activeElement));
  const next = all[at < 0 ? (direction > 0 ? 0 : all.length - 1) : at + direction];
  if (!next) return;
  if (!next.hasAttribute("tabindex")) next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "start" });
}

const go = (relation) => document.querySelector(`main a[rel="${relation}"]`)?.click();

const keys = {
  j: () => step("[data-turn]", 1),
  k: () => step("[data-turn]", -1),
  g: () => step("[data-gold]", 1),
  e: () => step("[data-error]", 1),
  n: () => go("next"),
  p: () => go("prev"),
  u: () => go("up"),
  o: () => document.activeElement.querySelectorAll("details").forEach((each) => { each.open = !each.open; }),
  "/": () => document.querySelector("input[type=search]")?.focus(),
  "?": () => document.getElementById("keys")?.showModal(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const act = keys[event.key];
  if (act) { event.preventDefault(); act(); }
});

addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (!copy) return;
  await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).innerText);
  const label = copy.textContent;
  copy.textContent = "Copied";
  setTimeout(() => { copy.textContent = label; }, 1500);
});

if (document.body.dataset.events) follow(document.body.dataset.events);
