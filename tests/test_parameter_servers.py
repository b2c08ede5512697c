"""The models of parameter servers: events, stability, time on the wire and placement, against theory and TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.models import parameter_servers as ps


@pytest.mark.parametrize("slow", [1.0, 7.0])
@pytest.mark.parametrize("workers", [1, 2, 5, 12])
def test_mean_staleness_is_the_number_of_other_workers_whoever_is_slow(workers, slow):
    states = ps.run(3000, {"workers": workers, "slow": slow, "rate": 0.01})[1000:]
    mean = np.mean([state["last"]["staleness"] for state in states])
    assert mean == pytest.approx(workers - 1, abs=0.05 * workers)


def test_the_straggler_is_the_stale_one():
    states = ps.run(2000, {"workers": 4, "slow": 10.0})[200:]
    by_worker = {n: [s["last"]["staleness"] for s in states if s["last"]["worker"] == n] for n in range(4)}
    assert np.mean(by_worker[0]) > 20
    assert all(np.mean(by_worker[n]) < 4 for n in (1, 2, 3))
    assert len(by_worker[0]) < len(by_worker[1]) / 8


@pytest.mark.parametrize("bound", [0, 1, 3])
@pytest.mark.parametrize("workers", [2, 4])
def test_a_bound_keeps_workers_together_and_staleness_below_its_limit(workers, bound):
    states = ps.run(2000, {"workers": workers, "slow": 20.0, "bound": bound, "spread": 0.9})
    clocks = [[worker["clock"] for worker in state["workers"]] for state in states]
    assert max(max(c) - min(c) for c in clocks) == bound + 1
    assert max(s["last"]["staleness"] for s in states) <= ps.largest_staleness(workers, bound)


def test_the_largest_staleness_is_reached():
    """Lockstep: the last of n writers is n - 1 versions behind. With a bound: one falls asleep while it leads."""
    assert max(s["last"]["staleness"] for s in ps.run(40, {"bound": 0})) == ps.largest_staleness(4, 0) == 3
    now = ps.run(30, {"workers": 2, "bound": 2, "spread": 0.0})[-1]
    falls_asleep = {
        "clock": 10,
        "read": now["version"],
        "gradient": 0.0,
        "began": now["time"],
        "ends": now["time"] + 99,
    }
    now["workers"] = [{**now["workers"][0], "clock": 8, "ends": None}, falls_asleep]
    last = ps.run(6, {"workers": 2, "bound": 2, "spread": 0.0}, now)[-1]["last"]
    assert last["worker"] == 1
    assert last["staleness"] == ps.largest_staleness(2, 2) == 5, "the other got from step 8 to step 13 meanwhile"


def test_without_a_bound_nobody_waits_and_time_is_not_lost():
    free = ps.run(3000, {"slow": 20.0, "spread": 0.0})[-1]["time"]
    tight = ps.run(3000, {"slow": 20.0, "spread": 0.0, "bound": 0})[-1]["time"]
    assert free == pytest.approx(3000 / (3 + 1 / 20), rel=0.01)
    assert tight == pytest.approx(3000 / 4 * 20, rel=0.01)


def test_lockstep_is_one_large_step():
    """n gradients of the same weights, one after the other: the rate counts n times."""
    states = ps.run(40, {"workers": 4, "bound": 0, "rate": 0.1})
    assert states[-1]["error"] == pytest.approx((1 - 4 * 0.1) ** 10)


def test_equal_workers_are_delayed_descent():
    states = ps.run(60, {"workers": 4, "spread": 0.0, "rate": 0.3})
    # the first n gradients all belong to the first version, as if the weights had stood still before
    wanted = ps.delayed_descent(0.3, staleness=3, steps=60)
    assert [state["error"] for state in states] == pytest.approx(list(wanted[1:]))


def test_workers_can_come_and_go():
    few = ps.run(20, {"workers": 2})[-1]
    more = ps.run(100, {"workers": 6}, few)[-1]
    assert len(more["workers"]) == 6
    assert {s["last"]["worker"] for s in ps.run(30, {"workers": 6}, more)} == set(range(6))
    assert len(ps.run(1, {"workers": 1}, more)[-1]["workers"]) == 1
    start = [worker["clock"] for worker in ps.run(1, {"workers": 6}, few)[-1]["workers"]]
    assert min(start[2:]) >= min(worker["clock"] for worker in few["workers"])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"speed": 1}, "no parameter 'speed'; it has: workers, rate"),
        ({"workers": 0}, "workers must be a whole number from 1 to 16, not 0"),
        ({"workers": 2.5}, "whole number from 1 to 16, not 2.5"),
        ({"bound": True}, "bound must be a whole number"),
        ({"slow": 0.5}, "slow must be a number from 1 to 20, not 0.5"),
        ({"rate": float("nan")}, "not nan"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        ps.run(1, parameters)


@pytest.mark.parametrize("staleness", [0, 1, 2, 3, 7, 15, 40])
def test_the_bound_on_the_rate_is_exact(staleness):
    """Against the roots of the characteristic polynomial, and against the recursion itself."""
    bound = ps.largest_stable_rate(staleness)
    assert ps.growth(bound, staleness) == pytest.approx(1, abs=1e-9)
    assert ps.growth(0.999 * bound, staleness) < 1 < ps.growth(1.001 * bound, staleness)
    steps = 400 * (staleness + 1)
    inside, outside = (np.abs(ps.delayed_descent(f * bound, staleness, steps)) for f in (0.95, 1.05))
    assert inside[-100:].max() < 0.1
    assert not outside[-100:].max() < 10
    assert ps.largest_stable_rate(staleness, curvature=4.0) == pytest.approx(bound / 4)


def test_known_bounds():
    assert ps.largest_stable_rate(0) == pytest.approx(2)
    assert ps.largest_stable_rate(1) == pytest.approx(1)
    assert ps.largest_stable_rate(2) == pytest.approx((5**0.5 - 1) / 2)
    assert ps.largest_stable_rate(1000) == pytest.approx(np.pi / 2001, rel=1e-5)


@pytest.mark.parametrize("staleness", [0, 1, 2, 5, 12])
def test_no_rate_converges_faster_than_the_fastest(staleness):
    best = ps.growth(ps.fastest_rate(staleness), staleness)
    assert best == pytest.approx(staleness / (staleness + 1), abs=1e-3)  # a double root: rounding costs its square root
    others = [ps.growth(rate, staleness) for rate in np.linspace(0.01, 1.9, 400)]
    assert min(others) >= best - 1e-3


def test_delayed_descent_by_hand():
    assert ps.delayed_descent(0.5, 1, 4) == pytest.approx([1, 0.5, 0, -0.25, -0.25])
    assert ps.delayed_descent(0.5, 0, 3) == pytest.approx([1, 0.5, 0.25, 0.125])


def test_backup_workers_wait_for_the_kth():
    times = np.array([[3.0, 1.0, 2.0], [1.0, 9.0, 2.0]])
    assert list(ps.step_seconds(times, 3)) == [3, 9]
    assert list(ps.step_seconds(times, 2)) == [2, 2]
    with pytest.raises(ValueError, match="wait_for must be from 1 to 3"):
        ps.step_seconds(times, 4)


@pytest.mark.parametrize(("workers", "kth"), [(1, 1), (8, 8), (10, 8)])
def test_expected_kth_fastest_against_draws(workers, kth):
    times = np.random.default_rng(23).exponential(2.0, size=(40_000, workers))
    assert ps.step_seconds(times, kth).mean() == pytest.approx(ps.expected_kth_fastest(workers, kth, 2.0), rel=0.02)


def test_time_on_the_wire():
    assert ps.server_seconds(8, 1, 1e9, 1e9) == 8
    assert ps.server_seconds(8, 4, 1e9, 1e9) == 2
    assert ps.server_seconds(8, 16, 1e9, 1e9) == 1  # a worker's own link
    assert ps.server_seconds(8, 4, 1e9, 1e9, overlap=False) == 4
    assert ps.ring_seconds(8, 1e9, 1e9) == pytest.approx(1.75)
    assert ps.ring_seconds(1, 1e9, 1e9) == 0
    assert ps.gather_seconds(8, 1e6, 1e9) == pytest.approx(7e-3)


def test_touched_rows_against_draws():
    probabilities = ps.zipf(500)
    random = np.random.default_rng(23)
    drawn = [len(set(random.choice(500, size=200, p=probabilities))) for _ in range(200)]
    assert ps.touched_rows(probabilities, 200) == pytest.approx(np.mean(drawn), rel=0.02)
    assert ps.touched_rows(np.ones(1), 5) == pytest.approx(1)
    assert ps.touched_rows(np.full(10, 0.1), 1) == pytest.approx(1)


def test_greedy_balances_what_round_robin_does_not():
    sizes = [1000, 10, 1000, 10, 1000, 10]  # kernel, bias, kernel, bias
    turn, greedy = (ps.bytes_per_server(sizes, place(sizes, 2), 2) for place in (ps.round_robin, ps.greedy_by_bytes))
    assert turn == [3000, 30]
    assert sum(greedy) == 3030
    assert ps.imbalance(greedy) < 1.35 < ps.imbalance(turn)
    assert ps.imbalance([5, 5]) == 1


def test_greedy_keeps_grahams_promise():
    random = np.random.default_rng(23)
    for _ in range(50):
        sizes = random.integers(1, 40, size=7).tolist()
        placements = np.indices((2,) * 7).reshape(7, -1).T
        best = min(max(ps.bytes_per_server(sizes, placement, 2)) for placement in placements)
        assert max(ps.bytes_per_server(sizes, ps.greedy_by_bytes(sizes, 2), 2)) <= (4 / 3 - 1 / 6) * best


def test_shards_are_tensorflows():
    import tensorflow as tf  # noqa: PLC0415

    partitioners = tf.distribute.experimental.partitioners
    random = np.random.default_rng(23)
    for _ in range(60):
        shape = (int(random.integers(1, 4000)), int(random.integers(1, 40)))
        size, most = int(random.integers(1, 300_000)), int(random.integers(1, 12))
        static = tf.TensorShape(shape)
        smallest = partitioners.MinSizePartitioner(size, max_shards=most)(static, tf.float32)
        largest = partitioners.MaxSizePartitioner(size)(static, tf.float32)
        capped = partitioners.MaxSizePartitioner(size, max_shards=most)(static, tf.float32)
        fixed = partitioners.FixedShardsPartitioner(most)(static, tf.float32)
        assert smallest == [ps.min_size_shards(shape, size, most), 1]
        assert largest == [ps.max_size_shards(shape, size), 1]
        assert capped == [ps.max_size_shards(shape, size, most), 1]
        assert fixed == [len(ps.shard_rows(shape[0], most)), 1]
        assert sum(ps.shard_rows(shape[0], most)) == shape[0]
    assert ps.shard_rows(10, 4) == [3, 3, 2, 2]
    assert ps.min_size_shards((300, 256), 256 * 1024, 8) == 2  # 150 KiB each, below the "minimum" of 256
