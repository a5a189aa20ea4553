"""Array types, standardisation, and rows without NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def standardised(columns: FloatArray) -> FloatArray:
    """Scale the columns of (N, F), or (N,), to mean 0 and variance 1; constant ones become 0."""
    return np.asarray((columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-9), dtype=np.float64)


def complete_mask(values: FloatArray) -> BoolArray:
    """Return (N,) flags of the rows of ``values`` (N, M) without NaN."""
    return np.asarray(~np.isnan(values).any(axis=1), dtype=np.bool_)
