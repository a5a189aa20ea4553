"""Numbers that are given, as arrays of floats."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.arguments import known_values
from nasrlm.arrays import standardised, to_floats
from nasrlm.examples import Examples
from nasrlm.metrics import kendall_tau
from tests.nasrlm.scenes import drawn_texts, network_checkpoint

SPARSE = [
    [90, None, 93],
    [90, float("nan"), 93],
    [90, pd.NA, 93],
    pd.Series([90, pd.NA, 93], dtype=object),
    pd.Series([90, None, 93], dtype="Int64"),
    pd.Series([90, None, 93], dtype="int64[pyarrow]"),
]


@pytest.mark.parametrize("given", SPARSE)
def test_missing_numbers_are_nan(given: Any) -> None:
    expected = [90.0, np.nan, 93.0]
    np.testing.assert_array_equal(to_floats(given), expected)
    texts = ["a", "b", "c"]
    np.testing.assert_array_equal(known_values({"accuracy@x": given}, texts, ["accuracy@x"])[:, 0], expected)
    table = pd.DataFrame({"accuracy@x": given})
    np.testing.assert_array_equal(Examples.of_table(table, texts, ["accuracy@x"]).labels[:, 0], expected)
    assert kendall_tau(given, [1, 2, 3]) == 1.0


def test_masked_numbers_are_nan() -> None:
    np.testing.assert_array_equal(to_floats(np.ma.array([90, 91], mask=[False, True])), [90.0, np.nan])


def test_labels_to_adapt_to_may_be_missing() -> None:
    checkpoint, texts = network_checkpoint(), drawn_texts("nasbench201", 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"adapt: expected 2 to 8,000 labels of latency_ms@new, got 1\."):
        adapt(checkpoint, make_pool(checkpoint, texts), "latency_ms@new", pd.Series([1.0, pd.NA], dtype=object))


@pytest.mark.parametrize(
    "given",
    [
        pd.Series(pd.to_timedelta([1.5, None], unit="ms")),
        np.array([1500, 2000], "timedelta64[us]"),
        pd.Series(pd.to_timedelta([1.5], unit="ms")).astype("duration[ns][pyarrow]"),
        pd.to_datetime(["2026-11-30"]),
        np.array([1 + 0j]),
    ],
)
def test_times_and_complex_numbers_are_no_numbers(given: Any) -> None:
    """NumPy would make nanoseconds of them, which nobody names in an objective."""
    with pytest.raises(TypeError, match=r"expected real numbers, got (timedelta|datetime|complex)"):
        to_floats(given)


@pytest.mark.parametrize(("names", "got"), [(iter("ab"), "str"), (3, "int"), (["a"], "1")])
def test_names_of_labels_are_one_per_text(names: Any, got: str) -> None:
    checkpoint, texts = network_checkpoint(), drawn_texts("nasbench201", 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match=rf"adapt: expected one name per text.*, got {got}"):
        adapt(checkpoint, make_pool(checkpoint, texts), "latency_ms@new", np.ones(2), names=names)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_columns_are_standardised_in_any_unit_and_constant_ones_are_zero(unit: float) -> None:
    columns = unit * np.array([[1.0, 123456789.123], [2.0, 123456789.123], [3.0, 123456789.123]])
    np.testing.assert_allclose(standardised(columns), [[-(1.5**0.5), 0], [0, 0], [1.5**0.5, 0]], atol=1e-12)
    np.testing.assert_allclose(standardised(columns[:, 0]), [-(1.5**0.5), 0, 1.5**0.5], atol=1e-12)
