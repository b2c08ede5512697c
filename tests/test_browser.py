"""Widgets where learners meet them: in a real JupyterLab, and in a page with no kernel and no network."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from browser import find_browser, serious

from helpers import widgets
from helpers.widgets import base, questions

HERE = Path(__file__).parent
SAMPLE = HERE / "quizzes"
SETUP = (
    "from pathlib import Path\nfrom helpers import scores, widgets\nfrom helpers.widgets import questions\n"
    f"questions.QUIZZES = Path({str(SAMPLE)!r})"
)


def _quiz(*ids: str) -> list[str]:
    return [SETUP, f"widgets.quiz('sample', *{ids!r})"]


def _attempts(lab, item: str) -> list[tuple]:
    with closing(sqlite3.connect(lab.server.scores)) as connection:
        query = "SELECT correct, answer FROM attempts WHERE item = ? ORDER BY time, rowid"
        return [(bool(c), json.loads(a)) for c, a in connection.execute(query, (item,))]


@pytest.fixture(autouse=True)
def _forget(request) -> None:
    """Each test begins without scores."""
    if "lab" in request.fixturenames:
        request.getfixturevalue("lab").server.scores.unlink(missing_ok=True)


def _tab_to_widget(lab, most: int = 40) -> None:
    for _ in range(most):
        lab.page.keyboard.press("Tab")
        if lab.page.evaluate("() => Boolean(document.activeElement.closest('.course'))"):
            return
    raise AssertionError("The Tab key never reached the widget.")


def test_without_a_browser_the_tests_say_how_to_get_one(monkeypatch):
    monkeypatch.setenv("COURSE_BROWSER", "no-such-browser")
    monkeypatch.delenv("CI", raising=False)
    remedy = "no-such-browser is not there: `apt-get install chromium`, or set COURSE_BROWSER"
    with pytest.raises(pytest.skip.Exception, match=remedy):
        find_browser()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=remedy):
        find_browser()


def test_a_choice_by_keyboard_alone_and_the_score_after_a_restart(lab):
    notebook = lab.open(_quiz("average"))
    notebook.run_all()
    keys, panel = lab.page.keyboard, notebook.panel
    panel.get_by_role("group", name="Which collective").wait_for()
    before = notebook.state()
    _tab_to_widget(lab)
    keys.press("Space")
    assert panel.get_by_role("radio", name="broadcast").is_checked()
    keys.press("Enter")
    panel.get_by_text("Not right. It copies one device's value").wait_for()
    panel.get_by_text("Hint: Its name says").wait_for()
    for key in ("b", "x", "m", "ArrowDown"):  # commands of the notebook, but not here
        keys.press(key)
    assert panel.get_by_role("radio", name="all-reduce").is_checked()
    keys.press("Tab")
    assert lab.page.evaluate("document.activeElement.textContent") == "Check"
    keys.press("Enter")
    panel.get_by_text("Correct. Every device ends with the sum.").wait_for()
    panel.get_by_text("1 of 1 point · 2 attempts").wait_for()
    assert panel.locator(".feedback[aria-live=polite]").inner_text().startswith("✓")
    assert notebook.state() == before, "a key went to the notebook"
    assert _attempts(lab, "average") == [(False, "broadcast"), (True, "all-reduce")]

    notebook.restart()
    notebook.run_all()
    panel.get_by_text("1 of 1 point · 2 attempts").wait_for()
    assert panel.get_by_role("radio", name="all-reduce").is_checked()
    panel.get_by_text("Correct. Every device ends with the sum.").wait_for()
    notebook.assert_quiet()


def test_several_choices_a_number_and_words_by_keyboard(lab):
    notebook = lab.open(_quiz("growing", "bytes", "main_idea"))
    notebook.run_all()
    keys, panel = lab.page.keyboard, notebook.panel
    panel.get_by_role("group", name="Which of these grow").wait_for()
    before = notebook.state()
    _tab_to_widget(lab)
    keys.press("Space")
    keys.press("Enter")
    panel.get_by_text("Not complete.").wait_for()
    for key in ("Tab", "Space", "Tab", "Tab", "Space"):
        keys.press(key)
    panel.get_by_text("2 of 2 points · 2 attempts").wait_for()

    panel.get_by_label("Your number, in MiB").focus()
    keys.type("about 4")
    keys.press("Enter")
    panel.get_by_text("“about 4” is not a number that can be read").wait_for()
    keys.press("Control+a")
    keys.type("4,02")
    keys.press("Enter")
    panel.get_by_text("2²⁰ × 4 bytes = 4 MiB.").wait_for()

    panel.get_by_label("Your answer, in a few words").focus()
    keys.type("Split the model")
    keys.press("Enter")
    panel.get_by_text("Splitting the model is model parallelism").wait_for()
    keys.press("Control+a")
    keys.type("job: split the batch, a dd b")
    keys.press("Shift+Enter")
    panel.get_by_text("Model answer: Every device holds").wait_for()
    keys.press("Escape")
    keys.press("ArrowUp")
    assert notebook.state() == before, "a key went to the notebook"
    panel.get_by_text("1 of 1 point · 2 attempts").wait_for()
    assert _attempts(lab, "bytes") == [(True, "4,02")]
    notebook.assert_quiet()


def test_a_prediction_is_noted_and_compared_later(lab):
    notebook = lab.open(_quiz("same_gradient"))
    notebook.run_all()
    panel = notebook.panel
    panel.get_by_role("radio", name="twice as large").check()
    panel.get_by_role("button", name="Note my prediction").click()
    panel.get_by_text("Prediction noted.").wait_for()
    panel.get_by_text("1 of 1 point · 1 attempt").wait_for()
    assert not panel.get_by_text("Right answer").is_visible()
    panel.get_by_text("Compare with what happens").click()
    panel.get_by_text("Not right. That happens when gradients are summed").wait_for()
    assert _attempts(lab, "same_gradient") == [(False, "twice as large")]


def test_an_answer_that_no_kernel_keeps_is_graded_and_says_so(lab):
    notebook = lab.open(_quiz("bytes"))
    notebook.run_all()
    notebook.panel.get_by_label("Your number").wait_for()
    notebook.restart()
    notebook.panel.get_by_label("Your number").fill("4")
    lab.page.keyboard.press("Enter")
    notebook.panel.get_by_text("Correct.").wait_for()
    notebook.panel.get_by_text("Not saved yet: the kernel is busy or gone.").wait_for()


def test_what_is_stored_shows_the_question_and_what_is_live_the_widget(lab):
    quiz = widgets.Quiz("sample", questions.check(_sample("average"), "sample"))
    data = {"text/plain": quiz.text(), "text/html": quiz.html()}  # as the committed file has it
    cells = [nbformat.v4.new_code_cell(source) for source in _quiz("average")]
    cells[1].outputs = [nbformat.v4.new_output("execute_result", data, execution_count=1)]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = lab.open(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec}))
    notebook.panel.get_by_text("Run this cell in JupyterLab to answer.").wait_for()
    assert notebook.panel.get_by_role("listitem").filter(has_text="all-reduce").is_visible()
    notebook.run_all()
    notebook.panel.get_by_role("radio", name="all-reduce").wait_for()
    assert not notebook.panel.get_by_text("Run this cell in JupyterLab to answer.").count()


def _sample(*ids: str) -> list[dict]:
    import yaml  # noqa: PLC0415

    content = yaml.safe_load((SAMPLE / "sample.yaml").read_text(encoding="utf-8"))
    return [question for question in content["questions"] if question["id"] in ids or not ids]


def test_scores_are_saved_as_a_file_and_loaded_into_an_empty_place(lab, tmp_path):
    notebook = lab.open([SETUP, "scores.record('sample', 'bytes', True, answer='4')", "widgets.save_and_load()"])
    notebook.run_all()
    panel, saved = notebook.panel, tmp_path / "saved.json"
    with lab.page.expect_download() as download:
        panel.get_by_role("button", name="Save my scores").press("Enter")
    assert download.value.suggested_filename == "course_scores.json"
    download.value.save_as(saved)
    panel.get_by_text("Saved as course_scores.json").wait_for()
    lab.server.scores.unlink()

    def load(path: Path) -> None:
        with lab.page.expect_file_chooser() as chooser:
            panel.get_by_role("button", name="Load scores").press("Enter")
        chooser.value.set_files(path)

    load(saved)
    panel.get_by_text("1 attempt loaded.").wait_for()
    assert _attempts(lab, "bytes") == [(True, "4")]
    load(saved)
    panel.get_by_text("Nothing new").wait_for()
    (tmp_path / "other.json").write_text("{}")
    load(tmp_path / "other.json")
    panel.get_by_text("other.json is not a scores file of this course.").wait_for()
    notebook.assert_quiet()


def _answer_all(scope, page) -> None:
    """Bring every kind of feedback on screen: right, wrong, noted, refused, unfolded."""
    scope.get_by_role("radio", name="twice as large").check()
    scope.get_by_role("button", name="Note my prediction").click()
    scope.get_by_text("Compare with what happens").click()
    scope.get_by_role("radio", name="gather").check()
    page.keyboard.press("Enter")
    scope.get_by_role("checkbox", name="The parameters").check()
    scope.get_by_role("checkbox", name="The messages").check()
    page.keyboard.press("Enter")
    scope.get_by_label("Your number").fill("4")
    page.keyboard.press("Enter")
    scope.get_by_label("Your answer").fill(" ")
    page.keyboard.press("Enter")


def test_axe_finds_nothing_serious_in_jupyterlab_light_and_dark(lab):
    notebook = lab.open([*_quiz(), "widgets.save_and_load()"])
    notebook.run_all()
    notebook.panel.get_by_role("button", name="Load scores").wait_for()
    _answer_all(notebook.panel, lab.page)
    lab.assert_accessible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_grades_with_no_kernel_and_no_network(offline, scheme):
    page = offline(widgets.Quiz("sample", questions.check(_sample(), "sample")), scheme)
    _answer_all(page, page)
    page.get_by_text("Not right. It collects on one device").wait_for()
    page.get_by_text("One more is right.").wait_for()
    page.get_by_text("2²⁰ × 4 bytes = 4 MiB.").wait_for()
    page.get_by_text("Write an answer first.").wait_for()
    assert serious(page) == []
    page.reload()
    assert page.get_by_role("radio", name="gather").is_checked(), "the browser keeps the last answer"
    page.get_by_text("0 of 2 points · 1 attempt").wait_for()


def test_grading_by_the_vectors_in_the_browser(chromium):
    page = chromium.new_page()
    vectors = json.loads((HERE / "js" / "vectors.json").read_text(encoding="utf-8"))
    by_id = {question["id"]: question for question in questions.check(_sample(), "sample")}
    results = page.evaluate(
        """async ([source, cases]) => {
          const { grade } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
          return cases.map(([question, answer]) => grade(question, answer));
        }""",
        [base.module("grade.js"), [[by_id[v["id"]], v["answer"]] for v in vectors]],
    )
    page.close()
    for vector, result in zip(vectors, results, strict=True):
        if "problem" in vector:
            assert vector["problem"] in result.get("problem", ""), vector
        else:
            assert (result["correct"], result["points"]) == (vector["correct"], vector["points"]), vector
            assert any(vector.get("says", "") in note["text"] for note in result["notes"]) or "says" not in vector
