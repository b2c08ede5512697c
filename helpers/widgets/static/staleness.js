// The staleness simulation: workers that read weights, compute for a while, and write to weights that have moved on.
import { el, keepKeys, uniqueName } from "./dom.js";

// ---- the model, the likeness of helpers/models/parameter_servers.py -----------------------------------
export const UNBOUNDED = 20;
const FARTHEST = 1e12;

export function uniform(seed) {
  seed = (seed + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1) >>> 0;
  mixed = (mixed ^ (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61))) >>> 0;
  return [seed, ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32];
}

function begin(worker, number, state, parameters) {
  let length, noise;
  [state.seed, length] = uniform(state.seed);
  [state.seed, noise] = uniform(state.seed);
  length = 1 + parameters.spread * (2 * length - 1);
  if (number === 0) length *= parameters.slow;
  return {
    clock: worker.clock,
    read: state.version,
    gradient: state.error + parameters.noise * (2 * noise - 1) * Math.sqrt(3),
    began: state.time,
    ends: state.time + length,
  };
}

export function step(before, parameters) {
  const state = { ...before, workers: before.workers.slice(0, parameters.workers) };
  const clock = state.workers.length ? Math.min(...state.workers.map((w) => w.clock)) : 0;
  while (state.workers.length < parameters.workers) state.workers.push({ clock, read: 0, gradient: 0, began: 0, ends: null });
  const bound = parameters.bound >= UNBOUNDED ? Infinity : parameters.bound;
  const slowest = Math.min(...state.workers.map((w) => w.clock));
  state.workers = state.workers.map((worker, number) =>
    worker.ends === null && worker.clock - slowest <= bound ? begin(worker, number, state, parameters) : worker);
  let first = -1;
  state.workers.forEach((w, number) => { if (w.ends !== null && (first < 0 || w.ends < state.workers[first].ends)) first = number; });
  const { began, ends: ended, read, gradient, clock: done } = state.workers[first];
  state.workers[first] = { ...state.workers[first], clock: done + 1, ends: null };
  return {
    ...state,
    time: ended,
    version: state.version + 1,
    error: Math.min(Math.max(state.error - parameters.rate * gradient, -FARTHEST), FARTHEST),
    last: { worker: first, began, ended, read, wrote: state.version, staleness: state.version - read },
  };
}

export const largestStableRate = (staleness) => 2 * Math.sin(Math.PI / (2 * (2 * staleness + 1)));

// ---- words --------------------------------------------------------------------------------------------
const mean = (list) => list.reduce((sum, x) => sum + x, 0) / Math.max(list.length, 1);
const short = (x) => (x !== 0 && (Math.abs(x) < 0.001 || Math.abs(x) >= 1e4) ? x.toExponential(0).replace("e+", "e").replace("-", "−") : String(+x.toPrecision(2)));

export function verdict(recent) {
  const size = recent.map((s) => Math.abs(s.error));
  const [old, young] = [size.slice(0, size.length / 2), size.slice(size.length / 2)].map((part) => Math.max(0, ...part));
  if (young < 1e-9) return "It has converged.";
  if (young > 1.5 * old) return "It diverges.";
  return young < 0.8 * old ? "It converges." : "It neither converges nor diverges.";
}

