"use strict";

// The page asks the server for its state, draws the controls of the schema, sends what was picked, and shows what the
// search tells. All texts are set as text, never as markup.

const $ = (id) => document.getElementById(id);
const RULES = { "": "may change", fixed: "fixed", increasing: "only up", decreasing: "only down" };
const NAMES = { target: "class to reach", label: "class to explain", regions: "parts of a picture" };
const PLAIN = ["kind", "target", "budget", "regions"];
const DRAWN_ELSEWHERE = ["fixed", "increasing", "decreasing", "categorical", "bounds"];
let state = null;
let source = null;
let changed = false; // whether the row or the text is no longer that of the sample

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function call(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.error);
  return document;
}

function say(text, failed = false) {
  $("status").textContent = text;
  $("status").classList.toggle("failed", failed);
}

// --- the parameters of the schema -----------------------------------------------------------------------------

function control(one) {
  const label = element("label", "", { title: one.help });
  let input;
  if (one.kind === "choice") {
    input = element("select");
    if (one.default === null) input.append(element("option", "default", { value: "" }));
    for (const choice of one.choices) input.append(element("option", choice, { value: choice }));
  } else if (one.kind === "flag") {
    input = element("input", "", { type: "checkbox" });
    label.className = "flag";
  } else if (one.kind === "class") {
    input = element("input", "", { list: "classes", placeholder: one.name === "target" ? "any other" : "predicted" });
  } else {
    input = element("input", "", { inputmode: one.kind === "text" ? "text" : "decimal" });
    if (one.default === null) input.placeholder = "default";
  }
  input.id = `parameter-${one.name}`;
  const given = state.defaults[one.name] ?? one.default;
  if (one.kind === "flag") input.checked = Boolean(given);
  else if (given !== null && given !== undefined) input.value = given;
  if (one.kind === "flag") label.append(input, element("span", one.name));
  else label.append(element("span", NAMES[one.name] ?? one.name), input);
  return label;
}

function valueOf(one) {
  const input = $(`parameter-${one.name}`);
  if (one.kind === "flag") return input.checked;
  const text = input.value.trim();
  if (text === "" && one.kind !== "text") return null;
  if (one.kind === "class") return /^\d+$/.test(text) ? Number(text) : text;
  if (one.kind === "number" || one.kind === "integer") return Number.isNaN(Number(text)) ? text : Number(text);
  return text;
}

function parameters() {
  const found = {};
  for (const one of state.parameters) if ($(`parameter-${one.name}`)) found[one.name] = valueOf(one);
  if (found.kind === "PP") delete found.target;
  if (state.columns) Object.assign(found, columnRules());
  if (state.picture && stage.kept.some(Boolean)) found.fixed = stage.mask();
  return found;
}

// --- the row of a table ---------------------------------------------------------------------------------------

function drawColumns(row) {
  const ruled = columnRules();
  $("columns").replaceChildren(...state.columns.map((column, i) => {
    const line = element("tr");
    const name = element("th", column.name, { scope: "row" });
    let value;
    if (column.categories) {
      value = element("select");
      value.append(element("option", "missing", { value: "" }));
      column.categories.forEach((category, k) => value.append(element("option", String(category), { value: String(k) })));
      const place = column.categories.indexOf(row[column.name]);
      value.value = place < 0 ? "" : String(place);
    } else {
      value = element("input", "", { inputmode: "decimal" });
      value.value = row[column.name] ?? "";
    }
    value.id = `value-${i}`;
    value.addEventListener("input", () => { changed = true; });
    value.setAttribute("aria-label", column.name);
    const rule = element("select", "", { id: `rule-${i}`, "aria-label": `may ${column.name} change?` });
    for (const [key, text] of Object.entries(RULES)) {
      if (column.ordered || key === "" || key === "fixed") rule.append(element("option", text, { value: key }));
    }
    rule.value = Object.keys(ruled).find((key) => ruled[key].includes(column.name)) ?? "";
    rule.addEventListener("change", () => line.classList.toggle("held", rule.value === "fixed"));
    line.classList.toggle("held", rule.value === "fixed");
    for (const cell of [value, rule]) {
      const td = element("td");
      td.append(cell);
      line.append(td);
    }
    line.prepend(name);
    return line;
  }));
}

function columnRules() {
  const found = { fixed: [], increasing: [], decreasing: [] };
  state.columns.forEach((column, i) => {
    const rule = $(`rule-${i}`)?.value;
    const given = rule === undefined ? Object.keys(found).find((key) => (state.defaults[key] ?? []).includes(column.name)) : rule;
    if (given) found[given].push(column.name);
  });
  return found;
}

