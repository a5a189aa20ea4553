"""Types of arrays, and what is done with many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def standardised(columns: FloatArray) -> FloatArray:
    """(N, F) of mean 0 and variance 1, or 0 where all are equal; (N,) likewise."""
    return np.asarray((columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-9), dtype=np.float64)
