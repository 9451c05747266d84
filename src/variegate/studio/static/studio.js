// The studio's page.  The server holds the state; the page shows it, and shows a pick at
// once while the server stores it.  Text from data is inserted as text, never as HTML.
//
//   talking    get and post, the queue of actions, the stream of events
//   the group  a list of items, of which the page holds those in view
//   the knob   the slider of omega, its expected scores, targets
//   panels     why, the map, the last learning result
//   the rest   list of groups, exports, keys, colours, messages

const $ = (id) => document.getElementById(id);

/** Return an HTML element with properties, or else attributes, and children. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Return an SVG element with attributes and a text. */
function draw(tag, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const known = (x) => typeof x === "number" && Number.isFinite(x);
const two = (x) => (known(x) ? x.toFixed(2) : "–");
const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2);
const percent = (x) => (known(x) ? `${Math.round(100 * x)}%` : "");
const brief = (x) => (known(x) ? String(Number(x.toPrecision(3))) : "–");
const many = (n) => `${n.toLocaleString("en")} ${studio.state.nouns[n === 1 ? 0 : 1]}`;
const groupsOf = (n) => `${n.toLocaleString("en")} ${n === 1 ? "group" : "groups"}`;

/** The state of the page. */
const studio = {
  state: null, // the last answer of /api/state
  items: [], // of the group that is shown
  shown: -1, // its number; state.group.number may be ahead while items are fetched
  probability: [], // by item, [] before anything is learned
  pending: new Map(), // picks that the server has not acknowledged: item -> picked
  preview: null, // {chosen, asked}: the proposal at the omega of the moving slider
  learned: null, // the last answer of /api/learned
  before: null, // the answer before that
  active: 0, // the item that keys act on
};

// --- talking ---------------------------------------------------------------------------

/** An answer of the server with an error status and its message. */
class Refusal extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

/** Fetch a path; throw a Refusal for an error status. */
async function ask(path, options = {}) {
  const response = await fetch(path, { credentials: "same-origin", ...options });
  if (response.ok) return response;
  let words = "";
  try {
    words = (await response.json()).error;
  } catch {
    // the answer is not JSON of the studio
  }
  if (response.status === 401 || response.status === 403) {
    words = "Access denied. Open the address that the command printed again.";
  }
  throw new Refusal(response.status, words || `The studio refused (${response.status}).`);
}

const get = async (path, options) => (await ask(path, options)).json();
const post = async (path, body) =>
  (await ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  })).json();

/** Show the message of a Refusal; of other errors, that the server does not answer. */
function complain(error, key = "refused") {
  if (error.name === "AbortError") return;
  if (error instanceof Refusal) tell(key, error.message);
  else away(true);
}

// Actions are posted one at a time, in order, and again when the server answers.  Until
// then the page shows them as not saved.
const queue = [];
let sending = false;

/** Queue a POST; one with onceOnly is not repeated if the server does not answer. */
function send(path, body = {}, { onceOnly = false, after = () => {} } = {}) {
  queue.push({ path, body, onceOnly, after });
  showSaved();
  flush();
}

/** Post the queue until it is empty or the server does not answer. */
async function flush() {
  if (sending) return;
  sending = true;
  while (queue.length) {
    const job = queue[0];
    try {
      const state = await post(job.path, job.body);
      queue.shift();
      settle(job);
      away(false);
      tell("refused", null);
      receive(state);
      job.after();
    } catch (error) {
      if (!(error instanceof Refusal) && !job.onceOnly) {
        away(true);
        setTimeout(flush, 1500);
        break;
      }
      queue.shift();
      settle(job);
      complain(error);
      job.after();
      refresh();
    }
  }
  sending = false;
  showSaved();
}

/** Drop an answered pick from `pending`, unless a later pick of the item waits. */
function settle(job) {
  const { item, group } = job.body;
  if (job.path !== "/api/pick" || group !== studio.shown) return;
  const again = queue.some((next) => next.path === "/api/pick" && next.body.item === item);
  if (!again) studio.pending.delete(item);
}

/** Show a state of the server, unless it is older than the one shown. */
function receive(state) {
  const old = studio.state;
  if (old && state.seq < old.seq) return;
  studio.state = state;
  if (!old || state.group.number !== studio.shown) {
    showGroup(state.group.number);
  } else if (!queue.length && String(old.proposal) !== String(state.proposal)) {
    studio.preview = null;
    fetchProbability();
  }
  showState();
}

let refreshing = null;
let refreshAgain = false;

/** Fetch and show the state; calls during a fetch cause one more fetch. */
async function refresh() {
  if (refreshing) {
    refreshAgain = true;
    return refreshing;
  }
  refreshing = (async () => {
    do {
      refreshAgain = false;
      try {
        receive(await get("/api/state"));
        away(false);
      } catch (error) {
        complain(error);
      }
    } while (refreshAgain);
  })();
  await refreshing;
  refreshing = null;
}

/** Fetch and show the last learning result. */
async function refreshLearned() {
  try {
    const learned = await get("/api/learned");
    if (studio.learned && learned.n_groups !== studio.learned.n_groups) {
      studio.before = studio.learned;
    }
    const told = studio.learned && JSON.stringify(studio.learned) !== JSON.stringify(learned);
    studio.learned = learned;
    showLearned(told);
    showKnob();
  } catch (error) {
    complain(error);
  }
}

let stream = null;
let opened = false;
let wait = 500;

/** Follow the events; connect again where the browser does not do so itself. */
function follow() {
  stream = new EventSource("/api/events");
  stream.onopen = () => {
    wait = 500;
    away(false);
    if (opened) {
      if (studio.state) studio.state.seq = -1; // the server may have restarted
      refresh();
      refreshLearned();
      flush();
    }
    opened = true;
  };
  stream.onmessage = (message) => {
    const event = JSON.parse(message.data);
    if (event.what === "learned") {
      refreshLearned().then(refresh).then(() => fetchProbability()).then(showPanel);
    } else if (!studio.state || event.seq > studio.state.seq || event.what === "learning") {
      refresh();
    }
  };
  stream.onerror = () => {
    away(true);
    if (stream.readyState !== EventSource.CLOSED) return;
    setTimeout(follow, wait);
    wait = Math.min(2 * wait, 8000);
  };
}
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", (event) => event.persisted && follow());
addEventListener("beforeunload", (event) => queue.length && event.preventDefault());

let awayTimer = null;

/** Show after 1.2 s that the server does not answer (`is`), or remove the message. */
function away(is) {
  if (!is) {
    clearTimeout(awayTimer);
    awayTimer = null;
    tell("away", null);
  } else if (!awayTimer) {
    awayTimer = setTimeout(() => {
      tell("away", "The studio does not answer. Saved picks are safe. This page "
        + "reconnects automatically.");
      showSaved();
    }, 1200);
  }
}

// --- messages --------------------------------------------------------------------------

/** Show a message in place of the one with its key; with null words, remove that. */
function tell(key, words, kind = "") {
  const old = document.querySelector(`.message[data-key="${key}"]`);
  if (!words) return old?.remove();
  if (old?.querySelector("p").textContent === words) return old;
  const box = make("div", { className: `message ${kind}` }, make("p", {}, words));
  box.dataset.key = key;
  if (key !== "away") {
    box.append(make("button", { type: "button", onclick: () => box.remove() }, "Close"));
  }
  if (old) old.replaceWith(box);
  else $("messages").append(box);
  return box;
}

