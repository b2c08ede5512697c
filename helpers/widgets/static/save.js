// Save: the kernel sends the scores, the browser offers them as a file. Load: the other way round.
import { el, keepKeys } from "./dom.js";

const NO_KERNEL = "Waiting for the kernel: it is busy or gone. If this line stays, run this cell again and try once more.";

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = el("a", { href: url, download: name });
  document.body.append(link); // Firefox follows only links that are in the page
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function render({ model, el: host }) {
  const status = el("p", { class: "status", role: "status" });
  let waiting = null;
  const say = (text) => {
    clearTimeout(waiting);
    status.textContent = text;
  };
  const ask = (message) => {
    say("");
    waiting = setTimeout(() => say(NO_KERNEL), 6000);
    model.send(message);
  };
  const chosen = async () => {
    const [file] = picker.files;
    picker.value = ""; // so that the same file can be chosen again
    if (!file) return;
    if (file.size > 2e7) say(`${file.name} is too large to be a scores file.`);
    else ask({ type: "load", name: file.name, text: await file.text() });
  };
  const answers = {
    file: ({ name, text }) => {
      download(name, text);
      say(`Saved as ${name} in your browser's downloads. Load it again from here.`);
    },
    loaded: ({ new: n }) => say(n ? `${n} attempt${n === 1 ? "" : "s"} loaded. Run the cells with questions or progress again to see them.`
      : "Nothing new: every attempt in that file is here already."),
    problem: ({ text }) => say(text),
  };
  const answered = (message) => answers[message.type]?.(message);
  const picker = el("input", { type: "file", accept: ".json,application/json", hidden: true, onchange: chosen });
  const root = el("section", { class: "course panel", "aria-label": "Save and load scores" },
    el("p", {}, model.get("where")),
    el("div", { class: "act" },
      el("button", { type: "button", onclick: () => ask({ type: "save" }) }, "Save my scores"),
      el("button", { type: "button", class: "plain", onclick: () => picker.click() }, "Load scores…"), picker),
    status);
  keepKeys(root);
  host.append(root);
  model.on("msg:custom", answered);
  return () => {
    clearTimeout(waiting);
    model.off("msg:custom", answered);
  };
}

export default { render };
