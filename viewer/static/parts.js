"use strict";

/* Parts that are read when they are opened: details with an address. */
addEventListener("toggle", async (event) => {
  const details = event.target;
  if (!details.open || !details.dataset.load) return;
  const answer = await fetch(details.dataset.load, { headers: { Accept: "text/html" } });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  delete details.dataset.load;
  details.lastElementChild.replaceChildren(...fresh.childNodes);
}, true);
