// Runs widgets in a page with no kernel: gives each module a model that keeps its state in this browser.
function modelFor(state, key) {
  const listeners = {};
  const emit = (event, ...details) => (listeners[event] ?? []).forEach((listener) => listener(...details));
  try { state.saved = JSON.parse(localStorage.getItem(key)) ?? state.saved; } catch { /* storage is off */ }
  return {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; emit(`change:${name}`); },
    save_changes() {},
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    off: (event, listener) => { listeners[event] = (listeners[event] ?? []).filter((l) => l !== listener); },
    send({ type, id, answer, correct, points }) {
      if (type !== "attempt") return;
      const old = state.saved[id] ?? { points: 0, attempts: 0, correct: false };
      const best = { answer, attempts: old.attempts + 1, points: Math.max(points, old.points), correct: correct || old.correct };
      this.set("saved", { ...state.saved, [id]: best });
      try { localStorage.setItem(key, JSON.stringify(state.saved)); } catch { /* storage is off */ }
      emit("msg:custom", { type: "kept" });
    },
  };
}

for (const host of document.querySelectorAll(".course-widget")) {
  const { module, state } = JSON.parse(host.querySelector("script").textContent);
  const key = `course:${state.lesson}:${(state.questions ?? []).map((question) => question.id)}`;
  const { default: widget } = await import(module);
  widget.render({ model: modelFor(state, key), el: host });
}
