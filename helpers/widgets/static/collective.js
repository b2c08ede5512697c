// The race of ring and tree: two all-reduces of one vector on one network, message by message.
import { el, keepKeys, uniqueName } from "./dom.js";

// ---- the model, the likeness of helpers/models/collectives.py -----------------------------------------
export const LANES = ["ring", "tree"];
const range = (n) => Array.from({ length: n }, (_, i) => i);
const plans = new Map();

export function plan(lane, workers, chunks) {
  const key = lane === "ring" ? `${workers}` : `${workers} ${chunks}`;
  if (!plans.has(key)) plans.set(key, lane === "ring" ? ring(workers) : tree(workers, chunks));
  return plans.get(key);
}

function ring(n) { // reduce-scatter, then all-gather
  return [1, 0].flatMap((ahead) => range(n - 1).flatMap((step) => range(n).map((r) => [r, (r + 1) % n, (r - step - ahead + n) % n])));
}

function tree(n, chunks) { // children 2r + 1 and 2r + 2, chunk after chunk
  const level = range(n).map((r) => 31 - Math.clz32(r + 1));
  const deepest = level[n - 1];
  const waves = range(2 * deepest + chunks - 1).map(() => []);
  for (let c = 0; c < chunks; c++) {
    for (let r = 1; r < n; r++) {
      const parent = (r - 1) >> 1;
      waves[c + deepest - level[r]].push([r, parent, c]);
      waves[c + deepest + level[r] - 1].push([parent, r, c]);
    }
  }
  return waves.flat();
}

const planOf = (state, lane) => plan(lane, state.workers, state.chunks);
export const finished = (state, lane) => state[lane] !== null && state[lane].next === planOf(state, lane).length;
export const over = (state) => LANES.every((lane) => finished(state, lane));

function lineUp(before, parameters) {
  const begun = Math.max(0, ...LANES.map((lane) => (before[lane] ? before[lane].clock : 0)));
  const { workers: n, chunks } = parameters;
  const state = { race: before.race + 1, begun, workers: n, size: 2 ** parameters.exponent, chunks };
  for (const lane of LANES) {
    const parts = lane === "ring" ? n : chunks;
    state[lane] = {
      next: 0, clock: begun, parts, sent: Array(n).fill(0), messages: Array(n).fill(0),
      sends: Array(n).fill(begun), takes: Array(n).fill(begun), has: range(n).map(() => Array(parts).fill(begun)),
    };
  }
  return { ...state, last: null };
}

export function step(state, parameters) {
  if (state.race === 0 || over(state)) state = lineUp(state, parameters);
  const name = LANES.filter((lane) => !finished(state, lane)).reduce((a, b) => (state[b].clock < state[a].clock ? b : a));
  const lane = { ...state[name] };
  for (const list of ["sent", "messages", "sends", "takes", "has"]) lane[list] = [...lane[list]];
  const [src, dst, chunk] = planOf(state, name)[lane.next];
  const size = state.size / lane.parts;
  let took = parameters.alpha + size / (parameters.bandwidth * 1000);
  if (src + dst === 1) took *= parameters.slow;
  const began = Math.max(lane.sends[src], lane.takes[dst], lane.has[src][chunk]);
  const ended = began + took;
  lane.sends[src] = lane.takes[dst] = ended;
  lane.has[dst] = lane.has[dst].map((since, c) => (c === chunk ? Math.max(since, ended) : since));
  lane.sent[src] += size;
  lane.messages[src] += 1;
  lane.next += 1;
  lane.clock = Math.max(lane.clock, ended);
  return { ...state, [name]: lane, last: { lane: name, src, dst, chunk, began, ended } };
}

export function finish(state, parameters) {
  do state = step(state, parameters); while (!over(state));
  return state;
}

