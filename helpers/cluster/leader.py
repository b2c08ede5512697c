"""The process between a kernel and a cluster's tasks: it starts them, watches them, and outlives neither.

A child of the fork server, which has imported TensorFlow and used none of it. It has one thread, so it can
enter a namespace and fork at will. Whatever happens to the kernel, its end of a pipe closes; then the leader
kills every descendant and ends. A watching thread in each task could not do that: TensorFlow holds the
interpreter's lock while it waits for a peer.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import parent_process
from multiprocessing.connection import Connection, Pipe, wait

from helpers.cluster import isolation, worker
from helpers.cluster.faults import Delay, Fault, Kill, Restart, Slow, Stop
from helpers.cluster.worker import Task

PR_SET_CHILD_SUBREAPER = 36
M_ARENA_MAX = -8  # of mallopt
KEPT_OUTPUT = 2**18  # bytes of each task's output, the last ones
SLICE = 0.02  # s in which a slowed task runs once


@dataclass
class Plan:
    """What a kernel asks for. `ports` are those that may be used; (0,) leaves the choice to the system."""

    counts: dict[str, int]  # tasks of each kind, which all get an address
    faults: tuple[Fault, ...] = ()
    ports: tuple[int, ...] = (0,)
    environment: dict[str, str] = field(default_factory=dict)
    sockets: str = ""  # the folder of the kernel's fork server, which a killed kernel cannot remove


@dataclass
class _Child:
    task: Task
    pid: int
    line: Connection
    output: int  # the reading end of its stdout and stderr
    text: bytearray
    listening: bool = True  # to its output, until that is closed
    killed: bool = False  # on purpose


def main(plan: Plan, kernel: Connection) -> None:
    """Lead a cluster until the kernel says ("close",), closes its connection or dies."""
    os.setsid()  # an interrupt of the kernel's group ends no task by accident
    signal.signal(signal.SIGTERM, _leave)
    folder = tempfile.mkdtemp(prefix="course-cluster-")
    leader = _Leader(plan, kernel, folder)
    try:
        leader.lead()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the kernel is gone, or wants no more
    finally:
        leader.end()
        shutil.rmtree(folder, ignore_errors=True)
        if not parent_process().is_alive():
            shutil.rmtree(plan.sockets, ignore_errors=True)


def _leave(*_) -> None:
    """End on SIGTERM, once, by way of the clean-up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit


