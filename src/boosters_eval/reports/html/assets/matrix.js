
"use strict";
(() => {
  // What the data are is in the data: groups (such as methods) by items (such as backends), with choices (such as sizes)
  // of which one combination is drawn at a time.
  const { nouns, statuses, absent, groups, texts, axis, matrices: shared } = JSON.parse(document.getElementById("matrix").textContent);
  const MOST = 2000; // cells of a matrix that are drawn before the reader asks for all
  const SVG = "http://www.w3.org/2000/svg";

  // Everything is made as an element with text content: no text of the data is ever read as HTML.
  const make = (tag, props = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
      if (name in made) made[name] = value; else made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return made;
  };
  const draw = (tag, props = {}, ...children) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(props)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const capital = (word) => word[0].toUpperCase() + word.slice(1);
  const unpack = ([status, shown, aside, warning, sentence, output, facts, command, samples, level]) => {
    const [word, mark, meaning, tone] = statuses[status];
    const pairs = facts.map(([heading, found]) => [texts[heading], found.map((pair) => pair.map((i) => texts[i]))]);
    const [said, what] = [command.map((i) => texts[i]).join(" "), { word, mark, meaning, tone, samples, level, pairs }];
    return { ...what, shown: texts[shown], aside: texts[aside], warning: texts[warning], sentence: texts[sentence], output: texts[output], command: said };
  };

  // Cells stand in the order of group, item and choices.
  let offset = 0;
  for (const group of groups) {
    group.start = offset;
    offset += group.cells.length;
    group.place = new Map(group.items.map((name, i) => [name, i]));
  }
  const groupOf = (at) => groups.findLast((group) => group.start <= at);
  const cellOf = (at) => { const group = groupOf(at); return unpack(group.cells[at - group.start]); };
  const hasResult = (at) => { const group = groupOf(at); return !statuses[group.cells[at - group.start][0]][1]; };
  const find = (group, item, chosen) => {
    let at = group.place.get(item);
    if (at === undefined) return null; // the group does not have the item
    for (const [label, options] of group.choices) {
      const option = options.indexOf(chosen[label]);
      if (option < 0) return -1;
      at = at * options.length + option;
    }
    return group.start + at;
  };
  const placeOf = (at) => {
    const group = groupOf(at);
    let inner = at - group.start;
    const chosen = {};
    for (const [label, options] of [...group.choices].reverse()) {
      chosen[label] = options[inner % options.length];
      inner = Math.floor(inner / options.length);
    }
    const ordered = Object.fromEntries(group.choices.map(([label]) => [label, chosen[label]]));
    return { group, item: group.items[inner], chosen: ordered };
  };

  // ---- The matrices
  const unique = (lists) => [...new Set(lists.flat())];
  const inOrder = (a, b) => String(a).localeCompare(String(b), "en", { numeric: true });
  const countResults = (matrix, chosen) => {
    let n = 0;
    for (const group of matrix.groups) {
      for (const item of group.items) {
        const at = find(group, item, chosen);
        n += at !== null && at >= 0 && hasResult(at) ? 1 : 0;
      }
    }
    return n;
  };
  const title = (names) => {
    if (names.length <= 3) return names.join(", ");
    let end = 0;
    while (names.every((name) => name[end] !== undefined && name[end] === names[0][end])) end += 1;
    const stem = names[0].slice(0, end).replace(/[^A-Za-z0-9]+$/, "");
    return stem.length > 2 ? `${stem} (${plural(names.length, nouns[0])})` : `${names[0]} and ${names.length - 1} more`;
  };
  const select = (label, options, value, changed) => {
    const list = make("select", {}, ...options.map((option) => make("option", { value: option, textContent: option })));
    list.value = value;
    list.addEventListener("change", () => changed(options[list.selectedIndex]));
    return [make("label", {}, label, list), list];
  };
  // Of all combinations, the one with the most results is drawn first.
  const combine = (axes) => axes.reduce((found, [label, options]) => found.flatMap((one) => options.map((option) => ({ ...one, [label]: option }))), [{}]);
  const fullest = (matrix, axes) => {
    let [best, top] = [{}, -1];
    for (const chosen of combine(axes)) { const n = countResults(matrix, chosen); if (n > top) [best, top] = [chosen, n]; }
    return best;
  };

  const matrices = shared.map((positions) => {
    const matrix = { groups: positions.map((i) => groups[i]), whole: false, lists: {} };
    matrix.items = unique(matrix.groups.map((group) => group.items));
    const labels = unique(matrix.groups.map((group) => group.choices.map(([label]) => label)));
    const optionsOf = (label) => unique(matrix.groups.map((group) => group.choices.filter(([each]) => each === label).map(([, options]) => options)).flat()).sort(inOrder);
    const axes = labels.map((label) => [label, optionsOf(label)]);
    matrix.chosen = fullest(matrix, axes);
    const picks = axes.map(([label, options]) => {
      const [shown, list] = select(label, options, matrix.chosen[label], (option) => { matrix.chosen[label] = option; redraw(matrix); });
      matrix.lists[label] = list;
      return shown;
    });
    const name = title(matrix.groups.map((group) => group.name));
    const about = unique(matrix.groups.map((group) => group.about)).filter(Boolean);
    matrix.body = make("div", { className: "scroll", tabIndex: 0 });
    matrix.body.setAttribute("role", "region");
    matrix.body.setAttribute("aria-label", `Matrix of ${name}`);
    matrix.rest = make("button", { type: "button", className: "more", hidden: true });
    matrix.rest.addEventListener("click", () => { matrix.whole = true; redraw(matrix); });
    matrix.shared = about.length === 1;
    matrix.card = make(
      "article", { className: "card matrix" },
      make("header", {}, make("h4", { textContent: name }), make("div", { className: "pick" }, ...picks)),
      matrix.shared ? make("p", { className: "about", textContent: `${capital(about[0])}.` }) : null,
      matrix.body, matrix.rest,
    );
    return matrix;
  });

  let lit = null; // the word that is highlighted
  let sought = [];
  const matches = (name) => sought.every((word) => name.toLowerCase().includes(word));

  const cellButton = (at, group, item) => {
    if (at === null) return make("div", { className: "blank", textContent: "·", title: `${item} does not have ${group.name}` });
    if (at < 0) {
      const [, mark, meaning, tone] = statuses[absent];
      return make("div", { className: `blank v-${tone}`, textContent: mark, title: meaning });
    }
    const cell = cellOf(at);
    const button = make("button", { type: "button", className: `cell v-${cell.tone}`, tabIndex: -1 });
    button.dataset.at = at;
    button.dataset.word = cell.word;
    if (cell.mark) button.classList.add("big");
    const line = make("span", {}, cell.shown, cell.aside ? make("i", { textContent: ` · ${cell.aside}` }) : null);
    button.append(make("b", { textContent: cell.mark || cell.word }), " ", line);
    if (cell.warning) button.append(" ", make("span", { className: "mark", textContent: cell.warning }));
    button.classList.toggle("dim", lit !== null && lit !== cell.word);
    button.setAttribute("aria-label", `${item}, ${group.name}: ${button.textContent}`); // what is seen is a part of what is said
    return button;
  };

  const redraw = (matrix) => {
    const named = matrix.groups.filter((group) => matches(group.name));
    const own = matrix.groups.map((group) => [group, group.items.filter((name) => matches(`${group.name} ${name}`))]);
    const shownGroups = sought.length ? own.filter(([, found]) => found.length).map(([group]) => group) : matrix.groups;
    const found = new Set(own.flatMap(([, names]) => names));
    const shownItems = sought.length && !named.length ? matrix.items.filter((name) => found.has(name)) : matrix.items;
    matrix.card.hidden = !shownGroups.length || !shownItems.length;
    if (matrix.card.hidden) return;
    const groupsDown = shownGroups.length > shownItems.length; // the longer axis runs down, so that the page stays narrow
    const [down, across] = groupsDown ? [shownGroups, shownItems] : [shownItems, shownGroups];
    matrix.card.classList.toggle("broad", across.length > 2);
    const limit = matrix.whole ? down.length : Math.max(1, Math.floor(MOST / across.length));
    const heading = (one, scope) => {
      const told = typeof one === "string" || matrix.shared ? "" : one.about;
      return make("th", { scope }, one.name || one, told ? make("small", { textContent: told }) : null);
    };
    const rows = down.slice(0, limit).map((first) => make(
      "tr", {}, heading(first, "row"),
      ...across.map((second) => {
        const [group, item] = groupsDown ? [first, second] : [second, first];
        return make("td", {}, cellButton(find(group, item, matrix.chosen), group, item));
      }),
    ));
    const corner = make("th", { scope: "col", textContent: capital(nouns[groupsDown ? 0 : 1]) });
    const head = make("tr", {}, corner, ...across.map((one) => heading(one, "col")));
    matrix.body.replaceChildren(make("table", { className: "cells" }, make("thead", {}, head), make("tbody", {}, ...rows)));
    matrix.rest.hidden = down.length <= limit;
    matrix.rest.textContent = `Show all ${down.length} rows`;
    const first = matrix.body.querySelector(".cell");
    if (first) first.tabIndex = 0;
  };

  // One cell of a matrix is in the tab order; the arrow keys move from there.
  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const drawn = document.getElementById("drawn");
  drawn.addEventListener("keydown", (event) => {
    const button = event.target.closest(".cell");
    const step = STEPS[event.key];
    if (!button || !step) return;
    event.preventDefault();
    const table = button.closest("table");
    let [row, column] = [button.closest("tr").rowIndex, button.closest("td").cellIndex];
    for (;;) { // past places without a cell
      [row, column] = [row + step[0], column + step[1]];
      const place = row > 0 && table.rows[row] && column > 0 && table.rows[row].cells[column];
      if (!place) return;
      const next = place.querySelector(".cell");
      if (next) { reach(next); next.focus(); return; }
    }
  });
  const reach = (button) => {
    for (const other of button.closest("table").querySelectorAll(".cell[tabindex='0']")) other.tabIndex = -1;
    button.tabIndex = 0;
  };
  drawn.addEventListener("click", (event) => {
    const button = event.target.closest(".cell");
    if (button) { reach(button); open(Number(button.dataset.at)); }
  });

  // ---- The panel of a cell
  const panel = document.getElementById("panel");
  const part = (heading, ...content) => {
    const shown = content.filter(Boolean);
    return shown.length ? make("section", {}, make("h4", { textContent: heading }), ...shown) : "";
  };
  const list = (pairs) => make("dl", {}, ...pairs.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));

  const ticks = (low, high, log) => {
    const found = [];
    if (log) {
      for (const digits of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7]]) {
        found.length = 0;
        for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
          for (const d of digits) { const v = Number(`${d}e${e}`); if (v >= low && v <= high) found.push(v); }
        }
        if (found.length >= 3) break;
      }
    } else {
      const power = 10 ** Math.floor(Math.log10(high - low));
      const step = [5, 2, 1, 0.5, 0.2].map((s) => s * power).find((s) => Math.floor(high / s) - Math.ceil(low / s) >= 2) || power;
      for (let i = Math.ceil(low / step); i * step <= high; i += 1) found.push(Number((i * step).toPrecision(6)));
    }
    const every = Math.ceil(found.length / 6);
    return found.filter((_, i) => i % every === 0);
  };
  // Every sample a dot, of this cell and of the reference on the same axis; the warm start is hollow, what was made of them a bar.
  const strips = (cell, { group, item, chosen }) => {
    const lines = [{ name: item, kind: "s0", ...cell }];
    const other = group.reference && group.reference !== item ? find(group, group.reference, chosen) : null;
    if (other !== null && other >= 0) lines.push({ ...cellOf(other), name: `${group.reference} (reference)`, kind: "s6" });
    const shown = lines.filter((line) => line.samples.length);
    if (!cell.samples.length) return null;
    const every = shown.flatMap((line) => line.samples).filter((v) => v > 0);
    if (!every.length) return null;
    let [low, high] = [Math.min(...every), Math.max(...every)];
    const log = high > 5 * low;
    const air = log ? 1.12 : (high - low) * 0.06 || high * 0.05;
    [low, high] = log ? [low / air, high * air] : [Math.max(low - air, 0), high + air];
    const [left, right, row] = [10, 450, 52];
    const x = (v) => left + (right - left) * (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
    const bottom = 8 + row * shown.length;
    const image = draw("svg", { viewBox: `0 0 460 ${bottom + 38}`, role: "img" });
    for (const tick of ticks(low, high, log)) {
      image.append(draw("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 4, y2: bottom }));
      image.append(draw("text", { class: "tick", x: x(tick), y: bottom + 14, "text-anchor": "middle" }, String(Number(tick.toPrecision(4)))));
    }
    image.append(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    image.append(draw("text", { class: "title", x: (left + right) / 2, y: bottom + 31, "text-anchor": "middle" }, `${axis}${log ? ", log axis" : ""}`));
    shown.forEach((line, i) => {
      const top = 8 + row * i;
      const marks = draw("g", { class: line.kind });
      line.samples.forEach((sample, k) => {
        if (!(sample > 0)) return;
        const y = top + 24 + ((k * 7) % 5 - 2) * 4; // spread, so that equal samples do not hide each other
        const warm = k === 0 && line.samples.length > 1;
        const name = `${warm ? "warm start" : `run ${k + 1}`}: ${sample}`;
        marks.append(draw("circle", { class: warm ? "warm" : "scored", cx: x(sample), cy: y, r: 3.4 }, draw("title", {}, name)));
      });
      if (line.level > 0) marks.append(draw("line", { class: "reported", x1: x(line.level), x2: x(line.level), y1: top + 10, y2: top + 38 }, draw("title", {}, `reported: ${line.shown}`)));
      image.append(marks, draw("text", { class: "name", x: left, y: top + 6 }, line.name));
    });
    image.setAttribute("aria-label", shown.map((line) => `${line.name}: ${plural(line.samples.length, "sample")}, reported ${line.shown}`).join("; "));
    return make("figure", {}, image, make("figcaption", { textContent: "Each run a dot, the warm start hollow, the reported time a bar." }));
  };

  let shownAt = null;
  const open = (at) => {
    const [place, cell] = [placeOf(at), cellOf(at)];
    const { group, item, chosen } = place;
    const close = make("button", { type: "button", className: "close", textContent: "Close" });
    close.addEventListener("click", () => panel.close());
    const heading = make("h3", { id: "panel-title" }, item, make("small", { textContent: [group.name, ...Object.values(chosen)].join(", ") }));
    panel.replaceChildren(
      make("header", {}, heading, close),
      make("p", { className: "says" }, make("span", { className: `word v-${cell.tone}`, textContent: cell.word }), cell.meaning),
      cell.sentence ? make("p", { className: "says", textContent: cell.sentence }) : "",
      cell.output ? make("pre", { textContent: cell.output }) : "",
      ...cell.pairs.map(([name, pairs]) => part(name, list(pairs))),
      part(axis, strips(cell, place)),
      cell.command ? part("Reproduce", make("pre", { className: "command", textContent: cell.command })) : "",
    );
    panel.showModal();
    panel.scrollTop = 0;
    shownAt = at;
    mark();
    remember(`#cell=${[group.name, item, ...Object.values(chosen)].map(encodeURIComponent).join("&")}`);
  };
  const mark = () => {
    for (const button of drawn.querySelectorAll("[aria-current]")) button.removeAttribute("aria-current");
    drawn.querySelector(`[data-at="${shownAt}"]`)?.setAttribute("aria-current", "true");
  };
  const remember = (hash) => { try { history.replaceState(null, "", hash || location.pathname); } catch { /* not allowed */ } };
  panel.addEventListener("close", () => {
    remember("");
    const button = drawn.querySelector(`[data-at="${shownAt}"]`);
    shownAt = null;
    mark();
    button?.focus();
  });
  panel.addEventListener("click", (event) => { if (event.target === panel) panel.close(); }); // the backdrop

  // ---- Start
  drawn.append(...matrices.map((matrix) => matrix.card));
  matrices.forEach(redraw);
  document.getElementById("controls").hidden = false;
  document.getElementById("find").addEventListener("input", (event) => {
    sought = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    matrices.forEach(redraw);
  });
  const chips = Array.from(document.querySelectorAll(".chip"));
  chips.forEach((chip) => chip.addEventListener("click", () => {
    lit = lit === chip.dataset.word ? null : chip.dataset.word;
    chips.forEach((other) => other.setAttribute("aria-pressed", String(lit === other.dataset.word)));
    for (const button of drawn.querySelectorAll(".cell")) button.classList.toggle("dim", lit !== null && button.dataset.word !== lit);
  }));

  // A link to a cell: #cell=group&item&choice&...
  const [linked, item, ...options] = location.hash.startsWith("#cell=") ? location.hash.slice(6).split("&").map(decodeURIComponent) : [];
  const matrix = matrices.find((one) => one.groups.some((group) => group.name === linked));
  if (matrix) {
    const group = matrix.groups.find((one) => one.name === linked);
    const chosen = Object.fromEntries(group.choices.map(([label], i) => [label, options[i]]));
    const at = find(group, item, chosen);
    if (at !== null && at >= 0) {
      matrix.chosen = { ...matrix.chosen, ...chosen };
      for (const [label, option] of Object.entries(chosen)) matrix.lists[label].value = option;
      redraw(matrix);
      open(at);
    }
  }
})();
