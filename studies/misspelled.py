"""Names that are nearly known: most likely misspelled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches


def nearly_known(name: str, known: Iterable[str], alike: float) -> str | None:
    """Find the known name that is most like a given one; None if none is.

    Names of other digits are others: latency_ms@pixel2 is no misspelt latency_ms@pixel3.

    Args:
        name: given.
        known: names.
        alike: how similar the two are at least, in [0, 1] as ``difflib`` has it.
    """
    others = {other: _digits(other) for other in known}
    close = get_close_matches(name, [x for x, digits in others.items() if digits == _digits(name)], n=1, cutoff=alike)
    return close[0] if close else None


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
