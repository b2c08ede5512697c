"""The quiz: questions that grade themselves in the page, and a score that outlives the kernel.

Answers are readable in the page by anyone who looks for them: this is self-assessment, not an exam.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import traitlets

from helpers import scores
from helpers.widgets import questions as files
from helpers.widgets.base import Base, plain, rich

_NOTE = "Run this cell in JupyterLab to answer."


def _title(question: dict, number: int, total: int) -> str:
    kind = "Predict" if question.get("predict") else "Question"
    return f"{kind} {number} of {total}" if total > 1 else kind


def _blank(question: dict) -> str:
    return " ".join(["Answer: ______", question.get("unit", "")]).strip()


class Quiz(Base):
    """One or more questions of a lesson. The module grades; Python keeps what was reached.

    `questions` are dictionaries as in data/quizzes; `saved` maps a question's id to its points, attempts,
    last answer and whether it was ever right.
    """

    script = "quiz.js"
    content = ("lesson", "questions", "saved")

    lesson = traitlets.Unicode().tag(sync=True)
    questions = traitlets.List(traitlets.Dict()).tag(sync=True)
    saved = traitlets.Dict().tag(sync=True)

    def __init__(self, lesson: str, questions: Sequence[dict]) -> None:
        checked = files.check(list(questions), lesson)
        super().__init__(lesson=lesson, questions=checked, saved=_saved(lesson, checked))
        self.on_msg(self._receive)

    def _receive(self, _widget: Base, message: dict, _buffers: list) -> None:
        """Keep one attempt. Called on a thread of the kernel's; whatever fails is said in the widget."""
        if message.get("type") != "attempt":
            return
        try:
            question = next(q for q in self.questions if q["id"] == message["id"])
            scores.record(
                self.lesson,
                question["id"],
                bool(message["correct"]),
                points=min(max(float(message["points"]), 0.0), question["points"]),
                max_points=question["points"],
                answer=message["answer"],
            )
            self.saved = _saved(self.lesson, self.questions)
            self.send({"type": "kept"})
        except Exception as problem:
            self.send({"type": "kept", "problem": f"Not saved. {problem}"})

    def text(self) -> str:
        """Return the questions and options, not the answers, as plain text."""
        blocks = []
        for number, question in enumerate(self.questions, start=1):
            box = {"choice": "( )", "choices": "[ ]"}.get(question["kind"])
            lines = [f"{_title(question, number, len(self.questions))}: {plain(question['prompt'])}"]
            lines += [f"  {box} {plain(o['text'])}" for o in question["options"]] if box else [f"  {_blank(question)}"]
            blocks.append("\n".join(lines))
        return "\n\n".join([*blocks, _NOTE])

    def html(self) -> str:
        """Return the questions and options, not the answers, as HTML."""
        blocks = []
        for number, question in enumerate(self.questions, start=1):
            title = _title(question, number, len(self.questions))
            blocks.append(f"<p><strong>{title}.</strong> {rich(question['prompt'])}</p>")
            if "options" in question:
                items = "".join(f"<li>{rich(option['text'])}</li>" for option in question["options"])
                blocks.append(f"<ul>{items}</ul>")
            else:
                blocks.append(f"<p>{html.escape(_blank(question))}</p>")
        return "\n".join(["<div>", *blocks, f"<p><em>{_NOTE}</em></p>", "</div>"])


def _saved(lesson: str, questions: Sequence[dict]) -> dict:
    reached = scores.best(lesson)
    return {
        q["id"]: {"points": s.points, "attempts": s.attempts, "correct": s.correct, "answer": s.answer}
        for q in questions
        if (s := reached.get(q["id"]))
    }


def quiz(lesson: str, *ids: str) -> Quiz:
    """Return a quiz of the questions `ids` of a lesson, in that order; without ids, of all of them.

    >>> quiz("20_data_parallelism", "main_idea")          # doctest: +SKIP

    Raises:
        QuestionError: no such lesson or question, or the lesson's file of questions is wrong.
    """
    there = {question["id"]: question for question in files.read(lesson)}
    for name in ids:
        if name not in there:
            raise files.QuestionError(f"There is no question {name!r} in {lesson}; there are: {', '.join(there)}.")
    return Quiz(lesson, [there[name] for name in ids or there])
