// The quiz: draws questions, grades answers here, and tells the kernel, where there is one, what was reached.
import { el, keepKeys, rich, uniqueName } from "./dom.js";
import { grade, solution } from "./grade.js";

const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

const controls = {
  choice: (question, name) => options(question, name, "radio"),
  choices: (question, name) => options(question, name, "checkbox"),
  number: (question, name) => field(question, name, "Your number", { inputmode: "decimal", class: "short" }),
  text: (question, name) => field(question, name, "Your answer, in a few words", {}),
};

// Each control returns its element, read() → answer and write(answer).
function options(question, name, type) {
  const inputs = question.options.map((option) => el("input", { type, name, value: option.text }));
  const rows = question.options.map((option, i) => el("label", { class: "option" }, inputs[i], el("span", {}, ...rich(option.text))));
  const chosen = () => inputs.filter((input) => input.checked).map((input) => input.value);
  return {
    element: el("div", { class: "options" }, rows),
    read: () => (type === "radio" ? chosen()[0] ?? null : chosen()),
    write: (answer) => inputs.forEach((input) => { input.checked = [answer].flat().includes(input.value); }),
  };
}

function field(question, name, label, attributes) {
  const input = el("input", { type: "text", id: name, autocomplete: "off", spellcheck: "false", ...attributes });
  const unit = question.unit ? `, in ${question.unit}` : "";
  return {
    element: el("div", { class: "field" }, el("label", { for: name }, `${label}${unit}`),
      el("div", { class: "line" }, input, question.unit ? el("span", { "aria-hidden": "true" }, question.unit) : null)),
    read: () => input.value,
    write: (answer) => { input.value = answer ?? ""; },
  };
}

const mark = (right) => el("span", { class: "mark", "aria-hidden": "true" }, { true: "✓", false: "✗" }[right] ?? "•");
const note = (right, ...content) => el("p", { class: `note ${{ true: "good", false: "bad" }[right] ?? ""}` }, mark(right), el("span", {}, ...content));

function explanation(question, result) {
  const label = { text: "Model answer", number: "Answer" }[question.kind] ?? (question.kind === "choices" ? "Right answers" : "Right answer");
  const reveal = el("div", { class: "reveal" },
    el("p", {}, el("strong", {}, `${label}: `), ...rich(solution(question))), el("p", {}, ...rich(question.explain)));
  if (result.correct && !question.predict) {
    return question.kind === "text" ? reveal : el("p", { class: "explain" }, ...rich(question.explain));
  }
  const summary = question.predict ? "Compare with what happens" : "Show the answer";
  return el("details", {}, el("summary", {}, summary), question.predict ? verdict(question, result) : null, reveal);
}

function verdict(question, result) {
  const wrong = result.notes.some((n) => n.right === false);
  const word = result.correct ? "Correct." : question.kind === "choices" && !wrong ? "Not complete." : "Not right.";
  const head = note(result.correct, el("strong", {}, word));
  const notes = result.notes.map((n) => note(n.right, ...rich(n.text)));
  const only = notes.length === 1 && result.notes[0].right === result.correct && question.kind !== "choices";
  if (only) return [note(result.correct, el("strong", {}, `${word} `), ...rich(result.notes[0].text))];
  return [head, ...notes];
}

function feedback(question, result) {
  if (result.problem) return [note(null, result.problem)];
  if (question.predict) {
    return [note(null, el("strong", {}, "Prediction noted. "), "Run the experiment, then compare."), explanation(question, result)];
  }
  const hint = !result.correct && question.hint ? note(null, el("strong", {}, "Hint: "), ...rich(question.hint)) : null;
  return [...verdict(question, result), hint, explanation(question, result)].filter(Boolean);
}

function score(question, saved) {
  const worth = plural(question.points, "point");
  if (!saved) return question.predict ? `${worth} for a prediction` : worth;
  return `${+saved.points.toPrecision(3)} of ${worth} · ${plural(saved.attempts, "attempt")}`;
}

function card(question, number, total, submit) {
  const name = uniqueName();
  const control = controls[question.kind](question, name);
  const kicker = [total > 1 ? `${number} of ${total}` : null, question.predict ? "Predict" : "Question",
    question.kind === "choices" ? "choose all that apply" : null].filter(Boolean).join(" · ");
  const points = el("span", { class: "points" });
  const said = el("div", { class: "feedback", "aria-live": "polite" });
  const send = (event) => {
    event.preventDefault();
    const answer = control.read();
    const result = grade(question, answer);
    said.replaceChildren(...feedback(question, result));
    if (!result.problem) submit({ id: question.id, answer, correct: result.correct, points: result.points });
  };
  const form = el("form", { class: "question", novalidate: true, onsubmit: send },
    el("div", { class: "head" }, el("span", { class: "kicker" }, kicker), points),
    el("fieldset", {}, el("legend", {}, ...rich(question.prompt)), control.element),
    el("div", { class: "act" }, el("button", { type: "submit" }, question.predict ? "Note my prediction" : "Check")), said);
  // Space and the arrows choose; Enter checks, from any control.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    if (!event.repeat) form.requestSubmit();
  });
  const restore = (saved) => {
    control.write(saved.answer);
    said.replaceChildren(...feedback(question, grade(question, saved.answer)));
  };
  return { form, restore, update: (saved) => { points.textContent = score(question, saved); } };
}

const NOT_SAVED = "Not saved yet: the kernel is busy or gone. If this line stays, run this cell again and answer once more.";

function render({ model, el: host }) {
  const questions = model.get("questions");
  const status = el("p", { class: "status", role: "status" });
  let waiting = null;
  const submit = (attempt) => {
    status.textContent = "";
    clearTimeout(waiting);
    waiting = setTimeout(() => { status.textContent = NOT_SAVED; }, 4000);
    model.send({ type: "attempt", ...attempt });
  };
  const cards = questions.map((question, i) => card(question, i + 1, questions.length, submit));
  const update = () => {
    const saved = model.get("saved");
    questions.forEach((question, i) => cards[i].update(saved[question.id]));
  };
  const answered = (message) => {
    if (message.type !== "kept") return;
    clearTimeout(waiting);
    status.textContent = message.problem ?? "";
  };
  const root = el("div", { class: "course quiz" }, cards.map((c) => c.form), status);
  keepKeys(root);
  host.append(root);
  update();
  const saved = model.get("saved");
  questions.forEach((question, i) => { if (saved[question.id]) cards[i].restore(saved[question.id]); });
  model.on("change:saved", update);
  model.on("msg:custom", answered);
  return () => {
    clearTimeout(waiting);
    model.off("change:saved", update);
    model.off("msg:custom", answered);
  };
}

export default { render };
