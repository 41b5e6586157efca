"use strict";

const AT_ONCE = 700; // milliseconds between two readings of a page that changes

/* When an event says that something has happened, the page is read again, and what differs is put in its place. */
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
  for (const list of document.querySelectorAll("[data-grows]")) {
    const added = [...(fresh.getElementById(list.id)?.children ?? [])].filter((each) => !document.getElementById(each.id));
    list.append(...added);
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

if (document.body.dataset.events) follow(document.body.dataset.events);
if (document.body.dataset.every) setInterval(() => { if (!document.hidden) refresh(); }, document.body.dataset.every * 1000);
