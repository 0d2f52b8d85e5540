"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Theme: the system's until the reader chooses; the choice is kept where the browser allows it.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`); };
  try { const kept = localStorage.getItem("boosters-eval-theme"); if (kept) root.dataset.theme = kept; } catch { /* not allowed */ }
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("boosters-eval-theme", root.dataset.theme); } catch { /* not allowed */ }
    name();
  });
  name();

  // Sorting: by number where a cell carries one, else by text; missing values always last.
  const key = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.classList.contains("num") ? NaN : cell.textContent.trim();
  };
  const compare = (a, b) => {
    const numbers = typeof a === "number" && typeof b === "number";
    return numbers ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sort = (table, heading, column) => {
    const up = heading.getAttribute("aria-sort") !== "ascending";
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row) => ({ row, key: key(row, column) }));
    const missing = (item) => typeof item.key === "number" && Number.isNaN(item.key);
    rows.sort((a, b) => missing(a) - missing(b) || (missing(a) ? 0 : (up ? 1 : -1) * compare(a.key, b.key)));
    body.append(...rows.map((item) => item.row));
  };
  all("table.sortable").forEach((table) => {
    all("thead th", table).forEach((heading, column) => {
      const control = document.createElement("button");
      control.type = "button";
      control.textContent = heading.textContent;
      heading.replaceChildren(control);
      control.addEventListener("click", () => sort(table, heading, column));
    });
  });

  // Filtering: every word must occur; groups without a visible member are hidden too.
  all(".filter").forEach((box) => {
    const input = box.querySelector("input");
    const output = box.querySelector("output");
    const targets = all(input.dataset.targets);
    const words = targets.map((target) => (target.dataset.search || target.textContent).toLowerCase());
    const groups = all(input.dataset.groups || "template");
    box.hidden = false;
    const apply = () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      targets.forEach((target, i) => {
        target.hidden = !wanted.every((word) => words[i].includes(word));
        shown += target.hidden ? 0 : 1;
      });
      groups.forEach((group) => { group.hidden = !all(".card", group).some((card) => !card.hidden); });
      output.textContent = wanted.length ? `${shown} of ${targets.length}` : "";
    };
    input.addEventListener("input", apply);
    apply();
  });
})();
