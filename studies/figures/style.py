"""Colours, labels and axis limits that figures in matplotlib and plotly share. N architectures."""

import textwrap
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes

from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal, Objective
from studies.history import History
from studies.loaded_study import LoadedStudy

GREY, BLUE, ORANGE = "#b8bec6", "#1f5fa8", "#d9772b"  # evaluated architectures, the front, known values
PALE_ORANGE = "#f1ceb4"  # infeasible architectures
TITLE_WIDTH = 90  # characters that fit the narrowest figure with a long title
COLOURS = (BLUE, ORANGE, "#3c8d5a", "#8a4fa3", "#b23a48", "#5c6773")  # of curves to compare
DASHES = (("-", "solid"), ("--", "dash"), (":", "dot"), ("-.", "dashdot"))  # in matplotlib and in plotly


def line_look(index: int) -> tuple[str, tuple[str, str]]:
    """Return the colour and dashes, an item of ``DASHES``, of a curve; the first 24 curves all look different."""
    rounds, colour = divmod(index, len(COLOURS))
    return COLOURS[colour], DASHES[rounds % len(DASHES)]


def bar_lengths(bounds: FloatArray) -> FloatArray | None:
    """Return (2, N) lengths of error bars, down and up, from (N, 3) median, low and high; None if all are 0."""
    lengths = np.stack([bounds[:, 0] - bounds[:, 1], bounds[:, 2] - bounds[:, 0]]).clip(min=0)
    return lengths if lengths.any() else None


def title_lines(parts: Iterable[str]) -> list[str]:
    """Join parts by commas, in lines that fit a figure; a part is never broken."""
    return textwrap.wrap(", ".join(part.replace(" ", "\xa0") for part in parts), TITLE_WIDTH, break_on_hyphens=False)


def polish(axes: Axes) -> None:
    """Give axes in matplotlib a light grid, and remove the top and right side."""
    axes.grid(color="#e6e8eb", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def drawn_medians(history: History) -> FloatArray:
    """Return the (N, M) medians; NaN in rows that lack one, which are not drawn."""
    return np.where(history.complete()[:, None], history.medians(), np.nan)


def front_label(history: History) -> str:
    """Return the legend's label for the front."""
    return "front" if history.interval is None else f"front, with {history.interval:.0%} intervals"


def front_title(study: LoadedStudy) -> str:
    """Return the title of a figure of the front."""
    config, count = study.config, int(study.history.complete().sum())  # without evaluations that gave no result
    kinds = f"{'guided, ' if config.guide else ''}{config.engine} {config.sampler}, seed {config.seed}"
    return f"{config.space}: {len(study.front_rows)} on the front of {count:,} evaluated ({kinds})"


def goal_label(goal: Goal) -> str:
    """Return the axis label of a goal."""
    return f"{Objective.parse(goal.objective).label}, {'higher' if goal.maximise else 'lower'} is better"


def limits(values: FloatArray, rows: Sequence[int]) -> tuple[float, float]:
    """Return axis limits that show the front and the middle 90 % of all values, without outliers of either.

    Outliers are, for example, failed networks. Up to 20 values are all shown.
    """
    known = without_outliers(values[~np.isnan(values)])
    if len(known) == 0:
        return 0.0, 1.0
    ends = [np.quantile(known, 0.05, method="lower"), np.quantile(known, 0.95, method="higher")]
    return with_margin(np.array([*without_outliers(values[rows]), *ends]))


def outside(
    x: FloatArray, y: FloatArray, across: tuple[float, float], up: tuple[float, float], rows: Sequence[int]
) -> str:
    """Return a text about how many of (N,) points lie outside the axes, and how many of these on the front; or ""."""
    beyond = ((x < across[0]) | (x > across[1]) | (y < up[0]) | (y > up[1])) & ~np.isnan(x) & ~np.isnan(y)
    count, on_front = int(beyond.sum()), int(beyond[rows].sum())
    front = f", {on_front} of them on the front" if on_front else ""
    return f"{count:,} {'lies' if count == 1 else 'lie'} outside{front}" if count else ""


def with_margin(shown: FloatArray) -> tuple[float, float]:
    """Return axis limits with a margin around (N,) values."""
    margin = 0.05 * float(np.ptp(shown)) or max(0.5, 1e-3 * float(np.abs(shown).max()))
    return float(shown.min()) - margin, float(shown.max()) + margin


def without_outliers(values: FloatArray) -> FloatArray:
    """Return the values within three interquartile ranges of the quartiles."""
    if len(values) == 0:
        return values
    low, high = np.quantile(values, [0.25, 0.75]).tolist()
    reach = 3 * (high - low)
    return np.asarray(values[(values >= low - reach) & (values <= high + reach)], dtype=np.float64)
