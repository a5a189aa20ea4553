"""Promises kept on random examples: functions that assert, each with its number of examples and its strategies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

Promise = Callable[..., None]
Promises = Mapping[Promise, tuple[int, Sequence[SearchStrategy[Any]]]]
MANY = 20  # times as many examples when slow tests run


def kept(promises: Promises) -> Callable[..., None]:
    """A test of each: the examples by default, many as slow tests."""
    few = [pytest.param(promise, *given, id=promise.__name__) for promise, given in promises.items()]
    many = [
        pytest.param(promise, examples * MANY, strategies, id=f"{promise.__name__}-many", marks=pytest.mark.slow)
        for promise, (examples, strategies) in promises.items()
    ]

    @pytest.mark.parametrize(("promise", "examples", "strategies"), [*few, *many])
    def test(promise: Promise, examples: int, strategies: Sequence[SearchStrategy[Any]]) -> None:
        chosen = settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        chosen(given(*strategies)(promise))()

    return test
