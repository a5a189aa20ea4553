"""Where does a checkpoint rank badly? Kendall's τ on parts of the test rows of NAS-Bench-201.

    python -m benchmarks.weak_spots ../shared/data/nasbench201.parquet

For the accuracy, the parts are the best rows, and rows by how often their cell has an operation. If the labels of a
part differ less than those of all rows, its τ is lower for this reason alone. Therefore the table also shows the τ of
as many random rows with labels in the same range. For costs, such as latencies and energies, a second table shows the τ
of each on all test rows, lowest first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.circumstances import circumstances
from benchmarks.command_line import one_line_errors
from benchmarks.judged import Config, read_config, tested
from nasrlm.arrays import FloatArray
from nasrlm.metrics import kendall_tau, tau_of
from nasrlm.objective import Objective
from nasrlm.predictor import Predictor
from spaces.nasbench201 import OPERATIONS

ACCURACY = "accuracy@cifar10"
SHARES = (0.05, 0.1, 0.25, 1.0)  # sizes of the parts with the best accuracies, in shares of all rows
OFTEN = 3  # of a cell's six edges
DRAWS = 50  # random draws of rows, over which τ is averaged


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print both tables and one line of JSON."""
    config = read_config(__doc__, words)
    console = Console(width=None if sys.stdout.isatty() else 140)
    for table in tables(config):
        console.print(table)
    print(json.dumps(circumstances(config)))


def tables(config: Config) -> tuple[Table, Table]:
    """Return two tables of Kendall τ: for the accuracy among parts of the rows, and for each cost."""
    table, rows = tested(config, "nasbench201", ACCURACY)
    predictor = Predictor.from_pretrained(config.checkpoint).of_space(table.space)
    costs = [name for name in predictor.objectives if name in table.frame and not Objective.parse(name).is_accuracy]
    names = [ACCURACY, *costs]
    median = predictor.predict(table.texts(rows, measured=True), names, quantiles=(0.5,)).median
    labels = np.stack([table.labels(name)[rows] for name in names], axis=1)
    of_parts = Table(ACCURACY, "rows", "Kendall τ", "of random rows in the range")
    for name, part in _parts(labels[:, 0], table.genotypes(rows)):
        taus = tau_of(median[part, 0], labels[part, 0]), _in_range(median[:, 0], labels[:, 0], part)
        of_parts.add_row(name, f"{part.sum():,}", *(f"{tau:.3f}" for tau in taus))
    of_costs = Table("cost", "Kendall τ", "different values")
    of_all = kendall_tau(median, labels)[1:]
    for m in np.argsort(of_all):
        of_costs.add_row(costs[m], f"{of_all[m]:.3f}", f"{len(np.unique(labels[:, m + 1])):,}")
    return of_parts, of_costs


def _parts(accuracy: FloatArray, genes: NDArray[np.int_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for share in SHARES:
        yield f"best {share:.0%}", accuracy >= np.quantile(accuracy, 1 - share)
    for gene, operation in enumerate(OPERATIONS):
        count = (genes == gene).sum(axis=1)
        yield f"no {operation}", count == 0
        yield f"{OFTEN} or more {operation}", count >= OFTEN


def _in_range(predicted: FloatArray, measured: FloatArray, rows: NDArray[np.bool_]) -> float:
    """Return the mean τ of as many random rows with labels between the part's 5 and 95 % quantiles, or NaN."""
    if not rows.any():
        return float("nan")
    low, high = np.quantile(measured[rows], (0.05, 0.95))
    candidates = np.flatnonzero((measured >= low) & (measured <= high))
    rng = np.random.default_rng(0)
    size = min(int(rows.sum()), len(candidates))
    drawn = [rng.choice(candidates, size, replace=False) for _ in range(DRAWS)]
    return float(np.mean([tau_of(predicted[x], measured[x]) for x in drawn]))


if __name__ == "__main__":
    main()
