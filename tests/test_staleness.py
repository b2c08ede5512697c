"""The staleness simulation: the page's steps are Python's, and everyone can use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from browser import serious

from helpers import widgets
from helpers.models import parameter_servers as ps
from helpers.widgets import base

HERE = Path(__file__).parent
SETTINGS = {  # what the sliders do while it runs: settings, one after the other
    "the start": [{}],
    "one worker": [{"workers": 1, "rate": 1.9}],
    "a straggler, noise": [{"workers": 7, "slow": 20.0, "spread": 0.9, "noise": 1.0}],
    "lockstep": [{"bound": 0, "workers": 16, "rate": 0.05}],
    "equal workers": [{"spread": 0.0}],
    "diverges": [{"rate": 2.0, "workers": 16}],
    "everything moves": [
        {"workers": 3},
        {"workers": 12, "rate": 0.7, "slow": 9.5},
        {"workers": 5, "bound": 2, "slow": 4.0},
        {"workers": 8, "bound": 0, "noise": 0.2},
        {"workers": 1, "spread": 0.0},
    ],
}


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_page_and_python_take_the_same_steps(tmp_path):
    runs = []
    for number, (name, settings) in enumerate(SETTINGS.items()):
        state, parts, states = ps.new_state(seed=number * 1_000_003), [], []
        for parameters in settings:
            parts.append({"start": state, "parameters": ps.checked(parameters), "updates": 300})
            states += ps.run(300, parameters, state)
            state = states[-1]
        runs.append({"name": name, "parts": parts, "states": states})
    bounds = [(tau, ps.largest_stable_rate(tau)) for tau in (0, 1, 3, 3.5, 40)]
    (tmp_path / "runs.json").write_text(json.dumps({"runs": runs, "bounds": bounds}))
    (tmp_path / "staleness.js").write_text(base.module("staleness.js"), encoding="utf-8")
    run = subprocess.run(
        ["node", "--test", str(HERE / "js" / "staleness.test.mjs")],
        env={**os.environ, "VECTORS": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]


def test_text_and_html_tell_a_run():
    simulation = widgets.staleness_simulation(workers=8, slow=5.0)
    assert "workers 8" in simulation.text()
    assert "staleness bound none" in simulation.text()
    assert "staleness bound 3" in widgets.staleness_simulation(bound=3).text()
    assert simulation.text() == repr(simulation) == widgets.staleness_simulation(workers=8, slow=5.0).text()
    assert "<table>" in simulation.html()
    assert len(base.STATIC.joinpath("staleness.js").read_bytes()) < 12_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"speed": 3}, "no parameter 'speed'; it has: workers, rate"),
        ({"rate": 2.5}, "rate must be a number from 0 to 2, not 2.5"),
        ({"workers": True}, "workers must be a whole number from 1 to 16, not True"),
        ({"seed": 1.5}, "seed must be a whole number such as 23, not 1.5"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        widgets.staleness_simulation(**arguments)


@pytest.fixture(params=["light", "dark"])
def page(request, offline):
    return offline(widgets.staleness_simulation(), request.param)


def version(scope):
    text = scope.get_by_role("status").inner_text()
    return int(text.split(":")[0].removeprefix("Version "))


def press(scope, keys, label, key, times):
    scope.get_by_role("slider", name=label).focus()
    for _ in range(times):
        keys.press(key)


def use(scope, keys):
    """By keyboard alone: one write, a hundred, play, move sliders while it runs, pause, reset."""
    scope.get_by_text("Not started.").wait_for()
    scope.get_by_role("button", name="Play").focus()
    keys.press("s")
    scope.get_by_text("Version 1: staleness of the last 1 writes 0.0").wait_for()
    keys.press("h")
    stale = [state["last"]["staleness"] for state in ps.run(101)[1:]]
    said = f"writes {sum(stale) / 100:.1f} on average, {max(stale)} at most"
    scope.get_by_text(f"Version 101: staleness of the last 100 {said}").wait_for()
    scope.get_by_text("It converges.").wait_for()
    keys.press("Space")  # the focused button itself
    scope.get_by_role("button", name="Pause").wait_for()
    press(scope, keys, "Workers", "End", 1)  # 16: the same rate is too large now
    scope.page.wait_for_timeout(700)
    keys.press("p")
    scope.get_by_role("button", name="Play").wait_for()
    done = version(scope)
    assert done > 101
    scope.page.wait_for_timeout(200)
    assert version(scope) == done, "it goes on after the pause"
    keys.press("h")
    keys.press("h")
    scope.get_by_text("15.0 on average").wait_for()
    scope.get_by_text("It diverges.").wait_for()
    press(scope, keys, "Learning rate times curvature", "Home", 1)
    press(scope, keys, "Learning rate times curvature", "ArrowRight", 3)
    scope.get_by_text("0.03").first.wait_for()
    for _ in range(4):
        keys.press("h")
    scope.get_by_text(re.compile("It (converges|has converged)")).wait_for()
    press(scope, keys, "Staleness bound", "Home", 1)
    keys.press("h")
    keys.press("h")
    scope.get_by_text(re.compile(r"7\.\d on average, 15 at most")).wait_for()  # lockstep: 0, 1, … 15
    keys.press("r")
    scope.get_by_text("Not started").wait_for()


def test_it_works_with_no_kernel_by_keyboard(page):
    use(page.locator("main"), page.keyboard)
    assert serious(page) == []


def test_the_picture_shows_steps_and_their_staleness(page):
    page.get_by_role("button", name="100 writes").click()
    steps = ps.run(100)
    shown = [s["last"] for s in steps if s["last"]["ended"] > steps[-1]["time"] - 0.9 * 12]
    assert page.locator("rect.fresh, rect.stale").count() == len(shown)
    assert page.locator("rect.stale").count() == sum(last["staleness"] > 3 for last in shown)
    assert page.locator("rect.busy").count() == 3


def test_less_motion_where_that_is_asked_for(page):
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(
        "drawn = 0; new MutationObserver(() => drawn++).observe(document.querySelector('svg'), {childList: true})"
    )
    page.get_by_role("button", name="Play").click()
    page.wait_for_timeout(1600)
    assert page.evaluate("drawn") <= 3, "the picture moves more than once a second"
    page.get_by_role("button", name="Pause").click()
    assert version(page.locator("main")) >= 8


def test_it_works_in_jupyterlab_and_keeps_its_keys(lab):
    notebook = lab.open(["from helpers import widgets\nwidgets.staleness_simulation()"])
    notebook.run_all()
    region = notebook.panel.get_by_role("region", name="Staleness simulation")
    region.wait_for()
    before = notebook.state()
    use(region, lab.page.keyboard)
    for key in ("b", "x", "ArrowDown"):  # commands of the notebook, but not here
        lab.page.keyboard.press(key)
    assert notebook.state() == before, "a key went to the notebook"
    lab.assert_accessible()
    notebook.assert_quiet()
