"""Execute notebooks with papermill, each alone in its own process, and show what each one costs.

python -m helpers.run [pattern ...] [--jobs N] [--timeout s] [--solved] [--json path]

Executed copies go to build/run. Ends with 0 where all is well, 1 where a notebook failed, 2 where nothing
matched, 130 after Ctrl-C, which leaves no process behind.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

from helpers import notebook_format as form
from helpers.data import ROOT
from helpers.devices import machine, memory_available, usable_cores
from helpers.execution import Outcome, interruptible, run_notebook

OUT = ROOT / "build" / "run"
GIB_PER_NOTEBOOK = 1.2  # what a notebook may use, and what its driver needs
SLOW = 30  # s; a learner waits no longer than this for a whole lesson


def default_jobs() -> int:
    """Return how many notebooks may run at once here without waiting for each other: at least one."""
    return max(1, int(min(usable_cores(), memory_available() / (GIB_PER_NOTEBOOK * 2**30))))


def run_one(path: Path, *, timeout: float, strict: bool, stop: threading.Event) -> Outcome:
    """Run one notebook into build/run; where `strict`, with its exercises solved and judged without mercy."""
    if stop.is_set():
        return Outcome(path.stem, "interrupted", 0.0, 0.0, "PSS", f"{path.name}: not started")
    target = OUT / ("solved" if strict else "") / path.name
    source = path
    if strict:
        source = target.with_suffix(".source.ipynb")
        source.parent.mkdir(parents=True, exist_ok=True)
        form.write(form.solved(form.read(path), path.stem), source)
    outcome = run_notebook(source, target, folder=path.parent, timeout=timeout, strict=strict, stop=stop)
    outcome.notebook = path.stem
    return outcome


def run_all(paths: list[Path], jobs: int, *, timeout: float = 600, strict: bool = False) -> list[Outcome]:
    """Run notebooks, `jobs` at a time, with a progress bar on a terminal and a line each elsewhere."""
    outcomes = []
    bar = tqdm(total=len(paths), unit="notebook", disable=not sys.stderr.isatty(), leave=False)
    with interruptible() as stop, ThreadPoolExecutor(jobs) as pool, bar:
        waiting = {pool.submit(run_one, path, timeout=timeout, strict=strict, stop=stop) for path in paths}
        while waiting:
            done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            for outcome in (future.result() for future in done):
                outcomes.append(outcome)
                bar.update()
                if bar.disable:
                    print(f"{outcome.notebook}: {outcome.result}, {outcome.seconds:.1f} s", flush=True)
    return sorted(outcomes, key=lambda outcome: outcome.notebook)


def table(outcomes: list[Outcome]) -> str:
    """Return one line per notebook: seconds, peak memory, result."""
    measure = outcomes[0].memory_measure
    lines = [f"{'notebook':<32}{'seconds':>8}  {f'peak MiB ({measure})':>14}  result"]
    for outcome in outcomes:
        result = outcome.result
        if outcome.ok and outcome.seconds > SLOW:
            result += f", slower than {SLOW} s"
        lines.append(f"{outcome.notebook:<32}{outcome.seconds:>8.1f}  {outcome.peak_mib:>14.0f}  {result}")
    return "\n".join(lines)


def as_json(outcomes: list[Outcome], jobs: int) -> str:
    """Return the same for machines to read, with the seconds of each cell."""
    packages = ("tensorflow", "keras", "numpy", "papermill", "jupyterlab")
    report = {
        "machine": str(machine()),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "jobs": jobs,
        "notebooks": [asdict(outcome) for outcome in outcomes],
    }
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m helpers.run", description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", help="parts of names, such as 20, or files; all lessons without any")
    parser.add_argument("--jobs", type=int, help="how many at once (default: what cores and free memory allow)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one notebook (default: %(default)s)")
    parser.add_argument("--solved", action="store_true", help="fill in the reference answers and judge them strictly")
    parser.add_argument("--json", type=Path, default=OUT / "report.json", help="where the report for machines goes")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; return the exit code."""
    options = parse(arguments)
    try:
        paths = form.find(*options.patterns)
        if not paths:
            raise ValueError("There are no lessons in notebooks/ yet.")
        if options.jobs is not None and options.jobs < 1:
            raise ValueError(f"--jobs must be 1 or more, not {options.jobs}.")
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    jobs = min(options.jobs or default_jobs(), len(paths))
    outcomes = run_all(paths, jobs, timeout=options.timeout, strict=options.solved)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(as_json(outcomes, jobs), encoding="utf-8")
    print(table(outcomes))
    print(f"On {machine()}. Executed copies and report: {options.json.parent}")
    if jobs > 1:
        print(f"{jobs} ran at a time and slowed each other: compare seconds with --jobs 1 only.")
    for outcome in outcomes:
        if outcome.problem:
            print(f"\n{outcome.problem}", file=sys.stderr)
    if any(outcome.result == "interrupted" for outcome in outcomes):
        return 130
    return int(not all(outcome.ok for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
