"""`make run`: each notebook alone, what it costs, what failed where, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from notebook_support import code, good, store

from helpers import devices, run
from helpers.data import ROOT
from helpers.execution import Outcome, run_notebook

ESCAPES = """
import subprocess, sys
sleeper = "import time; time.sleep({})"
parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {{sleeper!r}}], start_new_session=True)"
subprocess.run([sys.executable, "-c", parent])  # the sleeper's parent has ended: no descent leads to it
"""
CHILD = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "block = b'1' * 150_000_000; import time; time.sleep(1)"])
"""
RECORDS = """
import os
from helpers import scores
scores.record("10_x", "a", correct=True)
assert "COURSE_STRICT" not in os.environ
"""


def lesson(*sources: str) -> NotebookNode:
    """A notebook with one text cell and then these code cells."""
    nb = good()
    nb.cells = [new_markdown_cell("# A test"), *(code(source) for source in sources)]
    return nb


def alive(mark: str) -> list[psutil.Process]:
    """Processes whose command line holds `mark`."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if mark in line and process.info["status"] != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
            found.append(process)
    return found


def command_line(*arguments: str, **options) -> subprocess.Popen:
    """Start `python -m helpers.run` as a shell would."""
    return subprocess.Popen(
        [sys.executable, "-m", "helpers.run", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "OUT", tmp_path / "out")


def test_a_good_notebook_is_timed_and_weighed(tmp_path):
    path = store(lesson("import time, os\nblock = b'1' * 80_000_000\ntime.sleep(0.5)", "print(os.getcwd())"), tmp_path)
    outcome = run_notebook(path, tmp_path / "out" / "copy.ipynb")
    assert outcome.ok and outcome.problem == ""
    assert 0.5 < outcome.seconds < 60
    assert 80 < outcome.peak_mib < 400, "the cell alone holds 76 MiB"
    assert [cell["cell"] for cell in outcome.cells] == [2, 3] and outcome.cells[0]["seconds"] >= 0.5
    assert str(tmp_path) in (tmp_path / "out" / "copy.ipynb").read_text(), "the kernel starts in the notebook's folder"


def test_memory_of_children_counts(tmp_path):
    outcome = run_notebook(store(lesson(CHILD), tmp_path), tmp_path / "copy.ipynb")
    assert outcome.ok and outcome.peak_mib > 150


def test_memory_is_resident_set_size_where_there_is_no_proc(tmp_path, monkeypatch):
    monkeypatch.setattr("helpers.execution.ROLLUP", "/nowhere/{}")
    outcome = run_notebook(store(lesson("1"), tmp_path), tmp_path / "copy.ipynb")
    assert outcome.memory_measure == "RSS" and outcome.peak_mib > 10
    assert "peak MiB (RSS)" in run.table([outcome])


def test_a_failing_notebook_is_named_with_cell_and_error(tmp_path):
    path = store(lesson("x = 1", "def halve():\n    return x / 0\nhalve()", "print('never')"), tmp_path, "11_fails")
    with command_line(path, "--json", tmp_path / "report.json") as process:
        out, err = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "11_fails.ipynb, cell 3: ZeroDivisionError: division by zero" in err
    assert "return x / 0" in err and "\x1b" not in err
    assert "11_fails" in out and "failed" in out
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["notebooks"][0]["result"] == "failed" and "GiB" in report["machine"]
    assert report["versions"]["tensorflow"] and report["notebooks"][0]["cells"][0]["cell"] == 2


def test_a_kernel_that_dies_is_named_with_its_cell(tmp_path):
    outcome = run_notebook(store(lesson("1", "import os\nos._exit(3)", "2"), tmp_path), tmp_path / "copy.ipynb")
    assert outcome.result == "failed" and "cell 3: the kernel died" in outcome.problem and "_exit" in outcome.problem


def test_a_notebook_that_takes_too_long_is_ended(tmp_path):
    path = store(lesson("1", "while True: pass"), tmp_path)
    outcome = run_notebook(path, tmp_path / "copy.ipynb", timeout=20)  # time to reach the cell, on a busy machine too
    assert outcome.result == "timeout" and "cell 3: timeout after 20 s" in outcome.problem
    assert not alive(str(tmp_path))


def test_a_process_left_running_is_ended_and_reported(tmp_path):
    outcome = run_notebook(store(lesson(ESCAPES.format(2222)), tmp_path), tmp_path / "copy.ipynb")
    assert outcome.result == "left processes" and "time.sleep(2222)" in outcome.problem
    assert not alive("time.sleep(2222)")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_no_process(name, tmp_path):
    seconds = {"SIGINT": 3331, "SIGTERM": 3332}[name]
    cells = (ESCAPES.format(seconds), f"import pathlib, time\npathlib.Path('up').touch()\ntime.sleep({seconds})")
    paths = [store(lesson(*cells), tmp_path, stem) for stem in ("10_one", "11_two", "12_three")]
    with command_line(*paths, "--jobs", "2", "--json", tmp_path / "report.json") as process:
        give_up = time.monotonic() + 60
        while len(alive(f"sleep({seconds})")) < 2 or not (tmp_path / "up").exists():
            assert time.monotonic() < give_up and process.poll() is None
            time.sleep(0.1)
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert not alive(f"sleep({seconds})") and not alive(str(tmp_path))
    assert "10_one.ipynb, cell 3: interrupted" in err and "12_three.ipynb: not started" in err
    assert "interrupted" in out


def test_a_run_writes_no_scores_and_knows_no_strict_mode_by_chance(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_SCORES", str(tmp_path / "mine.sqlite"))
    monkeypatch.setenv("COURSE_STRICT", "1")
    outcome = run_notebook(store(lesson(RECORDS), tmp_path), tmp_path / "copy.ipynb")
    assert outcome.ok, outcome.problem
    assert not (tmp_path / "mine.sqlite").exists()


def test_the_kernel_is_this_python_whatever_is_registered(tmp_path, monkeypatch):
    impostor = tmp_path / "jupyter" / "kernels" / "python3"
    impostor.mkdir(parents=True)
    (impostor / "kernel.json").write_text(json.dumps({"argv": ["false"], "display_name": "x", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    cell = f"import sys\nassert sys.executable == {sys.executable!r}, sys.executable"
    outcome = run_notebook(store(lesson(cell), tmp_path), tmp_path / "copy.ipynb")
    assert outcome.ok, outcome.problem


def test_a_solved_run_is_strict_and_starts_from_the_solutions(tmp_path, monkeypatch):
    import helpers.solutions  # noqa: PLC0415

    answers = {("10_x", "double"): "def double(x):\n    return 2 * x\n"}
    monkeypatch.setattr(helpers.solutions, "source", lambda lesson, name: answers[lesson, name])
    nb = lesson(
        "def double(x):\n    raise NotImplementedError",
        "import os\nassert double(2) == 4\nassert os.environ['COURSE_STRICT'] == '1'",
    )
    nb.cells[1].metadata["exercise"] = "double"
    path = store(nb, tmp_path, "10_x")
    stop = threading.Event()
    solved = run.run_one(path, timeout=60, strict=True, stop=stop)
    assert solved.ok and solved.notebook == "10_x", solved.problem
    unsolved = run.run_one(path, timeout=60, strict=False, stop=stop)
    assert "NotImplementedError" in unsolved.problem


def test_wrong_usage_is_answered_in_a_sentence(capsys):
    assert run.main(["no-such-lesson"]) == 2
    assert "No notebook's name holds 'no-such-lesson'" in capsys.readouterr().err


def test_no_jobs_are_refused(tmp_path, capsys):
    assert run.main([str(store(good(), tmp_path)), "--jobs", "0"]) == 2
    assert "--jobs must be 1 or more, not 0" in capsys.readouterr().err


def test_jobs_follow_cores_and_free_memory(monkeypatch):
    gib = 2**30
    for cores, memory, jobs in [(8, 30 * gib, 8), (8, 3 * gib, 2), (8, 0.5 * gib, 1), (0.5, 30 * gib, 1)]:
        monkeypatch.setattr(run, "usable_cores", lambda c=cores: c)
        monkeypatch.setattr(run, "memory_available", lambda m=memory: m)
        assert run.default_jobs() == jobs


def test_a_container_limit_counts_and_its_file_cache_does_not(tmp_path):
    (tmp_path / "memory.max").write_text(str(2**30))
    (tmp_path / "memory.current").write_text(str(900 * 2**20))
    (tmp_path / "memory.stat").write_text(f"anon {300 * 2**20}\ninactive_file {600 * 2**20}\n")
    assert devices.memory_available(tmp_path) == (1024 - 900 + 600) * 2**20


def test_the_table_says_what_is_slow():
    lines = run.table([Outcome("10_a", "ok", 12.0, 500, "PSS"), Outcome("11_b", "ok", 31.0, 500, "PSS")]).splitlines()
    assert "peak MiB (PSS)" in lines[0] and lines[1].endswith("ok") and lines[2].endswith("ok, slower than 30 s")
