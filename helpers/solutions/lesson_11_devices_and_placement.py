"""Reference answers of lesson 11, and the mistakes its checkers know by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def place_layers(layer_bytes, budgets):
    """Device of each layer, in order, each device filled before the next; None where they do not fit."""
    placement, device, left = [], 0, list(budgets)
    for size in layer_bytes:
        while device < len(left) and size > left[device]:
            device += 1  # and never back: what follows must not return to an earlier device
        if device == len(left):
            return None
        left[device] -= size
        placement.append(device)
    return placement


def _never_full(layer_bytes, budgets):
    placement, device = [], 0
    for size in layer_bytes:
        while device < len(budgets) and size > budgets[device]:
            device += 1
        if device == len(budgets):
            return None
        placement.append(device)
    return placement


def _goes_back(layer_bytes, budgets):
    placement, left = [], list(budgets)
    for size in layer_bytes:
        fits = [device for device, free in enumerate(left) if size <= free]
        if not fits:
            return None
        left[fits[0]] -= size
        placement.append(fits[0])
    return placement


def _exactly_full_is_too_full(layer_bytes, budgets):
    return place_layers(layer_bytes, [budget - 1 for budget in budgets])  # bytes are whole numbers


def _next_device_unchecked(layer_bytes, budgets):
    placement, device, left = [], 0, list(budgets)
    for size in layer_bytes:
        if size > left[device]:
            device += 1
        if device == len(left):
            return None
        left[device] -= size
        placement.append(device)
    return placement


def _even_numbers_of_layers(layer_bytes, budgets):
    return [i * len(budgets) // len(layer_bytes) for i in range(len(layer_bytes))]


def _layers(random: np.random.Generator) -> Iterator[tuple]:
    yield [4, 2, 3], [4, 5]  # each exactly full
    yield [3, 5, 1], [4, 8]  # the last would fit on the first device, and must not go back
    yield [6, 1], [4, 8]  # the first device holds nothing
    yield [2, 2, 2], [4]
    yield [5], [4, 3]
    yield [3, 3, 6], [6, 2, 6]  # the second device is passed over
    for _ in range(6):
        sizes = random.integers(1, 20, size=random.integers(3, 9)).tolist()
        yield sizes, random.integers(10, 40, size=random.integers(2, 5)).tolist()


def copied_bytes(device_of, bytes_of, edges):
    """Bytes that cross: each producer's output once per other device on which someone uses it."""
    journeys = {(start, device_of[end]) for start, end in edges if device_of[start] != device_of[end]}
    return sum(bytes_of[start] for start, _ in journeys)


def _every_edge(device_of, bytes_of, edges):
    return sum(bytes_of[start] for start, end in edges if device_of[start] != device_of[end])


def _once_per_producer(device_of, bytes_of, edges):
    leaving = {start for start, end in edges if device_of[start] != device_of[end]}
    return sum(bytes_of[start] for start in leaving)


def _all_edges(device_of, bytes_of, edges):
    return sum(bytes_of[start] for start, _ in edges)


def _size_of_consumer(device_of, bytes_of, edges):
    journeys = {(start, end) for start, end in edges if device_of[start] != device_of[end]}
    return sum(bytes_of[end] for _, end in journeys)


def _counted_not_weighed(device_of, bytes_of, edges):
    return len({(start, device_of[end]) for start, end in edges if device_of[start] != device_of[end]})


def _graphs(random: np.random.Generator) -> Iterator[tuple]:
    sizes = {"w": 80, "x": 16, "h": 8, "y": 4}
    graph = [("w", "h"), ("x", "h"), ("h", "y")]
    yield {"w": 1, "x": 0, "h": 0, "y": 0}, sizes, graph
    yield {"w": 1, "x": 0, "h": 1, "y": 0}, sizes, graph
    yield dict.fromkeys(sizes, 0), sizes, graph
    yield {"w": 0, "x": 1, "h": 1, "y": 1}, sizes, [("w", "h"), ("w", "y"), ("x", "h"), ("x", "y")]
    yield {"w": 0, "x": 0, "h": 1, "y": 2}, sizes, [("w", "h"), ("w", "y"), ("x", "h")]
    for _ in range(6):
        names = list("abcdefgh")
        device_of = {name: int(random.integers(0, 3)) for name in names}
        bytes_of = {name: int(4 * random.integers(1, 500)) for name in names}
        later = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if random.random() < 0.4]
        yield device_of, bytes_of, later