/** Let screen readers say words. */
function speak(words) {
  $("spoken").textContent = "";
  setTimeout(() => ($("spoken").textContent = words), 50);
}

// --- the group -------------------------------------------------------------------------

/** Return the set of proposed items: those of the moving slider, else of the state. */
function proposed() {
  return new Set(studio.preview?.chosen ?? studio.state.proposal);
}

/** Return the set of picks on the page: the state, preview and unsent picks. */
function chosen() {
  const { picks, proposal, group } = studio.state;
  const result = new Set(picks);
  if (studio.preview && !group.done) {
    // Picks that differ from the proposal stay; the rest follows the slider.
    const before = new Set(proposal);
    const decided = new Set(result);
    result.clear();
    for (const n of studio.preview.chosen) if (!before.has(n) || decided.has(n)) result.add(n);
    for (const n of decided) if (!before.has(n)) result.add(n);
  }
  for (const [item, picked] of studio.pending) {
    if (picked) result.add(item);
    else result.delete(item);
  }
  return result;
}

let wanted = -1;

/** Fetch and show a group. */
async function showGroup(number) {
  if (wanted === number) return;
  wanted = number;
  try {
    const group = await get(`/api/groups/${number}`);
    if (wanted !== number) return;
    const first = studio.shown < 0;
    studio.items = group.items;
    studio.shown = number;
    studio.pending.clear();
    studio.preview = null;
    studio.probability = [];
    studio.active = 0;
    list.open();
    showState();
    showPanel();
    if (first && document.activeElement === document.body) $("items").focus();
    speak(`${group.name}: ${many(group.items.length)}, ${chosen().size} proposed`);
    fetchProbability();
  } catch (error) {
    complain(error);
  } finally {
    if (wanted === number) wanted = -1;
  }
}

let probing = null;

/** Fetch and show probabilities of the items, at an omega or that of the session. */
async function fetchProbability(omega) {
  const number = studio.shown;
  probing?.abort();
  probing = new AbortController();
  try {
    const at = omega === undefined ? "" : `?omega=${omega}`;
    const path = `/api/groups/${number}/proposal${at}`;
    const proposal = await get(path, { signal: probing.signal });
    if (number !== studio.shown || studio.preview?.asked !== omega) return;
    studio.probability = proposal.probability ?? []; // nothing is learned yet
    list.paint();
  } catch (error) {
    complain(error);
  }
}

/** Pick item n, or take it back. */
function toggle(n) {
  if (!studio.items[n] || studio.shown !== studio.state.group.number) return;
  if (studio.items[n].given) return speak(`${studio.items[n].title} is already there`);
  const picked = !chosen().has(n);
  if (studio.preview) commitOmega();
  studio.pending.set(n, picked);
  send("/api/pick", { group: studio.shown, item: n, picked });
  showState();
  whySoon();
}

/** Finish the group with the picks on the page. */
function done() {
  if ($("done").disabled || queue.some((job) => job.path === "/api/done")) return;
  if (studio.preview) commitOmega();
  // The server compares these picks with its own, as other pages may have changed them.
  const picks = [...chosen()].sort((a, b) => a - b);
  send("/api/done", { group: studio.shown, picks });
  showState();
}

function undo() {
  if (!studio.state?.can_undo && !queue.length) return;
  speak("Undone");
  send("/api/undo", {}, { onceOnly: true });
}

/** The items of the group, of which the page holds those in view and 300 px around. */
const list = {
  nodes: new Map(), // item -> its element, if the page holds it
  tops: [0], // pixels from the top to each line of items, and past the last
  heights: [], // pixels of each line, estimated until it was in view
  across: 1, // items in a line
  gap: 12,
  layout: "row",

  /** Lay out the items of another group, from the top. */
  open() {
    for (const node of this.nodes.values()) node.remove();
    this.nodes.clear();
    const { items } = studio;
    const pictures = items.filter((item) => item.image).length;
    const wordy = items.some((item) => item.text || item.fields.length > 3);
    this.layout = pictures > items.length / 2 && !wordy ? "tile" : "row";
    $("sizes").hidden = !pictures;
    const tabular = studio.state.kind === "table" && this.layout === "row";
    $("items").classList.toggle("prose", studio.state.kind === "documents");
    this.tabular = tabular;
    this.pictured = pictures > 0;
    this.allColumns = tabular ? columnsOf(items) : [];
    this.heights = [];
    $("items").scrollTop = 0;
    this.arrange();
  },

  /** Compute the layout for the current width, and paint it. */
  arrange() {
    const box = $("items");
    const n = studio.items.length;
    // The scroll bar takes its room from the margin, so that both edges are even.
    const margin = parseFloat(getComputedStyle($("sheet")).marginLeft);
    const right = Math.max(8, margin - (box.offsetWidth - box.clientWidth));
    $("sheet").style.marginRight = `${right}px`;
    this.width = box.clientWidth - margin - right;
    const asTable = this.tabular && this.width > 560 && this.allColumns.length > 0;
    box.classList.toggle("table", asTable);
    box.style.setProperty("--thumb", `${size.thumb}px`);
    $("columns").style.setProperty("--thumb", `${size.thumb}px`);
    showColumns(asTable ? this.allColumns : [], this.pictured);
    if (this.layout === "tile") {
      this.gap = this.width < 500 ? 12 : 16;
      this.shape = studio.state.kind === "video" ? 9 / 16 : 1;
      const usual = tilesAcross(n, this.width, box.clientHeight, this.shape, this.gap);
      this.across = clamp(usual - size.steps, 1, Math.max(usual, Math.floor(this.width / 90)));
      this.tile = Math.floor((this.width - (this.across - 1) * this.gap) / this.across);
      const isLong = studio.items.some((item) => 7 * item.title.length > this.tile - 18);
      const height = Math.round((this.tile - 13) * this.shape) + (isLong ? TILE_WORDS : TILE_WORDS - 17);
      box.classList.toggle("short-titles", !isLong);
      box.classList.toggle("slim", this.tile < 130);
      this.heights = new Array(Math.ceil(n / this.across)).fill(height);
    } else {
      this.across = 1;
      this.gap = 12;
      if (this.heights.length !== n) {
        this.heights = new Array(n).fill(this.pictured ? size.thumb + 24 : asTable ? 48 : 72);
      }
    }
    this.sum();
    for (const node of this.nodes.values()) node.remove();
    this.nodes.clear();
    this.paint();
  },

  /** Compute `tops` and the height of the sheet from `heights`. */
  sum() {
    let top = 0;
    this.tops = [0];
    for (const height of this.heights) this.tops.push((top += height + this.gap));
    $("sheet").style.height = `${Math.max(0, top - this.gap)}px`;
  },

  /** Return the number of the line that is y pixels from the top. */
  at(y) {
    let low = 0;
    let high = this.heights.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  },

  /** Add items that are in view, remove others, and update the marks of all. */
  paint() {
    if (!studio.state || studio.shown < 0) return;
    const box = $("items");
    const more = 300;
    const first = this.at(box.scrollTop - more) * this.across;
    const last = Math.min(
      studio.items.length,
      (this.at(box.scrollTop + box.clientHeight + more) + 1) * this.across,
    );
    for (const [n, node] of this.nodes) {
      if (n >= first && n < last) continue;
      node.remove();
      this.nodes.delete(n);
    }
    const fresh = [];
    let after = null;
    for (let n = last - 1; n >= first; n--) {
      let node = this.nodes.get(n);
      if (!node) {
        node = itemNode(n);
        this.nodes.set(n, node);
        fresh.push(n);
        $("sheet").insertBefore(node, after);
      }
      after = node;
    }
    if (this.layout === "row") this.measure(fresh);
    const picks = chosen();
    const proposal = proposed();
    for (const [n, node] of this.nodes) this.dress(n, node, picks, proposal);
    const active = this.nodes.get(studio.active);
    if (active) box.setAttribute("aria-activedescendant", active.id);
    else box.removeAttribute("aria-activedescendant");
  },

  /** Measure new rows; scroll so that changed heights above the view do not move it. */
  measure(fresh) {
    const box = $("items");
    const top = this.at(box.scrollTop);
    let moved = 0;
    let changed = false;
    for (const n of fresh) {
      const height = this.nodes.get(n).offsetHeight;
      if (height === this.heights[n]) continue;
      if (n < top) moved += height - this.heights[n];
      this.heights[n] = height;
      changed = true;
    }
    if (!changed) return;
    this.sum();
    if (moved) box.scrollTop += moved;
  },

  /** Place the element of item n, and mark it as picked, proposed or active. */
  dress(n, node, picks, proposal) {
    const line = Math.floor(n / this.across);
    const x = (n % this.across) * ((this.tile ?? 0) + this.gap);
    const y = this.tops[line];
    node.style.transform = `translate(${this.across > 1 ? x : 0}px, ${y}px)`;
    node.setAttribute("aria-selected", String(picks.has(n)));
    node.classList.toggle("proposed", proposal.has(n));
    node.classList.toggle("dropped", proposal.has(n) && !picks.has(n));
    node.classList.toggle("active", n === studio.active);
    node.querySelector(".chance").textContent = percent(studio.probability[n]);
  },

  /** Scroll until item n is in view. */
  reach(n) {
    const box = $("items");
    const line = Math.floor(n / this.across);
    for (let again = 0; again < 3; again++) {
      const top = this.tops[line];
      const bottom = top + this.heights[line];
      if (top - 8 < box.scrollTop) box.scrollTop = Math.max(0, top - 8);
      else if (bottom + 12 > box.scrollTop + box.clientHeight) {
        box.scrollTop = bottom + 12 - box.clientHeight;
      }
      this.paint();
      if (top === this.tops[line] && bottom === top + this.heights[line]) break;
    }
  },
};

