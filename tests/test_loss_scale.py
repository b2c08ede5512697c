"""The loss scaling simulation: the page's steps are Python's, they scale as they must, and everyone can use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from browser import serious

from helpers import widgets
from helpers.widgets import base, loss_scale

HERE = Path(__file__).parent
SETTINGS = [
    {},
    {"interval": 1, "growth": 4.0, "backoff": 0.1},
    {"growth": 1.3, "backoff": 0.85, "mean": -30, "spread": 5.5, "drift": 40},
    {"mean": 10, "spread": 0, "drift": -40},
    {"mean": -40, "interval": 3},
]


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_page_and_python_take_the_same_steps(tmp_path):
    runs = []
    for number, parameters in enumerate(SETTINGS):
        start = loss_scale.new_state(seed=number * 1_000_003)
        states = loss_scale.run(400, parameters, start)
        runs.append({"parameters": loss_scale.checked(parameters), "start": start, "states": states})
    seed, numbers = 2**32 - 5, []
    for _ in range(2000):
        seed, drawn = loss_scale.uniform(seed)
        numbers.append(drawn)
    (tmp_path / "runs.json").write_text(json.dumps({"draws": {"seed": 2**32 - 5, "numbers": numbers}, "runs": runs}))
    (tmp_path / "loss_scale.js").write_text(base.module("loss_scale.js"), encoding="utf-8")
    run = subprocess.run(
        ["node", "--test", str(HERE / "js" / "loss_scale.test.mjs")],
        env={**os.environ, "VECTORS": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]


def test_random_numbers_are_uniform_enough():
    seed, numbers = 1, []
    for _ in range(20_000):
        seed, drawn = loss_scale.uniform(seed)
        numbers.append(drawn)
    assert 0 <= min(numbers) < 1e-3 < 1 - 1e-3 < max(numbers) < 1
    assert abs(sum(numbers) / len(numbers) - 0.5) < 0.01
    assert abs(sum((n - 0.5) ** 2 for n in numbers) / len(numbers) - 1 / 12) < 0.002


def test_without_spread_the_scale_settles_below_the_end_and_probes_it():
    """Gradients of exactly 2**-16: the largest power of two that does not overflow is 2**31."""
    states = loss_scale.run(1500, {"mean": -16, "spread": 0, "interval": 20})
    settled = [state["exponent"] for state in states[700:]]
    assert set(settled) == {31.0, 32.0}
    skipped = states[-1]["skipped"] - states[699]["skipped"]
    assert skipped == pytest.approx(800 / 21, abs=1), "one failed probe per growth interval, and one step to back off"


def test_growth_and_backoff_follow_the_rule():
    quiet = {"mean": -40, "spread": 0, "interval": 3, "growth": 2.0}
    exponents = [state["exponent"] for state in loss_scale.run(9, quiet, loss_scale.new_state(exponent=2.0))]
    assert exponents == [2, 2, 3, 3, 3, 4, 4, 4, 5]
    loud = {"mean": 10, "spread": 0, "backoff": 0.5}
    states = loss_scale.run(4, loud, loss_scale.new_state(exponent=40.0))
    assert [state["exponent"] for state in states] == [39, 38, 37, 36]
    assert [state["skipped"] for state in states] == [1, 2, 3, 4]


def test_the_scale_follows_a_drift_down_and_stays_in_its_bounds():
    states = loss_scale.run(2000, {"mean": 10, "spread": 1, "drift": -20, "interval": 20})
    assert states[-1]["moved"] == pytest.approx(-40)
    assert states[-1]["exponent"] > states[300]["exponent"] + 25
    far = loss_scale.run(200, {"mean": -40, "spread": 0, "interval": 1, "growth": 4})
    assert far[-1]["exponent"] <= 127


def test_text_and_html_tell_a_run():
    simulation = widgets.loss_scale_simulation(interval=20)
    assert "growth interval 20" in simulation.text()
    assert simulation.text() == repr(simulation) == widgets.loss_scale_simulation(interval=20).text()
    assert "<table>" in simulation.html()
    assert len(base.STATIC.joinpath("loss_scale.js").read_bytes()) < 12_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"speed": 3}, "no parameter 'speed'; it has: interval, growth"),
        ({"growth": 0.5}, "growth must be a number from 1.1 to 4, not 0.5"),
        ({"interval": True}, "interval must be a number from 1 to 500, not True"),
        ({"mean": "-20"}, "not '-20'"),
        ({"mean": float("nan")}, "not nan"),
        ({"seed": 1.5}, "seed must be a whole number such as 32, not 1.5"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        widgets.loss_scale_simulation(**arguments)


@pytest.fixture(params=["light", "dark"])
def page(request, offline):
    return offline(widgets.loss_scale_simulation(), request.param)


def steps_done(scope):
    text = scope.get_by_role("status").inner_text()
    return int(text.split(":")[0].removeprefix("Step "))


def use(scope, keys):
    """By keyboard alone: step, a hundred steps, play, move a slider while it runs, pause, reset."""
    scope.get_by_text("Not started. The scale is 2^15.").wait_for()
    scope.get_by_role("button", name="Play").focus()
    keys.press("s")
    scope.get_by_text("Step 1: scale 2^15").wait_for()
    keys.press("h")
    wanted = loss_scale.run(101)[-1]
    scope.get_by_text(f"Step 101: scale 2^{wanted['exponent']:g}, gradients around 2^−16").wait_for()
    scope.get_by_text(f"{wanted['skipped']} skipped in all").wait_for()
    keys.press("Space")  # the focused button itself
    scope.get_by_role("button", name="Pause").wait_for()
    slider = scope.get_by_label("Mean gradient exponent")
    slider.focus()
    for _ in range(14):
        keys.press("ArrowRight")  # far too large now, so that steps are skipped at once
    scope.get_by_text("−2 powers of 2").first.wait_for()
    scope.page.wait_for_timeout(700)
    keys.press("p")
    scope.get_by_role("button", name="Play").wait_for()
    done = steps_done(scope)
    assert done > 101
    text = scope.get_by_role("status").inner_text()
    assert "gradients around 2^−2" in text
    skipped = int(text.split(" skipped in all")[0].split()[-1])
    assert skipped > wanted["skipped"] + 5
    scope.page.wait_for_timeout(200)
    assert steps_done(scope) == done, "it goes on after the pause"
    keys.press("r")
    scope.get_by_text("Not started").wait_for()


def test_it_works_with_no_kernel_by_keyboard(page):
    use(page.locator("main"), page.keyboard)
    assert serious(page) == []


def test_less_motion_where_that_is_asked_for(page):
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(
        "drawn = 0; new MutationObserver(() => drawn++).observe(document.querySelector('svg'), {childList: true})"
    )
    page.get_by_role("button", name="Play").click()
    page.wait_for_timeout(1600)
    assert page.evaluate("drawn") <= 3, "the picture moves more than once a second"
    page.get_by_role("button", name="Pause").click()
    assert steps_done(page.locator("main")) >= 60


def test_it_works_in_jupyterlab_and_keeps_its_keys(lab):
    notebook = lab.open(["from helpers import widgets\nwidgets.loss_scale_simulation()"])
    notebook.run_all()
    region = notebook.panel.get_by_role("region", name="Loss scaling simulation")
    region.wait_for()
    before = notebook.state()
    use(region, lab.page.keyboard)
    for key in ("b", "x", "ArrowDown"):  # commands of the notebook, but not here
        lab.page.keyboard.press(key)
    assert notebook.state() == before, "a key went to the notebook"
    lab.assert_accessible()
    notebook.assert_quiet()
