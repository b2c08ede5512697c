"""The one form in which a notebook is stored, so that a diff shows what someone changed and nothing else."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from helpers.data import NOTEBOOKS

WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {  # without "version": a learner's own Python is no change to a lesson
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
KEPT_IN_CELLS = ("tags", "exercise")
KEPT_WITH_IMAGES = ("alt", "width", "height")
VALID_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def find(*patterns: str, folder: Path = NOTEBOOKS) -> list[Path]:
    """Return the lessons (files named by a number) whose names hold any pattern, or the files named.

    Raises:
        ValueError: a pattern that matches nothing, which is more likely a slip than a wish.
    """
    lessons = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    chosen: set[Path] = set() if patterns else set(lessons)
    for pattern in patterns:
        named = Path(pattern)
        found = {named.resolve()} if named.is_file() else {p for p in lessons if pattern in p.stem}
        if not found:
            there = ", ".join(path.stem for path in lessons) or "none yet"
            raise ValueError(f"No notebook's name holds {pattern!r}. The lessons are: {there}.")
        chosen |= found
    return sorted(chosen)


def read(path: Path | str) -> NotebookNode:
    """Read a notebook, as it stands: nbformat's own reader would give cells without an id a random one.

    Raises:
        ValueError: the file is not a notebook.
    """
    try:
        nb = nbformat.reader.reads(Path(path).read_text(encoding="utf-8"))
        nb = nb if nb.nbformat == 4 else nbformat.convert(nb, 4)
        nbformat.validate(normalise(nb))
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError, KeyError) as problem:
        reason = f"{problem}".splitlines()[0][:100]
        raise ValueError(f"{Path(path).name} is not a notebook ({reason}): restore it from git.") from None
    return nb


def write(nb: NotebookNode, path: Path | str) -> None:
    """Store a notebook in one step, so that an interruption leaves the old file and never half of a new one."""
    path = Path(path)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text_of(nb), encoding="utf-8", newline="\n")
    part.replace(path)


def text_of(nb: NotebookNode) -> str:
    """Return the text of the file: sorted keys, indented by one, one newline at the end."""
    return nbformat.writes(nb).rstrip("\n") + "\n"


def is_normal(path: Path | str) -> bool:
    """Whether `normalise` would leave this file as it is."""
    return Path(path).read_text(encoding="utf-8") == text_of(normalise(read(path)))


def normalise(nb: NotebookNode) -> NotebookNode:
    """Return a copy in normal form; normalising that again changes nothing."""
    nb = deepcopy(nb)
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = NotebookNode(kernelspec=NotebookNode(KERNEL), language_info=nbformat.from_dict(LANGUAGE))
    ids = _fresh_ids(nb)
    ordinal = 0
    for cell in nb.cells:
        cell.id = next(ids)
        cell.source = cell.source.rstrip()
        cell.metadata = _kept(cell.metadata, KEPT_IN_CELLS)
        if "tags" in cell.metadata:
            cell.metadata["tags"] = sorted(set(cell.metadata["tags"]))
        if cell.cell_type == "code":
            ordinal += _normalise_code(cell, ordinal + 1)
    return nb


def _kept(metadata: NotebookNode, names: tuple[str, ...]) -> NotebookNode:
    return NotebookNode({name: metadata[name] for name in names if metadata.get(name) not in (None, [], "")})


def _fresh_ids(nb: NotebookNode) -> Iterator[str]:
    """Yield one id per cell: its own where it is valid and not taken, else one made from its text."""
    taken: set[str] = set()
    own = [cell.get("id", "") for cell in nb.cells]
    for index, cell in enumerate(nb.cells):
        name, turn = own[index], 0
        while not VALID_ID.fullmatch(name) or name in taken or (turn and name in own):
            text = f"{cell.cell_type}\n{cell.source.rstrip()}\n{turn}"
            name, turn = hashlib.sha256(text.encode()).hexdigest()[:8], turn + 1
        taken.add(name)
        yield name


def _normalise_code(cell: NotebookNode, ordinal: int) -> bool:
    """Bring one code cell into normal form; return whether it ran, and so takes its number."""
    ran = bool(cell.source) and (cell.get("execution_count") is not None or bool(cell.outputs))
    cell.execution_count = ordinal if ran else None
    cell.outputs = _merge_streams(cell.outputs) if ran else []
    for output in cell.outputs:
        if "data" in output:
            _normalise_bundle(output)
        if output.output_type == "execute_result":
            output.execution_count = ordinal
    return ran


def _merge_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of one stream: how a kernel cuts its prints into pieces is chance."""
    merged: list[NotebookNode] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def _normalise_bundle(output: NotebookNode) -> None:
    """Drop the random id of a live widget where anything else shows it, and chance metadata."""
    if WIDGET in output.data and len(output.data) > 1:
        del output.data[WIDGET]
    metadata = {
        mime: _kept(output.metadata[mime], KEPT_WITH_IMAGES)
        for mime in output.data
        if mime.startswith("image/") and mime in output.metadata
    }
    output.metadata = NotebookNode({mime: kept for mime, kept in metadata.items() if kept})


def solved(nb: NotebookNode, lesson: str) -> NotebookNode:
    """Return a copy in which every exercise cell holds the reference solution."""
    from helpers import solutions  # noqa: PLC0415  (its modules may need TensorFlow)

    nb = deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type == "code" and "exercise" in cell.metadata:
            cell.source = solutions.source(lesson, cell.metadata["exercise"]).rstrip()
    return nb