/** Pixels of a tile beside its picture: two lines of its title, and marks. */
const TILE_WORDS = 72;

/** Return the number of tiles in a line: so that all are in view, if large enough. */
function tilesAcross(n, width, height, shape, gap) {
  const count = (least) => Math.max(2, Math.floor((width + gap) / (least + gap)));
  const usual = count(shape < 1 ? 190 : 150);
  const most = Math.max(usual, count(shape < 1 ? 150 : 104));
  if (width < 500) return count(shape < 1 ? 150 : 100);
  for (let across = Math.min(4, usual); across <= most; across++) {
    const tile = (width - (across - 1) * gap) / across;
    const lines = Math.ceil(n / across);
    if (lines * (tile * shape + TILE_WORDS - 13 + gap) <= height + gap) return across;
  }
  return usual;
}

function itemNode(n) {
  const item = studio.items[n];
  const node = make("div", { className: `item ${list.layout}`, id: `item-${n}` });
  node.setAttribute("role", "option");
  node.setAttribute("aria-posinset", String(n + 1));
  node.setAttribute("aria-setsize", String(studio.items.length));
  node.dataset.n = n;
  if (item.given) {
    node.classList.add("given");
    node.setAttribute("aria-disabled", "true");
  }
  const words = make("div", { className: "words" });
  words.append(make("span", { className: "title", dir: "auto" }, item.title));
  if (item.text || $("items").classList.contains("table")) {
    words.append(" ", make("span", { className: "text", dir: "auto" }, item.text ?? ""));
  }
  if (item.fields.length) words.append(" ", fieldsNode(item));
  const mark = make("span", { className: "mark" }, item.given ? "already there" : "proposed");
  const chance = make("span", { className: "chance", "aria-hidden": "true" });
  const foot = make("div", { className: "foot" }, mark, chance);
  const badge = make("span", { className: "badge", "aria-hidden": "true" }, "✓\ufe0e");
  const why = make("span", { className: "ask", "aria-hidden": "true" }, "why?");
  const picture = item.image ? [pictureNode(n)] : [];
  node.title = list.layout === "tile" ? item.title : "";
  if (list.layout === "tile") {
    node.style.width = `${list.tile}px`;
    node.append(...picture, words, foot, badge, why);
    if (!picture.length) words.style.height = `${Math.round((list.tile - 13) * list.shape)}px`;
  } else {
    node.append(badge, ...picture, words, foot, why);
  }
  return node;
}

function fieldsNode(item) {
  const fields = make("span", { className: "fields" });
  const asTable = $("items").classList.contains("table");
  const values = new Map(item.fields);
  const names = asTable ? list.columns.map((column) => column.name) : [...values.keys()];
  for (const name of names) {
    if (!asTable && !values.get(name)) continue;
    const number = asTable && list.columns.find((column) => column.name === name).number;
    fields.append(
      make("span", { className: number ? "field number" : "field" },
        make("span", {}, `${name} `), make("b", { dir: "auto" }, values.get(name) ?? "")),
      " ",
    );
  }
  return fields;
}

const isNumber = (text) => text === "" || text === "–" || !Number.isNaN(Number(text));

/** Return name and `number` of each field: whether 200 items have only numbers in it. */
function columnsOf(items) {
  const names = [...new Set(items.slice(0, 200).flatMap((item) => item.fields.map(([name]) => name)))];
  return names.map((name) => {
    const values = items.slice(0, 200).map((item) => new Map(item.fields).get(name) ?? "");
    return { name, number: values.every(isNumber) };
  });
}

/** Show a head of as many columns as fit; keep these in `list.columns`. */
function showColumns(columns, pictured) {
  const head = $("columns");
  head.hidden = !columns.length;
  head.classList.toggle("pictured", pictured);
  if (!columns.length) return;
  const text = studio.items.some((item) => item.text);
  $("items").classList.toggle("wordless", !text);
  const room = list.width - 200 - (pictured ? size.thumb + 18 : 0) - (text ? 200 : 0) - 110;
  let used = 0;
  list.columns = columns.filter((column) => (used += column.number ? 84 : 126) <= room);
  const widths = ["minmax(6rem, 1.2fr)", ...(text ? ["minmax(8rem, 3fr)"] : []),
    ...list.columns.map((column) => (column.number ? "4.25rem" : "minmax(4rem, 1fr)"))];
  for (const place of [head, $("items")]) {
    place.style.setProperty("--columns", widths.join(" "));
  }
  const hidden = columns.slice(list.columns.length).map((column) => column.name);
  head.replaceChildren(make("span", { className: "more", title: hidden.join(", ") },
    hidden.length ? `+${hidden.length} in Why` : ""), make("div", {},
    make("span", {}, ""),
    ...(text ? [make("span", {}, "")] : []),
    ...list.columns.map(({ name, number }) =>
      make("span", { className: number ? "number" : "", title: name }, name)),
  ));
}

