"use strict";

const AT_ONCE = 700; // milliseconds between two readings of a page that changes
const AGAIN = 4000; // milliseconds after which a service that wasn't reached is tried again

/* Whether what is shown is how it stands, or since when the service hasn't been reached. */
const reached = document.getElementById("reached");
let lost = null;

function note(is) {
  lost = is ? null : lost ?? new Date();
  const words = is ? "live" : `not reached since ${lost.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`;
  if (!reached || reached.textContent === words) return;
  reached.textContent = words;
  reached.classList.toggle("bad", !is);
}

/* When an event says that something has happened, the page is read again, and what differs is put in its place. */
let reading = false, again = false, retry = 0;

async function refresh() {
  if (reading) { again = true; return; }
  reading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
    note(true);
  } catch {
    note(false);
    clearTimeout(retry); // one at a time: pages that are read at intervals, and their events, try too
    retry = setTimeout(refresh, AGAIN);
  } finally {
    setTimeout(() => {
      reading = false;
      if (again) { again = false; refresh(); }
    }, AT_ONCE);
  }
}

const texts = (page) => new Map([...page.querySelectorAll("[data-live]")].map((each) => [each.id, each.outerHTML]));
let shown = texts(document); // as it was sent: what the reader has folded or loaded since is no difference

function renew(fresh) {
  const sent = texts(fresh), focused = document.activeElement.id;
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (!now || sent.get(old.id) === shown.get(old.id)) continue;
    for (const each of old.querySelectorAll("details[id]")) {
      const same = now.querySelector(`#${CSS.escape(each.id)}`);
      if (same) same.open = each.open;
    }
    for (const each of old.querySelectorAll("input[type=checkbox]:checked")) {
      const same = now.querySelector(`input[name="${each.name}"][value="${CSS.escape(each.value)}"]`);
      if (same) same.checked = true;
    }
    const active = document.activeElement, place = [...old.querySelectorAll(active.tagName)].indexOf(active);
    old.replaceWith(now);
    if (place >= 0) now.querySelectorAll(active.tagName)[place]?.focus({ preventScroll: true });
  }
  for (const list of document.querySelectorAll("[data-grows]")) {
    const all = [...(fresh.getElementById(list.id)?.children ?? [])];
    list.append(...all.filter((each) => !document.getElementById(each.id)));
  }
  shown = sent;
  if (focused) refocus(document.getElementById(focused));
  write("");
}

function refocus(element) {
  if (!element || element === document.activeElement) return;
  if (!element.matches("a, button, input, summary, select, textarea, [tabindex]")) element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

/* Tokens as they are written, until the step that writes them is recorded. */
function write(text) {
  const place = document.getElementById("writing");
  if (!place) return;
  place.hidden = !text;
  place.lastElementChild.textContent = text && place.lastElementChild.textContent + text;
}

function follow(address) {
  const source = new EventSource(address);
  for (const name of ["step", "question", "progress"]) source.addEventListener(name, refresh);
  source.addEventListener("token", (event) => write(JSON.parse(event.data).text));
  source.addEventListener("end", () => { source.close(); reached?.remove(); refresh(); });
  source.addEventListener("open", () => { if (lost) refresh(); else note(true); });
  source.addEventListener("error", () => {
    note(false);
    // The browser connects again by itself, unless the service answered that it can't.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(address), AGAIN);
  });
}

if (document.body.dataset.events) follow(document.body.dataset.events);
if (document.body.dataset.every) {
  note(true);
  setInterval(() => { if (!document.hidden) refresh(); }, document.body.dataset.every * 1000);
}
