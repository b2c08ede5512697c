"""Where does each operation run, and what is copied between devices: read from the graph that ran, and drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.plotting import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_TITLE = 20  # characters in a box
UNSEEN = {"_Send", "_Recv", "_HostSend", "_HostRecv", "_Arg", "_DeviceArg", "_Retval", "_DeviceRetval"}
UNSEEN |= {"Const", "NoOp", "Identity", "VarHandleOp"}  # they compute nothing, so they are no boxes


def short(device: str) -> str:
    """Return "CPU:1" for "/job:localhost/replica:0/task:0/device:CPU:1"."""
    return device.rpartition("device:")[2]


@dataclass(frozen=True)
class Op:
    """An operation where it ran."""

    name: str
    kind: str  # such as MatMul
    device: str


@dataclass(frozen=True)
class Copy:
    """A tensor that one device sent to another: a pair of _Send and _Recv."""

    tensor: str  # the operation that made it
    kind: str
    source: str
    target: str
    bytes: int | None  # None where its shape was known only while it ran
    consumers: tuple[str, ...]  # names of operations that use it there


@dataclass(frozen=True)
class Placement:
    """What ran where. `str()` gives a line per device and a line per copy."""

    ops: tuple[Op, ...]
    copies: tuple[Copy, ...]
    edges: tuple[tuple[str, str], ...]  # (name, name) of two operations on one device
    result: object

    @property
    def devices(self) -> list[str]:
        """Every device that computed, sent or received."""
        ends = {end for copy in self.copies for end in (copy.source, copy.target)}
        return sorted({op.device for op in self.ops} | ends)

    @property
    def bytes(self) -> int:
        """Bytes of all copies.

        Raises:
            ValueError: the shape of a tensor that was copied is not known from the graph.
        """
        unknown = [copy.tensor for copy in self.copies if copy.bytes is None]
        if unknown:
            raise ValueError(f"The size of {', '.join(unknown)} is known only while it runs: give it a fixed shape.")
        return sum(copy.bytes for copy in self.copies)

    def kinds(self, device: str) -> Counter:
        """How many operations of each kind ran on a device."""
        return Counter(op.kind for op in self.ops if op.device == device)

    def __str__(self) -> str:
        lines = []
        for device in self.devices:
            kinds = (f"{kind}×{count}" if count > 1 else kind for kind, count in sorted(self.kinds(device).items()))
            lines.append(f"{device}  {', '.join(kinds) or 'nothing computed'}")
        for copy in self.copies:
            size = "?" if copy.bytes is None else f"{copy.bytes:,}"
            lines.append(f"{copy.source} → {copy.target}  {size} bytes from {copy.kind}")
        return "\n".join(lines)


def trace(function: Callable, *args, home: str = "CPU:0") -> Placement:
    """Run `function(*args)` once as a graph and return what ran where; `.result` is what it returned.

    Results are brought to the device `home`, from where arguments should come: what the function does
    between is counted, and nothing else. It is traced anew, so a variable must exist before.
    A graph is cut into one part per device when it first runs, with a _Send and a _Recv at each cut
    (Abadi et al. 2016, arXiv:1603.04467, section 3.2.2); these parts are what is read here.
    Control edges, which carry no data, are not counted.

    Raises:
        RuntimeError: TensorFlow recorded no graph.
    """
    import tensorflow as tf  # noqa: PLC0415  (helpers import no TensorFlow until it is needed)
    from tensorflow.python.eager import context  # noqa: PLC0415  (no public name returns the parts)

    inner = getattr(function, "python_function", function)

    @tf.function(autograph=False)
    def whole(*arguments):
        results = inner(*arguments)
        with tf.device(home):
            return tf.nest.map_structure(tf.identity, results)

    concrete = whole.get_concrete_function(*args)
    runtime = context.context()
    runtime.enable_run_metadata()
    try:
        runtime.export_run_metadata()  # what was recorded while the function was traced is not ours
        result = whole(*args)
        parts = runtime.export_run_metadata().partition_graphs
    finally:
        runtime.disable_run_metadata()
    if not parts:
        raise RuntimeError("TensorFlow recorded no graph: does the function compute anything with TensorFlow?")
    return _read([node for part in parts for node in part.node], concrete.graph, result)


def _read(nodes: list, graph, result: object) -> Placement:
    """Turn the nodes of all parts into a Placement."""
    by_name = {node.name: node for node in nodes}
    users = {node.name: [] for node in nodes}
    for node in nodes:
        for name in map(_maker, node.input):
            if not name.startswith("^"):
                users.setdefault(name, []).append(node.name)
    received = {_edge(node): node for node in nodes if node.op in ("_Recv", "_HostRecv")}
    copies, edges = [], []
    for node in nodes:
        if node.op in ("_Send", "_HostSend") and not _is_control(node):
            source, target = (short(node.attr[key].s.decode()) for key in ("send_device", "recv_device"))
            maker = by_name[_maker(node.input[0])]
            consumers = tuple(_seen(received[_edge(node)].name, users, by_name))
            copies.append(
                Copy(maker.name, _kind(maker), source, target, _bytes(node.input[0], maker, graph), consumers)
            )
        elif node.op not in UNSEEN:
            edges += [(node.name, user) for user in _seen(node.name, users, by_name)]
    ops = sorted((Op(n.name, _kind(n), short(n.device)) for n in nodes if n.op not in UNSEEN), key=lambda op: op.name)
    copies.sort(key=lambda copy: (copy.source, copy.target, copy.tensor))
    return Placement(tuple(ops), tuple(copies), tuple(sorted(set(edges))), result)


def _maker(tensor: str) -> str:
    return tensor.partition(":")[0]


def _edge(node) -> tuple[bytes, bytes, bytes]:
    return tuple(node.attr[key].s for key in ("tensor_name", "send_device", "recv_device"))


def _is_control(node) -> bool:
    """Whether a _Send stands for "after this", with a tensor of no content."""
    return "/ctrl/" in node.input[0] or "GroupCrossDeviceControlEdges" in node.name


def _kind(node) -> str:
    """Return the kind without what the CPU's library puts before it, so that it is the same on every machine."""
    if node.op in ("_Arg", "_DeviceArg"):
        return "argument"
    return node.op.removeprefix("_MklNative").removeprefix("_Mkl").removeprefix("_")


