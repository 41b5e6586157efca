"use strict";

/* Parts that are read when they are opened: details with an address, whose fragment names what of the page is shown. */
addEventListener("toggle", async (event) => {
  const details = event.target;
  if (!details.open || !details.dataset.load) return;
  const [address, part = "main"] = details.dataset.load.split("#");
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById(part) ?? page.getElementById("main"); // a problem has no such part
  delete details.dataset.load;
  details.lastElementChild.replaceChildren(...fresh.childNodes);
}, true);
