"""Figures carry a description, are small, and come out the same twice."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from helpers import plotting


def draw():
    fig, (axis,) = plotting.figure()
    axis.plot([0, 1], [0, 1], label="line")
    axis.legend()
    return fig


def test_png_is_the_same_twice_and_small():
    first, second = plotting.png(draw()), plotting.png(draw())
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert len(first) < 60_000


def test_alt_text_travels_with_the_image_and_stands_below_it():
    InteractiveShell.instance()
    with capture_output() as captured:
        plotting.show(draw(), "A line that rises from zero to one.")
    output, caption = captured.outputs
    assert output.metadata["image/png"]["alt"] == "A line that rises from zero to one."
    assert caption.data["text/markdown"] == "*A line that rises from zero to one.*"
    assert output.data["text/plain"] == "Figure: A line that rises from zero to one."


def test_alt_text_is_required():
    with pytest.raises(ValueError, match="not 'a plot'"):
        plotting.show(draw(), "a plot")


def test_figures_are_closed_after_showing():
    InteractiveShell.instance()
    before = plotting.plt.get_fignums()
    with capture_output():
        plotting.show(draw(), "A line that rises from zero to one.")
    assert plotting.plt.get_fignums() == before


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", plotting.PALETTE[:4])
def test_lines_stand_out_from_white(colour):
    assert 1.05 / (luminance(colour) + 0.05) >= 3  # WCAG 2.2, success criterion 1.4.11
