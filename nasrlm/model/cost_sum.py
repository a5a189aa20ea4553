"""Costs predicted as sums of what the rows of a text cost (``nasrlm.model.row_sum``) instead of by the decoder.

A row is an operator with its attributes and place.

N texts, K objectives.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasrlm.arrays import FloatArray
from nasrlm.calibration import read_calibration
from nasrlm.model.readout import GRID, Readings
from nasrlm.model.row_sum import MOST_ROWS, RowSum, labels_of
from nasrlm.text.row_counts import row_counts

DIGITS = 6  # significant digits of a prediction, so that sums that differ only by rounding errors are equal
STORED_DIGITS = 12  # significant digits of the stored cost of a row


@dataclass(frozen=True)
class CostSum:
    """The prediction of a cost by a row sum: a log-normal distribution around the sum.

    Attributes:
        row_sum: the costs of rows; their sum is the median.
        deviation: standard deviation of the labels' logarithms around those of the sums.
        levels: calibrated levels, as in ``nasrlm.calibration``.
    """

    row_sum: RowSum
    deviation: float
    levels: Sequence[float] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; ``of_json`` is the inverse."""
        costs = [[float(f"{cost:.{STORED_DIGITS}g}") for cost in each] for each in self.row_sum.costs]
        of_rows = {"rows": self.row_sum.rows.tolist(), "costs": costs}
        more = {"deviation": self.deviation, "levels": list(self.levels)}
        return {**of_rows, "is_rate": self.row_sum.is_rate, **more}

    @classmethod
    def of_json(cls, stored: Any) -> CostSum:
        """Read what ``to_json`` returned.

        Raises:
            KeyError, TypeError, ValueError: ``stored`` is something else.
        """
        rows, costs = np.array(stored["rows"], dtype=np.int64), np.array(stored["costs"], dtype=np.float64)
        deviation, is_rate = float(stored["deviation"]), stored["is_rate"]
        if not 0 < len(rows) <= MOST_ROWS or len(set(rows.tolist())) < len(rows) or costs.shape != (len(rows), 2):
            raise ValueError(f"a sum: expected 1 to {MOST_ROWS} different rows, each with two costs, got {len(rows)}")
        if not (np.isfinite(costs).all() and 0 < deviation < math.inf and isinstance(is_rate, bool)):
            raise ValueError("a sum: expected finite costs, a deviation above 0, and a boolean is_rate")
        levels = read_calibration({"a sum": stored["levels"]})["a sum"]
        return cls(RowSum(rows, costs, is_rate), deviation, levels)


def rounded(costs: FloatArray) -> FloatArray:
    """Round costs above 0 to DIGITS significant digits; NaN stays."""
    unit = 10.0 ** (DIGITS - 1 - np.floor(np.log10(costs)))
    said: FloatArray = np.round(costs * unit) / unit
    return said


CostSums = Mapping[str, CostSum]  # by objective


def without(sums: CostSums, names: Collection[str]) -> dict[str, CostSum]:
    """Return the sums of all objectives except ``names``."""
    return {name: x for name, x in sums.items() if name not in names}


def read_sums(sums: Sequence[CostSum], texts: Sequence[str]) -> tuple[Readings, Tensor]:
    """Predict K costs of N texts by their sums.

    Returns:
        The (N, K) distributions, and (N, K) flags: False where a text has a row whose cost the sum does not know, or
        the sum is not above 0. There the distribution is meaningless.
    """
    counts = list(map(row_counts, texts))
    said = torch.from_numpy(rounded(labels_of([each.row_sum for each in sums], counts)))
    known = said.isfinite()
    deviations = torch.tensor([each.deviation for each in sums], dtype=torch.float64)
    logarithms = torch.where(known, said, 1.0).log()
    as_they_are, logarithmic = GRID.repeat(len(sums), 1), torch.ones(len(sums), dtype=torch.bool)
    return Readings(logarithms, deviations.expand_as(logarithms), as_they_are, logarithmic), known
