"""Curves of hypervolume against evaluations for one or more studies; studies that differ in seeds share a curve.

P points of a curve, S studies.
"""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure

from nasrlm.arrays import FloatArray
from studies.config import SearchConfig
from studies.figures.style import line_look, polish, title_lines
from studies.loaded_study import LoadedStudy
from studies.pareto import hypervolume, pareto_mask

CURVE_POINTS = 100  # more would not be visible
BAND = (0.1, 0.9)  # quantiles over seeds
LABEL_WIDTH, LEGEND_LINE = 80, 0.22  # width of a legend's line in characters, and its height in inches


@dataclass(frozen=True)
class Progress:
    """The curve of S studies that differ only in their seeds.

    Attributes:
        name: the first and last folder, acquisition, engine and sampler, and the number of seeds if above one.
        counts: (P,) numbers of evaluations.
        shares: (S, P) hypervolume of each study after that many, relative to that of all studies' joint front.
    """

    name: str
    counts: FloatArray
    shares: FloatArray

    @property
    def median(self) -> FloatArray:
        """The (P,) medians over studies."""
        return np.asarray(np.median(self.shares, axis=0), dtype=np.float64)

    @property
    def band(self) -> FloatArray:
        """The (2, P) low and high quantiles over studies."""
        return np.asarray(np.quantile(self.shares, BAND, axis=0), dtype=np.float64)


def progress_figure(names: Sequence[str], studies: Sequence[LoadedStudy]) -> Figure:
    """Return a figure of hypervolume against evaluations, relative to all studies' joint front; seeds form a band."""
    curves = progress_of(names, studies)
    labels = [textwrap.fill(progress.name, LABEL_WIDTH) for progress in curves]
    lines = len("\n".join(labels).splitlines())
    figure = Figure(figsize=(8, 5.2 + LEGEND_LINE * lines), layout="constrained")
    axes = figure.subplots()
    for index, progress in enumerate(curves):
        colour, (dashes, _) = line_look(index)
        look: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.6, "label": labels[index]}
        if len(progress.counts) == 1:
            look["marker"] = "o"
        axes.step(progress.counts, progress.median, where="post", **look)
        if len(progress.shares) > 1:
            low, high = progress.band
            axes.fill_between(progress.counts, low, high, step="post", alpha=0.2, color=colour, linewidth=0)
    axes.set_ylim(*_share_ends(curves))
    axes.set(xlabel="evaluations", ylabel=_share_label(len(studies)))
    # Given both, matplotlib does not leave out labels that begin with an underscore.
    legend = figure.legend(axes.get_lines(), labels, frameon=False, loc="outside lower center")
    for text in legend.get_texts():
        text.set_parse_math(False)  # of folders with dollars in their names
    axes.set_title("\n".join(title_lines(_goals_in_words(studies[0].config))), fontsize=10)
    polish(axes)
    return figure


def interactive_progress(names: Sequence[str], studies: Sequence[LoadedStudy]) -> Any:
    """Return a figure of hypervolume against evaluations, relative to all studies' joint front; seeds form a band."""
    figure, curves = go.Figure(), progress_of(names, studies)
    for index, progress in enumerate(curves):
        colour, (_, dashes) = line_look(index)
        line = {"color": colour, "dash": dashes, "shape": "hv"}
        if len(progress.shares) > 1:
            low, high = progress.band
            hidden = {"line": {"width": 0, "shape": "hv"}, "showlegend": False, "hoverinfo": "skip", "opacity": 0.2}
            figure.add_trace(go.Scatter(x=progress.counts, y=low, **hidden))
            figure.add_trace(go.Scatter(x=progress.counts, y=high, fill="tonexty", fillcolor=f"{colour}33", **hidden))
        figure.add_trace(go.Scatter(x=progress.counts, y=progress.median, line=line, name=progress.name))
    titles = {
        "xaxis_title": "evaluations",
        "yaxis_title": _share_label(len(studies)),
        "yaxis_range": _share_ends(curves),
    }
    return figure.update_layout(
        title="<br>".join(title_lines(_goals_in_words(studies[0].config))), template="plotly_white", **titles
    )


def _goals_in_words(config: SearchConfig) -> list[str]:
    """Return the parts of a title: the space with the first goal, then the other goals."""
    first, *others = map(str, config.goals)
    return [f"{config.space}: {first}", *others]


def _share_label(num_studies: int) -> str:
    """Return the axis label for the shares of ``progress_of``."""
    of = "this study's final front" if num_studies == 1 else "all studies' joint front"
    return f"hypervolume, share of {of}"


def _share_ends(curves: Sequence[Progress]) -> tuple[float, float]:
    """Return the limits of the axis of shares, without the first twentieth of a search, where curves are steep."""
    early = min(float(np.interp(x.counts[-1] / 20, x.counts, x.shares.min(axis=0))) for x in curves)
    margin = 0.05 * max(1 - early, 0.001)
    return early - margin, 1 + margin


def spelled(config: SearchConfig) -> str:
    """Return one string of all settings that affect the results of a study.

    It leaves out the storage, options, and earlier numbers of trials. A user's own space counts by its name, because
    older studies have no digest of it.
    """
    decides = replace(config, storage=None, earlier_trials=(), space_sha256="", options={})
    return json.dumps(decides.to_dict(), sort_keys=True)


def progress_of(names: Sequence[str], studies: Sequence[LoadedStudy]) -> list[Progress]:
    """Return the curves of studies with the same goals, at least one of which has a result.

    Args:
        names: names of the studies' folders.
        studies: one for each name.
    """
    complete = [study.losses[study.history.complete()] for study in studies]
    feasible = [study.losses[np.flatnonzero(study.history.feasible)] for study in studies]
    worst = np.vstack(complete).max(axis=0)
    together = hypervolume(np.vstack(feasible), worst) or 1.0
    groups: dict[str, list[int]] = {}
    for index, study in enumerate(studies):
        groups.setdefault(spelled(replace(study.config, seed=0)), []).append(index)
    bounds_differ = len({study.config.constraints for study in studies}) > 1
    curves = []
    for members in groups.values():
        shortest = min(sum(studies[index].history.evaluated) for index in members)
        counts = np.unique(np.geomspace(1, max(shortest, 1), CURVE_POINTS).astype(int)).tolist()
        shares = np.array([_volumes(studies[index], counts, worst) for index in members]) / together
        name = _name([names[index] for index in members], studies[members[0]].config, with_bounds=bounds_differ)
        curves.append(Progress(name, np.array(counts, dtype=np.float64), shares))
    return curves


def _name(names: Sequence[str], config: SearchConfig, *, with_bounds: bool) -> str:
    """Return the name of the curve of one study, or of several that differ in their seeds."""
    guide = f"guided by {config.guide.acquisition}, " if config.guide else ""
    kinds = f"{guide}{config.engine} {config.sampler}"
    name = f"{names[0]} ({kinds})"
    if len(names) > 1:
        name = f"{names[0]} to {names[-1]} ({kinds}, {len(names)} seeds)"
    return f"{name}, {' '.join(map(str, config.constraints)) or 'no constraint'}" if with_bounds else name


def _volumes(study: LoadedStudy, counts: Sequence[int], worst: FloatArray) -> list[float]:
    losses = study.losses[study.history.evaluated]
    feasible = np.array(study.history.feasible, dtype=np.bool_)[study.history.evaluated]
    front, volumes, start = losses[:0], [], 0
    for count in counts:
        front = np.vstack([front, losses[start:count][feasible[start:count]]])
        front, start = front[pareto_mask(front)], count
        volumes.append(hypervolume(front, worst))
    return volumes
