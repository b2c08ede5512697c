"""What the learner did, in one SQLite file: every attempt is kept, the best one is the score.

The file lies in the user data folder of this system; the environment variable COURSE_SCORES names
another. Where it cannot be written, scores are kept in the memory of this kernel, and `where()` says so.
Each call opens its own connection, so threads and several kernels may write at once. The journal is
SQLite's plain rollback journal: the faster write-ahead log needs shared memory, which network disks lack.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FORMAT = "distributed-training-course scores"
VERSION = 1
FILE_NAME = "course_scores.json"
_BUSY_SECONDS = 20.0

_TABLE = """
CREATE TABLE IF NOT EXISTS attempts (
    id TEXT PRIMARY KEY, time TEXT NOT NULL, lesson TEXT NOT NULL, item TEXT NOT NULL, kind TEXT NOT NULL,
    correct INTEGER NOT NULL, points REAL NOT NULL, max_points REAL NOT NULL, answer TEXT NOT NULL
)"""
_FIELDS = ("id", "time", "lesson", "item", "kind", "correct", "points", "max_points", "answer")
_INSERT = f"INSERT OR IGNORE INTO attempts VALUES ({', '.join('?' * len(_FIELDS))})"

_memory: dict[Path, sqlite3.Connection] = {}  # what could not go to that file
_memory_lock = threading.RLock()


@dataclass(frozen=True)
class Score:
    """One item's state: its best points, whether it was ever right, how often tried, the last answer."""

    points: float
    max_points: float
    correct: bool
    attempts: int
    answer: object
    time: str
    kind: str


@dataclass(frozen=True)
class Progress:
    """One lesson's state: points reached of those possible, items tried of those there are."""

    lesson: str
    points: float
    max_points: float
    tried: int
    items: int

    @property
    def fraction(self) -> float:
        """Points reached, from 0 to 1."""
        return self.points / self.max_points if self.max_points else 0.0


def _path() -> Path:
    named = os.environ.get("COURSE_SCORES")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_data_dir  # noqa: PLC0415  (only where nothing is named)

    return Path(user_data_dir("distributed-training-course", appauthor=False)) / "scores.sqlite"


def _short(path: Path) -> str:
    try:
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(path)


class _Unusable(Exception):
    """The scores file cannot be used; the text says why."""


def _open(path: Path) -> sqlite3.Connection:
    """Open the scores file ready to write, inside a transaction; raise _Unusable where that cannot be."""
    connection = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise _Unusable("was written by a newer version of this course: update the course")
        if version < VERSION:
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("DELETE FROM attempts WHERE 0")  # fails where the file may only be read
        return connection
    except (OSError, sqlite3.Error, _Unusable) as problem:
        if connection is not None:
            connection.close()
        if getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise TimeoutError(
                f"The scores file {_short(path)} was busy for {_BUSY_SECONDS:.0f} s: "
                "close the other program that uses it and try again."
            ) from None
        if isinstance(problem, _Unusable):
            raise
        if "not a database" in str(problem):
            raise _Unusable("is not a scores file: move it away, or set COURSE_SCORES to another file") from None
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise _Unusable(f"cannot be written ({reason.lower()}): set COURSE_SCORES to a file that can") from None


def _in_memory(path: Path) -> sqlite3.Connection:
    if path not in _memory:
        kept = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        kept.execute(_TABLE)
        _copy_readable(path, kept)
        _memory[path] = kept
    return _memory[path]


def _copy_readable(path: Path, target: sqlite3.Connection) -> None:
    """A file that can be read but not written still shows its scores."""
    try:
        source = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except (OSError, sqlite3.Error):
        return
    try:
        target.executemany(_INSERT, source.execute(f"SELECT {', '.join(_FIELDS)} FROM attempts"))
    except sqlite3.Error:
        pass
    finally:
        source.close()


@contextmanager
def _transaction() -> Iterator[sqlite3.Connection]:
    """Yield a connection in a transaction: all of it happens or nothing."""
    path = _path()
    try:
        connection = _open(path)
    except _Unusable:
        with _memory_lock:
            connection = _in_memory(path)
            connection.execute("BEGIN")
            yield from _finish(connection)
        return
    try:
        with _memory_lock:
            stranded = _memory.get(path)
            if stranded is not None:  # the disk can be written again
                connection.executemany(_INSERT, stranded.execute("SELECT * FROM attempts"))
                connection.execute("COMMIT")
                del _memory[path]  # only now that they are safe
                stranded.close()
                connection.execute("BEGIN IMMEDIATE")
        yield from _finish(connection)
    finally:
        connection.close()


