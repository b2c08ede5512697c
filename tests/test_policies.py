"""A policy holds inside its block and nowhere else, whatever happens in the block."""

import pytest

from helpers import policies

keras = pytest.importorskip("keras")


def current():
    return keras.config.dtype_policy().name


@pytest.mark.parametrize(
    ("name", "compute", "variable"),
    [
        ("float32", "float32", "float32"),
        ("mixed_bfloat16", "bfloat16", "float32"),
        ("mixed_float16", "float16", "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("float16", "float16", "float16"),
        ("float64", "float64", "float64"),
    ],
)
def test_layers_built_in_the_block_follow_it(name, compute, variable):
    with policies.using(name) as given:
        layer = keras.layers.Dense(1)
    assert given == name
    assert (layer.compute_dtype, layer.variable_dtype) == (compute, variable)
    assert current() == "float32"
    assert keras.layers.Dense(1).compute_dtype == "float32"


def test_every_name_is_a_policy_of_keras():
    for name in policies.NAMES:
        assert keras.dtype_policies.get(name).name == name


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt])
def test_the_policy_before_is_restored_after_an_exception(problem):
    with pytest.raises(problem), policies.using("mixed_float16"):
        raise problem
    assert current() == "float32"


def test_blocks_nest():
    with policies.using("mixed_bfloat16"):
        with policies.using("float16"):
            assert current() == "float16"
        assert current() == "mixed_bfloat16"
    assert current() == "float32"


@pytest.mark.parametrize("name", ["mixed_float8", "", None, 16])
def test_an_unknown_name_is_refused_and_nothing_changes(name):
    with pytest.raises(ValueError, match=r"There is no policy .*: choose one of float32"), policies.using(name):
        pass
    assert current() == "float32"


@pytest.mark.parametrize(
    ("sets", "gpus", "unit", "says"),
    [
        (("avx2", "avx512f", "avx512_bf16", "amx_bf16"), (), "AMX", "several times as fast"),
        (("avx2", "avx512f", "avx512_bf16"), (), "AVX512-BF16", "clearly below 1"),
        (("asimd", "bf16"), (), "Arm", "clearly below 1"),
        (("avx2",), (), None, "ratios of 1 and above"),
        ((), (), None, "ratios of 1 and above"),
        (("avx2",), ("NVIDIA A100",), "GPU", "several times as fast"),
    ],
)
def test_every_kind_of_machine_gets_its_own_expectation(sets, gpus, unit, says):
    found = policies.bfloat16_unit(sets, gpus)
    assert (found is None) if unit is None else (unit in found)
    assert says in policies.expectation(found)