/** Return the address of a picture, of few different widths so that it is cached. */
function pictureOf(n, width) {
  const wanted = width * Math.min(2, devicePixelRatio || 1);
  const known = [96, 160, 240, 320, 480, 640, 960, 1280, 2048];
  return `/image/${studio.shown}/${n}?width=${known.find((one) => one >= wanted) ?? 2048}`;
}

function pictureNode(n) {
  const image = make("img", { alt: "", decoding: "async", loading: "lazy", draggable: false });
  const zoom = make("span", { className: "zoom", "aria-hidden": "true" }, "⤢");
  const box = make("div", { className: "picture" }, image, zoom);
  if (list.layout === "tile") box.style.height = `${Math.round((list.tile - 13) * list.shape)}px`;
  image.onload = () => image.classList.toggle("pixels", image.naturalWidth <= 48);
  image.onerror = () => box.classList.add("broken");
  image.src = pictureOf(n, list.layout === "tile" ? list.tile : size.thumb);
  return box;
}

/** Make n the active item, and scroll to it if `reach`. */
function activate(n, reach = true) {
  studio.active = clamp(n, 0, Math.max(0, studio.items.length - 1));
  if (reach) list.reach(studio.active);
  else list.paint();
  whySoon();
  showZoom();
  if (!$("map").hidden) showMap();
}

$("items").addEventListener("scroll", () => list.paint(), { passive: true });
$("sheet").addEventListener("click", (event) => {
  const node = event.target.closest(".item");
  if (!node) return;
  const n = Number(node.dataset.n);
  activate(n, false);
  if (event.target.closest(".zoom")) openZoom();
  else if (event.target.closest(".ask") && getComputedStyle(event.target).opacity > 0) openPanel("why");
  else if (!held) toggle(n);
});

// The size of pictures: `steps` tiles fewer in a line than usual, or larger thumbnails.
const size = {
  steps: 0,
  get thumb() {
    return Math.round(72 * 1.5 ** clamp(this.steps, -1, 4));
  },
  change(by) {
    const before = list.across;
    this.steps = clamp(this.steps + by, -4, 8);
    remembered.write("size", this.steps);
    list.heights = [];
    list.arrange();
    // At the largest and the smallest size, a step is taken back.
    if (list.layout === "tile" && list.across === before) this.steps -= by;
    list.reach(studio.active);
  },
};
$("smaller").addEventListener("click", () => size.change(-1));
$("larger").addEventListener("click", () => size.change(1));

// The picture of the active item, as large as the page.
function openZoom() {
  if (!studio.items[studio.active]?.image) return;
  if (!$("zoom").open) $("zoom").showModal();
  showZoom();
}

function showZoom() {
  const item = studio.items[studio.active];
  if (!$("zoom").open || !item) return;
  const picture = $("zoom-picture");
  picture.onload = () => picture.classList.toggle("pixels", picture.naturalWidth <= 48);
  if (item.image) picture.src = pictureOf(studio.active, Math.max(innerWidth, innerHeight));
  else picture.removeAttribute("src");
  picture.alt = item.title;
  $("zoom-title").textContent = item.title;
  $("zoom-text").textContent = item.text ?? "";
  $("zoom-fields").textContent = item.fields.map(([name, value]) => `${name} ${value}`).join(" · ");
  const isChosen = chosen().has(studio.active);
  $("zoom-pick").setAttribute("aria-pressed", String(isChosen));
  $("zoom-pick").disabled = item.given;
  $("zoom-pick").textContent = item.given ? "Already there"
    : isChosen ? "✓\ufe0e Chosen" : "Choose";
  $("zoom-before").disabled = studio.active <= 0;
  $("zoom-after").disabled = studio.active >= studio.items.length - 1;
}

$("zoom-before").addEventListener("click", () => activate(studio.active - 1));
$("zoom-after").addEventListener("click", () => activate(studio.active + 1));
$("zoom-pick").addEventListener("click", () => toggle(studio.active));
$("zoom-picture").addEventListener("click", () => $("zoom").close());
$("zoom").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (by) activate(studio.active + by);
  else if (event.key === " " && !event.target.closest("button")) toggle(studio.active);
  else if (event.key === "z") $("zoom").close();
  else return;
  event.preventDefault();
});

// A long touch of an item opens the panel "why".
let hold = null;
let held = false;
$("sheet").addEventListener("pointerdown", (event) => {
  held = false;
  const node = event.target.closest(".item");
  if (!node || event.pointerType === "mouse") return;
  clearTimeout(hold);
  hold = setTimeout(() => {
    held = true;
    activate(Number(node.dataset.n), false);
    openPanel("why");
  }, 550);
});
for (const end of ["pointerup", "pointercancel", "pointermove"]) {
  $("sheet").addEventListener(end, (event) => {
    if (end !== "pointermove" || Math.abs(event.movementY) > 3) clearTimeout(hold);
  });
}
$("sheet").addEventListener("contextmenu", (event) => held && event.preventDefault());
new ResizeObserver(() => {
  if (studio.shown < 0) return;
  list.arrange();
  showMap();
}).observe($("items"));

/** Show everything that depends on the state. */
function showState() {
  const { state } = studio;
  if (!state) return;
  const { group } = state;
  const there = group.number === studio.shown;
  $("progress").textContent = `${state.n_done.toLocaleString("en")} of `
    + `${state.n_groups.toLocaleString("en")} done`;
  $("order").value = state.order;
  showLearning();
  showAccepted();
  if (there) {
    document.title = `${group.name} · Variegate studio`;
    $("name").textContent = group.name;
    $("name").title = group.name;
    $("facts").textContent = many(group.n_items) + (group.done ? " · already done" : "");
    const picks = chosen();
    const proposal = proposed();
    const unlike = [...picks].filter((n) => !proposal.has(n)).length
      + [...proposal].filter((n) => !picks.has(n)).length;
    $("count").textContent = `${picks.size.toLocaleString("en")} chosen`;
    $("changes").replaceChildren(unlike ? `${unlike} changed` : "as proposed",
      make("span", { className: "wide-only" }, unlike ? " from the proposal" : ""));
    list.paint();
    showZoom();
    if (!$("map").hidden) showMap();
  }
  const ending = queue.some((job) => job.path === "/api/done");
  $("done").disabled = !there || ending;
  $("undo").disabled = !state.can_undo && !queue.length;
  tell("server", state.message, state.n_done === state.n_groups ? "told" : "");
  showKnob();
  showSaved();
}

let savedTimer = null;

/** Show whether all actions are saved, after 0.3 s if some are not. */
function showSaved() {
  clearTimeout(savedTimer);
  const show = () => {
    const lost = Boolean(document.querySelector('.message[data-key="away"]'));
    $("saved").textContent = !queue.length ? "All saved" : lost ? "Not saved yet" : "Saving …";
    $("saved").classList.toggle("late", Boolean(queue.length) && lost);
  };
  if (queue.length) savedTimer = setTimeout(show, 300);
  else show();
}

