"""Array types, conversion to floats, standardisation, and rows without NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ROUNDING = 1e-9  # share of the largest number of a column; columns that deviate by less are constant


def to_floats(given: ArrayLike) -> FloatArray:
    """Return numbers as floats, with NaN for missing ones: None, pandas' NA, and masked ones of NumPy.

    Raises:
        TypeError, ValueError: something is no real number, such as a time, or rows differ in length.
    """
    array: Any = np.ma.asarray(given)
    if array.dtype.kind in "mMc":  # NumPy would convert them, times to their counts of ns
        raise TypeError(f"expected real numbers, got {array.dtype}")
    try:
        return np.asarray(np.ma.filled(array.astype(np.float64, copy=False), np.nan))
    except TypeError:
        from pandas import isna  # here: takes half a second, and only pandas' NA needs it

        objects = np.array(given, dtype=object)
        objects[isna(objects)] = np.nan
        return objects.astype(np.float64)


def standardised(columns: FloatArray) -> FloatArray:
    """Scale the columns of (N, F), or (N,), to mean 0 and variance 1; constant ones become 0, whatever their unit."""
    return np.asarray((columns - columns.mean(axis=0)) / units_of(columns), dtype=np.float64)


def units_of(columns: FloatArray) -> FloatArray:
    """Return the (F,) standard deviations of (N, F) columns; infinite for constant ones, which then become 0."""
    deviations = columns.std(axis=0)
    return np.where(deviations > ROUNDING * np.abs(columns).max(axis=0), deviations, np.inf)


def complete_mask(values: FloatArray) -> BoolArray:
    """Return (N,) flags of the rows of ``values`` (N, M) without NaN."""
    return np.asarray(~np.isnan(values).any(axis=1), dtype=np.bool_)
