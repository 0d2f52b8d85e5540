"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Theme: the system's until the reader chooses; the choice is kept where the browser allows it.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colors`); };
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
  const makeSortable = (table) => all("thead th", table).forEach((heading, column) => {
    const control = document.createElement("button");
    control.type = "button";
    control.textContent = heading.textContent;
    heading.classList.add("sorts");
    heading.replaceChildren(control);
    control.addEventListener("click", () => sort(table, heading, column));
  });

  // Saving: files are made here, so that nothing is requested.
  const save = (content, kind, title, ending) => {
    const link = document.createElement("a");
    const plain = title.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 80);
    link.href = URL.createObjectURL(new Blob([content], { type: kind }));
    link.download = `boosters-eval-${plain || "report"}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const offer = (place, ending, title, make) => {
    const control = document.createElement("button");
    control.type = "button";
    control.className = "save";
    control.textContent = ending.toUpperCase();
    control.setAttribute("aria-label", `Save ${title} as ${ending.toUpperCase()}`);
    control.addEventListener("click", make);
    place.append(control);
  };

  // A table as CSV: a column with hidden full numbers has them beside the text. A spreadsheet must not take text for a
  // formula (core/text.py has the same rule).
  const number = /^[+-]?\d[\d.]*(e[+-]?\d+)?( ± \d[\d.]*(e[+-]?\d+)?)?$/;
  const quoted = (value) => {
    const safe = /^\s*[=+\-@]/.test(value) && !number.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const csv = (table) => {
    const rows = all("tbody tr, tfoot tr", table).map((row) => Array.from(row.cells));
    const heads = all("thead th", table).map((head) => head.textContent.trim());
    const full = heads.map((_, i) => rows.some((row) => "value" in row[i].dataset && row[i].dataset.value !== row[i].textContent.trim()));
    const line = (cells) => cells.map(quoted).join(",");
    const lines = [line(heads.flatMap((head, i) => full[i] ? [head, `${head} (as shown)`] : [head]))];
    rows.forEach((row) => lines.push(line(row.flatMap((cell, i) => {
      const shown = cell.textContent.trim();
      return full[i] ? [cell.dataset.value ?? "", shown] : [shown];
    }))));
    return `${lines.join("\n")}\n`;
  };

  // A chart as SVG: the style sheet is not in the file, so every element gets its attributes.
  const lettering = ["fill", "font-size", "font-weight", "font-family"];
  const drawn = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity"];
  const svg = (picture) => {
    const copy = picture.cloneNode(true);
    const [, , width, height] = picture.getAttribute("viewBox").split(" ");
    const parts = all("*", picture);
    all("*", copy).forEach((part, i) => {
      part.removeAttribute("class");
      if (part.tagName === "title") return;
      const style = getComputedStyle(parts[i]);
      const looks = part.tagName === "text" ? lettering : part.tagName === "g" ? [] : drawn;
      looks.forEach((look) => part.setAttribute(look, style.getPropertyValue(look)));
    });
    const space = "http://www.w3.org/2000/svg";
    const back = document.createElementNS(space, "rect");
    const fill = getComputedStyle(root).getPropertyValue("--card").trim();
    Object.entries({ width, height, fill }).forEach(([attribute, value]) => back.setAttribute(attribute, value));
    copy.prepend(back);
    copy.setAttribute("xmlns", space);
    copy.setAttribute("width", 2 * width);
    copy.setAttribute("height", 2 * height);
    return new XMLSerializer().serializeToString(copy);
  };

  // What is folded gets its controls when it is opened: a page may have hundreds of tables.
  const equip = (part) => {
    all(".scroll > table", part).filter((table) => !table.dataset.ready && !table.closest("details:not([open])")).forEach((table) => {
      const title = table.parentElement.dataset.title;
      table.dataset.ready = "yes";
      if (table.classList.contains("sortable")) makeSortable(table);
      const place = document.createElement("div");
      table.parentElement.after(place);
      offer(place, "csv", title, () => save(csv(table), "text/csv;charset=utf-8", title, "csv"));
    });
    all("figure[data-name]", part).filter((figure) => !figure.dataset.ready).forEach((figure) => {
      figure.dataset.ready = "yes";
      const title = figure.dataset.name;
      const make = () => save(svg(figure.querySelector("svg")), "image/svg+xml", title, "svg");
      offer(figure.querySelector("figcaption"), "svg", title, make);
    });
  };
  equip(document);
  document.addEventListener("toggle", (event) => { if (event.target.open) equip(event.target); }, true);

  // On paper nothing can be unfolded; what the style sheet leaves out there stays folded.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = all("details:not([open])").filter((one) => !one.closest(".more, #cells"));
    folded.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));

  // Filtering: every word must occur; groups without a visible member are hidden too, and the few that are left opened.
  const few = 5;
  all(".filter").forEach((box) => {
    const input = box.querySelector("input");
    const output = box.querySelector("output");
    const targets = all(input.dataset.targets);
    const fold = (target) => target.closest("details")?.firstElementChild.textContent ?? "";
    const words = targets.map((target) => (target.dataset.search || `${fold(target)} ${target.textContent}`).toLowerCase());
    const groups = all(input.dataset.groups || "template").map((group) => [group, targets.filter((target) => group.contains(target))]);
    box.hidden = false;
    const apply = () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      targets.forEach((target, i) => {
        target.hidden = !wanted.every((word) => words[i].includes(word));
        shown += target.hidden ? 0 : 1;
      });
      groups.forEach(([group, members]) => {
        const own = () => wanted.every((word) => group.textContent.toLowerCase().includes(word));
        group.hidden = wanted.length > 0 && !(members.length ? members.some((member) => !member.hidden) : own());
      });
      const left = groups.filter(([group]) => group.tagName === "DETAILS" && !group.hidden);
      if (wanted.length && left.length <= few) left.forEach(([group]) => { group.open = true; });
      output.textContent = wanted.length ? `${shown} of ${targets.length}` : "";
    };
    input.addEventListener("input", apply);
    apply();
  });
})();