function showLearning() {
  const { learning, learned_from: n } = studio.state;
  const chip = $("learning");
  chip.classList.toggle("busy", learning);
  chip.classList.toggle("known", n > 0);
  const words = learning ? "Learning …" : n ? `Learned from ${n}` : "Not trained yet";
  const rest = make("span", { className: "wide-only" }, n === 1 ? " group" : " groups");
  if (chip.lastChild.dataset.words === words) return;
  chip.lastChild.dataset.words = words;
  chip.lastChild.replaceChildren(words, ...(learning || !n ? [] : [rest]));
}

// --- the knob --------------------------------------------------------------------------

const STEPS = 48;

/** Return held-out scores at an omega, interpolated by log(omega); null without any. */
function expected(omega) {
  const path = studio.learned?.path ?? [];
  if (!path.length) return null;
  const x = Math.log(omega);
  const after = path.findIndex((point) => Math.log(point.omega) >= x - 1e-9);
  if (after <= 0) return path[after < 0 ? path.length - 1 : 0];
  const [a, b] = [path[after - 1], path[after]];
  const share = (x - Math.log(a.omega)) / (Math.log(b.omega) - Math.log(a.omega));
  const between = (name) => a[name] + share * (b[name] - a[name]);
  return { omega, precision: between("precision"), recall: between("recall"), size: between("size") };
}

function omegaRange() {
  const path = studio.learned?.path ?? [];
  if (studio.state?.omegas) return studio.state.omegas;
  return path.length > 1 ? [path[0].omega, path[path.length - 1].omega] : [1, 1];
}

function omegaAt(step) {
  const [low, high] = omegaRange();
  if (step <= 0 || step >= STEPS) return step <= 0 ? low : high;
  const omega = low * (high / low) ** (step / STEPS);
  return clamp(Number(omega.toPrecision(4)), low, high);
}

function stepOf(omega) {
  const [low, high] = omegaRange();
  if (!(high > low)) return STEPS / 2;
  return clamp(Math.round((STEPS * Math.log(omega / low)) / Math.log(high / low)), 0, STEPS);
}

let turning = false; // the slider is moved, or its omega not yet acknowledged

function showKnob() {
  const { state } = studio;
  if (!state) return;
  const path = studio.learned?.path ?? [];
  const [low, high] = omegaRange();
  const ready = high > low;
  const slider = $("omega");
  slider.disabled = !ready;
  if (!turning) slider.value = stepOf(state.omega);
  const omega = turning ? omegaAt(Number(slider.value)) : state.omega;
  const there = expected(omega);
  $("omega-value").textContent = `ω ${brief(omega)}`;
  $("precision").textContent = two(there?.precision);
  $("recall").textContent = two(there?.recall);
  $("size").textContent = known(there?.size) ? there.size.toFixed(1) : "–";
  $("size-name").textContent = state.nouns[1];
  slider.setAttribute("aria-valuetext", there
    ? `omega ${brief(omega)}: expected precision ${two(there.precision)}, recall `
      + `${two(there.recall)}, ${there.size.toFixed(1)} ${state.nouns[1]}`
    : `omega ${brief(omega)}`);
  const [aim, value] = Object.entries(state.target ?? {})[0] ?? ["", null];
  $("knob-note").textContent = !ready ? "Available after a few groups."
    : !there ? "Expected values appear after more groups."
      : aim ? `Set for ${aim} ${two(value)}, as closely as possible.`
        : "Expected values, from held-out groups.";
  if (!$("aim").contains(document.activeElement)) {
    $("target").value = aim;
    if (value !== null) $("target-value").value = value;
    $("target-value").disabled = !aim;
  }
  drawPath(path, omega);
}

function drawPath(path, omega) {
  const svg = $("path");
  const [low, high] = omegaRange();
  if (path.length < 2 || !(high > low)) return svg.replaceChildren();
  const x = (o) => (100 * Math.log(o / low)) / Math.log(high / low);
  const line = (name) =>
    path.map((point, i) => `${i ? "L" : "M"}${x(point.omega)} ${100 - 100 * point[name]}`).join("");
  svg.replaceChildren(
    draw("path", { class: "here", d: `M${x(omega)} 0V100` }),
    draw("path", { class: "precision", d: line("precision") }),
    draw("path", { class: "recall", d: line("recall") }),
  );
}

// While the slider moves, its newest omega is requested after the last answer.
let probe = null;

/** Show the proposal at the omega of the moving slider. */
async function preview() {
  turning = true;
  showKnob();
  if (probe) {
    probe.again = true;
    return;
  }
  const mine = (probe = { again: false });
  try {
    do {
      mine.again = false;
      const omega = omegaAt(Number($("omega").value));
      const number = studio.shown;
      const { chosen } = await get(`/api/groups/${number}/choice?omega=${omega}`);
      if (!turning || number !== studio.shown) break;
      studio.preview = { chosen, asked: omega };
      showState();
      if (!mine.again) fetchProbability(omega);
    } while (mine.again);
  } catch (error) {
    complain(error);
  } finally {
    probe = null;
  }
}

/** Send the omega of the slider, in place of one that still waits in the queue. */
function commitOmega() {
  if (!turning) return;
  const omega = omegaAt(Number($("omega").value));
  const waiting = queue.findIndex((job, i) => i && "omega" in job.body);
  if (waiting > 0) queue.splice(waiting, 1);
  const after = () => {
    if (omega !== omegaAt(Number($("omega").value))) return; // moved on since
    turning = false;
    studio.preview = null;
    showState();
    speak(`${many(studio.state.proposal.length)} proposed`);
    fetchProbability();
    showPanel();
  };
  send("/api/settings", { omega }, { after });
}

$("omega").addEventListener("input", preview);
$("omega").addEventListener("change", commitOmega);

function turn(by) {
  if ($("omega").disabled) return;
  $("omega").value = Number($("omega").value) + by;
  preview();
  commitOmega();
}

function aim() {
  const name = $("target").value;
  $("target-value").disabled = !name;
  const value = Number($("target-value").value);
  if (name && !(value > 0 && value <= 1)) {
    // A key of its own: the answer to an earlier action removes the message "refused".
    tell("target", "A target is above 0, and at most 1.");
    return;
  }
  tell("target", null);
  const target = name ? { [name]: value } : null;
  send("/api/settings", { target }, { after: () => fetchProbability() });
}
$("target").addEventListener("change", aim);
$("target-value").addEventListener("change", aim);
$("aim").addEventListener("submit", (event) => {
  event.preventDefault();
  aim();
});

// --- panels ----------------------------------------------------------------------------

const TABS = ["why", "map", "learned"];

function choosePanel(name, focus = false) {
  for (const tab of TABS) {
    const button = $(`tab-${tab}`);
    button.setAttribute("aria-selected", String(tab === name));
    button.tabIndex = tab === name ? 0 : -1;
    $(tab).hidden = tab !== name;
    if (focus && tab === name) button.focus();
  }
  showPanel();
}

for (const [i, name] of TABS.entries()) {
  $(`tab-${name}`).addEventListener("click", () => choosePanel(name));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    choosePanel(TABS[(i + by + TABS.length) % TABS.length], true);
  });
}

