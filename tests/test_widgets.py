"""Widgets without a browser: questions are checked, texts are stable, and attempts reach the scores."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import pytest
import yaml

from helpers import scores, widgets
from helpers.widgets import base, questions

HERE = Path(__file__).parent
SAMPLE = HERE / "quizzes"


@pytest.fixture(autouse=True)
def sample(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_SCORES", str(tmp_path / "scores.sqlite"))
    monkeypatch.setattr(questions, "QUIZZES", SAMPLE)


def _question(kind: str, /, **changes: object) -> dict:
    [found] = [q for q in questions.read("sample") if q["kind"] == kind and not q.get("predict")]
    return {**json.loads(json.dumps(found)), **changes}


def _without(question: dict, field: str) -> dict:
    return {key: value for key, value in question.items() if key != field}


def test_every_lesson_has_valid_questions():
    for path in (HERE.parent / "data" / "quizzes").glob("*.yaml"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert content["lesson"] == path.stem
        assert questions.check(content["questions"], path.name)


def test_the_sample_shows_every_field_of_the_schema():
    schema = json.loads((HERE.parent / "data" / "quizzes" / "schema.json").read_text(encoding="utf-8"))
    known = set(schema["$defs"]["question"]["properties"])
    for kind in ("choice", "choices", "number", "text"):
        known |= set(schema["$defs"][kind]["properties"])
    used = set().union(*yaml.safe_load((SAMPLE / "sample.yaml").read_text(encoding="utf-8"))["questions"])
    assert used == known


BAD = {
    "kind": (lambda: _question("number", kind="nubmer"), "its kind is 'nubmer': it must be one of choice, choices"),
    "no explanation": (lambda: _without(_question("number"), "explain"), "'explain' is a required property"),
    "answer in words": (lambda: _question("number", answer="four"), r"answer: 'four' is not of type 'number'"),
    "tolerance": (lambda: _question("number", tolerance="5"), "tolerance: '5' does not match"),
    "unknown field": (lambda: _question("number", toleranse=1), "'toleranse' was unexpected"),
    "field of another kind": (lambda: _question("choice", answer=1), "'answer' was unexpected"),
    "id": (lambda: _question("number", id="Two words"), "id: 'Two words' does not match"),
    "none right": (
        lambda: _question("choice", options=[{"text": t, "feedback": "f"} for t in "ab"]),
        "options: exactly one option must be correct",
    ),
    "two right": (
        lambda: _question("choice", options=[{"text": t, "feedback": "f", "correct": True} for t in "ab"]),
        "exactly one option must be correct",
    ),
    "none right of several": (
        lambda: _question("choices", options=[{"text": t, "feedback": "f"} for t in "ab"]),
        "an option must be correct",
    ),
    "twin options": (
        lambda: _question("choices", options=[{"text": "a", "feedback": "f", "correct": True}] * 2),
        "two options have the same text",
    ),
    "no feedback": (
        lambda: _question("choice", options=[{"text": "a", "correct": True}, {"text": "b", "feedback": "f"}]),
        r"options\[1\]: 'feedback' is a required property",
    ),
    "look-behind": (lambda: _question("text", accept=["(?<=a)b"]), "Python and browsers read differently"),
    "broken pattern": (lambda: _question("text", accept=["a(b"]), "is broken"),
    "right refused": (
        lambda: _question("text", model_answer="It is faster."),
        "refuse 'It is faster.', which is right",
    ),
    "wrong accepted": (lambda: _question("text", reject=[]), "accept 'Split the model, not the data', which is wrong"),
    "not a question": (lambda: "question", "is not of type 'object'"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_question_is_named_with_file_and_remedy(case):
    make, says = BAD[case]
    question = make()
    name = question["id"] if isinstance(question, dict) else 1
    with pytest.raises(widgets.QuestionError, match=rf"^35_x\.yaml, question {name}: .*{says}"):
        questions.check([question], "35_x.yaml")


def test_two_questions_with_one_id():
    with pytest.raises(widgets.QuestionError, match="question bytes: this id is used twice"):
        questions.check([_question("number")] * 2, "35_x.yaml")


@pytest.mark.parametrize(
    ("text", "says"),
    [("lesson: 35_x\nquestions: []", "must be a list of questions"),
     ("- id: a", "must hold `lesson:` and `questions:`"),
     ("lesson: other\nquestions: [1]", "its lesson is 'other'"), ("a: b: c", "line 1: .*in quotes"),
     (b"\xff\xfe\xfa", "not UTF-8"), ("lesson: !!python/name:os.system x", "constructor")],
)  # fmt: skip
def test_a_wrong_file_is_named(tmp_path, monkeypatch, text, says):
    monkeypatch.setattr(questions, "QUIZZES", tmp_path)
    (tmp_path / "35_x.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(widgets.QuestionError, match=rf"35_x\.yaml.*{says}"):
        widgets.quiz("35_x")


@pytest.mark.parametrize(
    "pattern", [r"(split|divid).*(data|batch)", r"^a\b.{2,3}?[a-z\d]+$", r"(?=.*a)(?:b|c)", r"\(x\)"]
)
def test_common_patterns_are_allowed(pattern):
    questions._check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(?<!a)b", "(?P<n>a)", "(?i)a", "a++", "a*+", "a{,3}", r"\Aa", r"a\Z", r"(a)\1", "[]a]", "[[:alpha:]]", "ä",
     "(?>a)", "(?#x)", "a{2}{3}", r"\p{L}", "^*", "a{x", "(?a:b)", r"\n", r"[\b]", "["],
)  # fmt: skip
def test_patterns_that_differ_between_languages_are_refused(pattern):
    with pytest.raises(widgets.QuestionError, match="pattern"):
        questions._check_pattern(pattern)


def test_unknown_names_list_what_there_is():
    with pytest.raises(widgets.QuestionError, match="no question 'nope' in sample; there are: same_gradient, average"):
        widgets.quiz("sample", "nope")
    with pytest.raises(widgets.QuestionError, match="no questions for 'nope'; there are for: sample"):
        widgets.quiz("nope")


def test_the_text_shows_questions_and_options_but_no_answers():
    quiz = widgets.quiz("sample", "average", "growing", "bytes", "main_idea")
    for text in (quiz.text(), quiz.html()):
        for part in ("Question 1 of 4", "all-reduce", "The parameters of the model", "2²⁰", "MiB", "main idea"):
            assert part in text
        for secret in ("ring", "share of the batch", "four bytes", "Dividing"):
            assert secret not in text
    assert "  ( ) gather\n" in quiz.text()
    assert "**" not in quiz.text()
    assert "<strong>everywhere</strong>" in quiz.html()
    assert repr(quiz) == quiz.text()


def test_markup_in_a_question_is_shown_and_not_run():
    prompt = "Is `a<b` & <img src=x onerror=alert(1)> **so**?"
    quiz = widgets.Quiz("35_x", [_question("number", prompt=prompt)])
    assert "<code>a&lt;b</code> &amp; &lt;img" in quiz.html()
    page = widgets.static_html(quiz, title="</title><script>")
    assert "<img" not in page
    assert page.count("<script") == 2


def test_texts_do_not_depend_on_what_was_answered():
    before = widgets.quiz("sample", "average")._repr_mimebundle_()[0]
    scores.record("sample", "average", correct=True, answer="all-reduce")
    after = widgets.quiz("sample", "average")
    assert after.saved["average"]["points"] == 1
    after = after._repr_mimebundle_()[0]
    assert set(before) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert (before["text/plain"], before["text/html"]) == (after["text/plain"], after["text/html"])
    assert not re.search(r"0x[0-9a-f]{6}|IPY_MODEL|[0-9a-f]{32}", before["text/plain"] + before["text/html"])


def _sent(widget: base.Base, monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    sent: list[dict] = []
    monkeypatch.setattr(type(widget), "send", lambda self, content, buffers=None: sent.append(content))
    return sent


def _attempt(**changes: object) -> dict:
    return {"type": "attempt", "id": "growing", "answer": ["x"], "correct": True, "points": 2, **changes}


def test_an_attempt_is_kept_from_another_thread(monkeypatch):
    quiz = widgets.quiz("sample", "growing")
    sent = _sent(quiz, monkeypatch)
    thread = threading.Thread(target=quiz._receive, args=(quiz, _attempt(), []))
    thread.start()
    thread.join()
    assert sent == [{"type": "kept"}]
    assert quiz.saved == {"growing": {"points": 2, "attempts": 1, "correct": True, "answer": ["x"]}}
    assert widgets.quiz("sample", "growing").saved == quiz.saved
    assert widgets.quiz("sample", "bytes").saved == {}


def test_a_message_can_not_earn_more_than_there_is(monkeypatch):
    quiz = widgets.quiz("sample", "growing")
    sent = _sent(quiz, monkeypatch)
    quiz._receive(quiz, _attempt(points=99), [])
    quiz._receive(quiz, _attempt(id="unknown"), [])
    quiz._receive(quiz, {"type": "other"}, [])
    assert scores.best("sample")["growing"].points == 2
    assert [message.get("problem", "")[:9] for message in sent] == ["", "Not saved"]


def test_what_goes_wrong_is_said_in_the_widget(monkeypatch):
    quiz = widgets.quiz("sample", "growing")
    sent = _sent(quiz, monkeypatch)

    def busy(*_, **__):
        raise TimeoutError("The scores file was busy.")

    monkeypatch.setattr(scores, "record", busy)
    quiz._receive(quiz, _attempt(), [])
    assert sent == [{"type": "kept", "problem": "Not saved. The scores file was busy."}]


def test_save_and_load_answer_the_page(monkeypatch):
    scores.record("sample", "average", correct=True)
    widget = widgets.save_and_load()
    sent = _sent(widget, monkeypatch)
    widget._receive(widget, {"type": "save"}, [])
    assert (sent[-1]["type"], sent[-1]["name"]) == ("file", "course_scores.json")
    widget._receive(widget, {"type": "load", "name": "a.json", "text": sent[-1]["text"]}, [])
    assert sent[-1] == {"type": "loaded", "new": 0}
    widget._receive(widget, {"type": "load", "name": "a.json", "text": "x"}, [])
    assert sent[-1]["type"] == "problem"
    assert sent[-1]["text"].startswith("a.json is not a whole JSON file.")
    assert "scores.load" in widget.text()
    assert "scores.load" in widget.html()


def test_course_items_are_what_progress_measures_against():
    items = widgets.course_items()
    assert items["sample"]["growing"] == 2.0
    scores.record("sample", "growing", correct=True, max_points=2)
    [line] = scores.progress({"sample": items["sample"]})
    assert (line.points, line.tried, line.items) == (2.0, 1, 5)


def test_modules_are_small_and_stand_alone():
    for path in base.STATIC.glob("*.js"):
        assert path.stat().st_size < 15_000, path.name
        whole = base.module(path.name)
        assert not re.search(r"""(from|import\()\s*["']\.""", whole), path.name
        outside = re.sub(r"//.*|http://www\.w3\.org\S*", "", path.read_text(encoding="utf-8"))
        assert "http" not in outside, path.name


def test_the_page_is_one_file_that_asks_the_network_for_nothing():
    page = widgets.static_html(widgets.quiz("sample"))
    assert not re.search(r"(src|href)=|url\(|@import|https?://", page)


def test_widgets_import_no_framework():
    heavy = {"tensorflow", "keras", "matplotlib", "sklearn", "scipy", "jsonschema"}
    code = f"import sys, helpers.widgets; print(*{heavy} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed; the browser runs the same vectors")
