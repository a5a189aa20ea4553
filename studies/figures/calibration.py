"""Figures of predicted against real values, with a panel for each objective. N architectures, M objectives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure
from plotly.subplots import make_subplots

from nasrlm.arrays import FloatArray
from nasrlm.metrics import coverage
from nasrlm.objective import Objective
from studies.figures.style import BLUE, bar_lengths, polish, with_margin, without_outliers

LINE = "#444444"
COLUMNS = 3  # with more panels in a row, titles do not fit


def titles(
    names: Sequence[str], predicted: FloatArray, real: FloatArray, intervals: Sequence[float | None]
) -> list[str]:
    """Return the title of each panel: objective, coverage of the intervals, and number of points outside the axes.

    The coverage begins a second line.

    Args:
        names: M objectives, each with a prediction and a real value.
        predicted: (N, M, 3) median, low and high.
        real: (N, M); NaN if there is none.
        intervals: M probabilities between low and high; None if only medians are known.
    """
    found = zip(names, coverage(predicted[..., 1], predicted[..., 2], real).tolist(), intervals, strict=True)
    words = []
    for column, (name, share, interval) in enumerate(found):
        points = np.stack([predicted[:, column, 0], real[:, column]])
        low, high = _ends(points)
        known = points[:, ~np.isnan(points).any(axis=0)]
        hidden = int(((known < low) | (known > high)).any(axis=0).sum())
        promised = "" if interval is None else f"\n{share:.0%} within {interval:.0%} intervals"
        words.append(f"{Objective.parse(name).label}{promised}" + (f", {hidden:,} not shown" if hidden else ""))
    return words


def _ends(points: FloatArray) -> tuple[float, float]:
    """Return the limits of both axes for (2, N) medians and real values, without outliers such as failed networks."""
    return with_margin(without_outliers(points[:, ~np.isnan(points).any(axis=0)].ravel()))


def calibration_figure(
    names: Sequence[str], predicted: FloatArray, real: FloatArray, intervals: Sequence[float | None]
) -> Figure:
    """Return a figure of predicted medians with intervals against real values; arguments as for ``titles``."""
    rows, columns = _shape(len(names))
    figure = Figure(figsize=(4.6 * columns, 4.4 * rows), layout="constrained")
    panels = [figure.add_subplot(rows, columns, index + 1) for index in range(len(names))]
    for column, (axes, title) in enumerate(zip(panels, titles(names, predicted, real, intervals), strict=True)):
        bounds = predicted[:, column]
        look: dict[str, Any] = {"fmt": "o", "markersize": 4, "color": BLUE, "elinewidth": 0.8, "alpha": 0.8}
        axes.errorbar(real[:, column], bounds[:, 0], yerr=bar_lengths(bounds), **look)
        start = np.nanmin(real[:, column])
        axes.axline((start, start), slope=1, color=LINE, linewidth=0.8, linestyle="--")
        ends = _ends(np.stack([bounds[:, 0], real[:, column]]))
        axes.set(xlabel="real", ylabel="predicted", xlim=ends, ylim=ends)
        axes.set_title(title, fontsize=10)
        polish(axes)
    return figure


def _shape(panels: int) -> tuple[int, int]:
    """Return the numbers of rows and columns of panels."""
    return -(-panels // COLUMNS), min(panels, COLUMNS)


def interactive_calibration(
    names: Sequence[str],
    predicted: FloatArray,
    real: FloatArray,
    intervals: Sequence[float | None],
    architectures: Sequence[str],
) -> Any:
    """Return the figure of ``calibration_figure`` in plotly; hovering shows the architecture."""
    rows, columns = _shape(len(names))
    words = [title.replace("\n", "<br>") for title in titles(names, predicted, real, intervals)]
    figure = make_subplots(rows=rows, cols=columns, subplot_titles=words)
    figure.update_annotations(font_size=13)
    for column in range(len(names)):
        place = {"row": column // columns + 1, "col": column % columns + 1}
        lengths = bar_lengths(predicted[:, column])
        down, up = ([], []) if lengths is None else lengths.tolist()
        points = go.Scatter(
            x=real[:, column].tolist(),
            y=predicted[:, column, 0].tolist(),
            error_y={"type": "data", "array": up, "arrayminus": down, "symmetric": False, "thickness": 1},
            mode="markers",
            marker={"color": BLUE},
            text=list(architectures),
        )
        ends = [float(np.nanmin(real[:, column])), float(np.nanmax(real[:, column]))]
        figure.add_trace(points, **place)
        figure.add_trace(go.Scatter(x=ends, y=ends, mode="lines", line={"color": LINE, "dash": "dash"}), **place)
        shown = _ends(np.stack([predicted[:, column, 0], real[:, column]]))
        figure.update_xaxes(title="real", range=shown, **place)
        figure.update_yaxes(title="predicted", range=shown, **place)
    look = {"template": "plotly_white", "showlegend": False, "height": 150 + 450 * rows}
    return figure.update_layout(title="Predicted and real values", **look)
