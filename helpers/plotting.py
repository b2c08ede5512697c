"""House style for figures: safe for colour-blind readers, legible on light and dark pages, described in words.

Importing this module sets matplotlib's defaults for the kernel, so that whatever a learner draws fits in.
"""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which vanishes on white. Lines also differ by marker.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_STYLE = {
    "figure.facecolor": "white",  # opaque: the text stays legible where the page is dark
    "axes.prop_cycle": plt.cycler(color=PALETTE),
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "font.size": 10,
    "grid.color": "#e3e3e3",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "savefig.dpi": 100,
}


plt.rcParams.update(_STYLE)


def figure(columns: int = 1, *, width: float = 7.5, height: float = 3.2, **options) -> tuple[Figure, list[Axes]]:
    """Return (figure, list of its `columns` axes) in the house style; sizes in inches."""
    fig, axes = plt.subplots(1, columns, figsize=(width, height), squeeze=False, layout="constrained", **options)
    return fig, list(axes[0])


def png(fig: Figure) -> bytes:
    """Return the figure as PNG bytes, without the date and version that would change on every run."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", metadata={"Software": None}, pil_kwargs={"optimize": True})
    return buffer.getvalue()


def show(fig: Figure, alt: str) -> None:
    """Display a figure with `alt`, the sentence that tells what it shows, also to whoever does not see it.

    The sentence stands under the figure as a caption, since JupyterLab reads no alternative text from an
    output; it also travels as the image's alternative text and plain-text form, for viewers that do.

    Raises:
        ValueError: `alt` is missing or too short to tell anything.
    """
    from IPython.display import display  # noqa: PLC0415  (only a notebook shows figures)

    if len(alt.split()) < 5:
        raise ValueError(f"show needs alt text that says what the figure shows, in five words or more, not {alt!r}.")
    bundle = {"image/png": png(fig), "text/plain": f"Figure: {alt}"}
    plt.close(fig)
    display(bundle, raw=True, metadata={"image/png": {"alt": alt}})
    display({"text/markdown": f"*{alt}*", "text/plain": alt}, raw=True)