def test_grading_by_the_vectors_in_node(tmp_path):
    (tmp_path / "questions.json").write_text(json.dumps(questions.read("sample")))
    run = subprocess.run(
        ["node", "--test", str(HERE / "js" / "grade.test.mjs")],
        env={**os.environ, "QUESTIONS": str(tmp_path / "questions.json")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout


def test_python_accepts_the_words_that_the_page_accepts():
    texts = {q["id"]: q for q in questions.read("sample") if q["kind"] == "text"}
    vectors = json.loads((HERE / "js" / "vectors.json").read_text(encoding="utf-8"))
    judged = [v for v in vectors if v["id"] in texts and "correct" in v]
    assert len(judged) >= 3
    for vector in judged:
        assert questions.accepts(texts[vector["id"]], vector["answer"]) == vector["correct"], vector


_CELLS = [
    "from pathlib import Path\nfrom helpers import widgets\nfrom helpers.widgets import questions",
    f"questions.QUIZZES = Path({str(SAMPLE)!r})\nwidgets.quiz('sample', 'average', 'bytes')",
    "widgets.save_and_load()",
]


def test_papermill_and_nbval_meet_no_surprise(tmp_path):
    import papermill  # noqa: PLC0415

    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(c) for c in _CELLS], metadata={"kernelspec": spec}
    )
    nbformat.write(notebook, tmp_path / "in.ipynb")
    papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", progress_bar=False)
    done = nbformat.read(tmp_path / "out.ipynb", 4)
    for cell in done.cells:
        for output in cell.outputs:  # what is stored has no view: its model ends with the kernel
            assert output.output_type == "execute_result", output
            del output.data["application/vnd.jupyter.widget-view+json"]
    done.metadata.pop("widgets", None)
    nbformat.write(done, tmp_path / "stored.ipynb")

    def nbval() -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "stored.ipynb"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    first = nbval()
    assert first.returncode == 0, first.stdout
    text = (tmp_path / "stored.ipynb").read_text(encoding="utf-8")
    assert "all-reduce" in text
    (tmp_path / "stored.ipynb").write_text(text.replace("all-reduce", "all-gather"), encoding="utf-8")
    assert nbval().returncode == 1
