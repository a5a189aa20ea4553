"""Fronts of searches, printed for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nasrlm.cli.output import print_table, say
from nasrlm.prediction import spell_interval
from studies.columns import SOFT_MET
from studies.report import StudyResult


def print_front(result: StudyResult, objectives: Sequence[str]) -> None:
    """Print the front as a table, sorted by the first goal, then its hypervolume."""
    rows = [[row["architecture"], *[_spell(row[name]) for name in objectives]] for row in result.front]
    columns = ["architecture", *objectives]
    if any(SOFT_MET in row for row in result.front):
        columns.append("soft constraints")
        rows = [[*cells, "met" if row[SOFT_MET] else "broken"] for cells, row in zip(rows, result.front, strict=True)]
    print_table(columns, rows, title=f"Pareto front, {_counted(len(rows), 'architecture')}")
    line = f"{_counted(result.evaluations, 'evaluation')}, "
    line += f"{result.failed:,} more without a result, " if result.failed else ""
    line += f"{result.pruned:,} pruned"
    line += f", hypervolume {result.hypervolume:.4g} (relative to the worst values found)"
    if result.truth is not None and not math.isnan(result.truth.hypervolume_ratio):
        line += f", {result.truth.hypervolume_ratio:.4f} of the true front's"
    unmet = [] if result.front else ["no architecture has all objectives known and all constraints met"]
    strange = result.truth.unknown if result.truth is not None else 0
    unknown = (
        f"{strange:,} of {_counted(len(rows), 'architecture')} of the front have no true values" if strange else None
    )
    words = [f"{line}, {result.seconds:.0f} s", result.stopped, unknown, *unmet, *result.unmet]
    say("; ".join(filter(None, words)))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _spell(answer: Mapping[str, float]) -> float | str:
    """Format a prediction with its interval, and a real result, which has none, as a number."""
    return answer["median"] if answer["low"] == answer["high"] else spell_interval(answer)
