"use strict";
// Adds a copy button to each command, and a search to a long report. The page is complete without them.
(() => {
  for (const code of document.querySelectorAll(".command code")) {
    const button = document.createElement("button");
    const of = code.parentElement.dataset.case ? ": " + code.parentElement.dataset.case : "";
    const copy = "Copy" + of;
    button.type = "button";
    button.textContent = copy;
    button.setAttribute("aria-label", "Copy command" + of + ": " + code.textContent.slice(0, 60));
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // Some pages may not use the clipboard.
        getSelection().selectAllChildren(code);
        button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
      }
      setTimeout(() => { button.textContent = copy; }, 2000);
    });
    code.parentElement.append(button);
  }
  // Folds are open on paper, where nobody can open them.
  const folds = document.querySelectorAll("details");
  addEventListener("beforeprint", () => folds.forEach((fold) => { fold.open = true; }));
  const names = [...document.querySelectorAll(".name")];
  if (names.length < 50) return;
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search pods and nodes";
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => {
    const word = search.value.toLowerCase();
    for (const item of document.querySelectorAll(".list li")) {
      const of = (item.querySelector("b")?.textContent ?? "") + "/";
      for (const name of item.querySelectorAll(".name")) name.hidden = !(of + name.textContent).toLowerCase().includes(word);
      item.hidden = ![...item.querySelectorAll(".name")].some((name) => !name.hidden);
    }
    folds.forEach((fold) => { fold.open = word !== "" && fold.querySelector("li:not([hidden])") !== null; });
  });
  const form = document.createElement("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(search);
  document.querySelector("main").before(form);
})();