// ---- words --------------------------------------------------------------------------------------------
export function amount(size) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (size < 1024) return `${+size.toPrecision(4)} ${unit}`;
    size /= 1024;
  }
  return `${+size.toPrecision(4)} GiB`;
}
const span = (us) => (us < 1000 ? `${us.toFixed(1)} µs` : us < 1e6 ? `${(us / 1000).toFixed(2)} ms` : `${(us / 1e6).toFixed(2)} s`);

export function summary(state) {
  if (state.race === 0) return "Not started. Ring and tree will all-reduce the same vector.";
  const told = LANES.map((lane) => {
    const { next, clock, sent } = state[lane];
    const all = planOf(state, lane).length;
    const busiest = amount(Math.max(...sent));
    const name = lane === "ring" ? "Ring" : `Tree, ${state.chunks} ${state.chunks === 1 ? "chunk" : "chunks"}`;
    return finished(state, lane) ? `${name}: done after ${span(clock - state.begun)}, the busiest worker sent ${busiest}.`
      : `${name}: ${next} of ${all} messages.`;
  });
  const [a, b] = LANES.map((lane) => state[lane].clock - state.begun);
  const ratio = Math.max(a, b) / Math.min(a, b);
  const verdict = !over(state) ? "" : ratio < 1.005 ? " A draw." : ` The ${a < b ? "ring" : "tree"} is ${ratio.toFixed(2)} times as fast.`;
  return `Race ${state.race}, ${state.workers} workers, ${amount(state.size)}. ${told.join(" ")}${verdict}`;
}

// ---- page ---------------------------------------------------------------------------------------------
const STYLE = `
.course .sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .4rem 1.2rem; }
.course .sliders label { display: block; font-size: .86em; color: var(--quiet); }
.course .sliders strong { color: var(--ink); }
.course .sliders input { width: 100%; margin: 0; accent-color: var(--accent); }
.course svg.plot { display: block; width: 100%; height: auto; margin: .6rem 0 .2rem; }
.course svg.plot text { fill: var(--quiet); font-size: 12px; }
.course svg.plot .frame { fill: none; stroke: var(--control); }
.course svg.plot .add { fill: var(--tint); stroke: var(--accent); }
.course svg.plot .copy { fill: var(--tint); stroke: var(--good); stroke-dasharray: 3 2; }
.course svg.plot .slow { stroke: var(--bad); stroke-width: 2; }`;
const [W, H, LEFT, TOP, HIGH, GAP] = [640, 330, 34, 18, 132, 32];
const SVG = (tag, properties, text = "") => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
};

function lanePicture(state, passed, lane, number, width) {
  const top = TOP + number * (HIGH + GAP);
  const rows = state.workers || 1;
  const tall = HIGH / rows;
  const x = (time) => LEFT + Math.min((time - state.begun) / width, 1) * (W - LEFT - 4);
  const parts = [SVG("rect", { class: "frame", x: LEFT, y: top, width: W - LEFT - 4, height: HIGH }),
    SVG("text", { x: LEFT, y: top - 5 }, `${lane}: what each worker sends, over ${span(width)}; dashed: finished sums; thick: link 0–1 where it is slow`)];
  for (const { src, dst, began, ended, add, slow } of passed) {
    const [a, b] = [x(began), x(ended)];
    parts.push(SVG("rect", { class: `${add ? "add" : "copy"}${slow ? " slow" : ""}`, "data-to": dst, x: a, y: top + src * tall + 1, width: Math.max(b - a - 0.6, 0.4), height: Math.max(tall - 2, 1) }));
  }
  for (let n = 0; n < rows; n += Math.ceil(rows / 8)) parts.push(SVG("text", { x: LEFT - 4, y: top + (n + 0.5) * tall + 4, "text-anchor": "end" }, `w${n}`));
  return parts;
}

