"""Devices are exactly those asked for, or a sentence says why not; the machine is described within its limits."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from helpers import devices


def in_fresh_python(code: str) -> str:
    """Run `code` in a new interpreter, since TensorFlow fixes its devices once per process; return its stdout."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "the start of TensorFlow is not quiet"
    return done.stdout


def test_same_number_again_is_fine_and_another_asks_for_a_restart():
    said = in_fresh_python(
        "from helpers.devices import logical_devices\n"
        "print(logical_devices(3)); print(logical_devices(3))\n"
        "import tensorflow as tf\n"
        "print(len(tf.config.list_logical_devices('CPU')))\n"
        "for n in (2, 4):\n"
        "    try:\n"
        "        logical_devices(n)\n"
        "    except RuntimeError as problem:\n"
        "        print(problem)\n"
    ).splitlines()
    assert said[0] == said[1] == "['CPU:0', 'CPU:1', 'CPU:2']"
    assert said[2] == "3"
    assert "started with 3 CPU device(s), and this cell asks for 2" in said[3]
    assert "asks for 4" in said[4]
    assert "Restart Kernel" in said[4]


def test_after_a_first_operation_only_one_device_is_left():
    said = in_fresh_python(
        "from helpers.devices import logical_devices\n"
        "import tensorflow as tf\n"
        "tf.constant(1) + 1\n"
        "print(logical_devices(1))\n"
        "try:\n"
        "    logical_devices(2)\n"
        "except RuntimeError as problem:\n"
        "    print(problem)\n"
    )
    assert "['CPU:0']" in said
    assert "asks for 2" in said


@pytest.mark.parametrize("wrong", [0, -1, 65, 2.0, "2", None, True])
def test_wrong_numbers_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match="whole number of devices from 1 to 64") as problem:
        devices.logical_devices(wrong)
    assert repr(wrong) in str(problem.value)


class FakeTensorFlow:
    """The few calls that `logical_devices` makes, on a machine with `gpus` GPUs and one CPU."""

    def __init__(self, gpus: int) -> None:
        physical = {
            "GPU": [SimpleNamespace(device_type="GPU", name=f"GPU{i}") for i in range(gpus)],
            "CPU": [SimpleNamespace(device_type="CPU", name="CPU0")],
        }
        split = {}

        def set_parts(device, parts):
            split[device.name] = parts

        def logical(kind):
            total = sum(len(split.get(device.name, [None])) for device in physical[kind])
            return [SimpleNamespace(name=f"/device:{kind}:{i}") for i in range(total)]

        self.split = split
        self.config = SimpleNamespace(
            list_physical_devices=lambda kind: physical[kind],
            list_logical_devices=logical,
            set_logical_device_configuration=set_parts,
            LogicalDeviceConfiguration=lambda memory_limit=None: memory_limit,
        )


@pytest.mark.parametrize(
    ("gpus", "n", "names", "split"),
    [
        (0, 2, ["CPU:0", "CPU:1"], {"CPU0": [None, None]}),
        (2, 2, ["GPU:0", "GPU:1"], {}),
        (4, 2, ["GPU:0", "GPU:1"], {}),
        (1, 2, ["GPU:0", "GPU:1"], {"GPU0": [1024, 1024]}),
        (2, 3, ["GPU:0", "GPU:1", "GPU:2"], {"GPU0": [1024, 1024], "GPU1": [1024]}),
    ],
)
def test_gpus_are_used_where_there_are_any(monkeypatch, gpus, n, names, split):
    fake = FakeTensorFlow(gpus)
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    assert devices.logical_devices(n) == names
    assert fake.split == split


def test_the_replicas_of_a_strategy_are_described():
    said = in_fresh_python(
        "from helpers.devices import logical_devices, describe_replicas\n"
        "names = logical_devices(2)\n"
        "import tensorflow as tf\n"
        "print(describe_replicas(tf.distribute.MirroredStrategy(names)))\n"
    )
    assert said == "2 replicas on 2 logical devices of 1 physical CPU\n"


@pytest.mark.parametrize(
    ("files", "cores", "memory"),
    [
        ({"cpu.max": "150000 100000\n", "memory.max": "1073741824\n"}, 1.5, 2**30),
        ({"cpu.max": "max 100000\n", "memory.max": "max\n"}, float("inf"), float("inf")),
        (
            {
                "cpu/cpu.cfs_quota_us": "50000",
                "cpu/cpu.cfs_period_us": "100000",
                "memory/memory.limit_in_bytes": "2147483648",
            },
            0.5,
            2**31,
        ),
        ({"cpu/cpu.cfs_quota_us": "-1", "memory/memory.limit_in_bytes": str(2**63 - 4096)}, float("inf"), float("inf")),
        ({}, float("inf"), float("inf")),
    ],
)
def test_limits_of_both_kinds_of_cgroup(tmp_path, files, cores, memory):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert devices.cgroup_limits(str(tmp_path)) == (cores, memory)


def test_machine_is_one_line_and_within_its_limits(monkeypatch):
    monkeypatch.setattr(devices, "cgroup_limits", lambda: (0.5, 2.0**30))
    devices.machine.cache_clear()
    try:
        machine = devices.machine()
    finally:
        devices.machine.cache_clear()
    assert machine.cores == 0.5
    assert machine.memory_gib == 1.0
    assert "\n" not in str(machine)
    assert "0.5 cores" in str(machine)


def test_start_is_quiet_when_keras_comes_first():
    assert in_fresh_python("import helpers, keras\nprint('ok')") == "ok\n"


def test_keras_comes_without_scikit_learn_unless_it_was_there_before():
    code = "import helpers, sys, keras; print('sklearn' in sys.modules); import sklearn.base; print('later too')"
    assert in_fresh_python(code) == "False\nlater too\n"
    code = "import helpers, sklearn.base, keras; print(keras.wrappers.SKLearnClassifier.__mro__[-2].__module__)"
    assert in_fresh_python(code).startswith("sklearn.")


def test_what_native_code_wrote_is_shown_where_the_import_fails():
    code = (
        "import os\nfrom helpers import native_stderr_hidden\n"
        "with native_stderr_hidden():\n    os.write(2, b'the reason'); raise SystemExit(3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, "the reason")
