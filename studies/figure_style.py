"""What figures of matplotlib and plotly share. N architectures."""

import textwrap
from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes

from nasrlm.arrays import FloatArray
from studies.history import History

GREY, BLUE, ORANGE = "#b8bec6", "#1f5fa8", "#d9772b"  # what was evaluated, the front, known values
PALE_ORANGE = "#f1ceb4"  # what breaks a constraint
TITLE_WIDTH = 90  # characters, of the narrowest figure with a long title
COLOURS = (BLUE, ORANGE, "#3c8d5a", "#8a4fa3", "#b23a48", "#5c6773")  # of things side by side
DASHES = (("-", "solid"), ("--", "dash"), (":", "dot"), ("-.", "dashdot"))  # in matplotlib and in plotly


def line_look(index: int) -> tuple[str, tuple[str, str]]:
    """Colour, and dashes as in ``DASHES``, of a curve among several: no two of the first 24 look the same."""
    rounds, colour = divmod(index, len(COLOURS))
    return COLOURS[colour], DASHES[rounds % len(DASHES)]


def bar_lengths(bounds: FloatArray) -> FloatArray | None:
    """(2, N) lengths of error bars, down and up, from (N, 3) median, low and high; None without any."""
    lengths = np.stack([bounds[:, 0] - bounds[:, 1], bounds[:, 2] - bounds[:, 0]]).clip(min=0)
    return lengths if lengths.any() else None


def title_lines(parts: Iterable[str]) -> list[str]:
    """Parts with commas between them, in lines that a figure has room for; none is broken."""
    return textwrap.wrap(", ".join(part.replace(" ", "\xa0") for part in parts), TITLE_WIDTH, break_on_hyphens=False)


def polish(axes: Axes) -> None:
    """The look of every plane in matplotlib: a light grid, and two sides only."""
    axes.grid(color="#e6e8eb", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def front_label(history: History) -> str:
    """What a legend calls the front."""
    return "front" if history.interval is None else f"front, with {history.interval:.0%} intervals"
