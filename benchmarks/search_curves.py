"""Curves of the hypervolume ratio that searches reach, against evaluations. N evaluations, M goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from nasrlm.arrays import FloatArray
from studies.figures.style import polish
from studies.pareto import hypervolume_ratio, pareto_mask

Curves = Mapping[tuple[str, str], Sequence[Sequence[float]]]  # by space and method, one for each seed

TARGETS = (0.985, 0.992)
SMALLEST_REGRET = 1e-4  # smaller values are drawn as this


def curve_of(found: FloatArray, whole: FloatArray) -> list[float]:
    """Return the hypervolume ratio after each of N evaluations; the reference point is the worst of each true loss.

    Args:
        found: (N, M) losses in the order of evaluation.
        whole: (K, M) losses of all architectures.
    """
    reference = whole.max(axis=0)
    front_of_all = whole[pareto_mask(whole)]
    front, curve = found[:0], []
    for losses in found:
        if not (front <= losses).all(axis=1).any():
            front = np.vstack([front, losses])
            front = front[pareto_mask(front)]
            ratio = hypervolume_ratio(front, front_of_all, reference)
        curve.append(round(ratio, 6))
    return curve


def reached(curve: Sequence[float], target: float) -> float:
    """Return the number of evaluations until a ratio is reached; infinite if it is not."""
    return next((float(index) for index, ratio in enumerate(curve, start=1) if ratio >= target), np.inf)


def table_of(curves: Curves, counts: Iterable[int]) -> Table:
    """Return a table of mean ratios after ``counts`` evaluations, and of median evaluations to reach ``TARGETS``."""
    counts = list(counts)
    table = Table(title="hypervolume ratio after so many real evaluations (mean ± deviation); median to reach a ratio")
    for column in ("space", "method", "seeds", *map(str, counts), *(f"to {target}" for target in TARGETS)):
        table.add_column(column, justify="left" if column in ("space", "method") else "right")
    for (space, method), runs in curves.items():
        ratios = [np.array([run[min(count, len(run)) - 1] for run in runs]) for count in counts]
        medians = [float(np.median([reached(run, target) for run in runs])) for target in TARGETS]
        table.add_row(
            space,
            method,
            str(len(runs)),
            *(f"{ratio.mean():.4f} ± {ratio.std():.4f}" for ratio in ratios),
            *(f"{median:.0f}" if np.isfinite(median) else f"> {len(runs[0])}" for median in medians),
        )
    return table


def draw(curves: Curves, path: Path) -> None:
    """Draw regret (1 - ratio) against evaluations, a panel per space: median, and a band of 10 to 90 % quantiles."""
    spaces = list(dict.fromkeys(space for space, _ in curves))
    figure = Figure(figsize=(6.5 * len(spaces), 4.8), layout="constrained")
    panels = figure.subplots(1, len(spaces), squeeze=False)[0]
    for axes, space in zip(panels, spaces, strict=True):
        for (of, method), runs in curves.items():
            if of != space:
                continue
            shortest = min(map(len, runs))
            regrets = np.maximum(1 - np.array([run[:shortest] for run in runs]), SMALLEST_REGRET)
            counts = np.arange(1, shortest + 1)
            (line,) = axes.plot(counts, np.median(regrets, axis=0), label=method, linewidth=1.5)
            low, high = np.quantile(regrets, (0.1, 0.9), axis=0)
            axes.fill_between(counts, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set(xlabel="real evaluations", ylabel="1 - hypervolume ratio", yscale="log", title=space)
        polish(axes)
    panels[-1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
