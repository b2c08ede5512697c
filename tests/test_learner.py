"""A lesson survives how people use it: every cell stopped half-way, then run, then run again."""

import ast

import pytest
from nbformat import v4

from helpers import notebook_format as form
from helpers.execution import run_notebook

LESSONS = form.find()


def first_half(source):
    """The cell up to half of its statements: what has happened when an exception ends it there."""
    body = ast.parse(source).body
    if len(body) < 2:
        return ""
    return "\n".join(source.splitlines()[: body[len(body) // 2 - 1].end_lineno])


def as_used(notebook):
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            sources = [first_half(cell.source), cell.source, cell.source]
            cells += [v4.new_code_cell(source) for source in sources if source]
    return v4.new_notebook(cells=cells, metadata=notebook.metadata)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_cell_stopped_then_run_then_run_again(path, tmp_path):
    source = tmp_path / path.name
    form.write(as_used(form.read(path)), source)
    outcome = run_notebook(source, tmp_path / "out.ipynb", folder=path.parent)
    assert outcome.ok, outcome.problem


def test_a_half_ends_where_a_statement_ends():
    assert first_half("a = 1\nif a:\n    b = 2\n\nc = 3\nd = 4") == "a = 1\nif a:\n    b = 2"
    assert first_half("a = 1") == ""
