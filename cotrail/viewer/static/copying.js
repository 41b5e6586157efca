"use strict";

/* Buttons that copy the text of another element. */
addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (!copy) return;
  await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).innerText);
  const label = copy.textContent;
  copy.textContent = "Copied";
  setTimeout(() => { copy.textContent = label; }, 1500);
});
