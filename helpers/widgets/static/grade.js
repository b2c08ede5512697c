// Grading: a pure function of a question and an answer. Nothing here knows of pages or kernels.
//
// grade(question, answer) returns { problem } where the answer cannot be graded (nothing was counted), else
// { correct, points, notes }, notes being a list of { right, text } to show, right null where neither.

const collapse = (text) => text.replace(/[\u2018\u2019]/g, "'").replace(/[\u201c\u201d]/g, '"')
  .replace(/[\u2010-\u2015\u2212]/g, "-").replace(/\s+/g, " ").trim();

// Read a number with a decimal point or comma. Returns { value } or { problem }.
export function readNumber(text, unit = "") {
  let digits = collapse(text);
  if (unit && digits.toLowerCase().endsWith(unit.toLowerCase())) digits = digits.slice(0, -unit.length).trim();
  if (digits === "") return { problem: "Write a number first." };
  if (/^[+-]?[1-9]\d{0,2},\d{3}$/.test(digits)) {
    const [whole, rest] = digits.split(",");
    return { problem: `${digits} can be read in two ways: write ${whole}${rest} or ${whole}.${rest}.` };
  }
  if (!/^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i.test(digits)) {
    const form = unit ? `, in ${unit}` : "";
    return { problem: `“${digits}” is not a number that can be read: write it like 12.5 or 1e-3${form}.` };
  }
  const value = Number(digits.replace(",", "."));
  if (!Number.isFinite(value)) return { problem: `${digits} is too large to be read.` };
  return { value };
}

export function margin(question) {
  const tolerance = question.tolerance ?? 0;
  if (typeof tolerance === "number") return tolerance;
  return Math.abs(question.answer) * Number(tolerance.replace("%", "")) / 100;
}

// A little more than the margin, so that 0.1 + 0.2 is within 0 of 0.3.
const near = (value, wanted, allowed) => Math.abs(value - wanted) <= allowed + 1e-9 * Math.abs(wanted);

const matches = (pattern, text) => new RegExp(pattern, "i").test(text);

const kinds = {
  choice(question, answer) {
    const option = question.options.find((o) => o.text === answer);
    if (!option) return { problem: "Choose an answer first." };
    return { correct: Boolean(option.correct), notes: [{ right: Boolean(option.correct), text: option.feedback }] };
  },
  choices(question, answer) {
    const chosen = question.options.filter((o) => (answer ?? []).includes(o.text));
    if (!chosen.length) return { problem: "Choose at least one answer first." };
    const notes = chosen.map((o) => ({ right: Boolean(o.correct), text: `${o.correct ? "Right" : "Wrong"}: ${o.text} — ${o.feedback}` }));
    const missing = question.options.filter((o) => o.correct && !chosen.includes(o)).length;
    if (missing) notes.push({ right: null, text: missing === 1 ? "One more is right." : `${missing} more are right.` });
    return { correct: !missing && chosen.every((o) => o.correct), notes };
  },
  number(question, answer) {
    const { value, problem } = readNumber(answer ?? "", question.unit);
    if (problem) return { problem };
    if (near(value, question.answer, margin(question))) return { correct: true, notes: [] };
    const known = (question.mistakes ?? []).find((m) => near(value, m.answer, 0.005 * Math.abs(m.answer)));
    const text = known?.feedback ?? (value < question.answer ? "Too small." : "Too large.");
    return { correct: false, notes: [{ right: false, text }] };
  },
  text(question, answer) {
    const words = collapse(answer ?? "");
    if (!words) return { problem: "Write an answer first." };
    const known = (question.reject ?? []).find((r) => matches(r.pattern, words));
    if (known) return { correct: false, notes: [{ right: false, text: known.feedback }] };
    if (question.accept.some((pattern) => matches(pattern, words))) return { correct: true, notes: [] };
    return { correct: false, notes: [{ right: false, text: "The key idea was not found in your words. Say it in another way, or compare with the model answer." }] };
  },
};

export function grade(question, answer) {
  const result = kinds[question.kind](question, answer);
  if (result.problem) return result;
  // A prediction earns its points by being made.
  return { ...result, points: result.correct || question.predict ? question.points : 0 };
}

export function solution(question) {
  if (question.kind === "text") return question.model_answer;
  if (question.kind === "number") {
    const allowed = margin(question);
    return `${question.answer}${question.unit ? ` ${question.unit}` : ""}${allowed ? ` (± ${+allowed.toPrecision(3)})` : ""}`;
  }
  return question.options.filter((o) => o.correct).map((o) => o.text).join(" · ");
}
