// The bit explorer: flip the bits of a number, or type a number and see it rounded in every format.
import { el, keepKeys, uniqueName } from "./dom.js";

// ---- arithmetic, the likeness of helpers/precision.py -------------------------------------------------
// A format is { name, exponent_bits, mantissa_bits, bias, has_infinity }; a pattern is a whole number
// below 2^32. Division and multiplication by powers of two are exact, so nothing here is rounded twice.

export const width = (f) => 1 + f.exponent_bits + f.mantissa_bits;
const topField = (f) => 2 ** f.exponent_bits - 1;

export function fields(pattern, f) {
  const mantissa = pattern % 2 ** f.mantissa_bits;
  const exponent = Math.floor(pattern / 2 ** f.mantissa_bits) % 2 ** f.exponent_bits;
  const negative = pattern >= 2 ** (width(f) - 1);
  const allOnes = mantissa === 2 ** f.mantissa_bits - 1;
  const kind = exponent !== topField(f) || (!f.has_infinity && !allOnes)
    ? exponent > 0 ? "normal" : mantissa > 0 ? "subnormal" : "zero"
    : f.has_infinity && mantissa === 0 ? "infinity" : "NaN";
  return { negative, exponent, mantissa, kind };
}

export function decode(pattern, f) {
  const { negative, exponent, mantissa, kind } = fields(pattern, f);
  if (kind === "NaN") return NaN;
  const integer = mantissa + (exponent > 0 ? 2 ** f.mantissa_bits : 0);
  const magnitude = kind === "infinity" ? Infinity : integer * 2 ** (Math.max(exponent, 1) - f.bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

const view = new DataView(new ArrayBuffer(8));
function exponentOf(magnitude) {
  view.setFloat64(0, magnitude);
  return ((view.getUint32(0) >>> 20) & 0x7ff) - 1023; // subnormal float64: -1023, below every format here
}

function roundEven(x) {
  const low = Math.floor(x);
  const rest = x - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
}

export function encode(value, f) {
  const sign = value < 0 || Object.is(value, -0) ? 2 ** (width(f) - 1) : 0;
  const infinity = topField(f) * 2 ** f.mantissa_bits;
  const beyond = f.has_infinity ? infinity : 2 ** (width(f) - 1) - 1;
  if (Number.isNaN(value)) return f.has_infinity ? infinity + 2 ** (f.mantissa_bits - 1) : beyond;
  const magnitude = Math.abs(value);
  const lowest = 1 - f.bias;
  const exponent = Math.max(exponentOf(magnitude), lowest);
  if (exponent - lowest > topField(f)) return beyond + sign; // infinity itself too
  const count = roundEven(magnitude / 2 ** (exponent - f.mantissa_bits));
  const pattern = (exponent - lowest) * 2 ** f.mantissa_bits + count;
  return Math.min(pattern, beyond) + sign;
}

// "0.1", "-1e-8", "2^-24", "1/3", "inf": a number, or null.
export function parse(text) {
  const word = text.trim().toLowerCase().replace("−", "-").replace(/^\+/, "");
  if (/^-?inf(inity)?$/.test(word)) return word.startsWith("-") ? -Infinity : Infinity;
  if (word === "nan") return NaN;
  const number = /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/;
  if (number.test(word)) return Number(word);
  const parts = word.match(/^(-?)([^\s/^*-]+)\s*(\^|\*\*|\/)\s*(\S+)$/);
  if (!parts || !number.test(parts[2]) || !number.test(parts[4])) return null;
  const [a, b] = [Number(parts[2]), Number(parts[4])];
  return (parts[1] ? -1 : 1) * (parts[3] === "/" ? a / b : a ** b);
}

// ---- words ------------------------------------------------------------------------------------------
export function show(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  const text = Object.is(value, -0) ? "-0" : String(value);
  return text.replace(/-/g, "−").replace(/e\+?/, "e");
}

export function formula(pattern, f) {
  const { negative, exponent, mantissa, kind } = fields(pattern, f);
  if (kind === "NaN") return "exponent all ones: not a number";
  if (kind === "infinity") return "exponent all ones, mantissa 0: infinity";
  const lead = exponent > 0 ? 1 : 0;
  const power = Math.max(exponent, 1) - f.bias;
  const why = kind === "normal" ? `${exponent} − ${f.bias} = ${show(power)}` : "the lowest exponent, without the leading 1";
  return `${negative ? "−" : "+"} 2^${show(power)} × (${lead} + ${mantissa}/${2 ** f.mantissa_bits}) · ${kind}; exponent ${why}`;
}

export function comment(value, pattern, f) {
  const got = decode(pattern, f);
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(got)) return Number.isFinite(value) ? "overflow" : f.has_infinity ? "exact" : "has no infinity";
  if (got === value) return "exact";
  if (got === 0) return "underflow to 0";
  const error = Math.abs(got - value) / Math.abs(value);
  return `off by ${(100 * error).toPrecision(2)}%${fields(pattern, f).kind === "subnormal" ? ", subnormal" : ""}`;
}

// ---- page -------------------------------------------------------------------------------------------
const STYLE = `
.course .bits { display: flex; flex-wrap: wrap; gap: .35rem .2rem; margin: .6rem 0; }
.course .bits button { width: 1.75rem; padding: .2rem 0; text-align: center; color: var(--ink); background: var(--tint); border: 1px solid var(--control); border-bottom: 4px solid var(--part); font-family: ui-monospace, monospace; }
.course .bits button[aria-pressed="true"] { background: var(--part); color: var(--paper); }
.course .bits .sign { --part: var(--bad); } .course .bits .exponent { --part: var(--accent); } .course .bits .mantissa { --part: var(--good); }
.course .bits .gap { margin-left: .5rem; }
.course .row { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: end; }
.course .row label { display: block; font-size: .86em; color: var(--quiet); }
.course select { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--control); border-radius: 4px; padding: .25rem .4rem; }
.course select:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.course .says strong { font-size: 1.1em; }
.course table.rounded { border-collapse: collapse; margin-top: .6rem; width: 100%; font-size: .92em; color: var(--ink); }
.course table.rounded :is(th, td) { text-align: left; padding: .2rem .5rem; border-bottom: 1px solid var(--line); color: var(--ink); background: var(--paper); }
.course table.rounded caption { text-align: left; color: var(--quiet); font-size: .93em; padding-bottom: .2rem; }`;

const partOf = (bit, f) => (bit === width(f) - 1 ? "sign" : bit >= f.mantissa_bits ? "exponent" : "mantissa");

function nameOf(bit, f) {
  const part = partOf(bit, f);
  if (part === "sign") return "sign";
  return part === "exponent" ? `exponent, worth ${2 ** (bit - f.mantissa_bits)}` : `mantissa, worth 1/${2 ** (f.mantissa_bits - bit)}`;
}

function render({ model, el: host }) {
  const formats = model.get("formats");
  let f = formats.find((format) => format.name === model.get("start"));
  let value = parse(model.get("value")); // what was typed, or what the bits say
  let pattern = encode(value, f);
  let focused = width(f) - 1;

  const [valueId, formatId] = [uniqueName(), uniqueName()];
  const input = el("input", { type: "text", id: valueId, class: "short", autocomplete: "off", spellcheck: "false", value: model.get("value") });
  const select = el("select", { id: formatId }, formats.map(({ name }) => el("option", { value: name, selected: name === f.name }, name)));
  const problem = el("p", { class: "status", role: "alert" });
  const bits = el("div", { class: "bits", role: "group" });
  const says = el("p", { class: "says", role: "status" });
  const body = el("tbody");

  const drawBits = () => {
    const buttons = Array.from({ length: width(f) }, (_, i) => {
      const bit = width(f) - 1 - i;
      const on = Math.floor(pattern / 2 ** bit) % 2 === 1;
      const gap = bit === width(f) - 2 || bit === f.mantissa_bits - 1 ? " gap" : "";
      return el("button", { type: "button", class: partOf(bit, f) + gap, "data-bit": bit, "aria-pressed": String(on),
        "aria-label": nameOf(bit, f), title: nameOf(bit, f), tabindex: bit === focused ? "0" : "-1" }, on ? "1" : "0");
    });
    bits.setAttribute("aria-label", `Bits of ${f.name}: sign, ${f.exponent_bits} exponent, ${f.mantissa_bits} mantissa. Arrow keys move, Space flips.`);
    bits.replaceChildren(...buttons);
  };
  const draw = () => {
    drawBits();
    const hex = `0x${pattern.toString(16).toUpperCase().padStart(Math.ceil(width(f) / 4), "0")}`;
    says.replaceChildren(el("strong", {}, show(decode(pattern, f))), ` in ${f.name} · ${hex} · ${formula(pattern, f)}`);
    body.replaceChildren(...formats.map((format) => {
      const own = encode(value, format);
      return el("tr", {}, el("th", { scope: "row" }, format.name), el("td", {}, show(decode(own, format))), el("td", {}, comment(value, own, format)));
    }));
  };
  const focusBit = (bit) => {
    focused = Math.min(Math.max(bit, 0), width(f) - 1);
    for (const button of bits.children) button.tabIndex = Number(button.dataset.bit) === focused ? 0 : -1;
    bits.querySelector('[tabindex="0"]').focus();
  };
  const typed = () => {
    const read = parse(input.value);
    problem.textContent = read === null ? `“${input.value}” is not a number that can be read: write it like 0.1, 1e-8, 2^-24, 1/3, inf or nan.` : "";
    if (read === null) return;
    value = read;
    pattern = encode(value, f);
    draw();
  };

  bits.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const bit = Number(button.dataset.bit);
    pattern += button.getAttribute("aria-pressed") === "true" ? -(2 ** bit) : 2 ** bit;
    value = decode(pattern, f);
    input.value = show(value).replace(/−/g, "-").replace("∞", "inf");
    problem.textContent = "";
    focused = bit;
    draw();
    focusBit(bit);
  });
  bits.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: focused + 1, ArrowRight: focused - 1, Home: width(f) - 1, End: 0 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    focusBit(to);
  });
  input.addEventListener("input", typed);
  select.addEventListener("change", () => {
    f = formats.find(({ name }) => name === select.value);
    focused = width(f) - 1;
    pattern = encode(value, f);
    draw();
  });

  const head = ["format", "what it keeps", "error"].map((text) => el("th", { scope: "col" }, text));
  const root = el("section", { class: "course panel", "aria-label": "Bit explorer" }, el("style", {}, STYLE),
    el("div", { class: "row" },
      el("div", {}, el("label", { for: valueId }, "Number"), input),
      el("div", {}, el("label", { for: formatId }, "Shown as"), select)),
    problem, bits, says,
    el("table", { class: "rounded" }, el("caption", {}, "The same number, rounded to nearest in each format"), el("thead", {}, el("tr", {}, head)), body));
  keepKeys(root);
  draw();
  host.append(root);
}

export default { render };