function render({ model, el: host }) {
  const parameters = { ...model.get("parameters") };
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let state, passed, width, timer = null, told = 0, rest = 0;

  const svg = SVG("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Messages of ring and tree over time, one row for each worker; the text below says how far they are." });
  const says = el("p", { class: "says", role: "status" });
  const play = el("button", { type: "button", "aria-keyshortcuts": "p", onclick: () => run(timer === null) }, "Play");
  const button = (label, key, action) => el("button", { type: "button", class: "plain", "aria-keyshortcuts": key, onclick: action }, label);

  const look = () => { // so far ahead does the picture reach
    const end = state.race && over(state) ? state : finish(state, parameters);
    width = Math.max(...LANES.map((lane) => end[lane].clock)) - (state.race ? state.begun : end.begun);
  };
  const show = (speak) => {
    svg.replaceChildren(...LANES.flatMap((lane, number) => lanePicture(state, passed[lane], lane, number, width)));
    if (!speak && Date.now() - told < 5000) return; // a screen reader is not to be talked over
    told = Date.now();
    says.textContent = summary(state);
  };
  const advance = () => {
    const race = state.race;
    state = step(state, parameters);
    const { lane, src, dst, began, ended } = state.last;
    if (state.race !== race) {
      passed = { ring: [], tree: [] };
      look();
    }
    const half = lane === "ring" ? state[lane].next <= planOf(state, lane).length / 2 : dst === (src - 1) >> 1;
    passed[lane].push({ src, dst, began, ended, add: half, slow: src + dst === 1 && parameters.slow > 1 });
  };
  const run = (on) => {
    clearInterval(timer);
    rest = 0;
    timer = on ? setInterval(tick, calm.matches ? 1000 : 50) : null; // less motion: one still picture a second
    play.textContent = on ? "Pause" : "Play";
    show(true);
  };
  const tick = () => {
    if (!host.isConnected) return run(false);
    if (rest > 0) { rest -= 1; return; } // the end of a race stays for a moment
    const all = state.race ? LANES.reduce((sum, lane) => sum + planOf(state, lane).length, 0) : 1;
    for (let i = Math.ceil(all / (calm.matches ? 4 : 60)); i > 0; i--) {
      advance();
      if (over(state)) { rest = calm.matches ? 1 : 24; break; }
    }
    show(over(state));
  };
  const paused = (steps) => { if (timer !== null) run(false); steps(); show(true); };
  const whole = () => { do advance(); while (!over(state)); };
  const reset = () => {
    state = { ...model.get("start") };
    passed = { ring: [], tree: [] };
    look();
    show(true);
  };

  const sliders = model.get("sliders").map(({ name, label, unit, min, max }) => {
    const id = uniqueName();
    const value = el("strong");
    const input = el("input", { type: "range", id, min, max, step: 1, value: parameters[name] });
    const tell = () => {
      value.textContent = name === "exponent" ? amount(2 ** parameters[name]) : `${parameters[name]}${unit ? ` ${unit}` : ""}`;
      input.setAttribute("aria-valuetext", value.textContent);
    };
    input.addEventListener("input", () => { parameters[name] = Number(input.value); tell(); look(); });
    tell();
    return el("div", {}, el("label", { for: id }, `${label}: `, value), input);
  });
  const root = el("section", { class: "course panel", "aria-label": "Race of ring and tree" }, el("style", {}, STYLE),
    el("div", { class: "sliders" }, sliders),
    el("div", { class: "act" }, play, button("1 message", "s", () => paused(advance)), button("To the end", "h", () => paused(whole)), button("Reset", "r", () => paused(reset))),
    svg, says, el("p", { class: "status" }, "Keys: p plays and pauses, s is one message, h goes to the end of the race, r resets. Latency, bandwidth and the slow link act on the next message; workers, vector and chunks on the next race."));
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = { p: () => run(timer === null), s: () => paused(advance), h: () => paused(whole), r: () => paused(reset) }[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  keepKeys(root);
  reset();
  host.append(root);
  return () => run(false);
}

export default { render };
