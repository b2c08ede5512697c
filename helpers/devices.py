"""What computes here: the machine, its limits, and devices to put replicas on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# The instruction sets that decide how fast a matrix product runs, as /proc/cpuinfo names them.
TELLING_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "bf16", "sve")


@dataclass(frozen=True)
class Machine:
    """What a measurement was made on. `str()` gives the line that is printed beside it."""

    system: str
    processor: str
    cores: float  # cores this process may use: the smaller of its affinity and its cgroup's quota
    memory_gib: float  # memory this process may use, GiB: the smaller of the machine's and its cgroup's
    instruction_sets: tuple[str, ...]
    gpus: tuple[str, ...]

    def __str__(self) -> str:
        sets = " ".join(self.instruction_sets) or "no vector extension known"
        gpus = ", ".join(self.gpus) or "no GPU"
        return f"{self.cores:g} cores of {self.processor} ({sets}), {self.memory_gib:.1f} GiB, {gpus}, {self.system}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def cgroup_limits(root: str = "/sys/fs/cgroup") -> tuple[float, float]:
    """Return (cores, bytes) that this container may use; infinity where nothing limits it.

    Reads version 2 files first (`cpu.max`, `memory.max`), then version 1.
    """
    quota, period = [*_read(f"{root}/cpu.max").split(), "", ""][:2]
    if not quota:
        quota, period = _read(f"{root}/cpu/cpu.cfs_quota_us"), _read(f"{root}/cpu/cpu.cfs_period_us")
    memory = _read(f"{root}/memory.max") or _read(f"{root}/memory/memory.limit_in_bytes")

    def number(text: str) -> float:
        text = text.strip()
        return float(text) if text.isdigit() and int(text) < 2**60 else float("inf")

    return number(quota) / (number(period) if number(period) < float("inf") else 100_000), number(memory)


def memory_available(cgroup: Path = Path("/sys/fs/cgroup")) -> float:
    """Bytes that may still be used: of the machine, or of this container where it is limited."""
    import psutil  # noqa: PLC0415  (a quarter of this module's import time)

    free, limit = psutil.virtual_memory().available, cgroup_limits(str(cgroup))[1]
    if limit == float("inf"):
        return free
    folder, name = (cgroup, "memory.current") if (cgroup / "memory.current").exists() else (cgroup / "memory", "")
    used = int((folder / (name or "memory.usage_in_bytes")).read_text())
    fields = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    cached = int(fields.get("inactive_file", 0))  # files read before, which the kernel gives up when asked
    return min(free, max(limit - used + cached, 0))


def usable_cores() -> float:
    """Cores this process may use, which may be a fraction under a cgroup's quota."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        allowed = os.cpu_count() or 1
    return min(allowed, cgroup_limits()[0])


def _gpu_names() -> tuple[str, ...]:
    """GPU names as the driver tells them, without starting TensorFlow."""
    if not shutil.which("nvidia-smi"):
        return ()
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in out.splitlines() if line.strip())


@cache
def machine() -> Machine:
    """Describe this machine, within the limits set for this process."""
    import psutil  # noqa: PLC0415  (a quarter of this module's import time)

    info = _read("/proc/cpuinfo")
    fields = dict(line.split(":", 1) for line in info.split("\n\n", 1)[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        processor=fields.get("model name") or platform.processor() or platform.machine(),
        cores=usable_cores(),
        memory_gib=min(psutil.virtual_memory().total, cgroup_limits()[1]) / 2**30,
        instruction_sets=tuple(flag for flag in TELLING_FLAGS if flag in flags),
        gpus=_gpu_names(),
    )


def logical_devices(n: int) -> list[str]:
    """Return the names of exactly `n` devices to place replicas on, such as ["CPU:0", "CPU:1"].

    GPUs are used where there are any: one replica each, or several on one GPU of 1 GiB each where there
    are fewer than `n`. Without a GPU, one CPU is split into `n` logical devices that share its cores.
    TensorFlow fixes its devices when it first uses them, so a second call must ask for the same `n`.

    Raises:
        ValueError: `n` is not a whole number from 1 to 64.
        RuntimeError: TensorFlow already runs with another number of devices.
    """
    import tensorflow as tf  # noqa: PLC0415  (helpers import no TensorFlow until it is needed)

    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 64:
        raise ValueError(f"logical_devices needs a whole number of devices from 1 to 64, not {n!r}.")
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    with suppress(RuntimeError):  # TensorFlow's devices are fixed already; below we see whether they are those
        _split(tf, tf.config.list_physical_devices(kind), n)
    there = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices(kind)]
    enough = len(there) == n or (kind == "GPU" and len(tf.config.list_physical_devices("GPU")) >= n)
    if not enough:
        raise RuntimeError(
            f"This kernel's TensorFlow has started with {len(there)} {kind} device(s), and this cell asks for {n}: "
            "choose Kernel > Restart Kernel, then run the notebook from its first cell."
        )
    return there[:n]


def _split(tf, physical: list, n: int) -> None:
    """Ask for `n` logical devices spread over the physical ones, unless each can have its own."""
    if len(physical) >= n:
        return
    for index, device in enumerate(physical):
        share = n // len(physical) + (index < n % len(physical))
        limit = 1024 if device.device_type == "GPU" else None  # MiB; logical GPUs must have one
        parts = [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for _ in range(share)]
        tf.config.set_logical_device_configuration(device, parts)


def describe_replicas(strategy) -> str:
    """Say how many replicas a strategy has, on what: logical devices are not extra hardware."""
    import tensorflow as tf  # noqa: PLC0415

    devices = strategy.extended.worker_devices
    kind = "GPU" if "GPU" in devices[0] else "CPU"
    physical = len(tf.config.list_physical_devices(kind))
    return f"{strategy.num_replicas_in_sync} replicas on {len(devices)} logical devices of {physical} physical {kind}"