/** On a narrow page, show the panels (`show`) or the items in the same space. */
function flip(show) {
  document.body.classList.toggle("show-panels", show);
  $("show-panels").setAttribute("aria-expanded", String(show));
  $("show-panels").textContent = show ? `Back to the ${studio.state?.nouns[1] ?? "items"}` : "Why";
  $("panels").setAttribute("role", show ? "main" : "complementary");
  if (show) showPanel();
}
matchMedia("(max-width: 56rem)").addEventListener("change", () => flip(false));
$("show-panels").addEventListener("click", () =>
  flip(!document.body.classList.contains("show-panels")));

function openPanel(name) {
  choosePanel(name);
  if (getComputedStyle($("show-panels")).display !== "none") flip(true);
}

function showPanel() {
  if (studio.shown < 0) return;
  if (!$("why").hidden) showWhy();
  if (!$("map").hidden) showMap(true);
}

let whyTimer = null;

function whySoon() {
  clearTimeout(whyTimer);
  whyTimer = setTimeout(() => !$("why").hidden && showWhy(), 120);
}

let whyRequest = null;

async function showWhy() {
  const [number, n] = [studio.shown, studio.active];
  const item = studio.items[n];
  $("why-title").textContent = item?.title ?? "";
  $("before").disabled = n <= 0;
  $("after").disabled = n >= studio.items.length - 1;
  if (!item) return $("why-body").replaceChildren();
  whyRequest?.abort();
  whyRequest = new AbortController();
  try {
    const options = { signal: whyRequest.signal };
    const why = await get(`/api/groups/${number}/why/${n}`, options);
    if (number === studio.shown && n === studio.active) drawWhy(item, n, why);
  } catch (error) {
    complain(error);
  }
}

function drawWhy(item, n, why) {
  const parts = [];
  if (item.image) {
    const image = make("img", { alt: "" });
    image.onload = () => image.classList.toggle("pixels", image.naturalWidth <= 48);
    image.src = pictureOf(n, 320);
    parts.push(make("button", { type: "button", className: "plain shown", onclick: openZoom,
      "aria-label": "Enlarge the picture" }, image));
  }
  if (item.text) parts.push(make("p", { className: "whole", dir: "auto" }, item.text));
  if (known(why.probability)) {
    const meter = make("i");
    meter.style.width = `${100 * clamp(why.probability, 0, 1)}%`;
    parts.push(
      make("p", { className: "chance-line" }, make("b", {}, percent(why.probability)),
        make("span", { className: "note" }, "probability of being chosen")),
      make("div", { className: "meter", "aria-hidden": "true" }, meter),
    );
  }
  if (why.like) parts.push(...likeNode(why.like));
  if (item.given) {
    parts.push(make("p", { className: "note" },
      "Already there: items unlike this one are proposed."));
  }
  if (!item.given) parts.push(make("h3", {}, "Parts of its quality"));
  if (!item.given) parts.push(why.quality.length ? barsOf(why.quality.map((part) => ({
    name: part.name, value: part.part, note: part.value,
  }))) : make("p", { className: "note" }, "Nothing is learned yet: all items have equal quality."));
  if (item.fields.length) {
    parts.push(make("h3", {}, "All fields"));
    const facts = make("dl", { className: "facts-list" });
    for (const [name, value] of item.fields) {
      facts.append(make("dt", { dir: "auto" }, name), make("dd", { dir: "auto" }, value));
    }
    parts.push(facts);
  }
  $("why-body").replaceChildren(...parts);
}

function likeNode(like) {
  const other = studio.items[like.n];
  if (!other) return [];
  const words = make("span", {}, make("b", { dir: "auto" }, other.title), make("br"),
    make("small", {}, `similarity ${two(like.similarity)}`));
  const button = make("button", { type: "button", className: "like",
    onclick: () => activate(like.n) });
  if (other.image) button.append(make("img", { alt: "", src: pictureOf(like.n, 48) }));
  button.append(words);
  return [make("h3", {}, "Most similar chosen item"), button];
}

/** Draw the `most` largest rows, in order, as bars to both sides of zero. */
function barsOf(rows, into = make("div", { className: "bars" }), most = 8) {
  const largest = Math.max(1e-12, ...rows.map((row) => Math.abs(row.value)));
  const ordered = [...rows].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const cells = [];
  for (const row of ordered.slice(0, most)) {
    const bar = make("i", { className: row.value < 0 ? "less" : "" });
    const width = (50 * Math.abs(row.value)) / largest;
    bar.style.width = `${width}%`;
    bar.style.left = `${row.value < 0 ? 50 - width : 50}%`;
    const name = make("span", { className: "name", dir: "auto" }, row.name);
    if (row.note) name.append(" ", make("small", {}, row.note));
    cells.push(name,
      make("span", { className: "bar-track both", "aria-hidden": "true" }, bar),
      make("span", { className: row.moved ? "value moved" : "value" }, signed(row.value)));
  }
  if (rows.length > most) {
    cells.push(make("p", { className: "note" }, `and ${rows.length - most} with smaller weights`));
  }
  into.replaceChildren(...cells);
  return into;
}

$("before").addEventListener("click", () => activate(studio.active - 1));
$("after").addEventListener("click", () => activate(studio.active + 1));

// The map: up to FEW pictures at the coordinates of their items.  Otherwise all points
// of one look are one path, so that thousands are drawn fast.
const SIDE = 320;
const FEW = 60;
const THUMB = 34;
let map = null; // the group, and the points [x, y] of its items on the drawing

async function showMap(fetch = false) {
  if ($("map").hidden || studio.shown < 0) return;
  const number = studio.shown;
  if (fetch || map?.group !== number) {
    try {
      const outline = await get(`/api/groups/${number}/map`);
      if (number !== studio.shown) return;
      map = { group: number, ...outline, points: placed(outline) };
    } catch (error) {
      return complain(error);
    }
  }
  drawMap();
}

/** Return points [x, y] on the drawing from the coordinates of /map. */
function placed({ kind, x, y, columns }) {
  const edge = 20;
  const inner = SIDE - 2 * edge;
  if (kind === "kinds") {
    const width = inner / Math.max(1, columns.length);
    const seen = new Map();
    return x.map((column, n) => {
      // Items at the same point are drawn beside each other.
      const key = `${column} ${Math.round(24 * y[n])}`;
      const k = seen.get(key) ?? 0;
      seen.set(key, k + 1);
      const aside = clamp((k % 2 ? 1 : -1) * Math.ceil(k / 2) * 9, -width / 2.2, width / 2.2);
      return [edge + (column + 0.5) * width + aside, edge + (inner - 24) * (1 - y[n])];
    });
  }
  return x.map((value, n) => [edge + inner * (value + 1) / 2, edge + inner * (1 - y[n]) / 2]);
}

