"""The bit explorer: its arithmetic is Python's, on every 16- and 8-bit pattern, and it works for everyone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from browser import serious

from helpers import precision, widgets
from helpers.widgets import base
from helpers.widgets.bits import SHOWN

HERE = Path(__file__).parent


def sample(fmt):
    """Every pattern of up to 19 bits; of a wider format some, with its ends."""
    if fmt.bits <= 19:
        return np.arange(1 << fmt.bits)
    ends = [0, 1, (1 << 23) - 1, 1 << 23, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x80000000, 0xFFFFFFFF]
    return np.concatenate([ends, np.random.default_rng(0).integers(0, 1 << fmt.bits, 50_000)])


def inputs():
    """Random float64 of all sizes, and the 16-bit values with the ties between them."""
    random = np.random.default_rng(1)
    values = [np.ldexp(random.normal(size=50_000), random.integers(-1080, 1020, size=50_000))]
    for name in ("float16", "bfloat16", "float8_e4m3", "float8_e5m2"):
        fmt = precision.FORMATS[name]
        own = np.sort(precision.decode(np.arange(1 << (fmt.bits - 1)), fmt))
        own = own[np.isfinite(own)]
        values += [own, (own[1:] + own[:-1]) / 2, -(own[1:] + own[:-1]) / 2 * (1 + 2.0**-40)]
    return np.concatenate([*values, [-0.0, np.inf, -np.inf, np.nan, 464, 465, 65520, 257, 1e300]])


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_page_and_python_count_alike(tmp_path):
    values = inputs()
    values.tofile(tmp_path / "inputs")
    for name in SHOWN:
        fmt = precision.FORMATS[name]
        patterns = sample(fmt).astype(np.uint32)
        patterns.tofile(tmp_path / f"{name}.patterns")
        precision.decode(patterns, fmt).tofile(tmp_path / f"{name}.values")
        precision.encode(values, fmt).astype(np.uint32).tofile(tmp_path / f"{name}.encoded")
    (tmp_path / "formats.json").write_text(json.dumps([asdict(precision.FORMATS[name]) for name in SHOWN]))
    (tmp_path / "bits.js").write_text(base.module("bits.js"), encoding="utf-8")
    run = subprocess.run(
        ["node", "--test", str(HERE / "js" / "bits.test.mjs")],
        env={**os.environ, "VECTORS": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]


def test_text_and_html_show_the_number_in_every_format():
    explorer = widgets.bit_explorer(257.0)
    rows = [line.split() for line in explorer.text().splitlines()]
    assert ["bfloat16", "256.0", "0", "10000111", "0000000"] in rows
    assert all(name in explorer.html() for name in SHOWN)
    assert explorer.text() == repr(explorer)
    assert len(base.module("bits.js")) < 16_000, "the module is small, its tools included"
    assert "inf" in widgets.bit_explorer(float("inf")).text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("0.1",), "shows a number such as 0.1, not '0.1'"),
        ((True,), "not True"),
        ((0.1, "float64"), "shows no format 'float64'; it shows: float32"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        widgets.bit_explorer(*arguments)


def use(scope, keys, focused):
    """Type a number, flip bits with the keyboard alone, flip one with the mouse."""
    scope.get_by_label("Number").fill("70000")
    scope.get_by_text("∞ in float16 · 0x7C00").wait_for()
    assert scope.get_by_role("row", name="bfloat16").inner_text().split("\t")[1:] == ["70144", "off by 0.21%"]
    scope.get_by_label("Number").fill("seventy")
    scope.get_by_text("“seventy” is not a number that can be read").wait_for()
    scope.get_by_label("Number").fill("1")
    scope.get_by_label("Shown as").focus()
    keys.press("Tab")
    assert focused() == "sign"
    keys.press("Space")
    scope.get_by_text("−1 in float16 · 0xBC00").wait_for()
    keys.press("ArrowRight")
    assert focused() == "exponent, worth 16"
    keys.press("Space")
    scope.get_by_text("exponent all ones: not a number").or_(scope.get_by_text("infinity")).first.wait_for()
    keys.press("Space")
    keys.press("End")
    assert focused() == "mantissa, worth 1/1024"
    keys.press("ArrowLeft")
    keys.press("Enter")
    scope.get_by_text("−1.001953125 in float16").wait_for()
    keys.press("Home")
    assert focused() == "sign"
    scope.get_by_role("button", name="sign").click()
    scope.get_by_text("+ 2^0 × (1 + 2/1024) · normal; exponent 15 − 15 = 0").wait_for()
    assert scope.get_by_label("Number").input_value() == "1.001953125"
    scope.get_by_label("Shown as").select_option("float8_e4m3")
    assert scope.get_by_role("group", name="Bits of float8_e4m3").get_by_role("button").count() == 8
    scope.get_by_label("Shown as").select_option("float16")


FOCUSED = "document.activeElement.getAttribute('aria-label')"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_works_with_no_kernel_by_keyboard(offline, scheme):
    page = offline(widgets.bit_explorer(0.1, "float16"), scheme)
    use(page, page.keyboard, lambda: page.evaluate(FOCUSED))
    assert serious(page) == []


def test_it_works_in_jupyterlab_and_keeps_its_keys(lab):
    notebook = lab.open(["from helpers import widgets\nwidgets.bit_explorer(0.1, 'float16')"])
    notebook.run_all()
    notebook.panel.get_by_role("region", name="Bit explorer").wait_for()
    before = notebook.state()
    use(notebook.panel, lab.page.keyboard, lambda: lab.page.evaluate(FOCUSED))
    for key in ("b", "x", "ArrowDown"):  # commands of the notebook, but not here
        lab.page.keyboard.press(key)
    assert notebook.state() == before, "a key went to the notebook"
    lab.assert_accessible()
    notebook.assert_quiet()