class _Leader:
    def __init__(self, plan: Plan, kernel: Connection, folder: str) -> None:
        self.plan, self.kernel = plan, kernel
        self.children: dict[str, _Child] = {}
        self.tasks: dict[str, Task] = {}  # those that have ended, too
        self.texts: dict[str, bytearray] = {}
        self.timers: list[tuple[float, str, int]] = []  # when (monotonic s), what, pid
        self.done: set[Fault] = set()
        os.environ.clear()
        os.environ.update(plan.environment, TMPDIR=folder)  # what a killed task leaves behind lies there
        tempfile.tempdir = None

    def lead(self) -> None:
        """Announce the network, then pass messages on until the kernel has had enough."""
        libc = ctypes.CDLL(None)
        if hasattr(libc, "prctl"):
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # whatever a task starts and leaves comes to us
        if hasattr(libc, "mallopt"):
            libc.mallopt(M_ARENA_MAX, 1)  # a task has many threads, most of them idle: an arena each would hold memory
        isolated = isolation.possible()
        if isolated:
            isolation.enter()
        try:
            self.ports = isolation.hold_ports(sum(self.plan.counts.values()), self.plan.ports)
        except OSError as problem:
            self.kernel.send(("refused", str(problem)))
            return
        free = iter(f"127.0.0.1:{held.getsockname()[1]}" for held in self.ports)
        self.addresses = {kind: [next(free) for _ in range(count)] for kind, count in self.plan.counts.items()}
        gc.collect()
        gc.freeze()  # a collection in a task must not copy the pages that all share
        self.kernel.send(("open", isolated, self.addresses))
        while self.turn():
            pass

    def turn(self) -> bool:
        """Wait for one batch of events and handle it; False once the kernel has closed the cluster."""
        heard = {child.line: (self.hear, child) for child in self.children.values()}
        heard |= {child.output: (self.read, child) for child in self.children.values() if child.listening}
        sentinel = parent_process().sentinel
        for ready in wait([sentinel, self.kernel, *heard], self._until_timer()):
            if ready == sentinel:
                raise EOFError
            if ready is self.kernel:
                if not self.obey(*self.kernel.recv()):
                    return False
                continue
            handle, child = heard[ready]
            if self.children.get(child.task.name) is child:  # an event of this batch may have ended it
                handle(child)
        self._fire_timers()
        return True

    # What the kernel asks for

    def obey(self, order: str, *details) -> bool:
        """Do what the kernel asks; False when that was to close."""
        if order == "start":
            for task in details[0]:
                self.start(task)
        elif order == "output":
            self.kernel.send(("output", details[0], self.text(details[0])))
        elif order == "plan":
            self.replan(details[0])
        elif order in ("kill", "stop", "resume", "restart"):
            child = self.children.get(details[0])
            if child is not None:
                getattr(self, order)(child)
            elif order == "restart":
                self.start(self.tasks[details[0]])
            self.kernel.send(("done", details[0], child is not None))
        return order != "close"

    def replan(self, faults: tuple[Fault, ...]) -> None:
        """Let other faults be due from now on, and end those that last."""
        for pid in {timer[2] for timer in self.timers} & {child.pid for child in self.children.values()}:
            os.kill(pid, signal.SIGCONT)
        self.plan.faults, self.timers, self.done = faults, [], set()
        for child in self.children.values():
            self.slow(child)

    def start(self, task: Task) -> None:
        """Fork a task."""
        self.tasks[task.name] = task
        late = sum(f.seconds for f in self.plan.faults if isinstance(f, Delay) and f.task == task.name)
        steps = frozenset(fault.step for fault in self.plan.faults if isinstance(fault, Kill | Stop | Restart))
        task = replace(task, delay=late, fault_steps=steps)
        line, far = Pipe()
        output, far_output = os.pipe()
        leader = os.getpid()
        pid = os.fork()
        if pid == 0:
            worker.main(task, self.addresses, far, far_output, leader)
        far.close()
        os.close(far_output)
        os.set_blocking(output, False)
        if task.kind == "chief":  # another coordinator, not the same one again
            self.texts.pop(task.name, None)
        text = self.texts.setdefault(task.name, bytearray())
        self.children[task.name] = _Child(task, pid, line, output, text)
        self.kernel.send(("started", task.name))
        self.slow(self.children[task.name])

    def slow(self, child: _Child) -> None:
        """Begin to stop a task again and again, where that is planned."""
        factors = [f.factor for f in self.plan.faults if isinstance(f, Slow) and f.task == child.task.name]
        self.timers += [(time.monotonic(), f"slow {factor}", child.pid) for factor in factors]

    def kill(self, child: _Child) -> None:
        child.killed = True
        os.kill(child.pid, signal.SIGKILL)
        self._report_end(child)

    def restart(self, child: _Child) -> None:
        os.kill(child.pid, signal.SIGKILL)
        self._bury(child)  # unsaid: the task goes on, and whoever waits for its answer has to wait still
        self.start(child.task)

    def stop(self, child: _Child) -> None:
        os.kill(child.pid, signal.SIGSTOP)

    def resume(self, child: _Child) -> None:
        os.kill(child.pid, signal.SIGCONT)

    def text(self, name: str) -> str:
        """Return what a task has printed."""
        if name in self.children:
            self.read(self.children[name])
        return self.texts.get(name, bytearray()).decode(errors="replace")

    # What a task says

    def read(self, child: _Child) -> None:
        """Take what a task has printed, and keep the last part."""
        with suppress(BlockingIOError):
            while part := os.read(child.output, 65536):
                child.text += part
                del child.text[:-KEPT_OUTPUT]
            child.listening = False

    def hear(self, child: _Child) -> None:
        """Pass on a task's message, or the news of its death."""
        try:
            message = child.line.recv()
        except (EOFError, OSError):
            self._report_end(child)
            return
        self.read(child)
        name, sort = child.task.name, message[0]
        self.kernel.send((sort, name, *message[1:], *([self.text(name)] if sort in ("result", "error") else [])))
        if sort == "report":
            step = message[1]
            self.befall(step, child)
            if step in child.task.fault_steps and self.children.get(name) is child:
                child.line.send("go on")

    def befall(self, step: int, reporter: _Child) -> None:
        """Do what was planned for this step: to the task that reports, or to another where a coordinator does."""
        for fault in self.plan.faults:
            child = self.children.get(str(fault.task))
            due = getattr(fault, "step", None) == step and fault not in self.done
            if child is None or not due or not (child is reporter or reporter.task.kind == "chief"):
                continue
            self.done.add(fault)
            if isinstance(fault, Stop):
                self.stop(child)
                self.timers.append((time.monotonic() + fault.seconds, "resume", child.pid))
            elif isinstance(fault, Kill):
                self.kill(child)
            elif isinstance(fault, Restart):
                self.restart(child)

    # Time and death

    def _until_timer(self) -> float | None:
        return max(0.0, min(self.timers)[0] - time.monotonic()) if self.timers else None

    def _fire_timers(self) -> None:
        """Resume what was stopped; let a slowed task run for a slice and stand for `factor - 1` of them."""
        now, alive = time.monotonic(), {child.pid for child in self.children.values()}
        due = [timer for timer in self.timers if timer[0] <= now]
        self.timers = [timer for timer in self.timers if timer[0] > now]
        for _, what, pid in due:
            if pid not in alive:
                continue
            verb, _, factor = what.partition(" ")
            os.kill(pid, signal.SIGSTOP if verb == "slow" else signal.SIGCONT)
            if verb == "slow":
                self.timers.append((now + SLICE * (float(factor) - 1), f"run {factor}", pid))
            elif verb == "run":
                self.timers.append((now + SLICE, f"slow {factor}", pid))

    def _report_end(self, child: _Child) -> None:
        """Wait for a task that is ending, and tell the kernel how it ended."""
        code = self._bury(child)
        self.kernel.send(("ended", child.task.name, child.killed, code, self.text(child.task.name)))

    def _bury(self, child: _Child) -> int:
        """Wait for a task that is ending, let go of what was its, and return its exit code."""
        _, status = os.waitpid(child.pid, 0)
        self.read(child)
        child.line.close()
        os.close(child.output)
        del self.children[child.task.name]
        return os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        """Kill all descendants, and wait until they are gone."""
        import psutil  # noqa: PLC0415

        while descendants := psutil.Process().children(recursive=True):
            for process in descendants:
                with suppress(psutil.Error):
                    process.kill()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.001)
