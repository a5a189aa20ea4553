"""What was predicted against what turned out, an objective a panel; N architectures, M objectives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure
from plotly.subplots import make_subplots

from nasrlm.objective import FloatArray, Objective
from studies.figure_style import BLUE, polish
from studies.known_values import coverage

LINE = "#444444"


def titles(names: Sequence[str], predicted: FloatArray, real: FloatArray) -> list[str]:
    """What each panel says of its objective.

    Args:
        names: M objectives, each with a prediction and a real value.
        predicted: (N, M, 3) median, low and high.
        real: (N, M), NaN where there is none.
    """
    shares = coverage(predicted, real)
    return [
        f"{Objective.parse(name).label}: {share:.0%} within" for name, share in zip(names, shares.tolist(), strict=True)
    ]


def calibration_figure(names: Sequence[str], predicted: FloatArray, real: FloatArray) -> Figure:
    """Predicted medians with their intervals over real values.

    Args:
        names: M objectives.
        predicted: (N, M, 3) median, low and high.
        real: (N, M).
    """
    figure = Figure(figsize=(4.6 * len(names), 4.4), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for column, (axes, title) in enumerate(zip(panels, titles(names, predicted, real), strict=True)):
        median, low, high = predicted[:, column].T
        errors = [(median - low).clip(min=0), (high - median).clip(min=0)]
        axes.errorbar(
            real[:, column], median, yerr=errors, fmt="o", markersize=4, color=BLUE, elinewidth=0.8, alpha=0.8
        )
        start = np.nanmin(real[:, column])
        axes.axline((start, start), slope=1, color=LINE, linewidth=0.8, linestyle="--")
        axes.set(xlabel="real", ylabel="predicted", title=title)
        polish(axes)
    return figure


def interactive_calibration(
    names: Sequence[str], predicted: FloatArray, real: FloatArray, architectures: Sequence[str]
) -> Any:
    """The same in plotly; hovering shows the architecture."""
    figure = make_subplots(rows=1, cols=len(names), subplot_titles=titles(names, predicted, real))
    for column in range(len(names)):
        median, low, high = predicted[:, column].T
        errors = {"type": "data", "array": (high - median).tolist(), "arrayminus": (median - low).tolist()}
        points = go.Scatter(
            x=real[:, column].tolist(),
            y=median.tolist(),
            error_y=errors | {"symmetric": False, "thickness": 1},
            mode="markers",
            marker={"color": BLUE},
            text=list(architectures),
        )
        ends = [float(np.nanmin(real[:, column])), float(np.nanmax(real[:, column]))]
        figure.add_trace(points, row=1, col=column + 1)
        figure.add_trace(go.Scatter(x=ends, y=ends, mode="lines", line={"color": LINE, "dash": "dash"}), 1, column + 1)
        figure.update_xaxes(title="real", row=1, col=column + 1)
        figure.update_yaxes(title="predicted", row=1, col=column + 1)
    return figure.update_layout(template="plotly_white", showlegend=False, title="Predicted and real values")
