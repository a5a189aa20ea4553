"""A study's front as one HTML file that needs no network; hovering shows the architecture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nasrlm.files import write_atomically
from nasrlm.objective import FloatArray, Objective
from studies.config import SearchConfig
from studies.history import History
from studies.report import front_rows

GREY, BLUE = "#b8bec6", "#1f5fa8"


def write_html(config: SearchConfig, history: History, path: Path) -> None:
    """Write the front and everything evaluated; about 5 MB, nearly all of it plotly.js."""
    front = front_rows(config, history)
    rest = np.setdiff1d(np.arange(len(history)), front).tolist()
    figure = go.Figure()
    for rows, name, colour, size in ((rest, "evaluated", GREY, 4), (front, "front", BLUE, 7)):
        marker = {"color": colour, "size": size if len(config.goals) != 3 else size / 2}
        figure.add_trace(_trace(config, history, rows, name=name, marker=marker))
    labels = [Objective.parse(goal.objective).label for goal in config.goals]
    figure.update_layout(
        title=f"{config.space}: {len(front)} on the front of {int(history.complete().sum()):,} evaluated",
        template="plotly_white",
        **_axis_titles(labels),
    )
    html: str = figure.to_html(include_plotlyjs=True, full_html=True)
    write_atomically(path, html.encode())


def _trace(config: SearchConfig, history: History, rows: Sequence[int], *, name: str, marker: dict[str, Any]) -> Any:
    medians: FloatArray = history.stacked()[:, :, 0]
    columns = [medians[rows, goal].tolist() for goal in range(len(config.goals))]
    shared = {
        "name": name,
        "marker": marker,
        "text": [_hover(history, row) for row in rows],
        "hovertemplate": "%{text}<extra></extra>",
    }
    if len(columns) == 1:
        return go.Scatter(x=[row + 1 for row in rows], y=columns[0], mode="markers", **shared)
    if len(columns) == 2:
        return go.Scatter(x=columns[1], y=columns[0], mode="markers", **shared)
    if len(columns) == 3:
        return go.Scatter3d(x=columns[1], y=columns[2], z=columns[0], mode="markers", **shared)
    labels = [Objective.parse(goal.objective).label for goal in config.goals]
    dimensions = [{"label": label, "values": column} for label, column in zip(labels, columns, strict=True)]
    return go.Splom(dimensions=dimensions, diagonal_visible=False, **shared)


def _hover(history: History, row: int) -> str:
    lines = [history.architectures[row]]
    for name, (median, low, high) in zip(history.objectives, history.values[row], strict=True):
        interval = "" if history.interval is None else f" ({low:.5g} to {high:.5g})"
        lines.append(f"{Objective.parse(name).label}: {median:.5g}{interval}")
    return "<br>".join(lines)


def _axis_titles(labels: Sequence[str]) -> dict[str, Any]:
    if len(labels) == 1:
        return {"xaxis_title": "evaluations", "yaxis_title": labels[0]}
    if len(labels) == 2:
        return {"xaxis_title": labels[1], "yaxis_title": labels[0]}
    if len(labels) == 3:
        titles = {"xaxis": labels[1], "yaxis": labels[2], "zaxis": labels[0]}
        return {"scene": {axis: {"title": title} for axis, title in titles.items()}}
    return {}
