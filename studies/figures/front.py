"""Figures of the front among everything evaluated, in matplotlib. M objectives, F front members."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nasrlm.arrays import FloatArray
from nasrlm.objective import Objective, from_losses
from studies.config import SearchConfig
from studies.figures.known_values import known_of
from studies.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    bar_lengths,
    drawn_medians,
    front_label,
    front_title,
    goal_label,
    limits,
    outside,
    polish,
    without_outliers,
)
from studies.history import History
from studies.loaded_study import LoadedStudy

LEGEND_COLUMNS = 6  # of the legend below three panels


def front_figure(study: LoadedStudy, known: Mapping[str, FloatArray] | None = None) -> Figure:
    """Return a figure of the front among everything evaluated; its kind depends on the number of goals.

    Args:
        study: goals, constraints and everything evaluated.
        known: (M,) real or true values by notation, drawn beside the predictions for the front.
    """
    config, true = study.config, known_of(study, known or {})
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    num_goals = len(config.goals)
    if num_goals == 1:
        _draw_progress_of_best(figure.subplots(), study)
    elif num_goals == 2:
        _draw_plane(figure.subplots(), study, true)
    elif num_goals == 3:
        figure.set_size_inches(16, 5.4)
        _draw_planes(figure, study, true)
    else:
        figure.set_size_inches(max(8, 2.2 * num_goals), 5.2)
        _draw_parallel(figure.subplots(), study)
    figure.suptitle(front_title(study))
    return figure


def _draw_progress_of_best(axes: Axes, study: LoadedStudy) -> None:
    goals, history = study.config.goals, study.history
    best = np.fmin.accumulate(np.where(history.feasible, study.losses[:, 0], np.nan))
    values, best_values = drawn_medians(history)[:, 0], from_losses(goals, best[:, None])[:, 0]
    order = history.evaluations()
    _scatter_evaluated(axes, history, order, values)
    axes.step(order, best_values, where="post", color=BLUE, label="best feasible")
    axes.set(xlabel="evaluations", ylabel=goal_label(goals[0]), ylim=limits(values, study.front_rows))
    hidden = outside(order, values, axes.get_xlim(), axes.get_ylim(), study.front_rows)
    axes.legend(frameon=False, title=hidden or None, alignment="left")
    polish(axes)


def _draw_plane(axes: Axes, study: LoadedStudy, true: FloatArray) -> None:
    """Draw two goals: the first on the vertical axis, the second on the horizontal one."""
    history, rows = study.history, study.front_rows
    hidden = _draw_evaluated(axes, study, across=1, up=0)
    order = sorted(rows, key=lambda row: study.losses[row, 1])
    values = history.stacked()[order]
    across, up = values[:, 1], values[:, 0]
    axes.step(across[:, 0], up[:, 0], where="post", color=BLUE, linewidth=1.5, zorder=3)
    axes.errorbar(
        across[:, 0],
        up[:, 0],
        xerr=bar_lengths(across),
        yerr=bar_lengths(up),
        fmt="o",
        markersize=4.5,
        color=BLUE,
        ecolor=BLUE,
        elinewidth=0.8,
        alpha=0.9,
        zorder=4,
        label=front_label(history) if rows else None,
    )
    _draw_true(axes, history.medians()[rows], true, across=1, up=0)
    _draw_bounds(axes, study.config, across=1, up=0)
    axes.legend(frameon=False, title=hidden or None, alignment="left")


def _draw_true(axes: Axes, front: FloatArray, true: FloatArray, *, across: int, up: int) -> None:
    """Draw known values as rings, each joined to its predicted median in (F, M) ``front``."""
    if np.isnan(true[:, [across, up]]).all():
        return
    lines = np.stack([front[:, [across, up]], true[:, [across, up]]], axis=1)
    for line in lines:
        axes.plot(*line.T, color=ORANGE, linewidth=0.7, zorder=3)
    axes.scatter(
        true[:, across],
        true[:, up],
        s=26,
        facecolors="none",
        edgecolors=ORANGE,
        linewidths=1.0,
        zorder=5,
        label="known values",
    )


def _draw_planes(figure: Figure, study: LoadedStudy, true: FloatArray) -> None:
    """Draw three goals: a panel for each pair, with the third goal as colour."""
    history, rows, panels = study.history, study.front_rows, figure.subplots(1, 3)
    for axes, (up, across) in zip(panels, itertools.combinations(range(3), 2), strict=True):
        colour = 3 - up - across
        hidden = _draw_evaluated(axes, study, across=across, up=up)
        values = history.stacked()[rows]
        third = values[:, colour, 0]
        usual = without_outliers(third)
        points = axes.scatter(
            values[:, across, 0],
            values[:, up, 0],
            c=third,
            vmin=usual.min() if len(usual) else None,
            vmax=usual.max() if len(usual) else None,
            s=26,
            cmap="viridis",
            edgecolors="white",
            linewidths=0.4,
            zorder=4,
            label=front_label(history) if rows else None,
        )
        bars = {"fmt": "none", "ecolor": BLUE, "elinewidth": 0.6, "alpha": 0.4}
        ends = {"xerr": bar_lengths(values[:, across]), "yerr": bar_lengths(values[:, up])}
        axes.errorbar(values[:, across, 0], values[:, up, 0], **ends, **bars)
        _draw_true(axes, values[:, :, 0], true, across=across, up=up)
        label = Objective.parse(study.config.goals[colour].objective).label
        figure.colorbar(points, ax=axes, label=label, extend="both" if len(usual) < len(third) else "neither")
        _draw_bounds(axes, study.config, across=across, up=up)
        if hidden:
            axes.set_title(hidden, fontsize=9, loc="left")
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, frameon=False, loc="outside lower center", ncols=LEGEND_COLUMNS)


def _draw_evaluated(axes: Axes, study: LoadedStudy, *, across: int, up: int) -> str:
    """Draw everything evaluated in grey; return a text about points outside the axes, or ""."""
    goals, rows = study.config.goals, study.front_rows
    x, y = drawn_medians(study.history)[:, [across, up]].T
    _scatter_evaluated(axes, study.history, x, y)
    axes.set(xlabel=goal_label(goals[across]), ylabel=goal_label(goals[up]))
    axes.set(xlim=limits(x, rows), ylim=limits(y, rows))
    polish(axes)
    return outside(x, y, axes.get_xlim(), axes.get_ylim(), rows)


def _scatter_evaluated(axes: Axes, history: History, x: FloatArray, y: FloatArray) -> None:
    feasible = np.array(history.feasible, dtype=np.bool_)
    infeasible = ~feasible & ~np.isnan(x) & ~np.isnan(y)
    if feasible.any() or not infeasible.any():
        axes.scatter(x[feasible], y[feasible], s=9, color=GREY, linewidths=0, label="evaluated")
    if infeasible.any():
        axes.scatter(x[infeasible], y[infeasible], s=9, color=ORANGE, alpha=0.35, linewidths=0, label="infeasible")


def _draw_bounds(axes: Axes, config: SearchConfig, *, across: int, up: int) -> None:
    for constraint in config.constraints:
        style = ":" if constraint.soft else "--"
        look: dict[str, Any] = {"color": ORANGE, "linestyle": style, "linewidth": 1, "label": str(constraint)}
        if constraint.objective == config.goals[across].objective:
            axes.axvline(constraint.bound, **look)
        elif constraint.objective == config.goals[up].objective:
            axes.axhline(constraint.bound, **look)


def _draw_parallel(axes: Axes, study: LoadedStudy) -> None:
    """Draw parallel coordinates: a vertical axis for each goal, better upwards, and a line for each front member."""
    goals, losses = study.config.goals, study.losses[study.front_rows]
    best, worst = (losses.min(axis=0), losses.max(axis=0)) if len(losses) else (np.zeros(len(goals)),) * 2
    heights = (worst - losses) / np.where(worst > best, worst - best, 1.0)
    ranks = np.linspace(1, 0, len(losses))  # the rows are sorted by the first goal
    colours = colormaps["viridis"](ranks)
    for line, colour in zip(heights, colours, strict=True):
        axes.plot(line, color=colour, linewidth=1.1, alpha=0.75)
    ends = from_losses(goals, np.stack([best, worst]))
    for index, (top, bottom) in enumerate(ends.T):
        axes.axvline(index, color="#444444", linewidth=0.8)
        axes.text(index, 1.03, f"{top:.4g}", ha="center", fontsize=9)
        axes.text(index, -0.03, f"{bottom:.4g}", ha="center", va="top", fontsize=9)
    names = [Objective.parse(goal.objective).label.replace(" ", "\n", 1) for goal in goals]
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", pad=16, length=0)
    axes.set(yticks=[], ylim=(-0.02, 1.02), ylabel="better →")
    for side in axes.spines.values():
        side.set_visible(False)
