// The loss scaling simulation: a dynamic scale that hunts a moving cloud of gradients through float16's range.
import { el, keepKeys, uniqueName } from "./dom.js";

// ---- the model, the likeness of helpers/widgets/loss_scale.py -----------------------------------------
export const OVERFLOW = Math.log2(65520); // from here on float16 rounds to infinity
export const UNDERFLOW = -25; // from here down float16 rounds to 0
export const DRAWN = 64;
const [LARGEST, SMALLEST] = [127, -126];

export function uniform(seed) {
  seed = (seed + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1) >>> 0;
  mixed = (mixed ^ (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61))) >>> 0;
  return [seed, ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32];
}

export function step(state, parameters) {
  let [seed, lost, finite] = [state.seed, 0, true];
  for (let i = 0; i < DRAWN; i++) {
    let [normal, drawn] = [-6, 0]; // twelve uniforms less 6: nearly normal, and the same in every language
    for (let k = 0; k < 12; k++) { [seed, drawn] = uniform(seed); normal += drawn; }
    const scaled = parameters.mean + state.moved + parameters.spread * normal + state.exponent;
    finite = finite && scaled < OVERFLOW;
    lost += scaled <= UNDERFLOW;
  }
  const good = finite ? state.good + 1 : 0;
  const grown = finite && good >= parameters.interval;
  const move = grown ? Math.log2(parameters.growth) : finite ? 0 : Math.log2(parameters.backoff);
  return {
    step: state.step + 1,
    exponent: Math.min(Math.max(state.exponent + move, SMALLEST), LARGEST),
    good: grown ? 0 : good,
    skipped: state.skipped + !finite,
    moved: state.moved + parameters.drift / 1000,
    lost: lost / DRAWN,
    finite,
    seed,
  };
}

// ---- words --------------------------------------------------------------------------------------------
const signed = (x, digits = 1) => String(+x.toFixed(digits)).replace("-", "−");
const share = (x) => `${(100 * x).toFixed(1)}%`;
const mean = (list) => list.reduce((sum, x) => sum + x, 0) / Math.max(list.length, 1);