function drawMap() {
  const svg = $("map-drawing");
  const { points, kind, columns } = map;
  svg.setAttribute("viewBox", `0 0 ${SIDE} ${SIDE}`);
  svg.classList.toggle("many", points.length > 150);
  const picks = chosen();
  const proposal = proposed();
  const dots = (which) =>
    points.map(([x, y], n) => (which(n) ? `M${x.toFixed(1)} ${y.toFixed(1)}h0` : "")).join("");
  const parts = kind === "kinds" ? columnLabels(columns) : [];
  const pictures = points.length <= FEW && studio.items.every((item) => item.image);
  if (pictures) parts.push(...mapPictures(points, picks, proposal));
  else parts.push(
    draw("path", { class: "proposals", d: dots((n) => proposal.has(n)) }),
    draw("path", { class: "gap", d: dots((n) => proposal.has(n)) }),
    draw("path", { class: "others", d: dots((n) => !picks.has(n)) }),
    draw("path", { class: "picks", d: dots((n) => picks.has(n)) }),
  );
  const here = points[studio.active];
  if (here) {
    const r = pictures ? THUMB * 0.78 : 12;
    parts.push(draw("circle", { class: "there", cx: here[0], cy: here[1], r }));
  }
  svg.replaceChildren(...parts);
  const by = kind === "kinds" ? "by learned kind, the most certain on top"
    : "by two principal components; similar items are close";
  svg.setAttribute("aria-label", `Map of ${many(points.length)} ${by}. ${picks.size} chosen.`);
  $("map-note").textContent = `${many(points.length)}, ${by}. The ring marks `
    + `${studio.items[studio.active]?.title ?? ""}; press a point to go to it.`;
}

/** Return pictures of the items, the chosen and the active ones on top. */
function mapPictures(points, picks, proposal) {
  const rank = (n) => 2 * picks.has(n) + proposal.has(n) + 4 * (n === studio.active);
  return [...points.keys()].sort((a, b) => rank(a) - rank(b)).flatMap((n) => {
    const [x, y] = points[n].map((at) => clamp(at, THUMB / 2 + 4, SIDE - THUMB / 2 - 4));
    const box = { x: x - THUMB / 2, y: y - THUMB / 2, width: THUMB, height: THUMB };
    const state = picks.has(n) ? "picked" : proposal.has(n) ? "offered" : "";
    return [
      draw("rect", { class: "frame", ...box, rx: 5 }),
      draw("image", { href: pictureOf(n, 48), ...box, preserveAspectRatio: "xMidYMid slice" }),
      draw("rect", { class: `edge ${state}`, ...box, rx: 5 }),
    ];
  });
}

function columnLabels(columns) {
  const width = (SIDE - 40) / Math.max(1, columns.length);
  const each = Math.ceil(26 / width); // as many names as there is room for
  return columns.flatMap((name, i) => [
    ...(i ? [draw("path", { class: "divide", d: `M${20 + i * width} 12V${SIDE - 30}` })] : []),
    ...(i % each ? [] : [draw("text", { x: 20 + (i + 0.5) * width, y: SIDE - 12,
      "text-anchor": "middle" }, name.length * 6 > width * each ? String(i + 1) : name)]),
  ]);
}

$("map-drawing").addEventListener("click", (event) => {
  if (!map) return;
  const box = $("map-drawing").getBoundingClientRect();
  const x = ((event.clientX - box.left) * SIDE) / box.width;
  const y = ((event.clientY - box.top) * SIDE) / box.height;
  const far = map.points.map(([a, b]) => Math.hypot(a - x, b - y));
  const nearest = far.indexOf(Math.min(...far));
  if (far[nearest] < 24) activate(nearest);
});

function showAccepted() {
  const { unchanged, of } = studio.state.accepted;
  $("accepted").replaceChildren(make("b", {}, of ? `${unchanged} of ${of}` : "–"),
    make("span", { className: "note" }, "proposals accepted unchanged"));
}

function showLearned(told) {
  const { learned, before } = studio;
  if (!learned) return;
  const weights = new Map((before?.weights ?? []).map((row) => [row.name, row.weight]));
  const rows = learned.weights.map(({ name, weight }) => {
    const moved = weights.has(name) && Math.abs(weight - weights.get(name)) >= 0.1;
    return { name, value: weight, moved,
      note: moved ? `was ${signed(weights.get(name))}` : "" };
  });
  if (rows.length) barsOf(rows, $("weights"), 10);
  else $("weights").replaceChildren(make("p", { className: "note" }, "Nothing is learned yet."));
  drawKinds(learned.kinds);
  drawCurve(learned.curve);
  const last = learned.curve.at(-1);
  const past = before?.curve.at(-1);
  const moved = last && past && past.n !== last.n ? ` (${two(past.f)} before)` : "";
  const words = last
    ? `F ${two(last.f)} after ${groupsOf(last.n)}${moved}; `
      + `untrained ${two(last.untrained_f)}.`
    : "F-score on groups that the model did not learn from.";
  $("curve-note").textContent = words;
  $("verdict").textContent = learned.verdict;
  $("comparison").textContent = learned.comparison ?? "";
  $("comparison-section").hidden = !learned.comparison;
  if (told && last) speak(`Learned from ${groupsOf(learned.n_groups)}. ${words} ${learned.verdict}`);
}

function drawKinds(kinds) {
  $("kinds-section").hidden = !kinds.length;
  $("kinds").replaceChildren(...kinds.slice(0, 16).flatMap((kind) => {
    const bar = make("i");
    bar.style.width = `${100 * clamp(kind.share, 0, 1)}%`;
    return [
      make("span", { className: "name", dir: "auto" }, kind.name, " ",
        make("small", {}, kind.description ?? "")),
      make("span", { className: "bar-track", "aria-hidden": "true" }, bar),
      make("span", { className: "value" }, percent(kind.share)),
    ];
  }));
}

function drawCurve(curve) {
  const svg = $("curve");
  const [left, right, top, bottom] = [28, 246, 8, 126];
  const y = (f) => bottom - f * (bottom - top);
  const parts = [0, 0.5, 1].flatMap((f) => [
    draw("path", { class: "grid", d: `M${left} ${y(f)}H${right}` }),
    draw("text", { x: left - 6, y: y(f) + 4, "text-anchor": "end" }, f ? String(f) : "0"),
  ]);
  const points = curve.filter((point) => known(point.f));
  svg.setAttribute("aria-label", "Nothing learned yet");
  if (points.length) {
    const most = points.at(-1).n;
    const x = (n) => left + ((right - left) * n) / Math.max(1, most);
    const line = (name) => points.filter((point) => known(point[name]))
      .map((point, i) => `${i ? "L" : "M"}${x(point.n).toFixed(1)} ${y(point[name]).toFixed(1)}`)
      .join("");
    const last = points.at(-1);
    const plain = known(last.untrained_f) ? last.untrained_f : null;
    const close = plain !== null && Math.abs(plain - last.f) < 0.12;
    const shift = close ? (last.f >= plain ? 6 : -6) : 0;
    parts.push(
      draw("path", { class: "untrained", d: line("untrained_f") }),
      draw("path", { class: "ours", d: line("f") }),
      draw("path", { class: "dots", d: points.map((p) => `M${x(p.n)} ${y(p.f)}h0`).join("") }),
      draw("text", { class: "ours-name", x: right + 8, y: y(last.f) + 4 - shift }, `learned ${two(last.f)}`),
      draw("text", { x: left, y: bottom + 17 }, "0"),
      draw("text", { x: right, y: bottom + 17, "text-anchor": "end" }, groupsOf(most)),
    );
    if (plain !== null) {
      parts.push(draw("text", { x: right + 8, y: y(plain) + 4 + shift }, `untrained ${two(plain)}`));
    }
    svg.setAttribute("aria-label", `F by groups learned from: ${points
      .map((point) => `${point.n}: ${two(point.f)}`).join(", ")}; untrained ${two(plain)}`);
  }
  svg.replaceChildren(...parts);
}