export function summary(state, history, parameters) {
  if (!state.last) return "Not started. All workers will read version 0.";
  const recent = history.filter((s) => s.last).slice(-100);
  const stale = recent.map((s) => s.last.staleness);
  const average = mean(stale);
  const span = recent.length > 1 ? (recent.length - 1) / Math.max(recent.at(-1).time - recent[0].time, 1e-9) : 0;
  return `Version ${state.version}: staleness of the last ${recent.length} writes ${average.toFixed(1)} on average, ${Math.max(...stale)} at most; `
    + `${span.toFixed(1)} writes per step time. Were it always ${average.toFixed(1)}, rates up to ${largestStableRate(average).toFixed(2)} would be stable; `
    + `the rate is ${short(parameters.rate)}. Distance from the minimum ${short(Math.abs(state.error))}. ${verdict(recent)}`;
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
.course svg.plot .busy { fill: none; stroke: var(--control); }
.course svg.plot .fresh { fill: var(--tint); stroke: var(--good); }
.course svg.plot .stale { fill: var(--tint); stroke: var(--bad); stroke-width: 2; }
.course svg.plot .age { fill: var(--ink); font-size: 10px; text-anchor: middle; }
.course svg.plot .error { fill: none; stroke: var(--accent); stroke-width: 2; }
.course svg.plot .start { stroke: var(--quiet); stroke-dasharray: 4 3; }`;
const [SPAN, KEPT] = [12, 300]; // step times in the upper picture, updates in the lower
const [W, H, LEFT, TOP, MID, LOW] = [640, 330, 46, 16, 176, 318];
const SVG = (tag, properties, text = "") => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
};

function bars(state, history) {
  const from = Math.max(0, state.time - SPAN * 0.9);
  const x = (time) => LEFT + Math.min(Math.max((time - from) / SPAN, 0), 1) * (W - LEFT - 4);
  const rows = state.workers.length || 1;
  const tall = (MID - TOP) / rows;
  const parts = [];
  const bar = (kind, number, began, ended, text) => {
    const [a, b] = [x(began), x(ended)];
    if (number >= rows || b - a < 0.5) return;
    parts.push(SVG("rect", { class: kind, x: a + 0.5, y: TOP + number * tall + 1, width: b - a - 1 > 0 ? b - a - 1 : 0.5, height: Math.max(tall - 2, 1), rx: 2 }));
    if (b - a > 15 && tall > 8) parts.push(SVG("text", { class: "age", x: (a + b) / 2, y: TOP + (number + 0.5) * tall + 3.5 }, text));
  };
  for (const { last } of history) if (last && last.ended > from) bar(last.staleness > rows - 1 ? "stale" : "fresh", last.worker, last.began, last.ended, last.staleness);
  state.workers.forEach((w, number) => { if (w.ends !== null) bar("busy", number, w.began, w.ends, ""); });
  const every = Math.ceil(rows / 8);
  for (let n = 0; n < rows; n += every) parts.push(SVG("text", { x: LEFT - 4, y: TOP + (n + 0.5) * tall + 4, "text-anchor": "end" }, `w${n}`));
  return parts;
}

function curve(history) {
  const size = history.map((s) => Math.log10(Math.max(Math.abs(s.error), 1e-12)));
  const [low, high] = [Math.floor(Math.min(-1, ...size)), Math.ceil(Math.max(1, ...size))];
  const first = history[0].version;
  const x = (version) => LEFT + ((version - first) / KEPT) * (W - LEFT - 4);
  const y = (power) => LOW - ((power - low) / (high - low)) * (LOW - MID - 28);
  const gap = Math.ceil((high - low) / 4);
  const parts = [SVG("path", { class: "start", d: `M${LEFT} ${y(0)}H${W - 4}` })];
  for (let power = low; power <= high; power += gap) parts.push(SVG("text", { x: LEFT - 4, y: y(power) + 4, "text-anchor": "end" }, `10^${power}`.replace("-", "−")));
  parts.push(SVG("path", { class: "error", d: history.map((s, i) => `${i ? "L" : "M"}${x(s.version).toFixed(1)} ${y(size[i]).toFixed(1)}`).join("") }));
  return parts;
}

function draw(svg, state, history) {
  svg.replaceChildren(
    SVG("rect", { class: "frame", x: LEFT, y: TOP, width: W - LEFT - 4, height: MID - TOP }),
    SVG("rect", { class: "frame", x: LEFT, y: MID + 28, width: W - LEFT - 4, height: LOW - MID - 28 }),
    SVG("text", { x: LEFT, y: 11 }, "steps from read to write, with their staleness; thick where over n − 1; gaps are waits"),
    SVG("text", { x: LEFT, y: MID + 22 }, "distance from the minimum after each write; dashed: the start"),
    ...bars(state, history), ...curve(history));
}

function render({ model, el: host }) {
  const parameters = { ...model.get("parameters") };
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let state, history, timer = null, told = 0, due = 0;

  const svg = SVG("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "The workers' steps, and the distance from the minimum over the last 300 writes; the text below says what it shows." });
  const says = el("p", { class: "says", role: "status" });
  const play = el("button", { type: "button", "aria-keyshortcuts": "p", onclick: () => run(timer === null) }, "Play");
  const button = (label, key, action) => el("button", { type: "button", class: "plain", "aria-keyshortcuts": key, onclick: action }, label);

  const show = (speak) => {
    draw(svg, state, history);
    if (!speak && Date.now() - told < 5000) return; // a screen reader is not to be talked over
    told = Date.now();
    says.textContent = summary(state, history, parameters);
  };
  const advance = () => {
    state = step(state, parameters);
    history.push(state);
    if (history.length > KEPT) history.shift();
  };
  const run = (on) => {
    clearInterval(timer);
    due = state.time;
    timer = on ? setInterval(tick, calm.matches ? 1000 : 50) : null; // less motion: one still picture a second
    play.textContent = on ? "Pause" : "Play";
    show(true);
  };
  const tick = () => {
    if (!host.isConnected) return run(false);
    due += calm.matches ? 3 : 0.15;
    while (state.time < due) advance();
    show(false);
  };
  const pausedStep = (steps) => { if (timer !== null) run(false); for (let i = 0; i < steps; i++) advance(); show(true); };
  const reset = () => {
    state = { ...model.get("start") };
    history = [state];
    due = state.time;
    show(true);
  };

  const sliders = model.get("sliders").map(({ name, label, unit, min, max, step: by, top }) => {
    const id = uniqueName();
    const value = el("strong");
    const input = el("input", { type: "range", id, min, max, step: by, value: parameters[name] });
    const tell = () => {
      value.textContent = top && parameters[name] >= max ? top : String(+parameters[name].toFixed(2)) + (unit ? ` ${unit}` : "");
      input.setAttribute("aria-valuetext", value.textContent);
    };
    input.addEventListener("input", () => { parameters[name] = Number(input.value); tell(); });
    tell();
    return el("div", {}, el("label", { for: id }, `${label}: `, value), input);
  });
  const root = el("section", { class: "course panel", "aria-label": "Staleness simulation" }, el("style", {}, STYLE),
    el("div", { class: "sliders" }, sliders),
    el("div", { class: "act" }, play, button("1 write", "s", () => pausedStep(1)), button("100 writes", "h", () => pausedStep(100)), button("Reset", "r", reset)),
    svg, says, el("p", { class: "status" }, "Keys: p plays and pauses, s is one write, h a hundred, r resets. Sliders act at once."));
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = { p: () => run(timer === null), s: () => pausedStep(1), h: () => pausedStep(100), r: reset }[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  keepKeys(root);
  reset();
  host.append(root);
  return () => run(false);
}

export default { render };
