"use strict";

// Sort: every heading of the overview becomes a button; a second click reverses the order.
const table = document.getElementById("overview-table");
const body = table.tBodies[0];
const headings = [...table.tHead.rows[0].cells];
const collator = new Intl.Collator(undefined, { numeric: true });

function valueOf(row, column, type) {
  const cell = row.cells[column];
  const value = cell.dataset.value ?? cell.textContent.trim();
  return type === "number" || cell.dataset.value !== undefined ? Number(value) : value;
}

function compare(a, b) {
  if (typeof a === "string") return collator.compare(a, b);
  // NaN comes last in both orders.
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return a - b;
}

headings.forEach((heading, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = heading.textContent;
  heading.replaceChildren(button);
  button.addEventListener("click", () => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [valueOf(row, column, heading.dataset.type), row]);
    rows.sort(([a], [b]) => {
      const order = compare(a, b);
      return down && !Number.isNaN(a) && !Number.isNaN(b) ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  });
});

// Filter: hide rows of the overview, and the sections of inputs whose rows are all hidden.
const filters = document.getElementById("filters");
const count = document.getElementById("count");

function filter() {
  const wanted = [...new FormData(filters)].filter(([, value]) => value !== "");
  const kept = new Set();
  let shown = 0;
  for (const row of body.rows) {
    row.hidden = !wanted.every(([name, value]) => row.dataset[name] === value);
    if (!row.hidden) {
      shown += 1;
      kept.add(row.dataset.case);
    }
  }
  for (const article of document.querySelectorAll("article")) article.hidden = !kept.has(article.id);
  count.textContent = `${shown} of ${body.rows.length} shown`;
}

filters.hidden = false;
filters.addEventListener("change", filter);
filters.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("all").addEventListener("click", () => {
  filters.reset();
  filter();
});
filter();

// Read: the pointer or the arrow keys move along a chart; the values are written below it.
for (const chart of document.querySelectorAll(".chart")) {
  const svg = chart.querySelector("svg");
  const cursor = chart.querySelector(".cursor");
  const reading = chart.querySelector(".reading");
  const lines = [...chart.querySelectorAll(".line")].map((path) => ({
    kind: path.dataset.kind,
    points: JSON.parse(path.dataset.points),
  }));
  const stops = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  let place = -1;

  const nearest = (points, x) =>
    points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));

  const show = (index) => {
    place = Math.max(0, Math.min(stops.length - 1, index));
    const x = stops[place];
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.setAttribute("visibility", "visible");
    reading.textContent = lines
      .map(({ kind, points }) => {
        const [, , queries, objective, nonzero] = nearest(points, x);
        return `${kind}: objective ${objective} after ${queries.toLocaleString("en")} queries, ${nonzero.toLocaleString("en")} non-zero`;
      })
      .join("\n");
  };

  const hide = () => {
    place = -1;
    cursor.setAttribute("visibility", "hidden");
    reading.textContent = "\u00a0";
  };

  const follow = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    show(stops.reduce((best, stop, i) => (Math.abs(stop - x) < Math.abs(stops[best] - x) ? i : best), 0));
  };

  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const step = Math.max(1, Math.round(stops.length / 50));
    const moves = { ArrowLeft: place - step, ArrowRight: place + step, Home: 0, End: stops.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key]);
  });
}
