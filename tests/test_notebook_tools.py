"""The notebook tools on notebooks that are bad on purpose: one for each rule, and one that is good."""

from __future__ import annotations

import base64
import json
import os

import pytest
from nbformat.v4 import new_markdown_cell, new_output
from notebook_support import PIXEL, code, good, nbval, printed, store

from helpers import notebooks
from helpers.notebook_format import WIDGET, find, is_normal, normalise, read, text_of, write
from helpers.notebook_rules import RULES, check


def image(alt: str = "one dark pixel", data: str = PIXEL):
    metadata = {"image/png": {"alt": alt}} if alt else {}
    return new_output("display_data", data={"image/png": data, "text/plain": f"Figure: {alt}"}, metadata=metadata)


def says(source: str, *tags: str, outputs=()):
    """Insert a code cell before the proof."""
    return lambda nb: nb.cells.insert(3, code(source, *tags, outputs=outputs))


def text(source: str, *tags: str):
    """Insert a Markdown cell before the proof."""
    return lambda nb: nb.cells.insert(3, new_markdown_cell(source, metadata={"tags": list(tags)} if tags else {}))


def replaces(cell: int, old: str, new: str):
    def change(nb):
        assert old in nb.cells[cell].source
        nb.cells[cell].source = nb.cells[cell].source.replace(old, new)

    return change


def forgets_tag(cell: int):
    return lambda nb: nb.cells[cell].metadata.pop("tags")


def has_not_run(nb):
    nb.cells[2].execution_count, nb.cells[2].outputs = None, []


def compares_little(nb):
    for cell in nb.cells[2:4]:
        cell.metadata["tags"] = [*cell.metadata.get("tags", []), "nbval-ignore-output"]


def prints(line: str):
    return says("print(something)", outputs=(printed(line),))


BAD = {  # what is bad about it: (the one rule that must find it, the change that makes it bad)
    "no title": ("one-h1", replaces(0, "# Does", "Does")),
    "two titles": ("one-h1", text("# Another")),
    "title not first": ("one-h1", lambda nb: nb.cells.insert(0, new_markdown_cell("Welcome."))),
    "heading skips a level": ("heading-order", text("## Two\n\n#### Four")),
    "no parameters": ("parameters", forgets_tag(1)),
    "parameters twice": ("parameters", says("two = 2", "parameters")),
    "stderr": ("stderr", says("warn()", outputs=(new_output("stream", name="stderr", text="careful\n"),))),
    "error": ("error-output", says("1 / 0", outputs=(new_output("error", ename="ZeroDivisionError", evalue="no"),))),
    "home folder": ("machine-trace", prints("saved in /home/ada/course\n")),
    "Windows folder": ("machine-trace", prints("saved in C:\\Users\\ada\n")),
    "process id": ("machine-trace", prints("worker pid=4711 started\n")),
    "address": ("machine-trace", prints("<object at 0x7f3a2c1b9d30>\n")),
    "progress bar": ("progress-debris", prints("10%|#\r20%|##\n")),
    "colours": ("progress-debris", prints("\x1b[1m12/12\x1b[0m\n")),
    "long cell": ("long-cell", says("\n".join(f"x{n} = {n}" for n in range(41)))),
    "not run": ("executed", has_not_run),
    "empty cell": ("executed", says("")),
    "widget id": ("widget-state", says("w", outputs=(new_output("display_data", data={WIDGET: {"model_id": "a"}}),))),
    "large image": ("image-size", says("plot()", outputs=(image(data=base64.b64encode(bytes(61_000)).decode()),))),
    "image without words": ("alt-text", says("plot()", outputs=(image(alt=""),))),
    "Markdown image without words": ("alt-text", text("![](35_good.ipynb)")),
    "shell": ("no-shell", says("!ls")),
    "install": ("no-shell", says("%pip install numpy")),
    "long sleep": ("no-sleep", says("time.sleep(20)")),
    "sleep of unknown length": ("no-sleep", says("sleep(wait)")),
    "removed name": ("removed-api", says("loss = optimizer.get_scaled_loss(loss)")),
    "removed argument": ("removed-api", says("LossScaleOptimizer(inner, dynamic=False)")),
    "removed name in text": ("removed-api", text("Call `experimental_run_v2`.")),
    "compares little": ("half-compared", compares_little),
    "dead link": ("links", text("See [there](36_absent.ipynb#part).")),
    "no aims": ("anatomy", replaces(0, "You will be able to", "You can")),
    "no references": ("anatomy", replaces(4, "## References", "## Sources")),
    "no next": ("anatomy", replaces(4, "## Next", "## End")),
    "no proof": ("anatomy", forgets_tag(3)),
    "proof without assertion": ("anatomy", replaces(3, "assert one + one == 2\n", "")),
}


