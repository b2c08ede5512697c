// Small tools to build a widget's page elements. Text is never parsed as HTML.

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// **bold**, *emphasis* and `code`; a blank line starts a paragraph.
const MARKS = /(\*\*[^*]+\*\*|\*[^*\s][^*]*\*|`[^`]+`)/;

function spans(text) {
  return text.split(MARKS).filter(Boolean).map((part) => {
    if (/^`[^`]+`$/.test(part)) return el("code", {}, part.slice(1, -1));
    if (/^\*\*[^*]+\*\*$/.test(part)) return el("strong", {}, part.slice(2, -2));
    if (/^\*[^*\s][^*]*\*$/.test(part)) return el("em", {}, part.slice(1, -1));
    return part;
  });
}

export function rich(text) {
  const paragraphs = text.trim().split(/\n\s*\n/);
  return paragraphs.map((paragraph) => el("span", { class: "para" }, ...spans(paragraph.replace(/\s+/g, " "))));
}

// JupyterLab takes single keys as commands (arrows move the cell, b inserts one). Keys typed in a widget
// are the widget's; shortcuts with Ctrl, Alt or Meta, such as saving, stay the notebook's.
export function keepKeys(root) {
  for (const type of ["keydown", "keypress", "keyup"]) {
    root.addEventListener(type, (event) => {
      if (!(event.ctrlKey || event.metaKey || event.altKey)) event.stopPropagation();
    });
  }
}

// Names that join a label to its control must be unique in the page, also when a widget is shown twice.
let views = 0;
export const uniqueName = () => `course-${++views}-${Math.random().toString(36).slice(2, 8)}`;
