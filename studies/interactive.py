"""Figures of studies as HTML files that need no network; hovering shows the architecture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nasrlm.files import write_atomically
from nasrlm.objective import FloatArray, Objective
from studies.config import SearchConfig
from studies.history import History
from studies.progress import progress_of
from studies.report import front_rows

GREY, BLUE = "#b8bec6", "#1f5fa8"
COLOURS = (BLUE, "#d9772b", "#3c8d5a", "#8a4fa3", "#b23a48", "#5c6773")


def write_html(figures: Sequence[Any], path: Path) -> None:
    """Write plotly figures below each other; about 5 MB, nearly all of it plotly.js."""
    parts = [
        figure.to_html(include_plotlyjs=index == 0, full_html=False, default_height=700)
        for index, figure in enumerate(figures)
    ]
    page = '<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>nasrlm</title></head><body>\n{}\n</body></html>\n'
    write_atomically(path, page.format("\n".join(parts)).encode())


def front_html(config: SearchConfig, history: History) -> Any:
    """The front and everything evaluated; its form follows the number of goals."""
    front = front_rows(config, history)
    labels = [Objective.parse(goal.objective).label for goal in config.goals]
    title = f"{config.space}: {len(front)} on the front of {int(history.complete().sum()):,} evaluated"
    figure = go.Figure()
    if len(config.goals) > 3:
        figure.add_trace(_parallel(config, history, front, labels))
        names = "<br>".join(history.architectures[row] for row in front)
        note = {
            "text": names,
            "showarrow": False,
            "x": 0,
            "y": -0.1,
            "xref": "paper",
            "yref": "paper",
            "yanchor": "top",
        }
        figure.add_annotation(note, align="left", font={"size": 9})
        return figure.update_layout(title=title, template="plotly_white", margin={"b": 60 + 14 * len(front)})
    rest = np.setdiff1d(np.arange(len(history)), front).tolist()
    for rows, name, colour, size in ((rest, "evaluated", GREY, 4), (front, "front", BLUE, 7)):
        marker = {"color": colour, "size": size if len(config.goals) != 3 else size / 2}
        figure.add_trace(_trace(config, history, rows, name=name, marker=marker))
    return figure.update_layout(title=title, template="plotly_white", **_axis_titles(labels))


def _parallel(config: SearchConfig, history: History, front: Sequence[int], labels: Sequence[str]) -> Any:
    """One line a front member over one upright axis a goal, the better end upwards, coloured by the first goal."""
    medians: FloatArray = history.stacked()[:, :, 0][front]
    dimensions = []
    for column, (goal, label) in enumerate(zip(config.goals, labels, strict=True)):
        values = medians[:, column]
        ends = [float(values.min()), float(values.max())] if len(values) else [0.0, 1.0]
        dimensions.append({"label": label, "values": values, "range": ends if goal.maximise else ends[::-1]})
    return go.Parcoords(dimensions=dimensions, line={"color": medians[:, 0], "colorscale": "Viridis"})


def interactive_progress(names: Sequence[str], studies: Sequence[tuple[SearchConfig, History]]) -> Any:
    """Hypervolume against evaluations, as a share of what all the studies reach together; seeds make a band."""
    figure = go.Figure()
    for index, progress in enumerate(progress_of(names, studies)):
        colour = COLOURS[index % len(COLOURS)]
        line = {"color": colour, "shape": "hv"}
        if len(progress.shares) > 1:
            low, high = progress.band
            hidden = {"line": {"width": 0, "shape": "hv"}, "showlegend": False, "hoverinfo": "skip", "opacity": 0.2}
            figure.add_trace(go.Scatter(x=progress.counts, y=low, **hidden))
            figure.add_trace(go.Scatter(x=progress.counts, y=high, fill="tonexty", fillcolor=f"{colour}33", **hidden))
        figure.add_trace(go.Scatter(x=progress.counts, y=progress.median, line=line, name=progress.name))
    goals = ", ".join(map(str, studies[0][0].goals))
    titles = {"xaxis_title": "evaluations", "yaxis_title": "hypervolume, share of all studies' joint front"}
    return figure.update_layout(title=f"{studies[0][0].space}: {goals}", template="plotly_white", **titles)


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
    return go.Scatter3d(x=columns[1], y=columns[2], z=columns[0], mode="markers", **shared)


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
    titles = {"xaxis": labels[1], "yaxis": labels[2], "zaxis": labels[0]}
    return {"scene": {axis: {"title": title} for axis, title in titles.items()}}
