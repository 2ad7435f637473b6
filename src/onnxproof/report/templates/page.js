// The page's own behaviour: theme, charts, paged tables, filters, slider, printing. Texts are only ever written as text.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // --- numbers -----------------------------------------------------------------------------------------------------
  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return String(value);
    if (Math.abs(value) >= 1e299) return "∞";
    const size = Math.abs(value);
    if (value !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(1).replace(/([+-])(\d)$/, "$10$2");
    const rounded = Number(value.toPrecision(3));
    return size >= 1000 ? rounded.toLocaleString("en") : String(rounded);
  };

  // --- theme -------------------------------------------------------------------------------------------------------
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const button = document.getElementById("theme");
  const label = () => {
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to the " + button.textContent.toLowerCase() + " theme");
  };
  button.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("onnxproof-theme", root.dataset.theme);
    } catch (error) {
      // Without storage the choice lasts as long as the page.
    }
    label();
    redraw();
  });
  system.addEventListener("change", () => {
    label();
    redraw();
  });
  label();

  // --- charts: drawn when they come into view, the rest when there is time --------------------------------------------
  const views = {};
  const waiting = new Set(all(".chart"));
  const draw = (frame) => {
    waiting.delete(frame);
    const key = frame.dataset.chart;
    const options = { actions: false, renderer: "svg", ast: true, config: data.themes[theme()], tooltip: { theme: theme() } };
    return window
      .vegaEmbed(frame, structuredClone(data.charts[key]), options)
      .then((result) => {
        views[key] = result.view;
        frame.dataset.drawn = theme();
        if (key === "curve") mark();
      })
      .catch((error) => {
        frame.replaceChildren(make("p", "This chart could not be drawn: " + error.message, "chart-failed"));
      });
  };
  const redraw = () => all(".chart[data-drawn]").forEach((frame) => draw(frame));
  const visible = (frame) => frame.getClientRects().length > 0;
  const observer = new IntersectionObserver(
    (entries) => entries.forEach((entry) => {
      if (entry.isIntersecting && waiting.has(entry.target)) {
        observer.unobserve(entry.target);
        draw(entry.target);
      }
    }),
    { rootMargin: "200px" },
  );
  waiting.forEach((frame) => observer.observe(frame));
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 200));
  const drawNext = () => {
    const frame = Array.from(waiting).find(visible);
    if (frame) draw(frame).then(() => later(drawNext));
  };
  window.addEventListener("load", () => setTimeout(() => later(drawNext), 300));

  // --- tables with pages ---------------------------------------------------------------------------------------------
  const STATES = ["agrees", "note", "review", "block", "rejected"];
  const GRAVITY = [1, 2, 3, 4, 0];
  const text = (table, index) => (index === null ? "" : table.texts[index]);
  const TABLES = {
    cases: [
      { name: "case", show: (row, t) => row[0].map((part) => t.texts[part]).join("/") },
      { name: "output", show: (row, t) => text(t, row[1]) },
      { name: "verdict", show: (row) => STATES[row[2]], key: (row) => GRAVITY[row[2]], badge: true },
      { name: "max abs", number: 3 },
      { name: "max rel", number: 4 },
      { name: "noise ratio", number: 5 },
      { name: "graph in float64", number: 6 },
    ],
    steps: [
      { name: "step", show: (row) => String(row[0]), key: (row) => row[0] },
      { name: "node", show: (row, t) => text(t, row[1]) },
      { name: "operator", show: (row, t) => text(t, row[2]) },
      { name: "module", show: (row, t) => text(t, row[3]) },
      { name: "source", show: (row, t) => text(t, row[4]) },
      { name: "culprit", show: (row) => (row[5] ? "culprit" : ""), key: (row) => row[5] },
      { name: "introduced", number: 6 },
      { name: "inherited", number: 7 },
    ],
  };
  const PAGE = 12;

  const paged = (box) => {
    const table = data[box.dataset.table];
    const columns = TABLES[box.dataset.table].map((column) =>
      column.number === undefined ? column : { ...column, show: (row) => shown(row[column.number]), key: (row) => row[column.number] },
    );
    const head = box.querySelector("thead tr");
    const body = box.querySelector("tbody");
    const search = box.querySelector("input");
    const turns = all("[data-turn]", box);
    let rows = table.rows, page = 0, sorted = null, down = true;

    const line = (row) => {
      const element = make("tr");
      columns.forEach((column, index) => {
        const cell = make(index ? "td" : "th", undefined, column.number === undefined ? "" : "n");
        if (!index) cell.scope = "row";
        const value = column.show(row, table);
        if (column.badge) cell.append(make("span", value, "state " + value));
        else cell.textContent = value;
        element.append(cell);
      });
      return element;
    };
    const show = () => {
      const pages = Math.max(1, Math.ceil(rows.length / PAGE));
      page = Math.min(Math.max(page, 0), pages - 1);
      body.replaceChildren(...rows.slice(page * PAGE, (page + 1) * PAGE).map(line));
      box.querySelector(".count").textContent = rows.length.toLocaleString("en") + " of " + table.rows.length.toLocaleString("en") + " rows";
      box.querySelector(".page").textContent = "Page " + (page + 1) + " of " + pages;
      turns.forEach((turn) => (turn.disabled = Number(turn.dataset.turn) < 0 ? page === 0 : page === pages - 1));
    };
    const order = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows = words.length
        ? table.rows.filter((row) => {
            const whole = columns.map((column) => (column.number === undefined ? column.show(row, table) : "")).join(" ").toLowerCase();
            return words.every((word) => whole.includes(word));
          })
        : table.rows.slice();
      if (sorted !== null) {
        const column = columns[sorted];
        const key = column.key || ((row) => column.show(row, table));
        const sign = down ? -1 : 1;
        rows.sort((a, b) => {
          const x = key(a), y = key(b);
          if (x === null || y === null) return (x === null) - (y === null);
          return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
        });
      }
      page = 0;
      show();
    };
    columns.forEach((column, index) => {
      const cell = make("th", undefined, column.number === undefined ? "" : "n");
      cell.scope = "col";
      cell.setAttribute("aria-sort", "none");
      const sorter = make("button", column.name);
      sorter.type = "button";
      sorter.addEventListener("click", () => {
        down = sorted === index ? !down : column.number !== undefined || column.key !== undefined;
        sorted = index;
        all("th", head).forEach((other) => other.setAttribute("aria-sort", "none"));
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        order();
      });
      cell.append(sorter);
      head.append(cell);
    });
    search.addEventListener("input", order);
    turns.forEach((turn) => turn.addEventListener("click", () => {
      page += Number(turn.dataset.turn);
      show();
    }));
    show();
  };
  all(".paged").forEach(paged);

  // --- findings ------------------------------------------------------------------------------------------------------
  const findings = all(".finding");
  const filters = all(".filter");
  const finder = document.getElementById("finding-search");
  if (finder) {
    const filter = () => {
      const on = new Set(filters.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.standing));
      const words = finder.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      findings.forEach((finding) => {
        const content = finding.textContent.toLowerCase();
        finding.hidden = !on.has(finding.dataset.standing) || !words.every((word) => content.includes(word));
        if (!finding.hidden) count += 1;
      });
      document.getElementById("finding-count").textContent = count + " of " + findings.length + " shown";
    };
    filters.forEach((one) => one.addEventListener("click", () => {
      one.setAttribute("aria-pressed", one.getAttribute("aria-pressed") === "true" ? "false" : "true");
      filter();
    }));
    finder.addEventListener("input", filter);
    filter();
  }

  // --- the threshold ---------------------------------------------------------------------------------------------------
  const slider = document.getElementById("threshold");
  const share = (part, rest) => (part + rest ? (part / (part + rest)).toFixed(4) : "–");
  // A score at or above the threshold is positive, so the counts at a threshold are those of the next one that is listed.
  const next = (list, at) => {
    let low = 0, high = list.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] >= at) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const mark = () => {
    const view = views.curve;
    if (slider && view) view.signal("at", data.thresholds.steps[Number(slider.value)]).runAsync();
  };
  if (slider) {
    const move = () => {
      const at = data.thresholds.steps[Number(slider.value)];
      document.getElementById("threshold-value").textContent = String(Number(at.toPrecision(6)));
      slider.setAttribute("aria-valuetext", String(Number(at.toPrecision(6))));
      all(".slider .matrix").forEach((box) => {
        const side = data.thresholds.sides[box.dataset.side];
        const index = next(side.threshold, at);
        const [tp, fp, fn, tn] = [side.tp[index], side.fp[index], side.fn[index], side.tn[index]];
        const counts = { tp, fp, fn, tn, flagged: tp + fp, missed: fn, alarms: fp, precision: share(tp, fp), recall: share(tp, fn) };
        all("[data-count]", box).forEach((cell) => (cell.textContent = counts[cell.dataset.count].toLocaleString("en")));
        all("tbody tr", box).forEach((row) => {
          const cells = all("td", row);
          const [negative, positive] = cells.map((cell) => counts[cell.dataset.count]);
          const total = negative + positive || 1;
          cells[0].style.setProperty("--share", (100 * negative) / total + "%");
          cells[1].style.setProperty("--share", (100 * positive) / total + "%");
        });
      });
      mark();
    };
    slider.addEventListener("input", move);
    move();
  }

  // --- paper: everything open, in light colors -----------------------------------------------------------------------
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    opened.forEach((one) => (one.open = true));
  });
  window.addEventListener("afterprint", () => opened.forEach((one) => (one.open = false)));
})();
