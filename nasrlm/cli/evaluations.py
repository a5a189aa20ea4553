"""Metrics of predictions, printed for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nasrlm.cli.output import print_table, say
from nasrlm.metrics import COLUMNS

if TYPE_CHECKING:
    from nasrlm.evaluation import Evaluation


def print_evaluation(evaluation: Evaluation) -> None:
    """Print a table with a row for each space and objective, and how fast all was predicted."""
    rows = [
        [space, objective, *metrics.values()]
        for space, measured in evaluation.quality.items()
        for objective, metrics in measured.items()
    ]
    print_table(COLUMNS, rows)
    say(f"{evaluation.predictions_per_second:,.0f} predictions/s, each with all objectives and their intervals")
