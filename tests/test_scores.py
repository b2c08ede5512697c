"""Scores: every attempt is kept, the best counts, and nothing is lost or half loaded."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from helpers import scores


def _count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM attempts").fetchone()[0]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "new folder" / "scores.sqlite"
    monkeypatch.setenv("COURSE_SCORES", str(path))
    monkeypatch.delenv("BINDER_SERVICE_HOST", raising=False)
    monkeypatch.setattr(scores, "_memory", {})
    yield path
    for kept in scores._memory.values():
        kept.close()


def test_best_attempt_is_the_score_and_the_last_answer_is_shown(file):
    scores.record("20_a", "q", correct=False, points=1, max_points=2, answer="first")
    scores.record("20_a", "q", correct=True, max_points=2, answer={"second": ["x"]})
    scores.record("20_a", "q", correct=False, max_points=2, answer=None)
    scores.record("30_b", "q", correct=True)
    score = scores.best("20_a")["q"]
    assert (score.points, score.max_points, score.correct, score.attempts) == (2, 2, True, 3)
    assert score.answer is None
    assert _count(file) == 4


def test_nothing_done_yet():
    assert scores.best("20_a") == {}
    assert scores.progress() == []
    [line] = scores.progress({"20_a": {"q": 2.0}})
    assert (line.points, line.tried, line.items, line.fraction) == (0, 0, 1, 0)


def test_progress_counts_all_that_is_offered_and_forgets_what_is_no_more():
    scores.record("20_a", "q", correct=False, points=1, max_points=4)
    scores.record("20_a", "withdrawn", correct=True)
    scores.record("30_b", "exercise:f", correct=True, kind="exercise")
    first, second = scores.progress({"30_b": {"exercise:f": 1.0}, "20_a": {"q": 2.0, "r": 2.0}})
    assert (first.lesson, first.points, first.max_points, first.tried, first.items) == ("20_a", 0.5, 4.0, 1, 2)
    assert (second.lesson, second.fraction) == ("30_b", 1.0)


@pytest.mark.parametrize("points", [-1, 3, float("nan")])
def test_impossible_points_are_refused(points):
    with pytest.raises(ValueError, match="points must be from 0 to max_points=2"):
        scores.record("20_a", "q", correct=True, points=points, max_points=2)


def test_export_and_load_move_everything_once(tmp_path, monkeypatch):
    scores.record("20_a", "q", correct=True, answer="Straße — ✓")
    scores.record("20_a", "q", correct=False)
    before = scores.best("20_a")
    saved = scores.export(tmp_path / "mine.json")
    assert scores.load(saved) == 0
    monkeypatch.setenv("COURSE_SCORES", str(tmp_path / "other.sqlite"))
    scores.record("20_a", "r", correct=True)
    assert scores.load(str(saved)) == 2
    assert scores.load(saved.read_text(encoding="utf-8")) == 0
    assert scores.best("20_a")["q"] == before["q"]
    assert set(scores.best("20_a")) == {"q", "r"}
    assert [p.name for p in tmp_path.glob("*.json*")] == ["mine.json"]


def _damaged(**changes: object) -> str:
    scores.record("20_a", "q", correct=True)
    content = json.loads(scores.to_json())
    whole = dict(content["attempts"][0], id="0" * 32)
    content["attempts"] = [whole, {**whole, "id": "1" * 32, **changes}]
    return json.dumps(content)


@pytest.mark.parametrize(
    "changes",
    [{"points": 2}, {"points": "many"}, {"points": float("nan")}, {"correct": 1}, {"time": "yesterday"},
     {"id": "x"}, {"id": None}, {"lesson": ""}, {"item": 3}, {"max_points": 10**400}],
)  # fmt: skip
def test_a_damaged_attempt_loads_nothing(changes):
    text = _damaged(**changes)
    with pytest.raises(ValueError, match=r"^Attempt 2 in my\.json is damaged.*Nothing was loaded"):
        scores.load(text, name="my.json")
    assert scores.best("20_a")["q"].attempts == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "not a whole JSON"), ("[" * 100000, "not a whole JSON"), ("{}", "not a scores file"), ("[]", "not a scores"),
     (json.dumps({"format": scores.FORMAT, "version": 99}), "has version 99.*update the course"),
     (json.dumps({"format": scores.FORMAT, "version": 1, "attempts": 3}), "no list of attempts")],
)  # fmt: skip
def test_another_file_is_refused_by_its_name(tmp_path, text, says):
    path = tmp_path / "holiday.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^holiday\.json .*{says}"):
        scores.load(path)


def test_a_file_that_is_absent_or_not_text(tmp_path):
    with pytest.raises(ValueError, match=r"There is no file .*absent\.json"):
        scores.load(tmp_path / "absent.json")
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ValueError, match=r"picture.json cannot be read as text"):
        scores.load(tmp_path / "picture.json")


def test_a_file_that_cannot_be_written_falls_back_to_memory(tmp_path, monkeypatch):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("COURSE_SCORES", str(tmp_path / "a file" / "scores.sqlite"))
    scores.record("20_a", "q", correct=True)
    threading.Thread(target=scores.record, args=("20_a", "q", False)).start()
    deadline = time.monotonic() + 5
    while scores.best("20_a")["q"].attempts < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert scores.best("20_a")["q"].attempts == 2
    assert "kept in memory and end with this kernel, because" in scores.where()
    assert "a file/scores.sqlite cannot be written" in scores.where()
    assert scores.load(scores.to_json()) == 0


def test_what_was_kept_in_memory_moves_to_the_disk_when_it_can(tmp_path, monkeypatch):
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setenv("COURSE_SCORES", str(blocked / "scores.sqlite"))
    scores.record("20_a", "q", correct=True)
    blocked.unlink()
    scores.record("20_a", "q", correct=False)
    assert scores.best("20_a")["q"].attempts == 2
    assert _count(blocked / "scores.sqlite") == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or sys.platform == "win32", reason="needs POSIX permissions")
def test_a_read_only_file_still_shows_its_scores(file, monkeypatch):
    scores.record("20_a", "q", correct=True)

    def read_only(path, **options):  # what an account without the right to write meets; root has every right
        if path == file:
            return connect(f"{file.as_uri()}?mode=ro", uri=True, **options)
        return connect(path, **options)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", read_only)
    scores.record("20_a", "q", correct=True)
    assert scores.best("20_a")["q"].attempts == 2
    assert "in memory" in scores.where()


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 30])
def test_a_foreign_file_is_left_alone(file, content):
    file.parent.mkdir()
    file.write_bytes(content)
    scores.record("20_a", "q", correct=True)
    assert scores.best("20_a")["q"].attempts == 1
    assert "is not a scores file: move it away" in scores.where()
    assert file.read_bytes() == content


def test_a_file_of_a_newer_course_is_left_alone(file):
    scores.record("20_a", "q", correct=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "newer version of this course" in scores.where()
    scores.record("20_a", "q", correct=True)
    assert _count(file) == 1


def test_a_file_held_by_another_program_is_named(file, monkeypatch):
    scores.record("20_a", "q", correct=True)
    monkeypatch.setattr(scores, "_BUSY_SECONDS", 0.1)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(TimeoutError, match=r"scores\.sqlite was busy .* close the other program"):
        scores.record("20_a", "q", correct=True)
    other.close()
    scores.record("20_a", "q", correct=True)


def test_an_error_inside_leaves_nothing_behind(file):
    with pytest.raises(TypeError, match="not JSON serializable"):
        scores.record("20_a", "q", correct=True, answer=object())
    assert scores.best("20_a") == {}


_WRITER = "from helpers import scores\nfor i in range(40): scores.record('20_a', f'q{i % 4}', True, answer=i)"


def test_two_processes_and_four_threads_write_at_once(file):
    processes = [subprocess.Popen([sys.executable, "-c", _WRITER]) for _ in range(2)]
    threads = [threading.Thread(target=exec, args=(_WRITER, {})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0]
    assert sum(score.attempts for score in scores.best("20_a").values()) == 6 * 40


def test_where_names_the_file_from_home_and_warns_on_binder(file, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: file.parent)
    assert scores.where() == "Scores are kept in ~/scores.sqlite."
    monkeypatch.setenv("BINDER_SERVICE_HOST", "10.0.0.1")
    assert "Binder, which forgets everything" in scores.where()


def test_without_the_variable_scores_go_to_the_user_data_folder(monkeypatch):
    monkeypatch.delenv("COURSE_SCORES")
    assert scores._path().name == "scores.sqlite"
    assert "distributed-training-course" in scores._path().parts


def test_import_is_quick_and_light():
    code = (
        "import sys, time; import helpers; began = time.perf_counter(); import helpers.scores;"
        "print(time.perf_counter() - began, *{'numpy', 'platformdirs', 'jsonschema', 'ipywidgets'} & set(sys.modules))"
    )
    runs = [subprocess.check_output([sys.executable, "-c", code], text=True).split() for _ in range(3)]
    assert min(float(run[0]) for run in runs) < 0.05
    assert all(len(run) == 1 for run in runs), runs
