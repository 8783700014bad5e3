"use strict";
const wanted = document.getElementById("wanted"), count = document.getElementById("count");
const all = [...document.querySelectorAll("details.question")].map(one => ({ one, text: one.textContent.toLowerCase() }));
const buttons = [...document.querySelectorAll("[data-kind]")];
let kind = "";
function show() {
  const word = wanted.value.trim().toLowerCase();
  let shown = 0;
  for (const { one, text } of all) {
    const fits = (!kind || one.classList.contains(kind)) && text.includes(word);
    one.hidden = !fits;
    shown += fits;
  }
  count.textContent = `${shown} of ${all.length}`;
  for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.kind === kind);
}
wanted.addEventListener("input", show);
for (const button of buttons) button.addEventListener("click", () => { kind = button.dataset.kind; show(); });
show();