def _seen(name: str, users: dict[str, list[str]], by_name: dict) -> Iterable[str]:
    """Yield the operations on the same device that use a tensor, through those that compute nothing."""
    for user in users.get(name, []):
        if by_name[user].op not in UNSEEN:
            yield user
        elif by_name[user].op == "Identity":
            yield from _seen(user, users, by_name)


def _bytes(tensor: str, maker, graph) -> int | None:
    """Return the size of a tensor: from the constant itself, or from its shape in the graph as it was traced."""
    if maker.op == "Const":
        import tensorflow as tf  # noqa: PLC0415

        return tf.make_ndarray(maker.attr["value"].tensor).nbytes
    name, _, port = tensor.partition(":")
    try:
        found = graph.get_operation_by_name(name).outputs[int(port or 0)]
    except (KeyError, ValueError, IndexError):
        return None
    return math.prod(found.shape) * found.dtype.size if found.shape.is_fully_defined() else None


def draw(axis: Axes, placement: Placement) -> None:
    """Draw a column per device, a box per operation under what it needs, and an arrow per copy with its bytes.

    White boxes compute nothing: what comes from outside, what leaves, and a copy that several operations use.
    """
    device, title, arrows = _boxes(placement)
    columns = {name: column for column, name in enumerate(placement.devices)}
    place = {node: (columns[device[node]], row) for node, row in _rows(device, arrows).items()}
    for start, end, size in arrows:
        _arrow(axis, place[start], place[end], size)
    for node, (x, y) in place.items():
        color = "white" if isinstance(node, tuple) else "#dcebf5"
        box = {"boxstyle": "round,pad=0.25", "facecolor": color, "edgecolor": "#555555"}
        axis.text(x, y, title[node], ha="center", va="center", fontsize=7, color="black", bbox=box, zorder=3)
    axis.set(xlim=(-0.5, len(columns) - 0.5), xticks=range(len(columns)), xticklabels=columns, yticks=[])
    axis.set_ylim(max(y for _, y in place.values()) + 0.6, -0.6)
    axis.xaxis.tick_top()
    axis.grid(False)
    axis.spines[:].set_visible(False)
    for x in range(1, len(columns)):
        axis.axvline(x - 0.5, color="#999999", linestyle=":", linewidth=1)


def _boxes(placement: Placement) -> tuple[dict, dict, list[tuple]]:
    """Return the device and the title of each box, and arrows (from, to, bytes), bytes None within a device."""
    device = {op.name: op.device for op in placement.ops}
    title = {
        op.name: op.kind if len(op.kind) <= LONGEST_TITLE else op.kind[:LONGEST_TITLE] + "…" for op in placement.ops
    }
    arrows = [(start, end, None) for start, end in placement.edges]
    for copy in placement.copies:
        start, end = copy.tensor, (copy.consumers or [None])[0]
        if copy.kind == "argument":
            start = ("argument", copy.tensor)
            device[start], title[start] = copy.source, "argument"
        if len(copy.consumers) != 1:
            sort = "copy" if copy.consumers else "result"
            end = (sort, copy.tensor, copy.target)
            device[end], title[end] = copy.target, sort
            arrows += [(end, consumer, None) for consumer in copy.consumers]
        arrows.append((start, end, copy.bytes))
    return device, title, arrows


def _rows(device: dict, arrows: list[tuple]) -> dict:
    """Return each node's row: below everything that it needs, and alone in its cell."""
    needs = {node: {start for start, end, _ in arrows if end == node} for node in device}
    rows, taken = {}, set()
    while needs:
        for node in sorted((n for n in needs if needs[n] <= rows.keys()), key=str):
            row = max((rows[start] + 1 for start in needs.pop(node)), default=0)
            while (device[node], row) in taken:
                row += 1
            rows[node] = row
            taken.add((device[node], row))
    return rows


def _arrow(axis: Axes, start: tuple, end: tuple, size: int | None) -> None:
    color = "#777777" if size is None else PALETTE[1]
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 0.8 if size is None else 1.4, "shrinkA": 8, "shrinkB": 8}
    if size is None and end[1] - start[1] > 1:
        style["connectionstyle"] = "arc3,rad=0.5"  # round the boxes between
    axis.annotate("", end, start, arrowprops=style, zorder=1)
    if size is not None:
        part = 0.5 / abs(end[0] - start[0])  # half-way to the next column, so that no label lies on a box
        x, y = (a + part * (b - a) for a, b in zip(start, end, strict=True))
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axis.text(x, y, f"{size:,}", ha="center", va="center", fontsize=7, color="#A04000", bbox=white, zorder=2)
