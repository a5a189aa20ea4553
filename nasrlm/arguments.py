"""Check arguments of public functions, such as those of a predictor other than texts.

N texts, M objectives, Q quantiles.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nasrlm.arrays import FloatArray, to_floats
from nasrlm.objective import Objective


def checked_names(objectives: Iterable[str]) -> tuple[str, ...]:
    """Return the names of M objectives as a tuple.

    Raises:
        ValueError: a single string, whose letters would be taken for names, or something else.
    """
    names = _listed(objectives)
    if names is None or not all(isinstance(name, str) for name in names):
        help_ = " Put it in a list." if isinstance(objectives, str) else ""
        raise ValueError(f"objectives: expected a list of names, got {objectives!r}.{help_}")
    return names


def checked_levels(quantiles: Iterable[float]) -> tuple[float, ...]:
    """Return Q quantile levels as a tuple.

    Raises:
        ValueError: a single number, something else, or levels that do not ``ascend``.
    """
    levels = _listed(quantiles)
    if levels is None or not all(isinstance(level, Real) for level in levels):
        help_ = " Put it in a list." if isinstance(quantiles, Real) else ""
        raise ValueError(f"quantiles: expected a list of levels in (0, 1), got {quantiles!r}.{help_}")
    numbers = tuple(map(float, levels))
    if not ascend(numbers):
        raise ValueError(f"prediction: expected quantiles ascending in (0, 1), got {numbers}. Sort them.")
    return numbers


def has_order(given: Any) -> bool:
    """Return whether items can be taken in order: not from a single value, a set, a mapping's keys or a whole table."""
    return (
        isinstance(given, Iterable)
        and not isinstance(given, str | bytes | set | frozenset | Mapping)
        and getattr(given, "ndim", 1) == 1
    )


def items_of(given: Iterable[Any]) -> list[Any]:
    """Return a list of the items, with those of Arrow converted to Python's types."""
    return given.to_pylist() if hasattr(given, "to_pylist") else list(given)


def ascend(levels: Sequence[float]) -> bool:
    """Return whether there is at least one level, and all are in (0, 1) and strictly ascending."""
    return len(levels) > 0 and all(a < b for a, b in pairwise((0.0, *levels, 1.0)))


def ascend_around_median(levels: Sequence[float]) -> bool:
    """Return whether levels ``ascend`` and include 0.5."""
    return 0.5 in levels and ascend(levels)


def checked_whole(what: str, number: Any, least: int) -> int:
    """Return an integer of Python or NumPy as an int; ``what`` starts the error message.

    Raises:
        ValueError: it is no integer, or below ``least``.
    """
    if not isinstance(number, Integral):
        raise ValueError(f"{what}: expected a whole number, got {number!r}.")
    if number < least:
        raise ValueError(f"{what}: expected {least} or more, got {number}.")
    return int(number)


def check_number(what: str, given: Any, least: float) -> None:
    """Check that an argument is a finite number of ``least`` or more; ``what`` starts the error message.

    Raises:
        ValueError: it is not.
    """
    if not (isinstance(given, Real) and least <= float(given) < math.inf):
        raise ValueError(f"{what}: expected {least} or more, got {given!r}.")


def check_kind(who: str, given: object, kind: type) -> None:
    """Check that an argument of the function ``who`` is an instance of a class of this package.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(given, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise ValueError(f"{who}: expected {article} {kind.__name__}, got {type(given).__name__}.")


def checked_folder(who: str, given: Any) -> Path:
    """Return the path of a folder, an argument of the function ``who``.

    Raises:
        ValueError: it is no path.
    """
    if not isinstance(given, str | os.PathLike):
        raise ValueError(f"{who}: expected the path of a folder, got {given!r:.60}.")
    return Path(given)


def check_flag(what: str, given: Any) -> None:
    """Check that an argument is a truth value of Python or NumPy, not a word such as "no", which would count as true.

    Raises:
        ValueError: it is something else; ``what`` starts the message.
    """
    if not isinstance(given, bool | np.bool_):
        raise ValueError(f"{what}: expected True or False, got {given!r}.")


def checked_generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return a generator with this seed, or the generator that was given.

    Raises:
        ValueError: the seed is negative or no integer.
    """
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(checked_whole("seed", seed, 0))


def refuse_unknown(objective: str, known: Collection[str]) -> None:
    """Check that an objective is among those of the checkpoint.

    Raises:
        ValueError: it is not; the message suggests similar names.
    """
    if objective not in known:
        close = difflib.get_close_matches(objective, known, n=3, cutoff=0.5)
        hint = f"Did you mean {', '.join(close)}?" if close else "`nasrlm info` lists them."
        raise ValueError(
            f"objective: expected one of the checkpoint's {len(known)} objectives, got {objective!r}. {hint} To add "
            "an objective, run `nasrlm adapt` and use the checkpoint that it writes."
        )


def checked_values(given: ArrayLike, texts: Sequence[str], objectives: Sequence[str]) -> FloatArray:
    """Return values as an (N, M) array, one for each text and objective.

    Raises:
        ValueError: they are not numbers, or have another shape.
    """
    try:
        values = to_floats(given)
    except (TypeError, ValueError) as e:
        raise ValueError(f"values: expected numbers, got {repr(given)[:60]}.") from e
    if values.shape != (len(texts), len(objectives)):
        raise ValueError(
            f"values: expected one per text and objective, shape {(len(texts), len(objectives))}, got {values.shape}."
        )
    return values


def known_values(
    known: Mapping[str, Iterable[float]] | None, texts: Sequence[str], objectives: Sequence[str]
) -> FloatArray:
    """Return (N, M) known values, NaN for objectives without any.

    Args:
        known: N values by objective.
        texts: N texts.
        objectives: M names.

    Raises:
        ValueError: values are of another objective, not one per text, infinite, or impossible for their objective.
    """
    if not isinstance(known, Mapping | None):
        raise ValueError(f"known: expected values by objective, got {repr(known)[:60]}.")
    given = np.full((len(texts), len(objectives)), np.nan)
    for name, values in (known or {}).items():
        listed = _listed(values)
        if name not in objectives or listed is None or len(listed) != len(texts):
            got = repr(values)[:40] if listed is None else len(listed)
            raise ValueError(
                f"known: expected one value per text ({len(texts)}) for {', '.join(objectives)}, got {got} for "
                f"{name!r}."
            )
        given[:, list(objectives).index(name)] = _finite_or_nan(name, listed)
    return given


def _finite_or_nan(name: str, values: tuple[Any, ...]) -> FloatArray:
    """Return known values of an objective as an array, NaN where one is missing."""
    try:
        given = to_floats(values)
    except (TypeError, ValueError):
        given = np.full(len(values), np.inf)
    if given.ndim != 1 or np.isinf(given).any():
        raise ValueError(f"known: expected finite numbers for {name}, or NaN where there is none, got other values.")
    objective = Objective.parse(name)
    beyond = given[~objective.allows(given)]
    if len(beyond):
        raise ValueError(f"known: expected {objective.range_in_words} for {name}, got {beyond[0]:g}. Give NaN instead.")
    return given


def _listed(given: Any) -> tuple[Any, ...] | None:
    """Return the items as a tuple, or None if they have no order, or a single value was given."""
    return tuple(given) if has_order(given) else None
