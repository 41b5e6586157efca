"use strict";

/* Without this script links still work: browsers open what a fragment leads into. It adds older browsers and filters. */
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let each = target; each; each = each.parentElement) {
    if (each.tagName === "DETAILS") each.open = true;
  }
  const all = document.getElementById("f-all");
  if (all && !target.getClientRects().length) all.checked = true;
  target.scrollIntoView();
}

let closed = [];
addEventListener("hashchange", reveal);
addEventListener("click", (event) => {
  if (event.target.closest("a[href^='#']")) setTimeout(reveal);
});
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open], .body *, figure *)")];
  for (const each of closed) each.open = true;
});
addEventListener("afterprint", () => {
  for (const each of closed) each.open = false;
});
if (location.hash) reveal();