// --- the list of groups ----------------------------------------------------------------

const LINE = 48;
const PAGE = 100;
const groups = { known: new Map(), asked: new Set() };

function openGroups() {
  groups.known.clear();
  groups.asked.clear();
  $("group-sheet").replaceChildren();
  groups.arrived = false;
  $("groups").showModal();
  const box = $("group-list");
  $("group-sheet").style.height = `${studio.state.n_groups * LINE}px`;
  box.scrollTop = Math.max(0, studio.state.group.number * LINE - box.clientHeight / 2);
  paintGroups();
}

async function paintGroups() {
  if (!$("groups").open) return;
  const box = $("group-list");
  const first = Math.max(0, Math.floor(box.scrollTop / LINE) - 5);
  const last = Math.min(studio.state.n_groups, first + Math.ceil(box.clientHeight / LINE) + 10);
  for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) fetchGroups(page);
  const nodes = new Map([...$("group-sheet").children].map((node) => [Number(node.dataset.n), node]));
  for (const [n, node] of nodes) if (n < first || n >= last) node.remove();
  for (let n = last - 1, after = null; n >= first; n--) {
    let node = nodes.get(n);
    if (!node && groups.known.has(n)) {
      node = groupNode(groups.known.get(n));
      $("group-sheet").insertBefore(node, after);
    }
    after = node ?? after;
  }
  const current = $("group-sheet").querySelector("[aria-current]");
  if (current && !groups.arrived) {
    groups.arrived = true;
    current.focus({ preventScroll: true });
  }
}

async function fetchGroups(page) {
  if (groups.asked.has(page)) return;
  groups.asked.add(page);
  try {
    const answer = await get(`/api/groups?from=${page * PAGE}&count=${PAGE}`);
    for (const group of answer) groups.known.set(group.number, group);
    paintGroups();
  } catch (error) {
    complain(error);
  }
}

function groupNode({ number, name, n_items: size, done: isDone }) {
  const button = make("button", { type: "button" },
    make("i", { "aria-hidden": "true" }, isDone ? "✓\ufe0e" : ""),
    make("span", { className: "group-name", dir: "auto" }, name),
    make("small", {}, many(size)));
  if (isDone) button.append(make("span", { className: "unseen" }, "done"));
  if (number === studio.state.group.number) button.setAttribute("aria-current", "true");
  button.onclick = () => {
    $("groups").close();
    send("/api/go", { group: number });
  };
  const node = make("li", { className: isDone ? "done" : "" }, button);
  node.dataset.n = number;
  node.style.top = `${number * LINE}px`;
  return node;
}

$("group-list").addEventListener("scroll", paintGroups, { passive: true });
$("group-list").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const here = document.activeElement.closest("li");
  if (!by || !here) return;
  event.preventDefault();
  const next = $("group-sheet").querySelector(`li[data-n="${Number(here.dataset.n) + by}"]`);
  next?.querySelector("button").focus();
});
$("open-groups").addEventListener("click", openGroups);
$("order").addEventListener("change", () => send("/api/settings", { order: $("order").value }));

// --- exports ---------------------------------------------------------------------------

function openExport(show) {
  $("export").hidden = !show;
  $("open-export").setAttribute("aria-expanded", String(show));
  if (show) $("export").querySelector("a").focus();
}
$("open-export").addEventListener("click", () => openExport($("export").hidden));
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".menu")) openExport(false);
});
$("export").addEventListener("keydown", (event) => {
  const links = [...$("export").querySelectorAll("a")];
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    openExport(false);
    $("open-export").focus();
  } else if (by) {
    event.preventDefault();
    const at = links.indexOf(document.activeElement) + by;
    links[(at + links.length) % links.length].focus();
  }
});
$("export").addEventListener("click", async (event) => {
  const link = event.target.closest("a");
  if (!link || link.href.startsWith("blob:")) return;
  // Fetched first: some exports take seconds, and a refusal has a message to show.
  event.preventDefault();
  const name = link.pathname.split("/").pop();
  $("exporting").textContent = `Creating ${name} …`;
  try {
    const url = URL.createObjectURL(await (await ask(link.href)).blob());
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    $("exporting").textContent = `${name} was downloaded.`;
  } catch (error) {
    $("exporting").textContent = error instanceof Refusal ? error.message
      : "The studio does not answer.";
  }
});

// --- keys, colours, help ---------------------------------------------------------------

function openHelp() {
  $("help").showModal();
}
$("open-help").addEventListener("click", openHelp);
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

/** Settings of the page in this browser; nothing of the data. */
const remembered = {
  read(name) {
    try {
      return localStorage.getItem(`studio-${name}`);
    } catch {
      return null;
    }
  },
  write(name, value) {
    try {
      localStorage.setItem(`studio-${name}`, value);
    } catch {
      // the browser has no storage
    }
  },
};

const darkSystem = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  const theme = remembered.read("theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  const dark = theme ? theme === "dark" : darkSystem.matches;
  $("theme").setAttribute("aria-pressed", String(dark));
}
$("theme").addEventListener("click", () => {
  const dark = $("theme").getAttribute("aria-pressed") === "true";
  remembered.write("theme", dark ? "light" : "dark");
  showTheme();
});
darkSystem.addEventListener("change", showTheme);
showTheme();

size.steps = clamp(Number(remembered.read("size")) || 0, -4, 8);
$("letters").checked = remembered.read("letters") !== "off";
$("letters").addEventListener("change", () =>
  remembered.write("letters", $("letters").checked ? "on" : "off"));

const step = {
  ArrowLeft: () => -1,
  ArrowRight: () => 1,
  ArrowUp: () => -list.across,
  ArrowDown: () => list.across,
  PageUp: () => -list.across * Math.max(1, linesInSight() - 1),
  PageDown: () => list.across * Math.max(1, linesInSight() - 1),
};

function linesInSight() {
  const box = $("items");
  return list.at(box.scrollTop + box.clientHeight) - list.at(box.scrollTop);
}

$("items").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { active, items } = studio;
  if (event.key in step) {
    const to = active + step[event.key]();
    if (Math.abs(to - active) === 1 || (to >= 0 && to < items.length)) activate(to);
    else if (event.key.startsWith("Page")) activate(to);
  } else if (event.key === "Home") activate(0);
  else if (event.key === "End") activate(items.length - 1);
  else if (event.key === " ") toggle(active);
  else return;
  event.preventDefault();
});

const LETTERS = { u: undo, z: openZoom, "?": openHelp, g: openGroups, "[": () => turn(-1), "]": () => turn(1) };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (!studio.state || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest("input[type=number], select, textarea");
  const pressed = "button:not([role=tab]), a, summary, select, input[type=number]";
  if (event.key === "Enter" && !event.target.closest(pressed)) {
    event.preventDefault();
    if (!event.repeat) done();
  } else if (event.key === "Escape" && document.body.classList.contains("show-panels")) {
    flip(false);
  } else if (event.key in LETTERS && !typing && $("letters").checked) {
    event.preventDefault();
    LETTERS[event.key]();
  }
});
$("undo").addEventListener("click", undo);
$("done").addEventListener("click", () => {
  done();
  $("items").focus({ preventScroll: true });
});

refresh();
refreshLearned();
follow();