def test_good_notebook_breaks_no_rule(tmp_path):
    assert check(store(good(), tmp_path)) == []


@pytest.mark.parametrize("name", BAD)
def test_bad_notebook_is_found_by_its_rule_alone(name, tmp_path):
    expected, spoil = BAD[name]
    nb = good()
    spoil(nb)
    store(good(), tmp_path)  # the good one's links lead here
    findings = check(store(nb, tmp_path, "36_bad"))
    assert {finding.rule for finding in findings} == {expected}
    assert all(finding.text.endswith((".", ")", "?", "_…")) and len(finding.text) > 20 for finding in findings)


def test_every_rule_has_a_bad_notebook():
    assert {rule for rule, _ in BAD.values()} | {"normal-form"} == set(RULES)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda nb: nb.cells[1].metadata.update(collapsed=True),
        lambda nb: nb.cells[2].update(execution_count=7),
        lambda nb: nb.metadata.update(language_info={"name": "python", "version": "3.9.1"}),
        lambda nb: nb.metadata.update(widgets={"state": {}}),
        lambda nb: nb.cells[1].update(id=nb.cells[2].id),
        lambda nb: nb.cells[1].pop("id"),
    ],
    ids=["metadata", "count", "version", "widgets", "same id", "no id"],
)
def test_normal_form_is_demanded_and_restored(spoil, tmp_path):
    nb = normalise(good())
    spoil(nb)
    path = tmp_path / "35_good.ipynb"
    path.write_text(json.dumps(nb, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert "normal-form" in {finding.rule for finding in check(path)}
    notebooks.tidy(path)
    assert check(path) == [] and text_of(normalise(nb)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("tags", [("migration",)])
def test_a_migration_note_may_name_what_was_removed(tags, tmp_path):
    nb = good()
    text("Once it was `get_scaled_loss`.", *tags)(nb)
    assert check(store(nb, tmp_path)) == []


def test_a_short_sleep_and_fenced_code_are_no_breach(tmp_path):
    nb = good()
    says("time.sleep(0.01)  # a slow disk")(nb)
    text("```bash\n# no heading\n[no link](absent.md)\n```")(nb)
    assert check(store(nb, tmp_path)) == []


def untidy():
    """A notebook as JupyterLab, papermill and a busy author leave it."""
    nb = good()
    nb.metadata.update(widgets={"state": {"a": 1}}, papermill={"duration": 1.0}, kernelspec={"name": "mine"})
    nb.cells.insert(2, code("", outputs=()))
    nb.cells[3].metadata.update(scrolled=True, execution={"iopub.execute_input": "2020"}, tags=["b", "a", "b"])
    nb.cells[3].outputs = [
        printed("2"),
        printed("\n"),
        new_output("execute_result", data={WIDGET: {"model_id": "x"}, "text/plain": "Quiz"}, execution_count=99),
        new_output(
            "display_data",
            data={"image/png": PIXEL},
            metadata={"image/png": {"alt": "a dot"}, "needs_background": "light"},
        ),
    ]
    nb.cells[3].execution_count = 42
    nb.cells[1].id = nb.cells[0].id = "twice"
    return nb


def test_normalise_tidies_and_repeating_it_changes_nothing(tmp_path):
    once = normalise(untidy())
    assert text_of(normalise(once)) == text_of(once)
    path = store(untidy(), tmp_path)
    assert is_normal(path) and text_of(read(path)) == path.read_text(encoding="utf-8")
    assert set(once.metadata) == {"kernelspec", "language_info"} and "version" not in once.metadata.language_info
    assert len({cell.id for cell in once.cells}) == len(once.cells) and once.cells[0].id == "twice"
    cell = once.cells[3]
    assert cell.metadata == {"tags": ["a", "b"]}
    assert [cell.execution_count for cell in once.cells if cell.cell_type == "code"] == [1, None, 2, 3]
    stream, result, figure = cell.outputs
    assert stream.text == "2\n"
    assert result.data == {"text/plain": "Quiz"} and result.execution_count == 2
    assert figure.metadata == {"image/png": {"alt": "a dot"}}


def test_ids_made_from_text_do_not_change_between_runs():
    first, second = untidy(), untidy()
    assert [c.id for c in normalise(first).cells][1] == [c.id for c in normalise(second).cells][1]


def test_a_widget_without_a_fallback_keeps_its_only_output():
    nb = good()
    nb.cells[2].outputs = [new_output("display_data", data={WIDGET: {"model_id": "x"}})]
    assert WIDGET in normalise(nb).cells[2].outputs[0].data


def test_find_by_pattern_by_path_and_not_at_all(tmp_path):
    paths = [store(good(), tmp_path, name) for name in ("10_first", "20_second", "_template")]
    assert find(folder=tmp_path) == paths[:2]
    assert find("sec", folder=tmp_path) == [paths[1]]
    assert find(str(paths[2])) == [paths[2]]
    with pytest.raises(ValueError, match=r"holds 'third'.*10_first, 20_second"):
        find("third", folder=tmp_path)


def test_what_is_no_notebook_is_named(tmp_path):
    (tmp_path / "10_x.ipynb").write_text("<<<<<<< HEAD\n{}")
    with pytest.raises(ValueError, match=r"10_x\.ipynb is not a notebook"):
        read(tmp_path / "10_x.ipynb")


def test_refresh_stores_outputs(tmp_path):
    nb = good()
    nb.cells[2].outputs = [printed("stale\n")]
    path = store(nb, tmp_path)
    assert notebooks.refresh(path) == 0
    assert read(path).cells[2].outputs[0].text == "2\n" and is_normal(path)
    assert not list(tmp_path.glob("*.part"))


def test_refresh_leaves_a_failing_notebook_as_it_was(tmp_path, capsys):
    nb = good()
    nb.cells[2].source = "one / 0"
    path = store(nb, tmp_path)
    before = path.read_bytes()
    assert notebooks.main(["refresh", str(path)]) == 1
    assert path.read_bytes() == before
    shown = capsys.readouterr().err
    assert "35_good.ipynb, cell 3: ZeroDivisionError: division by zero" in shown and "no output was stored" in shown


def test_refresh_does_not_overwrite_an_edit_made_meanwhile(tmp_path, capsys, monkeypatch):
    path = store(good(), tmp_path)
    run = notebooks.run_notebook

    def run_while_someone_saves(*arguments, **options):
        outcome = run(*arguments, **options)
        path.write_text(path.read_text(encoding="utf-8").replace("add.", "add and subtract."), encoding="utf-8")
        return outcome

    monkeypatch.setattr(notebooks, "run_notebook", run_while_someone_saves)
    assert notebooks.refresh(path) == 1
    assert "subtract" in path.read_text(encoding="utf-8") and "edited while it ran" in capsys.readouterr().err


def test_check_on_the_command_line_names_cell_and_remedy(tmp_path, capsys):
    nb = good()
    nb.cells[2].source = "!ls"
    assert notebooks.main(["check", str(store(nb, tmp_path))]) == 1
    assert "35_good.ipynb, cell 3: The cell calls the shell" in capsys.readouterr().out
    assert notebooks.main(["check", "nothing-like-it"]) == 2


def test_the_template_obeys_the_rules():
    assert check(notebooks.TEMPLATE) == []


def test_the_template_is_no_lesson():
    assert notebooks.TEMPLATE not in find()


def test_a_new_lesson_starts_from_the_template(tmp_path):
    path = notebooks.new("35_my_concept", folder=tmp_path)
    nb = read(path)
    assert nb.cells[0].source.startswith("# My concept: ") and is_normal(path)
    assert "NN_concept" not in path.read_text(encoding="utf-8")
    assert not {cell.id for cell in nb.cells} & {cell.id for cell in read(notebooks.TEMPLATE).cells}


@pytest.mark.parametrize("name", ["my_concept", "35-my-concept", "350_x", "../35_x", "35_Ü"])
def test_a_lesson_needs_a_proper_name(name, tmp_path):
    with pytest.raises(ValueError, match="two digits and a concept"):
        notebooks.new(name, folder=tmp_path)


def test_a_number_is_given_once(tmp_path):
    notebooks.new("35_one", folder=tmp_path)
    with pytest.raises(ValueError, match="belongs to 35_one"):
        notebooks.new("35_other", folder=tmp_path)


def test_nbval_sees_one_changed_letter_of_a_stored_output(tmp_path):
    nb = read(notebooks.TEMPLATE)
    whole = store(nb, tmp_path, "10_whole")
    [output] = [out for cell in nb.cells for out in cell.get("outputs", []) if "proved" in out.get("text", "")]
    output.text = output.text.replace("proved", "proven")
    corrupt = store(nb, tmp_path, "10_corrupt")
    green, red = nbval(whole, tmp_path / "scores"), nbval(corrupt, tmp_path / "scores")
    assert green.returncode == 0, green.stdout
    assert red.returncode == 1 and "Cell outputs differ" in red.stdout and "1 failed" in red.stdout


def test_write_is_one_step(tmp_path, monkeypatch):
    path = store(good(), tmp_path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(type(path), "replace", full_disk)
    with pytest.raises(OSError, match="No space"):
        write(good(), path)
    assert path.read_bytes() == before


def test_lines_end_the_same_on_every_system(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "linesep", "\r\n")
    path = store(good(), tmp_path)
    assert b"\r" not in path.read_bytes() and json.loads(path.read_bytes())["nbformat_minor"] == 5
