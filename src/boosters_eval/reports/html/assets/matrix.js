
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("matrix").textContent);
  const { cells, methods, texts, words, marks, meanings } = data;
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

  const number = (value, digits = 3) => {
    if (value === null || value === undefined) return "–";
    if (typeof value === "string") return value;
    const size = Math.abs(value);
    if (size && (size < 1e-4 || size >= 1e7)) return value.toExponential(digits - 1).replace(/e([+-])(\d)$/, "e$10$2");
    const shown = value === 0 ? "0" : value.toPrecision(digits);
    return shown.includes("e") ? String(Number(shown)) : shown;
  };
  const time = (ms) => (ms === null ? "–" : ms >= 10000 ? `${number(ms / 1000)} s` : `${number(ms)} ms`);
  const times = (ratio) => `${number(ratio, ratio < 100 ? 2 : 3)}×`;
  const share = (part) => `${number(part * 100, 3)} %`;
  const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const facts = (json) => { try { return Object.entries(JSON.parse(json)); } catch { return json ? [["unreadable", json]] : []; } };

  const samples = (at) => cells.samples[at].map((sample) => sample * cells.unit[at] / 1e6); // milliseconds

  // Cells stand in the order of method, backend, size and threads.
  let offset = 0;
  for (const method of methods) {
    method.start = offset;
    offset += method.backends.length * method.sizes.length * method.threads.length;
    method.column = new Map(method.backends.map((name, i) => [name, i]));
  }
  const cellAt = (method, backend, size, threads) => {
    const [b, s, t] = [method.column.get(backend), method.sizes.indexOf(size), method.threads.indexOf(threads)];
    if (b === undefined) return null; // the backend does not have the method
    return s < 0 || t < 0 ? -1 : method.start + (b * method.sizes.length + s) * method.threads.length + t;
  };

  // ---- The matrices
  const unique = (lists) => [...new Set(lists.flat())];
  const bySize = (a, b) => { const [x, y] = [a.split("x"), b.split("x")]; return x[0] - y[0] || x[1] - y[1]; };
  const results = (matrix, size, threads) => {
    let n = 0;
    for (const method of matrix.methods) {
      for (const backend of method.backends) {
        const at = cellAt(method, backend, size, threads);
        n += at !== null && at >= 0 && !marks[cells.word[at]] ? 1 : 0;
      }
    }
    return n;
  };
  const most = (options, count) => {
    let best = options[0], top = -1;
    for (const option of options) { const n = count(option); if (n > top) [best, top] = [option, n]; }
    return best;
  };

  const title = (names) => {
    if (names.length <= 3) return names.join(", ");
    let end = 0;
    while (names.every((name) => name[end] !== undefined && name[end] === names[0][end])) end += 1;
    const stem = names[0].slice(0, end).replace(/[^A-Za-z0-9]+$/, "");
    return stem.length > 2 ? `${stem} (${names.length} methods)` : `${names[0]} and ${names.length - 1} more`;
  };
  const oracle = (method) => method.oracle && `oracle ${method.oracle}, within ${number(method.tolerance, 1)} (${method.metric})`;
  const select = (label, options, value, changed) => {
    const list = make("select", {}, ...options.map((option) => make("option", { value: String(option), textContent: option })));
    list.value = String(value);
    list.addEventListener("change", () => changed(options[list.selectedIndex]));
    return [make("label", {}, label, list), list];
  };

  const matrices = data.matrices.map((positions) => {
    const matrix = { methods: positions.map((i) => methods[i]), whole: false };
    matrix.backends = unique(matrix.methods.map((method) => method.backends));
    matrix.sizes = unique(matrix.methods.map((method) => method.sizes)).sort(bySize);
    matrix.counts = unique(matrix.methods.map((method) => method.threads)).sort((a, b) => a - b);
    matrix.threads = most(matrix.counts, (n) => Math.max(...matrix.sizes.map((size) => results(matrix, size, n))));
    matrix.size = most(matrix.sizes, (size) => results(matrix, size, matrix.threads));
    const [sizeLabel, sizes] = select("Size", matrix.sizes, matrix.size, (size) => { matrix.size = size; redraw(matrix); });
    const [threadLabel, counts] = select("Threads", matrix.counts, matrix.threads, (n) => { matrix.threads = n; redraw(matrix); });
    const name = title(matrix.methods.map((method) => method.name));
    const oracles = unique(matrix.methods.map(oracle)).filter(Boolean);
    matrix.lists = { sizes, counts };
    matrix.body = make("div", { className: "scroll", tabIndex: 0 });
    matrix.body.setAttribute("role", "region");
    matrix.body.setAttribute("aria-label", `Matrix of ${name}`);
    matrix.rest = make("button", { type: "button", className: "more", hidden: true });
    matrix.rest.addEventListener("click", () => { matrix.whole = true; redraw(matrix); });
    matrix.shared = oracles.length === 1;
    matrix.card = make(
      "article", { className: "card matrix" },
      make("header", {}, make("h4", { textContent: name }), make("div", { className: "pick" }, sizeLabel, threadLabel)),
      matrix.shared ? make("p", { className: "about", textContent: `Each cell: verdict, time, speed-up over the oracle; ${oracles[0]}.` }) : null,
      matrix.body, matrix.rest,
    );
    return matrix;
  });

  let lit = null; // the word that is highlighted
  let sought = [];
  const matches = (name) => sought.every((word) => name.toLowerCase().includes(word));

  const cellButton = (at, method, backend) => {
    if (at === null) return make("div", { className: "blank", textContent: "·", title: `${backend} does not have ${method.name}` });
    if (at < 0) return make("div", { className: "blank v-not_run", textContent: "NR", title: "Not run at this size and number of threads." });
    const word = words[cells.word[at]];
    const button = make("button", { type: "button", className: `cell v-${word}`, tabIndex: -1 });
    button.dataset.at = at;
    const mark = marks[cells.word[at]];
    if (mark) {
      const why = texts[cells.signal[at]] || word;
      button.classList.add("big");
      button.append(make("b", { textContent: mark }), " ", make("span", { textContent: why.replaceAll("_", " ") }));
    } else {
      const speedup = cells.speedup[at];
      const reference = backend === method.oracleBackend;
      const line = make("span", {}, time(cells.reported_ms[at]));
      if (reference) line.append(make("i", { textContent: " · oracle" }));
      else if (speedup !== null) line.append(make("i", { textContent: ` · ${times(speedup)}` }));
      button.append(make("b", { textContent: word }), " ", line);
      if (words[cells.binding[at]] === "divergent") button.append(" ", make("span", { className: "mark", textContent: "≠ canonical binding" }));
    }
    button.classList.toggle("dim", lit !== null && lit !== word);
    button.setAttribute("aria-label", `${backend}, ${method.name}: ${button.textContent}`); // what is seen is a part of what is said
    return button;
  };

  const redraw = (matrix) => {
    const named = matrix.methods.filter((method) => matches(method.name));
    const own = matrix.methods.map((method) => [method, method.backends.filter((name) => matches(`${method.name} ${name}`))]);
    const shownMethods = sought.length ? own.filter(([, found]) => found.length).map(([method]) => method) : matrix.methods;
    const found = new Set(own.flatMap(([, names]) => names));
    const shownBackends = sought.length && !named.length ? matrix.backends.filter((name) => found.has(name)) : matrix.backends;
    matrix.card.hidden = !shownMethods.length || !shownBackends.length;
    if (matrix.card.hidden) return;
    const methodsDown = shownMethods.length > shownBackends.length; // the longer axis runs down, so that the page stays narrow
    const [down, across] = methodsDown ? [shownMethods, shownBackends] : [shownBackends, shownMethods];
    matrix.card.classList.toggle("broad", across.length > 2);
    const limit = matrix.whole ? down.length : Math.max(1, Math.floor(MOST / across.length));
    const heading = (item, scope) => {
      const told = typeof item === "string" || matrix.shared ? "" : oracle(item);
      return make("th", { scope }, item.name || item, told ? make("small", { textContent: told }) : null);
    };
    const rows = down.slice(0, limit).map((first) => make(
      "tr", {}, heading(first, "row"),
      ...across.map((second) => {
        const [method, backend] = methodsDown ? [first, second] : [second, first];
        return make("td", {}, cellButton(cellAt(method, backend, matrix.size, matrix.threads), method, backend));
      }),
    ));
    const head = make("tr", {}, make("th", { scope: "col", textContent: methodsDown ? "Method" : "Backend" }), ...across.map((item) => heading(item, "col")));
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
  const methodOf = (at) => methods.findLast((method) => method.start <= at);
  const placeOf = (at) => {
    const method = methodOf(at);
    const [S, T] = [method.sizes.length, method.threads.length];
    const inner = at - method.start;
    return { method, backend: method.backends[Math.floor(inner / (S * T))], size: method.sizes[Math.floor(inner / T) % S], threads: method.threads[inner % T] };
  };
  const pairs = (list) => {
    const shown = list.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== "–");
    return shown.length ? make("dl", {}, ...shown.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })])) : null;
  };
  const part = (heading, ...content) => {
    const shown = content.filter(Boolean);
    return shown.length ? make("section", {}, make("h4", { textContent: heading }), ...shown) : "";
  };
  const verdictLine = (word) => make("p", { className: "says" }, make("span", { className: `word v-${word}`, textContent: word }), meanings[words.indexOf(word)]);

  const differences = (at) => {
    const binding = words[cells.binding[at]];
    const against = texts[cells.oracle[at]];
    return part(
      "Differences",
      pairs([
        ["Oracle", against],
        ["Judged by", cells.divergence[at] === null ? "" : `${texts[cells.divergence_metric[at]]} ${number(cells.divergence[at])}, tolerance ${number(cells.tolerance[at], 1)}`],
        ["Max abs", number(cells.max_abs[at])],
        ["Relative RMSE", number(cells.relative_rmse[at])],
        ["Rows off", cells.rows_off[at] === null ? "" : share(cells.rows_off[at])],
        ["Canonical binding", binding && `${binding}${cells.binding_max_abs[at] === null ? "" : `, max abs ${number(cells.binding_max_abs[at])}`}`],
      ]),
    );
  };
  const timing = (at, place) => {
    const speedup = cells.speedup[at];
    const runs = cells.n_runs[at] === null ? "" : `${texts[cells.timing_statistic[at]]} of ${plural(cells.n_runs[at], "run")}, ${cells.total_runs[at]} with the warm start (${texts[cells.timing_schema[at]]}, ended by: ${texts[cells.stop_reason[at]].replaceAll("_", " ")})`;
    return part(
      "Time",
      pairs([
        ["Reported", cells.reported_ms[at] === null ? "" : time(cells.reported_ms[at])],
        ["Statistic", runs],
        ["Speed-up", speedup === null ? "" : `${times(speedup)} the speed of the oracle`],
        ["Load (not counted)", time(cells.load_ms[at])],
        ["Prepare", time(cells.prepare_ms[at])],
        ["Fit", time(cells.fit_ms[at])],
        ["Predict", time(cells.predict_ms[at])],
        ["Threads", cells.threads_observed[at] === null ? "" : `${place.threads} asked for, ${cells.threads_observed[at]} observed`],
        ["Repeatable", cells.repeatable[at] === null ? "" : cells.repeatable[at] ? "yes: a second run gave the same bits" : "no: a second run gave other bits"],
      ]),
      strips(at, place),
    );
  };

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
  // Every sample a dot, of this cell and of the oracle on the same axis; the warm start is hollow, the reported time a bar.
  const strips = (at, { method, backend, size, threads }) => {
    const lines = [{ name: backend, at, kind: "s0" }];
    const other = method.oracleBackend && method.oracleBackend !== backend ? cellAt(method, method.oracleBackend, size, threads) : null;
    if (other !== null && other >= 0) lines.push({ name: `${method.oracleBackend} (oracle)`, at: other, kind: "s6" });
    for (const line of lines) line.samples = samples(line.at);
    const shown = lines.filter((line) => line.samples.length);
    if (!shown.length || shown[0].at !== at) return null;
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
    image.append(draw("text", { class: "title", x: (left + right) / 2, y: bottom + 31, "text-anchor": "middle" }, `Time per run (ms${log ? ", log axis" : ""})`));
    shown.forEach((line, i) => {
      const top = 8 + row * i;
      const group = draw("g", { class: line.kind });
      const alone = line.samples.length === 1;
      line.samples.forEach((sample, k) => {
        if (!(sample > 0)) return;
        const y = top + 24 + ((k * 7) % 5 - 2) * 4; // spread, so that equal samples do not hide each other
        const warm = k === 0 && !alone;
        const name = `${warm ? "warm start" : `run ${k + 1}`}: ${number(sample, 4)} ms`;
        group.append(draw("circle", { class: warm ? "warm" : "scored", cx: x(sample), cy: y, r: 3.4 }, draw("title", {}, name)));
      });
      const reported = cells.reported_ms[line.at];
      if (reported > 0) group.append(draw("line", { class: "reported", x1: x(reported), x2: x(reported), y1: top + 10, y2: top + 38 }, draw("title", {}, `reported: ${number(reported, 4)} ms`)));
      const label = draw("text", { class: "name", x: left, y: top + 6 }, line.name);
      image.append(group, label);
    });
    image.setAttribute("aria-label", shown.map((line) => `${line.name}: ${plural(line.samples.length, "sample")}, reported ${time(cells.reported_ms[line.at])}`).join("; "));
    return make("figure", {}, image, make("figcaption", { textContent: "Each run a dot, the warm start hollow, the reported time a bar." }));
  };

  let shownAt = null;
  const open = (at) => {
    const place = placeOf(at);
    const { method, backend, size, threads } = place;
    const word = words[cells.word[at]];
    const close = make("button", { type: "button", className: "close", textContent: "Close" });
    close.addEventListener("click", () => panel.close());
    const heading = make("h3", { id: "panel-title" }, backend, make("small", { textContent: `${method.name}, ${size}, ${plural(threads, "thread")}` }));
    const ended = [texts[cells.signal[at]], texts[cells.message[at]]].filter(Boolean).join(": ");
    panel.replaceChildren(
      make("header", {}, heading, close),
      verdictLine(word),
      texts[cells.convention[at]] ? make("p", { className: "says", textContent: texts[cells.convention[at]] }) : "",
      ended ? make("pre", { textContent: ended }) : "",
      differences(at),
      timing(at, place),
      part("Versions", pairs(facts(texts[cells.versions_json[at]]))),
      part("Run", pairs([...facts(texts[cells.host_json[at]]), ["Measured", texts[cells.measured_at[at]]], ["Run", texts[cells.run_id[at]]], ["Parameters", texts[cells.parameters_digest[at]]], ["Data", texts[cells.data_digest[at]]]])),
      part("Reproduce", make("pre", { className: "command", textContent: `${texts[cells.what[at]]} ${texts[cells.how[at]]}` })),
    );
    panel.showModal();
    panel.scrollTop = 0;
    shownAt = at;
    mark();
    remember(`#cell=${[method.name, backend, size, threads].map(encodeURIComponent).join("&")}`);
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
    for (const button of drawn.querySelectorAll(".cell")) button.classList.toggle("dim", lit !== null && !button.classList.contains(`v-${lit}`));
  }));

  // A link to a cell: #cell=method&backend&size&threads
  const linked = location.hash.startsWith("#cell=") ? location.hash.slice(6).split("&").map(decodeURIComponent) : null;
  const matrix = linked && matrices.find((one) => one.methods.some((method) => method.name === linked[0]));
  if (matrix) {
    const method = matrix.methods.find((one) => one.name === linked[0]);
    const at = cellAt(method, linked[1], linked[2], Number(linked[3]));
    if (at !== null && at >= 0) {
      [matrix.size, matrix.threads] = [linked[2], Number(linked[3])];
      [matrix.lists.sizes.value, matrix.lists.counts.value] = [linked[2], linked[3]];
      redraw(matrix);
      open(at);
    }
  }
})();
