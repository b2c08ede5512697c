"""What a lesson's file must be. Each rule is one small function that yields what breaks it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from nbformat import NotebookNode

from helpers import notebook_format as form

LONGEST_CELL = 40  # non-empty lines
LARGEST_PNG = 60  # KB of 1,000 bytes
LONGEST_SLEEP = 0.5  # s; a lesson may imitate a slow machine, and may not wait in the hope that one is ready

REMOVED = {  # from Keras 3 or TensorFlow 2.21, or deprecated there, with what stands in their place
    r"\bget_scaled_loss\b": "optimizer.scale_loss(loss)",
    r"\bget_unscaled_gradients\b": "optimizer.apply(gradients, variables), which unscales them itself",
    r"LossScaleOptimizer\([^)]*\bdynamic\s*=": "LossScaleOptimizer(inner, initial_scale=...)",
    r"\blosses\.Reduction\b": 'the strings "sum", "sum_over_batch_size" or None',
    r"\bReduction\.(SUM|NONE|AUTO)\b": 'the strings "sum", "sum_over_batch_size" or None',
    r"\bexperimental_distribute_datasets_from_function\b": "distribute_datasets_from_function",
    r"\bexperimental_run_v2\b": "strategy.run",
    r"\bkeras\.dtensor\b": "tf.experimental.dtensor",
    r"\bmixed_precision\.experimental\b": "keras.mixed_precision",
    r"\bexperimental_make_numpy_dataset\b": "tf.data.Dataset.from_tensor_slices",
    r"\bexperimental\.MultiWorkerMirroredStrategy\b": "tf.distribute.MultiWorkerMirroredStrategy",
}
TRACES = {  # in an output, of the machine it was made on
    r"(?<![\w.:/])/(?:home|root|Users|tmp|private|var|opt|mnt|work|workspace|content|usr)/[^\s'\"]+": "the path",
    r"\b[A-Za-z]:\\{1,2}(?:Users|Windows|Temp|Program)[^\s'\"]*": "the path",
    r"\b(?:site-packages|ipykernel_\d+)\b": "the path part",
    r"(?i)\b(?:pid|process id)\b\s*[:=#]?\s*\d{2,}": "the process id",
    r"\bat 0x[0-9A-Fa-f]{6,}": "the address",
}
INSTALLS = r"^\s*(?:!|%{1,2}(?:pip|conda|sh|bash|system|sx)\b)|\bpip3?\s+install\b"
SLEEP = re.compile(r"\bsleep\(\s*([^)]*)\)")
DEBRIS = re.compile(r"\r(?!\n)|\x08|\x1b\[|━{3}|\d+%\|")
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)")
IGNORED = {"nbval-ignore-output", "nbval-skip"}


class Finding(NamedTuple):
    """Something to put right. `cell` counts all cells from 1; 0 stands for the file as a whole."""

    cell: int
    rule: str
    text: str


@dataclass(frozen=True)
class Notebook:
    """A notebook as the rules see it."""

    path: Path
    nb: NotebookNode

    @cached_property
    def code(self) -> list[tuple[int, NotebookNode]]:
        return [(n, cell) for n, cell in enumerate(self.nb.cells, start=1) if cell.cell_type == "code"]

    @cached_property
    def prose(self) -> list[tuple[int, str]]:
        """Markdown cells without their fenced code, in which # is no heading and [](…) no link."""
        cells = enumerate(self.nb.cells, start=1)
        return [(n, FENCE.sub("", cell.source)) for n, cell in cells if cell.cell_type == "markdown"]

    @cached_property
    def headings(self) -> list[tuple[int, int, str]]:
        """(cell, level, text) of each heading, in order."""
        found = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*$", re.MULTILINE)
        return [(n, len(m[1]), m[2]) for n, text in self.prose for m in found.finditer(text)]

    @cached_property
    def outputs(self) -> list[tuple[int, NotebookNode]]:
        return [(number, output) for number, cell in self.code for output in cell.outputs]

    @cached_property
    def images(self) -> list[tuple[int, str, NotebookNode]]:
        """(cell, type, output) of each image."""
        return [(n, mime, out) for n, out in self.outputs for mime in out.get("data", {}) if mime.startswith("image/")]

    @property
    def is_first(self) -> bool:
        return self.path.stem.startswith("00_")

    def tagged(self, tag: str) -> list[int]:
        return [n for n, cell in enumerate(self.nb.cells, start=1) if tag in cell.metadata.get("tags", [])]


