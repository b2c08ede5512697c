"""Schedules of collectives: right for any number of ranks, their bytes and steps as the closed forms say; α–β fits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from helpers import data
from helpers.models import collectives as co

RANKS = range(1, 18)
POWERS = (1, 2, 4, 8, 16)
ALPHA, BANDWIDTH = 2e-5, 1e9


def vectors(n, per_chunk=3, chunks=None):
    """Different whole numbers on each rank, (n·per_chunk,) int64, so that a sum is exact and an error shows."""
    size = (chunks or n) * per_chunk
    return [np.arange(size) * 7 + 1000 * 3 ** min(r, 12) + r for r in range(n)]


def one_ported(schedule):
    return all(
        len({d for s, d, *_ in step if s == r}) <= 1 and len({s for s, d, *_ in step if d == r}) <= 1
        for step in schedule
        for r in {rank for send in step for rank in send[:2]}
    )


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("name", co.ALGORITHMS)
def test_all_reduce_is_right_and_costs_what_the_closed_form_says(name, n):
    algorithm = co.ALGORITHMS[name]
    if algorithm.power_of_two and n not in POWERS:
        with pytest.raises(ValueError, match=rf"needs a power of two, not {n}: take \d+ or \d+ ranks"):
            algorithm.schedule(n)
        return
    before = vectors(n)
    schedule = algorithm.schedule(n)
    run = co.execute(schedule, co.cut(before, algorithm.chunks(n)))
    size = before[0].nbytes
    for after in co.join(run.chunks):
        assert np.array_equal(after, np.sum(before, axis=0))
    cost = algorithm.cost(n, size)
    assert (run.steps, run.critical) == cost
    assert sum(run.sent) == sum(run.received)
    assert one_ported(schedule)
    chunk = size / algorithm.chunks(n)
    took = co.arrivals(schedule, n, lambda src, dst, chunks: ALPHA + chunks * chunk / BANDWIDTH)
    assert took == pytest.approx(cost.seconds(ALPHA, BANDWIDTH), rel=1e-12), "no barrier would help on equal links"


@pytest.mark.parametrize("n", RANKS)
def test_who_meets_which_bound(n):
    size = 1 << 20
    meets_steps, meets_bytes = set(), set()
    for name, algorithm in co.ALGORITHMS.items():
        if algorithm.power_of_two and n not in POWERS:
            continue
        cost = algorithm.cost(n, size)
        run = co.execute(algorithm.schedule(n), co.cut([np.zeros(16 * n, np.uint8)] * n, algorithm.chunks(n)))
        assert cost.steps >= co.least_steps(n)
        assert run.busiest >= co.least_bytes(n, 16 * n) - 1e-9 or n == 1
        if cost.steps == co.least_steps(n):
            meets_steps.add(name)
        if cost.bytes == co.least_bytes(n, size):
            meets_bytes.add(name)
    if n > 2:
        assert meets_steps == ({"butterfly"} if n in POWERS else set())
        assert meets_bytes == ({"ring", "halving-doubling"} if n in POWERS else {"ring"})


@pytest.mark.parametrize("n", RANKS)
def test_busiest_rank(n):
    size = 24 * n
    wanted = {
        "naive": (n - 1) * size,
        "tree": co.log2_ceil(n) * size,
        "butterfly": co.log2_ceil(n) * size,
        "halving-doubling": 2 * (n - 1) * 24,
        "ring": 2 * (n - 1) * 24,
    }
    for name, algorithm in co.ALGORITHMS.items():
        if not algorithm.power_of_two or n in POWERS:
            run = co.execute(algorithm.schedule(n), co.cut(vectors(n), algorithm.chunks(n)))
            assert run.busiest == wanted[name], name


@pytest.mark.parametrize("n", RANKS)
def test_hierarchical_is_right_for_every_divisor_and_crosses_nodes_with_little(n):
    before = vectors(n)
    size = before[0].nbytes
    for group in range(1, n + 1):
        if n % group:
            with pytest.raises(ValueError, match=f"Nodes of {group} ranks do not add up to {n} ranks"):
                co.hierarchical(n, group)
            continue
        schedule, nodes = co.hierarchical(n, group), n // group
        run = co.execute(schedule, co.cut(before, n))
        assert all(np.array_equal(after, np.sum(before, axis=0)) for after in co.join(run.chunks))
        assert run.steps == 2 * (group - 1) + 2 * (nodes - 1)
        assert run.critical == run.busiest == co.least_bytes(n, size)
        assert one_ported(schedule)
        crossing = [send for step in schedule for send in step if send.src // group != send.dst // group]
        assert len(crossing) * size / n / n == pytest.approx(2 * (nodes - 1) / nodes * size / group)  # of each rank


@pytest.mark.parametrize("n", RANKS)
def test_the_other_collectives(n):
    for root in {0, n // 2, n - 1}:
        chunks = [[np.array([r, 2 * r])] for r in range(n)]
        run = co.execute(co.reduce(n, root), chunks)
        assert np.array_equal(run.chunks[root][0], np.sum(chunks, axis=0)[0])
        assert run.steps == co.least_steps(n)
        run = co.execute(co.broadcast(n, root), [parts if r == root else [None] for r, parts in enumerate(chunks)])
        assert all(np.array_equal(parts[0], chunks[root][0]) for parts in run.chunks)
        assert run.steps == co.least_steps(n)
    before = vectors(n)
    size = before[0].nbytes
    run = co.execute(co.reduce_scatter(n), co.cut(before, n))
    total = np.array_split(np.sum(before, axis=0), n)
    assert all(np.array_equal(run.chunks[r][r], total[r]) for r in range(n))
    assert (run.steps, run.busiest) == (n - 1, (n - 1) * size // n)
    own = [[part if c == r else None for c, part in enumerate(parts)] for r, parts in enumerate(co.cut(before, n))]
    run = co.execute(co.all_gather(n), own)
    assert all(np.array_equal(run.chunks[r][c], own[c][c]) for r, c in itertools.product(range(n), repeat=2))
    assert (run.steps, run.busiest) == (n - 1, (n - 1) * size // n)
    mine = [[np.array([c]) if c // n == r else None for c in range(n * n)] for r in range(n)]
    run = co.execute(co.all_to_all(n), mine)
    assert all(run.chunks[dst][src * n + dst] == [src * n + dst] for src, dst in itertools.product(range(n), repeat=2))
    assert (run.steps, run.busiest) == (n - 1, 8 * (n - 1))
    for schedule in (co.broadcast(n), co.reduce(n), co.reduce_scatter(n), co.all_gather(n), co.all_to_all(n)):
        assert one_ported(schedule)


@pytest.mark.parametrize("chunks", [1, 2, 7])
@pytest.mark.parametrize("n", RANKS)
def test_pipelined_tree_is_right_and_more_chunks_help_large_vectors(n, chunks):
    before = vectors(n, chunks=chunks)
    run = co.execute(co.pipelined_tree(n, chunks), co.cut(before, chunks))
    assert all(np.array_equal(after, np.sum(before, axis=0)) for after in co.join(run.chunks))

    def seconds(pieces):
        return co.arrivals(co.pipelined_tree(n, pieces), n, lambda *_: ALPHA + 1e9 / pieces / BANDWIDTH)

    if n > 3:
        assert seconds(32) < 0.8 * seconds(1)


def test_a_vector_that_does_not_divide_is_still_right():
    before = [np.arange(11) + r for r in range(4)]
    for name in ("ring", "halving-doubling"):
        run = co.execute(co.ALGORITHMS[name].schedule(4), co.cut(before, 4))
        assert all(np.array_equal(after, np.sum(before, axis=0)) for after in co.join(run.chunks))


def test_the_executor_leaves_its_input_alone_and_takes_plain_tuples():
    before = co.cut([np.ones(4), np.ones(4)], 1)
    run = co.execute([[(0, 1, 0, "add"), (1, 0, 0, "add")]], before)
    assert (before[0][0] == 1).all()
    assert all((parts[0] == 2).all() for parts in run.chunks), "both parcels leave before either arrives"


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ([(0, 3, 0, "add")], "Step 0 sends from rank 0 to rank 3; there are ranks 0 to 2"),
        ([(1, 1, 0, "add")], "from rank 1 to rank 1"),
        ([(0, 1, 0, "mul")], 'the op \'mul\': write "copy" or "add"'),
        ([(0, 1, 1, "copy")], "sends chunk 1 of rank 0, which does not have it"),
        ([(0, 1, 7, "copy")], "sends chunk 7 of rank 0"),
        ([(0, 2, 0, "add")], "adds to chunk 0 of rank 2, which has none"),
        ([(0, 2, 0, "copy"), (1, 2, 0, "copy")], "copies two parcels to one place"),
    ],
)
def test_impossible_schedules_are_refused_with_a_sentence(step, sentence):
    one = np.ones(1)
    with pytest.raises(ValueError, match=sentence):
        co.execute([step], [[one, None], [one, None], [None, None]])


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "4"])
def test_numbers_of_ranks_that_are_none(n):
    for schedule in (co.broadcast, co.reduce_scatter, co.all_to_all, co.naive, co.butterfly, co.ring):
        with pytest.raises(ValueError, match=r"whole number of at least 1, not"):
            schedule(n)


# ---- networks ----------------------------------------------------------------------------------------------


def test_two_levels_agree_with_the_schedules_step_by_step():
    inner, outer, size = co.Level(1e-6, 3e11), co.Level(1e-5, 2.5e10), 1 << 20
    for n, group in ((16, 4), (16, 8), (16, 16), (16, 1)):
        schedules = {name: (a.schedule(n), a.chunks(n)) for name, a in co.ALGORITHMS.items()}
        schedules["hierarchical ring"] = (co.hierarchical(n, group), n)
        for name, (schedule, chunks) in schedules.items():
            total = 0.0
            for step in schedule:
                sizes = {}
                for src, dst, *_ in step:
                    sizes[src, dst] = sizes.get((src, dst), 0) + size / chunks
                total += max(
                    level.alpha + b / level.bandwidth
                    for (src, dst), b in sizes.items()
                    for level in [inner if src // group == dst // group else outer]
                )
            got = co.two_level_seconds(name, n, size, group, (inner, outer))
            assert got == pytest.approx(total, rel=1e-12), (name, n, group)
    with pytest.raises(ValueError, match="group must divide n"):
        co.two_level_seconds("ring", 10, size, 4, (inner, outer))


def test_hierarchy_with_one_kind_of_link_is_the_flat_algorithm():
    level, size = co.Level(1e-6, 1e11), 1 << 20
    for group in (1, 16):
        got = co.two_level_seconds("hierarchical ring", 16, size, group, (level, level))
        assert got == pytest.approx(co.ALGORITHMS["ring"].cost(16, size).seconds(*level))


def test_cables_of_a_physical_ring():
    n, chunk = 16, 10.0
    assert all(co.cable_load(step, n, chunk) == chunk for step in co.ring(n))
    halving = [co.cable_load(step, n, chunk) for step in co.halving_doubling(n)]
    assert max(halving) >= n / 4 * n / 2 * chunk, "half of the vector from every rank, over half of the ring"
    assert co.cable_load([], 4, chunk) == 0


def test_a_slow_link_holds_up_a_ring_in_every_step_and_a_tree_twice():
    n, size = 8, 8e6

    def times(slow):
        def seconds(chunk):
            return lambda src, dst, k: (ALPHA + k * chunk / BANDWIDTH) * (slow if (src, dst) == (0, 1) else 1)

        whole = co.arrivals(co.tree(n), n, seconds(size))
        return co.arrivals(co.ring(n), n, seconds(size / n)), whole

    (ring, tree), (slow_ring, slow_tree) = times(1), times(10)
    assert slow_ring / ring > 8
    assert 1 < slow_tree / tree < 4


# ---- fits --------------------------------------------------------------------------------------------------


def test_fits_find_what_made_the_times():
    sizes = 2.0 ** np.arange(10, 24)
    line = co.fit(sizes, 3e-5 + sizes / 2e9)
    assert line.alpha == pytest.approx(3e-5)
    assert line.bandwidth == pytest.approx(2e9)
    assert (line.first, line.last) == (sizes[0], sizes[-1])
    assert np.abs(co.relative_errors(line, sizes, 3e-5 + sizes / 2e9)).max() < 1e-9
    times = np.where(sizes < 2**17, 3e-5 + sizes / 2e9, 1e-4 + sizes / 5e9)
    low, high = co.fit_two(sizes[::-1], times[::-1])
    assert (low.last, high.first) == (2**16, 2**17)
    assert (low.bandwidth, high.bandwidth) == (pytest.approx(2e9), pytest.approx(5e9))


@pytest.mark.parametrize(
    ("sizes", "times", "sentence"),
    [
        ([1, 1], [1, 1], "at least two different sizes"),
        ([1, 2], [1], "not 2 and 1"),
        ([1, 2], [1, 0], "must be positive"),
    ],
)
def test_fits_refuse_what_has_no_line(sizes, times, sentence):
    with pytest.raises(ValueError, match=sentence):
        co.fit(sizes, times)


def test_two_regimes_need_points():
    with pytest.raises(ValueError, match="need 6 points, not 5"):
        co.fit_two(range(1, 6), range(1, 6))


def test_published_nccl_times_have_two_regimes():
    table = data.table("nccl_allreduce_8xa100")
    sizes, seconds = np.array(table.column("size_bytes")), np.array(table.column("time_us")) * 1e-6
    ends = co.fit(sizes[[0, -1]], seconds[[0, -1]])
    errors = co.relative_errors(ends, sizes, seconds)
    assert np.abs(errors[[0, -2, -1]]).max() < 0.021
    assert errors[2] == pytest.approx(-0.50, abs=0.01), "half of what 1 MiB took"
    low, high = co.fit_two(sizes, seconds)
    assert (low.last, high.first) == (1 << 20, 4 << 20)
    assert 6 < high.bandwidth / low.bandwidth < 8
    errors = np.concatenate(
        [
            co.relative_errors(low, sizes[:3], seconds[:3]),
            co.relative_errors(high, sizes[3:], seconds[3:]),
        ]
    )
    assert np.abs(errors[:3]).max() < 0.06
    assert np.abs(errors).max() == pytest.approx(0.24, abs=0.01)
    assert np.abs(errors).argmax() == 5, "16 MiB fits neither"
    assert np.abs(co.relative_errors(co.fit(sizes, seconds), sizes, seconds)).max() > 0.35
    bus = 2 * 7 / 8 * sizes[-1] / seconds[-1]
    assert bus == pytest.approx(234.89e9, rel=1e-4)  # as printed there


# ---- the race of ring and tree -----------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [1, 9])
@pytest.mark.parametrize("chunks", [1, 4, 32])
@pytest.mark.parametrize("n", [2, 3, 8, 13])
def test_a_race_takes_the_time_and_the_bytes_of_its_schedules(n, chunks, slow):
    parameters = {"workers": n, "chunks": chunks, "exponent": 20, "slow": slow}
    end = co.race(parameters)
    for lane, schedule, parts in (("ring", co.ring(n), n), ("tree", co.pipelined_tree(n, chunks), chunks)):

        def message(src, dst, held, parts=parts):
            return (10 + held * 2**20 / parts / 10_000) * (slow if {src, dst} == {0, 1} else 1)

        assert end[lane]["clock"] == pytest.approx(co.arrivals(schedule, n, message), rel=1e-12)
        run = co.execute(schedule, co.cut([np.zeros(32 * n * 13, np.uint8)] * n, parts))
        assert np.allclose(np.array(end[lane]["sent"]) / 2**20, np.array(run.sent) / (32 * n * 13), rtol=0.02)
        assert sum(end[lane]["messages"]) == end[lane]["next"] == sum(map(len, schedule))
    if slow == 1:
        cost = co.ALGORITHMS["ring"].cost(n, 2**20)
        assert end["ring"]["clock"] == pytest.approx(cost.seconds(10, 10_000))


def test_some_settings_act_at_once_and_others_with_the_next_race():
    first = co.race_step(co.new_race(), co.checked({}))
    second = co.race_step(first, co.checked({"alpha": 100, "workers": 3, "exponent": 30}))
    assert second["workers"] == 8
    assert second["last"]["ended"] - second["last"]["began"] == pytest.approx(
        first["last"]["ended"] - first["last"]["began"] + 90
        if second["last"]["lane"] == first["last"]["lane"]
        else 100 + 2**20 / 4 / 10_000
    )
    end = co.race({}, second)
    again = co.race({"workers": 3, "exponent": 30}, end)
    assert (end["race"], again["race"], again["workers"], again["size"]) == (1, 2, 3, 2.0**30)
    assert again["begun"] == max(end[lane]["clock"] for lane in co.LANES)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [({"speed": 1}, "no parameter 'speed'"), ({"workers": 1}, "workers must be a whole number from 2 to 16, not 1")],
)
def test_races_refuse_what_they_cannot_run(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        co.race(parameters)
