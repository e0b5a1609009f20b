"use strict";
// Adds a copy button for each command, a search, and filters. The page is complete without them.
(() => {
  const say = (text) => { document.getElementById("said").textContent = text; };
  const make = (name, text, parent) => {
    const made = document.createElement(name);
    made.textContent = text;
    parent?.append(made);
    return made;
  };

  // If a page may not use the clipboard (in a mail reader, say), this selects the text and copies it the older way.
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
    const button = make("button", "Copy", code.closest(".command"));
    button.type = "button";
    button.setAttribute("aria-label", "Copy command: " + code.textContent.split("\n", 1)[0]);
    button.addEventListener("click", async () => {
      const copied = await copy(code);
      button.textContent = copied ? "Copied" : "Press Ctrl+C";
      say(copied ? "Copied." : "The command is selected: press Ctrl+C.");
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  const pods = [...document.querySelectorAll("[data-verdict]")];
  // A few pods are found by eye.
  if (pods.length < 20) return;
  const others = document.querySelectorAll("main :is([data-namespace], [data-node]):not([data-verdict])");
  const folds = [...document.querySelectorAll("main details")].filter((fold) => fold.querySelector("[data-namespace], [data-node]"));
  const unfolded = new Set(folds.filter((fold) => fold.open));

  const form = document.createElement("form");
  form.className = "filters";
  form.autocomplete = "off";
  form.setAttribute("aria-label", "Filter nodes and pods");
  const search = make("input", "", make("label", "Search", form));
  search.type = "search";
  search.placeholder = "node, pod, owner, reason";
  const choice = (label, name) => {
    const select = make("select", "", make("label", label, form));
    make("option", "all", select).value = "";
    for (const value of [...new Set(pods.map((pod) => pod.dataset[name]))].sort()) make("option", value, select).value = value;
    select.name = name;
    return select;
  };
  search.name = "search";
  const [namespace, verdict] = [choice("Namespace", "namespace"), choice("Verdict", "verdict")];
  make("button", "Show all", form).type = "reset";
  const shown = make("p", "", form);
  shown.id = "shown";
  shown.className = "quiet small";
  shown.setAttribute("role", "status");

  const texts = new Map();
  // A pod stands under its node, whose name need not be in the pod's own text.
  const said = (entry) => `${entry.textContent} ${entry.dataset.node ?? ""}`.toLowerCase();
  const text = (entry) => texts.get(entry) ?? (texts.set(entry, said(entry)), texts.get(entry));
  const count = (entries) => entries.reduce((sum, entry) => sum + Number(entry.dataset.pods || 1), 0);
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    const chosen = (entry, select) => !select.selectedIndex || [undefined, select.value].includes(entry.dataset[select.name]);
    const matches = (entry) =>
      chosen(entry, namespace) && chosen(entry, verdict) && words.every((word) => text(entry).includes(word));
    for (const pod of pods) pod.hidden = !matches(pod);
    const found = pods.filter((pod) => !pod.hidden);
    // A node is shown if a pod on it is.
    const nodes = new Set(found.map((pod) => pod.dataset.node ?? "none"));
    for (const entry of others) entry.hidden = !matches(entry) && !nodes.has(entry.dataset.node);
    const all = found.length === pods.length;
    for (const fold of folds) {
      const inside = [...fold.querySelectorAll("[data-namespace], [data-node]")].filter((entry) => !entry.hidden).length;
      fold.hidden = !inside;
      // A fold with matches is opened, unless it has too many to read at a glance.
      fold.open = all ? unfolded.has(fold) : inside <= 50;
      fold.firstElementChild.dataset.found = all ? "" : `, ${inside} of them found`;
    }
    for (const part of document.querySelectorAll("section, ul.rows, .at-node")) {
      const entries = [...part.querySelectorAll("[data-namespace], [data-node]")];
      part.hidden = entries.length > 0 && entries.every((entry) => entry.hidden);
    }
    shown.textContent = all ? "All pods are shown." : `${count(found)} of ${count(pods)} pods are shown.`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.querySelector("main").prepend(form);
})();
