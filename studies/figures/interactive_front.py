"""Interactive figures of the front, in plotly; hovering shows the architecture.

N points, M objectives.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal, Objective
from studies.figures.known_values import known_of
from studies.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    PALE_ORANGE,
    bar_lengths,
    drawn_medians,
    front_label,
    front_title,
    goal_label,
    limits,
    outside,
)
from studies.history import History
from studies.loaded_study import LoadedStudy


def interactive_front(study: LoadedStudy, known: Mapping[str, FloatArray] | None = None) -> Any:
    """Return a figure of the front, with intervals, among everything evaluated; its kind depends on the goals.

    Args:
        study: goals, constraints and everything evaluated.
        known: (M,) real or true values by notation, drawn beside the predictions for the front. With more than three
            goals neither these nor intervals are drawn.
    """
    config, history, front = study.config, study.history, study.front_rows
    title = front_title(study)
    if len(config.goals) > 3:
        return _parallel(study).update_layout(title=title, template="plotly_white")
    figure = go.Figure()
    rest = np.setdiff1d(np.arange(len(history)), front)
    flat = len(config.goals) != 3
    feasible = np.array(history.feasible, dtype=np.bool_)[rest]
    infeasible = rest[~feasible & history.complete()[rest]].tolist()
    every = [
        (rest[feasible].tolist(), "evaluated", GREY, 4),
        (infeasible, "infeasible", PALE_ORANGE, 4),
        (front, front_label(history), BLUE, 7),
    ]
    shown = [kind for kind in every if kind[0]]
    for rows, name, colour, size in shown:
        marker = {"color": colour, "size": size if flat else size / 2}
        figure.add_trace(_trace(study, rows, name=name, marker=marker))
    if front:
        line = {"mode": "lines+markers", "line": {"shape": "vh", "width": 2}} if len(config.goals) == 2 else {}
        figure.update_traces(_bars(study) | line, selector=len(shown) - 1)
    true = known_of(study, known or {})[:, : len(config.goals)]
    if not np.isnan(true).all():
        figure.add_trace(_known(study, true))
    figure.update_layout(title=title, template="plotly_white", **_axis_titles(config.goals))
    if len(config.goals) == 2:
        _fit_plane(figure, study)
    return figure


def _fit_plane(figure: Any, study: LoadedStudy) -> None:
    """Give a figure of two goals the same limits and bounds as in matplotlib; the title counts points outside."""
    up, across = drawn_medians(study.history)[:, :2].T
    y_ends, x_ends = (limits(values, study.front_rows) for values in (up, across))
    figure.update_xaxes(range=x_ends).update_yaxes(range=y_ends)
    if hidden := outside(across, up, x_ends, y_ends, study.front_rows):
        figure.update_layout(title=f"{figure.layout.title.text}<br><sup>{hidden}; a double click shows all</sup>")
    for constraint in study.config.constraints:
        look: dict[str, Any] = {
            "line_color": ORANGE,
            "line_dash": "dot" if constraint.soft else "dash",
            "line_width": 1,
        }
        look |= {"annotation_text": str(constraint), "annotation_position": "bottom right"}
        if constraint.objective == study.config.goals[1].objective:
            figure.add_vline(x=constraint.bound, **look)
        elif constraint.objective == study.config.goals[0].objective:
            figure.add_hline(y=constraint.bound, **look)


def _parallel(study: LoadedStudy) -> Any:
    """Return parallel coordinates with a vertical axis for each goal, better upwards, and the architectures below."""
    medians: FloatArray = study.history.medians()[study.front_rows]
    dimensions = []
    for column, goal in enumerate(study.config.goals):
        values, label = medians[:, column], Objective.parse(goal.objective).label
        ends = [float(values.min()), float(values.max())] if len(values) else [0.0, 1.0]
        dimensions.append({"label": label, "values": values, "range": ends if goal.maximise else ends[::-1]})
    colours = {"color": medians[:, 0], "colorscale": "Viridis", "reversescale": not study.config.goals[0].maximise}
    lines = go.Parcoords(dimensions=dimensions, line=colours)
    names = "<br>".join(study.history.architectures[row] for row in study.front_rows)
    below = {"x": 0, "y": 0, "yshift": -30, "xref": "paper", "yref": "paper", "yanchor": "top", "align": "left"}
    figure = go.Figure(lines).add_annotation(text=names, showarrow=False, font={"size": 9}, **below)
    room = 60 + 14 * len(medians)  # pixels for the names
    return figure.update_layout(margin={"b": room}, height=500 + room)


def _trace(study: LoadedStudy, rows: Sequence[int], *, name: str, marker: dict[str, Any]) -> Any:
    medians: FloatArray = study.history.medians()[rows][:, : len(study.config.goals)]
    words = [_hover(study.history, row) for row in rows]
    return _points(study.history, rows, medians, words, name=name, marker=marker, mode="markers")


def _points(history: History, rows: Sequence[int], values: FloatArray, words: Sequence[str], **shared: Any) -> Any:
    """Return a trace of (N, goals) values; ``words`` are shown on hovering."""
    places = dict(zip(_axes(values.shape[1]), values.T.tolist(), strict=True))
    if len(places) == 1:
        places["x"] = history.evaluations()[rows].tolist()
    kind = go.Scatter3d if len(places) == 3 else go.Scatter
    return kind(**places, text=list(words), hovertemplate="%{text}<extra></extra>", **shared)


def _axes(num_goals: int) -> tuple[str, ...]:
    """Return the axis of each goal."""
    return {1: ("y",), 2: ("y", "x"), 3: ("z", "x", "y")}[num_goals]


def _bars(study: LoadedStudy) -> dict[str, Any]:
    """Return error bars for the predicted intervals of the front, by axis."""
    bars = {}
    for goal, axis in enumerate(_axes(len(study.config.goals))):
        lengths = bar_lengths(study.history.stacked()[study.front_rows][:, goal])
        if lengths is not None:
            down, up = lengths.tolist()
            look = {"thickness": 1, "width": 2, "color": BLUE}
            bars[f"error_{axis}"] = {"type": "data", "symmetric": False, "array": up, "arrayminus": down, **look}
    return bars


def _known(study: LoadedStudy, true: FloatArray) -> Any:
    """Return a trace of known values as rings, each joined to its predicted median; hovering shows the values."""
    history, rows = study.history, study.front_rows
    medians: FloatArray = history.medians()[rows][:, : true.shape[1]]
    lines = np.stack([medians, true, np.full_like(true, np.nan)], axis=1).reshape(-1, true.shape[1])
    names = [Objective.parse(goal.objective).label for goal in study.config.goals]
    words = []
    for row, values in zip(rows, true.tolist(), strict=True):
        pairs = zip(names, values, strict=True)
        found = [f"{name}: {value:.5g} known" for name, value in pairs if not np.isnan(value)]
        words += ["<br>".join([history.architectures[row], *found])] * 3
    marker = {"symbol": "circle-open", "color": ORANGE, "size": [0, 8 if true.shape[1] != 3 else 5, 0] * len(rows)}
    look = {"mode": "lines+markers", "line": {"color": ORANGE, "width": 1}, "marker": marker}
    return _points(history, np.repeat(rows, 3).tolist(), lines, words, name="known values", **look)


def _hover(history: History, row: int) -> str:
    lines = [history.architectures[row]]
    for name, (median, low, high) in zip(history.objectives, history.values[row], strict=True):
        interval = "" if history.interval is None else f" ({low:.5g} to {high:.5g})"
        lines.append(f"{Objective.parse(name).label}: {median:.5g}{interval}")
    return "<br>".join(lines)


def _axis_titles(goals: Sequence[Goal]) -> dict[str, Any]:
    labels = list(map(goal_label, goals))
    if len(labels) == 1:
        return {"xaxis_title": "evaluations", "yaxis_title": labels[0]}
    if len(labels) == 2:
        return {"xaxis_title": labels[1], "yaxis_title": labels[0]}
    up, *across = (Objective.parse(goal.objective).label for goal in goals)  # short ones: goal labels would be cut off
    titles = {axis: {"title": title} for axis, title in zip("xyz", (*across, up), strict=True)}
    camera = {"eye": {"x": 1.7, "y": 1.7, "z": 0.9}, "center": {"x": 0, "y": 0, "z": -0.2}}  # shows all titles
    return {"scene": {f"{axis}axis": title for axis, title in titles.items()} | {"camera": camera}}
