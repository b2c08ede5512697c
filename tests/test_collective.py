"""The race of ring and tree: the page's steps are Python's, and everyone can use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from browser import serious

from helpers import widgets
from helpers.models import collectives as co
from helpers.widgets import base
from helpers.widgets.collective import amount

HERE = Path(__file__).parent
SETTINGS = {  # what the sliders do while it runs: (messages, settings), one after the other
    "the start": [(400, {})],
    "two workers": [(60, {"workers": 2, "chunks": 1})],
    "a slow link, an odd number": [(900, {"workers": 13, "slow": 17, "chunks": 7, "exponent": 9})],
    "all at their most": [(1600, {name: most for name, (_, most) in co.LIMITS.items()})],
    "everything moves": [
        (30, {"workers": 3}),
        (50, {"workers": 11, "alpha": 73, "slow": 5}),
        (100, {"workers": 5, "chunks": 32, "bandwidth": 3}),
        (7, {"exponent": 29, "slow": 20}),
        (333, {"exponent": 11, "workers": 16, "chunks": 2}),
    ],
}


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_page_and_python_take_the_same_steps(tmp_path):
    races = []
    for name, parts in SETTINGS.items():
        settings = [co.checked(parameters) for messages, parameters in parts for _ in range(messages)]
        states = [co.new_race()]
        for parameters in settings:
            states.append(co.race_step(states[-1], parameters))
        races.append({"name": name, "settings": settings, "start": states[0], "states": states[1:]})
    plans = [
        {"lane": lane, "workers": n, "chunks": chunks, "messages": co.plan(lane, n, chunks)}
        for lane in co.LANES
        for n in range(2, 17)
        for chunks in (1, 5, 32)
    ]
    amounts = [(size, amount(size)) for size in (1.0, 1023.0, 1024.0, 1.75 * 2**20, 2.0**30, 2**20 / 3, 3.5 * 2**30)]
    (tmp_path / "races.json").write_text(json.dumps({"races": races, "plans": plans, "amounts": amounts}))
    (tmp_path / "collective.js").write_text(base.module("collective.js"), encoding="utf-8")
    run = subprocess.run(
        ["node", "--test", str(HERE / "js" / "collective.test.mjs")],
        env={**os.environ, "VECTORS": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]


def test_text_and_html_tell_races():
    simulation = widgets.collective_simulation(workers=16, slow=5)
    assert "workers 16, vector 1 MiB, chunks of the tree 4, latency α 10 µs" in simulation.text()
    assert simulation.text() == repr(simulation) == widgets.collective_simulation(workers=16, slow=5).text()
    assert "1.875 GiB" in simulation.text(), "what a ring of 16 sends of 1 GiB"
    assert "<table>" in simulation.html()
    assert len(base.STATIC.joinpath("collective.js").read_bytes()) < 12_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"speed": 3}, "no parameter 'speed'; it has: workers, exponent"),
        ({"alpha": 0}, "alpha must be a whole number from 1 to 100, not 0"),
        ({"workers": True}, "workers must be a whole number from 2 to 16, not True"),
        ({"slow": 1.5}, r"slow must be a whole number from 1 to 20, not 1\.5"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        widgets.collective_simulation(**arguments)


@pytest.fixture(params=["light", "dark"])
def page(request, offline):
    return offline(widgets.collective_simulation(), request.param)


def press(scope, keys, label, key, times=1):
    scope.get_by_role("slider", name=label).focus()
    for _ in range(times):
        keys.press(key)


def use(scope, keys):
    """By keyboard alone: a message, to the end, a slow link, other sizes, play and pause, reset."""
    scope.get_by_text("Not started.").wait_for()
    scope.get_by_role("button", name="Play").focus()
    keys.press("s")
    scope.get_by_text("Race 1, 8 workers, 1 MiB. Ring: 1 of 112 messages.").wait_for()
    keys.press("h")
    end = co.race()
    took = [end[lane]["clock"] - end["begun"] for lane in co.LANES]
    scope.get_by_text(f"Ring: done after {took[0]:.1f} µs, the busiest worker sent 1.75 MiB.").wait_for()
    scope.get_by_text(f"The ring is {took[1] / took[0]:.2f} times as fast.").wait_for()
    press(scope, keys, "Link 0–1 takes", "End")
    press(scope, keys, "Vector", "End")
    press(scope, keys, "Chunks of the tree", "End")
    keys.press("h")
    scope.get_by_text("Race 2, 8 workers, 1 GiB.").wait_for()
    scope.get_by_text("The tree is").wait_for()  # a slow link holds up a ring in every step
    press(scope, keys, "Link 0–1 takes", "Home")
    press(scope, keys, "Vector", "Home")
    press(scope, keys, "Workers", "End")
    press(scope, keys, "Chunks of the tree", "Home")
    keys.press("p")
    scope.get_by_role("button", name="Pause").wait_for()
    scope.get_by_text("Race 3, 16 workers, 256 B. Ring: done").wait_for()
    scope.get_by_text("The tree is").wait_for()  # fewer steps, and no bytes to speak of
    keys.press("p")
    scope.get_by_role("button", name="Play").wait_for()
    keys.press("r")
    scope.get_by_text("Not started").wait_for()


def test_it_works_with_no_kernel_by_keyboard(page):
    use(page.locator("main"), page.keyboard)
    assert serious(page) == []


def test_the_picture_shows_every_message(page):
    page.get_by_role("button", name="To the end").click()
    assert page.locator("rect.add").count() == 8 * 7 + 7 * 4
    assert page.locator("rect.copy").count() == 8 * 7 + 7 * 4
    assert page.locator("rect.slow").count() == 0
    page.get_by_role("slider", name="Link 0–1 takes").focus()
    page.keyboard.press("End")
    page.get_by_role("button", name="To the end").click()
    assert page.locator("rect.slow").count() == 14 + 8, "each chunk of the ring, twice; of the tree, up and down"


def test_less_motion_where_that_is_asked_for(page):
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(
        "drawn = 0; new MutationObserver(() => drawn++).observe(document.querySelector('svg'), {childList: true})"
    )
    page.get_by_role("button", name="Play").click()
    page.wait_for_timeout(1600)
    assert page.evaluate("drawn") <= 3, "the picture moves more than once a second"
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Race 1").wait_for()


def test_it_works_in_jupyterlab_and_keeps_its_keys(lab):
    notebook = lab.open(["from helpers import widgets\nwidgets.collective_simulation()"])
    notebook.run_all()
    region = notebook.panel.get_by_role("region", name="Race of ring and tree")
    region.wait_for()
    before = notebook.state()
    use(region, lab.page.keyboard)
    for key in ("b", "x", "ArrowDown"):  # commands of the notebook, but not here
        lab.page.keyboard.press(key)
    assert notebook.state() == before, "a key went to the notebook"
    lab.assert_accessible()
    notebook.assert_quiet()