export function summary(state, recent, parameters) {
  if (!state.step) return `Not started. The scale is 2^${signed(state.exponent)}.`;
  const last = recent.slice(-100);
  const skipped = last.filter((s) => !s.finite).length;
  const lost = mean(last.map((s) => s.lost));
  const verdict = skipped > 0.2 * last.length ? "Too many steps are skipped."
    : lost > 0.05 ? "Many gradients are lost." : "The gradients fit.";
  return `Step ${state.step}: scale 2^${signed(state.exponent)}, gradients around 2^${signed(parameters.mean + state.moved)}. `
    + `Of the last ${last.length} steps ${skipped} skipped, ${share(lost)} of the gradients lost to underflow; ${state.skipped} skipped in all. ${verdict}`;
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
.course svg.plot .scale { fill: none; stroke: var(--accent); stroke-width: 2; }
.course svg.plot .limit { fill: none; stroke: var(--quiet); stroke-dasharray: 4 3; }
.course svg.plot .lost { fill: var(--good); }
.course svg.plot .skip { stroke: var(--bad); stroke-width: 2; }`;
const WINDOW = 600; // steps shown
const [W, H, LEFT, TOP, MID, LOW] = [640, 300, 46, 16, 190, 286];
const SVG = (tag, properties, text = "") => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
};

function draw(svg, history) {
  const first = Math.max(0, history.at(-1).step - WINDOW);
  const x = (s) => LEFT + ((s.step - first) / WINDOW) * (W - LEFT - 4);
  const values = history.flatMap((s) => [s.exponent, s.limit]);
  const [low, high] = [Math.floor(Math.min(...values)) - 2, Math.ceil(Math.max(...values)) + 2];
  const y = (exponent) => MID - ((exponent - low) / (high - low)) * (MID - TOP);
  const line = (name) => history.map((s, i) => `${i ? "L" : "M"}${x(s).toFixed(1)} ${y(s[name]).toFixed(1)}`).join("");
  const bars = history.map((s) => `M${x(s).toFixed(1)} ${LOW}V${(LOW - s.lost * (LOW - MID - 28)).toFixed(1)}h1.2V${LOW}`).join("");
  const skips = history.filter((s) => !s.finite).map((s) => `M${x(s).toFixed(1)} ${MID}v-9`).join("");
  const gap = Math.max(1, Math.ceil((high - low) / 6));
  const ticks = [];
  for (let e = Math.ceil(low / gap) * gap; e <= high; e += gap) ticks.push(SVG("text", { x: LEFT - 4, y: y(e) + 4, "text-anchor": "end" }, `2^${signed(e)}`));
  svg.replaceChildren(
    SVG("rect", { class: "frame", x: LEFT, y: TOP, width: W - LEFT - 4, height: MID - TOP }),
    SVG("rect", { class: "frame", x: LEFT, y: MID + 28, width: W - LEFT - 4, height: LOW - MID - 28 }),
    ...ticks,
    SVG("text", { x: LEFT, y: 11 }, "scale (line), where about half of the steps overflow (dashed), skipped steps (marks)"),
    SVG("text", { x: LEFT, y: MID + 22 }, "share of gradients lost to underflow in the step"),
    SVG("text", { x: LEFT - 4, y: MID + 40, "text-anchor": "end" }, "100%"), SVG("text", { x: LEFT - 4, y: LOW, "text-anchor": "end" }, "0"),
    SVG("path", { class: "limit", d: line("limit") }), SVG("path", { class: "scale", d: line("exponent") }),
    SVG("path", { class: "skip", d: skips }), SVG("path", { class: "lost", d: bars }),
  );
}

function render({ model, el: host }) {
  const parameters = { ...model.get("parameters") };
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let state, history, timer = null, told = 0;

  const svg = SVG("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Scale, skipped steps and lost gradients over the last 600 steps; the text below says what it shows." });
  const says = el("p", { class: "says", role: "status" });
  const play = el("button", { type: "button", "aria-keyshortcuts": "p", onclick: () => run(timer === null) }, "Play");
  const button = (label, key, action) => el("button", { type: "button", class: "plain", "aria-keyshortcuts": key, onclick: action }, label);

  // The largest of 64 normal numbers lies 2.4 spreads above their mean, on average: there float16 must not end.
  const limit = () => OVERFLOW - (parameters.mean + state.moved + 2.4 * parameters.spread);
  const show = (speak) => {
    draw(svg, history);
    if (!speak && Date.now() - told < 5000) return; // a screen reader is not to be talked over
    told = Date.now();
    says.textContent = summary(state, history, parameters);
  };
  const advance = (steps) => {
    for (let i = 0; i < steps; i++) {
      state = step(state, parameters);
      history.push({ ...state, limit: limit() });
    }
    history = history.slice(-WINDOW);
  };
  const run = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(tick, calm.matches ? 1000 : 50) : null; // less motion: one still picture a second
    play.textContent = on ? "Pause" : "Play";
    show(true);
  };
  const tick = () => {
    if (!host.isConnected) return run(false);
    advance(calm.matches ? 60 : 3);
    show(false);
  };
  const pausedStep = (steps) => { if (timer !== null) run(false); advance(steps); show(true); };
  const reset = () => {
    state = { ...model.get("start") };
    history = [{ ...state, limit: limit() }];
    show(true);
  };

  const sliders = model.get("sliders").map(({ name, label, unit, min, max, step }) => {
    const id = uniqueName();
    const value = el("strong");
    const input = el("input", { type: "range", id, min, max, step, value: parameters[name] });
    const tell = () => {
      value.textContent = signed(parameters[name], 2) + (unit ? ` ${unit}` : "");
      input.setAttribute("aria-valuetext", value.textContent);
    };
    input.addEventListener("input", () => { parameters[name] = Number(input.value); tell(); });
    tell();
    return el("div", {}, el("label", { for: id }, `${label}: `, value), input);
  });
  const root = el("section", { class: "course panel", "aria-label": "Loss scaling simulation" }, el("style", {}, STYLE),
    el("div", { class: "sliders" }, sliders),
    el("div", { class: "act" }, play, button("1 step", "s", () => pausedStep(1)), button("100 steps", "h", () => pausedStep(100)), button("Reset", "r", reset)),
    svg, says, el("p", { class: "status" }, "Keys: p plays and pauses, s is one step, h a hundred, r resets. Sliders act at once."));
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
