"""What can be done to a task on purpose. A task is a rank, or in a parameter-server cluster a name: "worker:0"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Kill:
    """End `task` (SIGKILL) when step `step` is reported."""

    task: int | str
    step: int


@dataclass(frozen=True)
class Stop:
    """Stop `task` (SIGSTOP) when step `step` is reported, and let it go on after `seconds`."""

    task: int | str
    step: int
    seconds: float


@dataclass(frozen=True)
class Restart:
    """End `task` when step `step` is reported, the first time, and start its function anew."""

    task: int | str
    step: int


@dataclass(frozen=True)
class Delay:
    """Let `task` begin `seconds` late."""

    task: int | str
    seconds: float


@dataclass(frozen=True)
class Slow:
    """Let `task` run only one `factor`-th of the time: a straggler, however little it reports."""

    task: int | str
    factor: float


Fault = Kill | Stop | Restart | Delay | Slow


def check(faults: Iterable[Fault], tasks: Iterable[int | str]) -> tuple[Fault, ...]:
    """Return the faults as a tuple; refuse what is not one, or befalls a task that is not there."""
    faults, tasks = tuple(faults), list(tasks)
    for fault in faults:
        if not isinstance(fault, Fault):
            raise TypeError(f"A fault is one of Kill, Stop, Restart, Delay or Slow, not {fault!r}.")
        if fault.task not in tasks:
            raise ValueError(f"{fault} names task {fault.task!r}; this cluster has {', '.join(map(repr, tasks))}.")
        if getattr(fault, "seconds", 0) < 0 or getattr(fault, "factor", 1) < 1:
            raise ValueError(f"{fault}: seconds must not be negative, and a factor is at least 1.")
        if not isinstance(getattr(fault, "step", 0), int):
            raise TypeError(f"{fault}: a step is a whole number, as given to report().")
    return faults