function rowGiven() {
  const row = {};
  state.columns.forEach((column, i) => {
    const text = $(`value-${i}`).value.trim();
    if (column.categories) row[column.name] = text === "" ? null : column.categories[Number(text)];
    else row[column.name] = text === "" ? null : Number.isNaN(Number(text)) ? text : Number(text);
  });
  return row;
}

// --- the picture ----------------------------------------------------------------------------------------------

const stage = {
  canvas: null, ink: null, kept: [], width: 0, height: 0, at: [0, 0], last: null, edited: false, painting: false,

  begin(width, height) {
    Object.assign(this, { width, height, kept: new Array(width * height).fill(false), at: [width >> 1, height >> 1] });
    this.ink = element("canvas", "", { width, height });
    this.canvas = $("stage");
    this.scale = Math.max(1, Math.round(448 / Math.max(width, height)));
    this.canvas.width = width * this.scale;
    this.canvas.height = height * this.scale;
    this.pen = this.ink.getContext("2d", { willReadFrequently: true });
    this.blank();
  },

  blank() {
    this.pen.fillStyle = "#000";
    this.pen.fillRect(0, 0, this.width, this.height);
    this.show();
  },

  // A picture of any size, covering the stage.
  put(image) {
    const scale = Math.max(this.width / image.width, this.height / image.height);
    const [w, h] = [image.width * scale, image.height * scale];
    this.pen.imageSmoothingEnabled = scale !== 1;
    this.pen.imageSmoothingQuality = "high";
    this.pen.drawImage(image, (this.width - w) / 2, (this.height - h) / 2, w, h);
    this.show();
  },

  show() {
    const pen = this.canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.ink, 0, 0, this.canvas.width, this.canvas.height);
    const s = this.scale;
    pen.fillStyle = "rgba(150, 90, 255, 0.45)";
    for (let i = 0; i < this.kept.length; i++) {
      if (this.kept[i]) pen.fillRect((i % this.width) * s, Math.floor(i / this.width) * s, s, s);
    }
    if (document.activeElement === this.canvas) {
      pen.strokeStyle = "#ff9a52";
      pen.lineWidth = Math.max(2, s / 6);
      const r = this.radius();
      pen.strokeRect((this.at[0] - r + 0.5) * s, (this.at[1] - r + 0.5) * s, 2 * r * s, 2 * r * s);
    }
  },

  tool() { return document.querySelector("input[name=tool]:checked").value; },
  radius() { return (Number($("brush").value) * Math.max(this.width, this.height)) / 56; },

  stroke(from, to) {
    const tool = this.tool();
    if (tool === "draw" || tool === "erase") {
      this.edited = true;
      this.pen.strokeStyle = tool === "draw" ? "#fff" : "#000";
      this.pen.lineCap = this.pen.lineJoin = "round";
      this.pen.lineWidth = 1.5 * this.radius();
      this.pen.beginPath();
      this.pen.moveTo(from[0] + 0.5, from[1] + 0.5);
      this.pen.lineTo(to[0] + 0.5, to[1] + 0.51);
      this.pen.stroke();
    } else {
      const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])) + 1;
      for (let k = 0; k <= steps; k++) {
        this.disc(from[0] + ((to[0] - from[0]) * k) / steps, from[1] + ((to[1] - from[1]) * k) / steps, tool === "protect");
      }
    }
    this.show();
  },

  disc(x, y, value) {
    const r = Math.max(0.5, this.radius());
    for (let row = Math.max(0, Math.ceil(y - r)); row <= Math.min(this.height - 1, y + r); row++) {
      for (let column = Math.max(0, Math.ceil(x - r)); column <= Math.min(this.width - 1, x + r); column++) {
        if (Math.hypot(column - x, row - y) <= r) this.kept[row * this.width + column] = value;
      }
    }
  },

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.width - 0.5, ((event.clientY - box.top) / box.height) * this.height - 0.5];
  },

  mask() {
    return Array.from({ length: this.height }, (_, row) =>
      this.kept.slice(row * this.width, (row + 1) * this.width).map(Number));
  },

  png() { return this.ink.toDataURL("image/png").split(",")[1]; },
};