Breaches = Iterator[tuple[int, str]]
RULES: dict[str, Callable[[Notebook], Breaches]] = {}


def rule(name: str) -> Callable:
    """Enter a function in the table of rules."""

    def enter(function: Callable[[Notebook], Breaches]) -> Callable[[Notebook], Breaches]:
        RULES[name] = function
        return function

    return enter


def check(path: Path | str) -> list[Finding]:
    """Return what is wrong with a notebook's file, in the order of its cells; nothing is executed."""
    notebook = Notebook(Path(path), form.read(path))
    findings = [Finding(cell, name, text) for name, broken in RULES.items() for cell, text in broken(notebook)]
    return sorted(findings)


def text_of(output: NotebookNode) -> str:
    """Return everything in an output that is text."""
    texts = [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", [])]
    texts += [v for mime, v in output.get("data", {}).items() if isinstance(v, str) and mime != "image/png"]
    return "\n".join(texts)


@rule("one-h1")
def one_h1(notebook: Notebook) -> Breaches:
    titles = [number for number, level, _ in notebook.headings if level == 1]
    if not titles or titles[0] != 1:
        yield 1, "The first cell must be Markdown that starts with the title: # The question of this lesson?"
    for number in titles[1:]:
        yield number, "There is a second title of level 1: make it ## or lower."


@rule("heading-order")
def heading_order(notebook: Notebook) -> Breaches:
    before = 0
    for number, level, text in notebook.headings:
        if before and level > before + 1:
            yield number, f"The heading {text!r} skips a level (from {before} to {level}): use {'#' * (before + 1)}."
        before = level


@rule("parameters")
def parameters(notebook: Notebook) -> Breaches:
    found = notebook.tagged("parameters")
    if len(found) != 1:
        yield 0, f"There are {len(found)} cells with the tag parameters: tag exactly one, sized for a small machine."


@rule("stderr")
def stderr(notebook: Notebook) -> Breaches:
    for number, output in notebook.outputs:
        if output.get("name") == "stderr":
            line = output.text.strip().splitlines()[:1]
            yield number, f"Something was written to stderr ({''.join(line)[:60]!r}): cure its cause, then refresh."


@rule("error-output")
def error_output(notebook: Notebook) -> Breaches:
    for number, output in notebook.outputs:
        if output.output_type == "error":
            yield number, f"A {output.ename} is stored: correct the cell, or catch the error and print its message."


@rule("machine-trace")
def machine_trace(notebook: Notebook) -> Breaches:
    for number, output in notebook.outputs:
        for pattern, kind in TRACES.items():
            if found := re.search(pattern, text_of(output)):
                yield number, f"The output holds {kind} {found[0]!r}: print something that is the same on any machine."


@rule("progress-debris")
def progress_debris(notebook: Notebook) -> Breaches:
    for number, output in notebook.outputs:
        if DEBRIS.search(text_of(output)):
            yield number, "The output holds a progress bar or terminal colours: use verbose=0, or print whole lines."


@rule("long-cell")
def long_cell(notebook: Notebook) -> Breaches:
    for number, cell in notebook.code:
        lines = sum(bool(line.strip()) for line in cell.source.splitlines())
        if lines > LONGEST_CELL:
            yield number, f"The cell has {lines} lines and may have {LONGEST_CELL}: build in one cell, run in the next."


@rule("executed")
def executed(notebook: Notebook) -> Breaches:
    expected = 0
    for number, cell in notebook.code:
        if not cell.source.strip():
            yield number, "The cell is empty: remove it."
            continue
        expected += 1
        if cell.execution_count != expected:
            ran = "did not run" if cell.execution_count is None else f"ran as In [{cell.execution_count}]"
            yield number, f"The cell {ran}, and In [{expected}] was due: make refresh runs them all in order."


@rule("widget-state")
def widget_state(notebook: Notebook) -> Breaches:
    if "widgets" in notebook.nb.metadata:
        yield 0, "The state of widgets is stored in the file: make format removes it."
    for number, output in notebook.outputs:
        if form.WIDGET in output.get("data", {}):
            rest = "make format removes it" if len(output.data) > 1 else "give the widget a text that stands for it"
            yield number, f"The random id of a widget is stored: {rest}."


@rule("image-size")
def image_size(notebook: Notebook) -> Breaches:
    for number, mime, output in notebook.images:
        data = output.data[mime]
        size = len(base64.b64decode(data) if mime in ("image/png", "image/jpeg") else data.encode()) / 1000
        if size > LARGEST_PNG:
            yield number, f"The {mime} has {size:.0f} KB and may have {LARGEST_PNG}: draw less, or smaller."


@rule("alt-text")
def alt_text(notebook: Notebook) -> Breaches:
    for number, mime, output in notebook.images:
        if len(output.metadata.get(mime, {}).get("alt", "").split()) < 3:
            yield number, "The figure has no text that stands for it: show it with helpers.plotting.show(fig, alt=...)."
    for number, text in notebook.prose:
        if re.search(r"!\[\s*\]\(", text) or re.search(r"<img(?![^>]*\balt=\"[^\"]+\")", text):
            yield number, "An image in the text has no alternative text: write ![what it shows](file)."


@rule("no-shell")
def no_shell(notebook: Notebook) -> Breaches:
    for number, cell in notebook.code:
        if re.search(INSTALLS, cell.source, re.MULTILINE):
            yield (
                number,
                "The cell calls the shell or installs something, which fails silently: use Python, and the lock.",
            )


@rule("no-sleep")
def no_sleep(notebook: Notebook) -> Breaches:
    for number, cell in notebook.code:
        for found in SLEEP.finditer(cell.source):
            if not re.fullmatch(r"\d*\.?\d+", found[1].strip()) or float(found[1]) > LONGEST_SLEEP:
                yield (
                    number,
                    f"{found[0]} waits and hopes: wait for the event itself (or sleep {LONGEST_SLEEP} s at most).",
                )


@rule("removed-api")
def removed_api(notebook: Notebook) -> Breaches:
    excused = set(notebook.tagged("migration"))
    for number, cell in enumerate(notebook.nb.cells, start=1):
        for pattern, instead in REMOVED.items():
            if number not in excused and (found := re.search(pattern, cell.source)):
                yield number, f"{found[0]} is removed or deprecated: use {instead} (or tag a note about it: migration)."


@rule("half-compared")
def half_compared(notebook: Notebook) -> Breaches:
    """nbval compares text alone, so a cell that shows nothing but an image is not compared."""
    printing = [cell for _, cell in notebook.code if cell.outputs]
    compared = [
        cell
        for cell in printing
        if not IGNORED & set(cell.metadata.get("tags", []))
        and "NBVAL_" not in cell.source
        and any(text_of(output).strip() for output in cell.outputs)
    ]
    if 2 * len(compared) < len(printing):
        yield (
            0,
            f"Only {len(compared)} of {len(printing)} cells with output are compared with what they print: "
            "at least half must be. Print what is certain in one cell and what varies in another.",
        )


@rule("links")
def links(notebook: Notebook) -> Breaches:
    for number, text in notebook.prose:
        for target in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
            file = unquote(re.split(r"[#?]", target)[0])
            if not re.match(r"[a-z]+:", target) and file and not (notebook.path.parent / file).exists():
                yield number, f"The link to {target} leads nowhere: correct it, relative to the notebook's folder."


@rule("anatomy")
def anatomy(notebook: Notebook) -> Breaches:
    text = "\n".join(text for _, text in notebook.prose)
    if "you will be able to" not in text.lower():
        yield 0, 'The aims are missing: write "You will be able to" and three to five verbs.'
    for word, use in (("References", "sources with DOI or arXiv id"), ("Next", "the lesson to go on with")):
        if not any(heading.strip("*_ ").lower().startswith(word.lower()) for _, _, heading in notebook.headings):
            yield 0, f"There is no heading {word!r} ({use})."
    proofs = notebook.tagged("proof")
    if not proofs and not notebook.is_first:
        yield 0, "No cell has the tag proof: state the lesson's claim as an assertion, and tag it."
    for number in proofs:
        if "assert" not in notebook.nb.cells[number - 1].source:
            yield number, "The proof asserts nothing: state the claim with assert or numpy.testing.assert_…"


@rule("normal-form")
def normal_form(notebook: Notebook) -> Breaches:
    if not form.is_normal(notebook.path):
        yield 0, "The file is not in normal form: make format puts it so."
