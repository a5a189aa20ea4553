"""Detect names that are probably misspelled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches


def similar_name(name: str, known: Iterable[str], alike: float) -> str | None:
    """Return the known name that is most similar to a given one; None if none is similar enough.

    Names with different digits are never similar: latency_ms@pixel2 is not a misspelled latency_ms@pixel3.

    Args:
        name: the given name.
        known: known names.
        alike: smallest similarity, in [0, 1], as defined by ``difflib``.
    """
    others = {other: _digits(other) for other in known}
    close = get_close_matches(name, [x for x, digits in others.items() if digits == _digits(name)], n=1, cutoff=alike)
    return close[0] if close else None


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