function listenToStage() {
  const canvas = $("stage");
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    stage.painting = true;
    stage.last = stage.at = stage.place(event);
    stage.stroke(stage.last, stage.last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!stage.painting) return;
    const now = stage.place(event);
    stage.stroke(stage.last, now);
    stage.last = stage.at = now;
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { stage.painting = false; });
  for (const name of ["focus", "blur"]) canvas.addEventListener(name, () => stage.show());
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const from = stage.at;
    if (event.key in moves) {
      const step = Math.max(1, Math.round(stage.width / 56));
      stage.at = [
        Math.min(stage.width - 1, Math.max(0, from[0] + moves[event.key][0] * step)),
        Math.min(stage.height - 1, Math.max(0, from[1] + moves[event.key][1] * step)),
      ];
      if (event.shiftKey) stage.stroke(from, stage.at);
      else stage.show();
    } else if (event.key === " ") stage.stroke(from, from);
    else return;
    event.preventDefault();
  });
  $("upload").addEventListener("change", async () => {
    const file = $("upload").files[0];
    if (!file) return;
    try {
      stage.put(await createImageBitmap(file));
      stage.edited = true;
      say("The picture is ready.");
    } catch {
      say("expected a PNG or JPEG picture, got a file that cannot be read", true);
    }
  });
  $("blank").addEventListener("click", () => {
    stage.blank();
    stage.edited = true;
    document.querySelector("input[name=tool][value=draw]").checked = true;
  });
  $("clear").addEventListener("click", () => { stage.kept.fill(false); stage.show(); });
  $("brush").addEventListener("input", () => stage.show());
}

// --- samples --------------------------------------------------------------------------------------------------

async function pick() {
  const number = Number($("sample").value);
  const found = await call(`samples/${number}`);
  changed = false;
  if (found.row) drawColumns(found.row);
  if (found.text !== undefined) $("text").value = found.text;
  if (found.picture) {
    const image = new Image();
    image.src = found.picture;
    await image.decode();
    if ($("sample").value !== String(number)) return; // another one was picked meanwhile
    stage.put(image);
    stage.edited = false;
    $("upload").value = "";
  }
}

function step(by) {
  const count = state.samples.length;
  $("sample").value = (Number($("sample").value) + by + count) % count;
  pick();
}

function inputGiven() {
  if (state.columns) return { row: rowGiven() };
  if (state.space === "words") return { text: $("text").value };
  if (state.picture && (stage.edited || !state.samples.length)) return { picture: stage.png() };
  return { sample: Number($("sample").value) };
}

function nameGiven() {
  const sample = state.samples[Number($("sample").value)];
  if (state.columns) return changed ? `${sample}, changed` : sample;
  if (state.picture && stage.edited) return $("upload").files[0]?.name ?? "drawn picture";
  return changed ? "text" : sample;
}

// --- asking and watching --------------------------------------------------------------------------------------

function busy(running) {
  $("explain").disabled = running;
  $("stop").disabled = !running;
}

async function ask(event) {
  event.preventDefault();
  if ($("explain").disabled) return;
  busy(true);
  $("seen").replaceChildren();
  $("queries").textContent = "0 queries";
  $("best").textContent = "";
  $("bar").value = 0;
  say("Searching …");
  const given = parameters();
  try {
    const { search } = await call("explain", { input: inputGiven(), name: nameGiven(), parameters: given });
    watch(search, given.budget ?? null);
  } catch (error) {
    say(error.message, true);
    busy(false);
  }
}

function watch(search, budget) {
  if (source) source.close();
  source = new EventSource(`progress/${search}`);
  source.onmessage = ({ data }) => {
    const known = JSON.parse(data);
    $("queries").textContent = `${known.nfev.toLocaleString("en")} queries`;
    $("bar").value = known.state === "running" ? Math.min(1, known.nfev / (budget ?? state.most)) : 1;
    if (known.best !== undefined) $("best").textContent = `F ${known.best.toPrecision(4)}`;
    if (known.seen) showSeen(known.seen);
    if (known.state === "running") return;
    source.close();
    busy(false);
    for (const one of known.answers ?? known.partial ?? []) addCard(one);
    if (known.state === "failed") say(known.error, true);
    else say(known.answers.some((one) => one.valid) ? "Done." : "Nothing valid was found.");
  };
  source.onerror = () => {
    source.close();
    busy(false);
    say("the studio does not answer any more: is zomirror studio still running?", true);
  };
}

function showSeen(seen) {
  let made;
  if (seen.picture) made = element("img", "", { src: seen.picture, alt: "what the model sees with the best answer so far" });
  else if (seen.text !== undefined) made = element("p", seen.text);
  else made = changesTable(element("table"), seen.changes);
  $("seen").replaceChildren(made);
}

function changesTable(table, changes) {
  const body = table.tBodies[0] ?? table.appendChild(element("tbody"));
  for (const [name, before, after] of changes) {
    const line = element("tr");
    line.append(element("th", name, { scope: "row" }), element("td", before), element("td", after));
    body.append(line);
  }
  return table;
}

// --- answers --------------------------------------------------------------------------------------------------