def idle_share(intervals, devices):
    """Share of devices × span in which nothing ran; intervals are (device, start, end)."""
    if not intervals:
        return 1.0
    span = max(end for _, _, end in intervals) - min(start for _, start, _ in intervals)
    busy = sum(end - start for _, start, end in intervals)
    return 1 - busy / (len(devices) * span)


def _clock_starts_at_zero(intervals, devices):
    if not intervals:
        return 1.0
    busy = sum(end - start for _, start, end in intervals)
    return 1 - busy / (len(devices) * max(end for _, _, end in intervals))


def _only_devices_seen(intervals, devices):
    return idle_share(intervals, {device for device, _, _ in intervals}) if intervals else 1.0


def _busy_share(intervals, devices):
    return 1 - idle_share(intervals, devices)


def _one_device(intervals, devices):
    return idle_share(intervals, devices[:1])


def _inner_gaps(intervals, devices):
    if not intervals:
        return 1.0
    shares = []
    for device in devices:
        own = [interval for interval in intervals if interval[0] == device]
        shares.append(idle_share(own, [device]) if own else 1.0)
    return sum(shares) / len(devices)


def _timelines(random: np.random.Generator) -> Iterator[tuple]:
    two = ["CPU:1", "CPU:2"]
    yield [("CPU:1", 0.0, 1.0), ("CPU:2", 1.0, 4.0)], two
    yield [("CPU:1", 5.0, 6.0), ("CPU:2", 6.0, 7.0)], two  # a clock that does not start at 0
    yield [("CPU:1", 0.0, 2.0)], two  # one device never works
    yield [], two
    yield [("CPU:1", 0.0, 2.0), ("CPU:2", 0.0, 2.0)], two
    yield [("CPU:1", 0.0, 1.0), ("CPU:2", 1.0, 3.0), ("CPU:1", 3.0, 5.0)], two
    for _ in range(5):
        names = [f"CPU:{k}" for k in range(random.integers(2, 6))]
        clock, intervals = float(random.uniform(0, 100)), []
        for _ in range(8):
            end = clock + float(random.uniform(0.1, 3))
            intervals.append((names[random.integers(len(names))], clock, end))
            clock = end + float(random.uniform(0, 0.5))
        yield intervals, names


EXERCISES = {
    "place_layers": Exercise(
        place_layers,
        _layers,
        (
            (_never_full, "each layer alone is held against the whole budget: subtract what is placed already."),
            (_goes_back, "a later layer went back to an earlier device, so activations would travel to and fro."),
            (_exactly_full_is_too_full, "a layer that needs exactly what is left does fit."),
            (_next_device_unchecked, "the next device may be too small as well: look on until one is large enough."),
            (_even_numbers_of_layers, "equal numbers of layers are not equal bytes: go by the budgets."),
        ),
    ),
    "copied_bytes": Exercise(
        copied_bytes,
        _graphs,
        (
            (_every_edge, "an output used twice on one device travels there once."),
            (_once_per_producer, "an output used on two other devices travels to each of them."),
            (_all_edges, "an edge within a device copies nothing."),
            (_size_of_consumer, "what travels is the output of the producer, so its bytes count."),
            (_counted_not_weighed, "this counts copies; asked for are their bytes."),
        ),
    ),
    "idle_share": Exercise(
        idle_share,
        _timelines,
        (
            (_clock_starts_at_zero, "the span runs from the first start to the last end; a clock may start anywhere."),
            (_only_devices_seen, "a device that never worked idled all the time, and is paid for."),
            (_busy_share, "this is the share in which devices were busy."),
            (_one_device, "the span counts once per device: that is the time that is paid for."),
            (_inner_gaps, "a device also idles before its first and after its last operation."),
        ),
    ),
}
