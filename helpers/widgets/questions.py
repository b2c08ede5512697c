"""Questions are data: one YAML file per lesson in data/quizzes, checked when it is read.

data/quizzes/schema.json says what a question may hold. Beyond it, this module checks what a schema
cannot: ids are unique, patterns mean the same in Python and in a browser, and the examples of a text
question are judged as they should be.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from pathlib import Path

from helpers.data import DATA

QUIZZES = DATA / "quizzes"

# The part of regular expressions that Python and JavaScript read alike. Both sides match without case
# and with \d, \w, \s and \b meaning ASCII, on text whose white space is collapsed.
_PLACE = r"\\[bB] | [|^$] | \((?:\?[:=!]|(?!\?))"  # cannot be repeated
_ATOM = r"""\\[dDwWsS] | \\[^\w\s] | [\w\ .,;:!'"%&/<>=~@#_-] | \)
          | \[ \^? (?: \\[dDwWsS] | \\[^\w\s] | [\w\ .,;:!'"%/<>=@#_+*?()$-] )+ \]"""
_QUANTIFIER = r"(?: [*+?] | \{\d+(?:,\d*)?\} ) \??"
_COMMON = re.compile(rf"(?: {_PLACE} | (?: {_ATOM} ) (?: {_QUANTIFIER} )? )+", re.VERBOSE | re.ASCII)


class QuestionError(ValueError):
    """A file of questions is wrong; the text names file, question and remedy."""


def _check_pattern(pattern: str) -> None:
    if not _COMMON.fullmatch(pattern):
        raise QuestionError(
            f"the pattern {pattern!r} uses something that Python and browsers read differently: "
            r"keep to letters, . \d \w \s \b [ ] ( ) (?: ) (?= ) (?! ) | ^ $ and * + ? {m,n}"
        )
    try:
        re.compile(pattern)
    except re.error as problem:
        raise QuestionError(f"the pattern {pattern!r} is broken ({problem}): correct it") from None


def _plain(text: str) -> str:
    for odd, usual in (("[\u2018\u2019]", "'"), ("[\u201c\u201d]", '"'), ("[\u2010-\u2015\u2212]", "-")):
        text = re.sub(odd, usual, text)
    return " ".join(text.split())


def accepts(question: dict, answer: str) -> bool:
    """Whether the text question accepts `answer`; static/grade.js is the judge, this its likeness."""
    flags = re.IGNORECASE | re.ASCII
    answer = _plain(answer)
    if any(re.search(r["pattern"], answer, flags) for r in question.get("reject", [])):
        return False
    return any(re.search(pattern, answer, flags) for pattern in question["accept"])


def _check_text(question: dict) -> None:
    examples = question.get("examples", {})
    for pattern in [*question["accept"], *(r["pattern"] for r in question.get("reject", []))]:
        _check_pattern(pattern)
    for answer in [question["model_answer"], *examples.get("right", [])]:
        if not accepts(question, answer):
            raise QuestionError(f"the patterns refuse {answer!r}, which is right: widen accept or narrow reject")
    for answer in examples.get("wrong", []):
        if accepts(question, answer):
            raise QuestionError(f"the patterns accept {answer!r}, which is wrong: narrow accept or add to reject")


def _check_options(question: dict) -> None:
    texts = [option["text"] for option in question["options"]]
    if len(set(texts)) < len(texts):
        raise QuestionError("two options have the same text: change one")


_CHECKS = {"choice": _check_options, "choices": _check_options, "number": lambda _: None, "text": _check_text}


@functools.cache
def _validator():
    # Where Jupyter is installed, jsonschema also loads a grammar of web addresses, which takes 0.6 s.
    # No question holds one.
    hidden = sys.modules.setdefault("rfc3987_syntax", None) is None
    try:
        from jsonschema import Draft202012Validator, exceptions  # noqa: PLC0415
    finally:
        if hidden:
            del sys.modules["rfc3987_syntax"]

    schema = json.loads((DATA / "quizzes" / "schema.json").read_text(encoding="utf-8"))
    return Draft202012Validator, exceptions.best_match, schema["$defs"]


def _schema_problem(question: object) -> str | None:
    """What the schema has against one question, said about its own kind rather than about all four."""
    validator, best_match, parts = _validator()
    kind = question.get("kind") if isinstance(question, dict) else None
    if isinstance(question, dict) and str(kind) not in _CHECKS:
        return f"its kind is {kind!r}: it must be one of {', '.join(_CHECKS)}"
    problem = None
    for part in [kind, "question"] if kind else ["question"]:
        errors = validator({"$defs": parts, "$ref": f"#/$defs/{part}"}).iter_errors(question)
        problem = problem or best_match(errors)
    if problem is None:
        return None
    place = "".join(f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in problem.absolute_path).lstrip(".")
    text = problem.message if len(problem.message) < 300 else f"{problem.message[:297]}…"
    if "contains" in problem.validator.lower():
        text = "exactly one option must be correct" if kind == "choice" else "an option must be correct"
    return f"{place + ': ' if place else ''}{text}; data/quizzes/schema.json says what it may hold"


def check(questions: object, name: str) -> list[dict]:
    """Return the questions with their defaults filled in; `name` is how messages call the file.

    Raises:
        QuestionError: naming the file, the question and the remedy.
    """
    if not isinstance(questions, list) or not questions:
        raise QuestionError(f"{name}: `questions:` must be a list of questions, each beginning with `- id:`.")
    seen = set()
    for number, question in enumerate(questions, start=1):
        key = question.get("id", number) if isinstance(question, dict) else number
        try:
            problem = _schema_problem(question)
            if problem:
                raise QuestionError(problem)
            if key in seen:
                raise QuestionError("this id is used twice: rename one")
            _CHECKS[question["kind"]](question)
        except QuestionError as problem:
            raise QuestionError(f"{name}, question {key}: {problem}.") from None
        seen.add(key)
    return [{"points": 1, **question} for question in questions]


def lessons() -> list[str]:
    """Return the lessons that have questions, in order."""
    return sorted(path.stem for path in QUIZZES.glob("*.yaml"))


def read(lesson: str) -> list[dict]:
    """Return all questions of a lesson.

    Raises:
        QuestionError: there is no such file, or it is wrong.
    """
    path = QUIZZES / f"{lesson}.yaml"
    if not path.is_file():
        raise QuestionError(f"There are no questions for {lesson!r}; there are for: {', '.join(lessons()) or 'none'}.")
    return _read(path, path.stat().st_mtime_ns)


def course_items() -> dict[str, dict[str, float]]:
    """Return every lesson's questions and exercises with their points: what `scores.progress` measures against."""
    from helpers.solutions import exercises  # noqa: PLC0415  (imports NumPy, which a quiz can do without)

    return {
        lesson: {q["id"]: float(q["points"]) for q in read(lesson)}
        | {f"exercise:{name}": 1.0 for name in exercises(lesson)}
        for lesson in lessons()
    }


@functools.lru_cache(maxsize=64)
def _read(path: Path, _changed: int) -> list[dict]:
    import yaml  # noqa: PLC0415

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        where = getattr(problem, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        what = getattr(problem, "problem", None) or "not UTF-8 text"
        raise QuestionError(f"{path.name}{line}: {what}; put a text that holds `: ` or `#` in quotes.") from None
    if not isinstance(content, dict) or content.keys() != {"lesson", "questions"}:
        raise QuestionError(f"{path.name}: it must hold `lesson:` and `questions:`, and nothing beside them.")
    if content["lesson"] != path.stem:
        raise QuestionError(f"{path.name}: its lesson is {content['lesson']!r}: name the lesson like the file.")
    return check(content["questions"], path.name)