function addCard(one) {
  const card = $("card").content.firstElementChild.cloneNode(true);
  card.id = `answer-${one.number}`;
  card.classList.add(one.kind);
  card.classList.toggle("invalid", !one.valid);
  card.querySelector("h3").textContent = `${one.kind} of ${one.input}`;
  card.setAttribute("aria-label", `answer ${one.number}, ${one.kind} of ${one.input}`);
  card.querySelector(".answer").textContent = one.words;
  const captions = { original: `input: ${one.label_name}`, overlay: one.kind, seen: `model sees: ${one.contrast_name}` };
  for (const [name, uri] of Object.entries(one.panels ?? {})) {
    const figure = element("figure");
    figure.append(element("img", "", { src: uri, alt: captions[name] }), element("figcaption", captions[name]));
    card.querySelector(".panels").append(figure);
  }
  for (const [words, mark] of one.marked) {
    card.querySelector(".marked").append(mark ? element("mark", words, { class: one.kind }) : words);
  }
  const changes = card.querySelector(".changes");
  if (one.panels || one.marked.length) changes.parentElement.remove();
  else {
    changes.tHead.rows[0].cells[1].textContent = one.kind === "PP" ? "baseline" : "input";
    changes.tHead.rows[0].cells[2].textContent = "model sees";
    changesTable(changes, one.changes);
  }
  drawScores(card.querySelector(".scores tbody"), one);
  card.querySelector(".note").textContent = `${one.nfev.toLocaleString("en")} queries; ${one.message}`;
  card.querySelector(".remove").addEventListener("click", () => removeCard(one.number));
  const cards = $("cards");
  cards.append(card);
  while (cards.children.length > 4) cards.firstElementChild.remove();
  knowClasses(one.classes);
  refreshAnswers();
}

function drawScores(body, one) {
  const most = [one.label, one.contrast_label];
  const order = one.scores_after.map((_, i) => i).filter((i) => i !== most[0] && i !== most[1]);
  order.sort((a, b) => Math.max(one.scores_before[b], one.scores_after[b]) - Math.max(one.scores_before[a], one.scores_after[a]));
  const shown = [...new Set(most)].filter((i) => i >= 0).concat(order).slice(0, 5);
  const all = shown.flatMap((i) => [one.scores_before[i], one.scores_after[i]]).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...all), Math.max(...all)];
  for (const i of shown) {
    const line = element("tr");
    line.append(element("th", one.classes[i], { scope: "row" }));
    for (const [side, column, top] of [["before", one.scores_before, one.label], ["after", one.scores_after, one.contrast_label]]) {
      const cell = element("td", Number.isFinite(column[i]) ? column[i].toPrecision(3) : "?", i === top ? { class: "largest" } : {});
      const bar = element("span", "", { class: `bar ${side}`, "aria-hidden": "true" });
      bar.style.width = `${Number.isFinite(column[i]) ? (3 * (column[i] - low)) / (high - low || 1) : 0}rem`;
      cell.append(bar);
      line.append(cell);
    }
    body.append(line);
  }
}

async function removeCard(number) {
  $(`answer-${number}`).remove();
  refreshAnswers();
  $("answers").focus();
  await call("forget", { number });
}

function refreshAnswers() {
  const count = $("cards").children.length;
  $("empty").hidden = count > 0;
  $("save").hidden = count === 0;
  $("head-answers").textContent = count ? `Answers (${count} of 4)` : "Answers";
}

function knowClasses(names) {
  let list = $("classes");
  if (!list) document.body.append((list = element("datalist", "", { id: "classes" })));
  if (list.children.length === 0) list.append(...names.slice(0, 1000).map((name) => element("option", "", { value: name })));
}

// --- the beginning --------------------------------------------------------------------------------------------

async function begin() {
  state = await call("state");
  $("title").textContent = state.title;
  document.title = `${state.title} – zomirror studio`;
  for (const one of state.parameters) {
    if (!DRAWN_ELSEWHERE.includes(one.name)) $(PLAIN.includes(one.name) ? "parameters" : "more").append(control(one));
  }
  knowClasses(state.classes ?? []);
  $("sample").append(...state.samples.map((name, i) => element("option", name, { value: i })));
  $("pick").hidden = state.samples.length === 0;
  $("for-row").hidden = !state.columns;
  $("for-text").hidden = state.space !== "words";
  $("for-picture").hidden = !state.picture;
  if (state.picture) {
    stage.begin(state.picture.width, state.picture.height);
    if (!state.picture.drawn) for (const one of document.querySelectorAll(".ink")) one.hidden = true;
    listenToStage();
  }
  $("text").addEventListener("input", () => { changed = true; });
  $("sample").addEventListener("change", pick);
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("ask").addEventListener("submit", ask);
  $("stop").addEventListener("click", () => { say("Stopping …"); call("stop", {}); });
  if (state.samples.length) await pick();
  state.answers.forEach(addCard);
  if (state.search !== null) { // the page was loaded again while a search is under way
    busy(true);
    say("Searching …");
    watch(state.search, null);
  }
  document.body.dataset.ready = "yes";
}

begin().catch((error) => say(error.message, true));
