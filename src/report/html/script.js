"use strict";
// Adds what needs a script: a button a command, and the filters. Without it the page is whole.
(() => {
  const say = (text) => { document.getElementById("said").textContent = text; };

  // Where the clipboard is out of reach (a page in a mail reader), the older way; then at least the text is selected.
  const copy = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(code);
      return document.execCommand("copy");
    }
  };
  for (const code of document.querySelectorAll(".command code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy command: " + code.textContent.split("\n", 1)[0]);
    button.addEventListener("click", async () => {
      const copied = await copy(code);
      button.textContent = copied ? "Copied" : "Press Ctrl+C";
      say(copied ? "Copied." : "The command is selected: press Ctrl+C.");
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    code.closest(".command").append(button);
  }

  const filters = document.getElementById("filters");
  if (!filters) return;
  const { namespace, verdict } = filters.elements;
  const all = [...document.querySelectorAll("[data-namespace]")];
  const pods = all.filter((entry) => entry.dataset.verdict);
  const apply = () => {
    const matches = (entry) =>
      (namespace.selectedIndex === 0 || entry.dataset.namespace === namespace.value) &&
      (verdict.selectedIndex === 0 || !entry.dataset.verdict || entry.dataset.verdict === verdict.value);
    for (const entry of all) entry.hidden = !matches(entry);
    for (const section of document.querySelectorAll("section.of-pods")) {
      section.hidden = !section.querySelector("[data-namespace]:not([hidden])");
    }
    const count = (entries) => entries.reduce((sum, entry) => sum + Number(entry.dataset.pods || 1), 0);
    const [shown, there] = [count(pods.filter((pod) => !pod.hidden)), count(pods)];
    document.getElementById("shown").textContent =
      shown === there ? "All pods are shown." : shown + " of " + there + " pods are shown.";
  };
  filters.addEventListener("change", apply);
  filters.addEventListener("reset", () => setTimeout(apply));
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.hidden = false;
  // A browser that restores a form restores its filters too.
  if (namespace.selectedIndex + verdict.selectedIndex > 0) apply();
})();