def _finish(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def where() -> str:
    """Say in one sentence where scores are kept, and what to do where they would be lost."""
    path = _path()
    try:
        _open(path).close()
    except (_Unusable, TimeoutError) as problem:
        reason = f"{_short(path)} {problem}" if isinstance(problem, _Unusable) else str(problem).rstrip(".")
        return f"Scores are kept in memory and end with this kernel, because {reason}, or save them."
    if os.environ.get("BINDER_SERVICE_HOST"):
        return "Scores are kept on Binder, which forgets everything when the session ends: save them before you go."
    return f"Scores are kept in {_short(path)}."


def record(  # noqa: PLR0913  (an attempt has that many facets; all but three are named)
    lesson: str,
    item: str,
    correct: bool,
    *,
    points: float | None = None,
    max_points: float = 1.0,
    answer: object = None,
    kind: str = "quiz",
) -> None:
    """Keep one attempt at `item` of `lesson`; without `points` a correct one earns `max_points`.

    `answer` is anything that JSON can hold.

    Raises:
        ValueError: points outside 0 … max_points.
        TimeoutError: another program holds the file for 20 s.
    """
    points = (max_points if correct else 0.0) if points is None else points
    if not 0 <= points <= max_points < math.inf:
        raise ValueError(f"points must be from 0 to max_points={max_points}, not {points}.")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    row = (uuid.uuid4().hex, now, lesson, item, kind, int(correct), points, max_points, json.dumps(answer))
    with _transaction() as connection:
        connection.execute(_INSERT, row)


def _scores(rows: Iterable[tuple]) -> dict[tuple[str, str], Score]:
    """Fold attempts, oldest first, into one Score per (lesson, item)."""
    folded: dict[tuple[str, str], Score] = {}
    for _, time, lesson, item, kind, correct, points, max_points, answer in rows:
        old = folded.get((lesson, item))
        better = old is None or points * old.max_points > old.points * max_points
        folded[lesson, item] = Score(
            points=points if better else old.points,
            max_points=max_points if better else old.max_points,
            correct=bool(correct) or (old is not None and old.correct),
            attempts=1 + (old.attempts if old else 0),
            answer=json.loads(answer),
            time=time,
            kind=kind,
        )
    return folded


def _all_scores() -> dict[tuple[str, str], Score]:
    with _transaction() as connection:
        rows = connection.execute("SELECT * FROM attempts ORDER BY time, rowid").fetchall()
    return _scores(rows)


def best(lesson: str) -> dict[str, Score]:
    """Return the state of every item of `lesson` that was ever tried, by item."""
    return {item: score for (of, item), score in _all_scores().items() if of == lesson}


def progress(possible: Mapping[str, Mapping[str, float]] | None = None) -> list[Progress]:
    """Return one line per lesson, in order.

    `possible` maps each lesson to its items and their points (`helpers.widgets.course_items()` gives it);
    without it, only items that were tried count.
    """
    scores = _all_scores()
    if possible is None:
        possible = {}
        for (lesson, item), score in scores.items():
            possible.setdefault(lesson, {})[item] = score.max_points
    lines = []
    for lesson in sorted(possible):
        items = possible[lesson]
        tried = [(items[i], scores[lesson, i]) for i in items if (lesson, i) in scores]
        reached = sum(points * s.points / s.max_points for points, s in tried if s.max_points)
        lines.append(Progress(lesson, reached, float(sum(items.values())), len(tried), len(items)))
    return lines


def to_json() -> str:
    """Return every attempt as the text of one JSON file."""
    with _transaction() as connection:
        rows = connection.execute("SELECT * FROM attempts ORDER BY time, rowid").fetchall()
    attempts = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
    for attempt in attempts:
        attempt["correct"] = bool(attempt["correct"])
        attempt["answer"] = json.loads(attempt["answer"])
    return json.dumps({"format": FORMAT, "version": VERSION, "attempts": attempts}, indent=1, ensure_ascii=False)


def export(path: str | Path = FILE_NAME) -> Path:
    """Write every attempt to one JSON file and return its path. `load` reads it, here or elsewhere."""
    path = Path(path).expanduser()
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        partial.write_text(to_json(), encoding="utf-8")
        partial.replace(path)  # a full disk leaves the earlier file whole
    finally:
        partial.unlink(missing_ok=True)
    return path


def load(source: str | Path, name: str | None = None) -> int:
    """Merge a file written by `export` (its path or its text) and return how many attempts were new.

    Loading the same file again adds nothing. `name` is how messages call a text.

    Raises:
        ValueError: not such a file; nothing of it was loaded.
    """
    text, name = _read(source, name)
    rows = [_row(attempt, i, name) for i, attempt in enumerate(_attempts(text, name), start=1)]
    with _transaction() as connection:
        before = connection.total_changes
        connection.executemany(_INSERT, rows)
        return connection.total_changes - before


_REMEDY = "Choose the file that Save, or scores.export(), wrote. Nothing was loaded."


def _read(source: str | Path, name: str | None) -> tuple[str, str]:
    if isinstance(source, str) and (name is not None or source.lstrip().startswith("{")):
        return source, name or "the text"
    path = Path(source).expanduser()
    try:
        return path.read_text(encoding="utf-8"), name or path.name
    except FileNotFoundError:
        raise ValueError(f"There is no file {source}. {_REMEDY}") from None
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"{source} cannot be read as text. {_REMEDY}") from None


def _attempts(text: str, name: str) -> list:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is not a whole JSON file. {_REMEDY}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{name} is not a scores file of this course. {_REMEDY}")
    if content.get("version") != VERSION:
        raise ValueError(
            f"{name} has version {content.get('version')!r} and this course reads version {VERSION}: "
            "update the course. Nothing was loaded."
        )
    if not isinstance(content.get("attempts"), list):
        raise ValueError(f"{name} holds no list of attempts. {_REMEDY}")
    return content["attempts"]


def _row(attempt: object, number: int, name: str) -> tuple:
    try:
        a = {field: attempt[field] for field in _FIELDS}
        if not all(isinstance(a[f], str) and 0 < len(a[f]) <= 200 for f in ("lesson", "item", "kind")):
            raise ValueError
        when = datetime.fromisoformat(a["time"]).astimezone(UTC).isoformat(timespec="milliseconds")
        points, most = float(a["points"]), float(a["max_points"])
        if not (isinstance(a["correct"], bool) and 0 <= points <= most < math.inf):
            raise ValueError
        key = uuid.UUID(a["id"]).hex
        return (key, when, a["lesson"], a["item"], a["kind"], int(a["correct"]), points, most, json.dumps(a["answer"]))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise ValueError(f"Attempt {number} in {name} is damaged. {_REMEDY}") from None
