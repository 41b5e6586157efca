"use strict";

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
