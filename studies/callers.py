"""Warnings told where the user's code is, however deep in ours or in an optimiser's they come about."""

import sys
import warnings
from types import FrameType

# Packages whose lines are not the user's.
INNER = frozenset({"nasrlm", "studies", "converters", "spaces", "optuna", "pymoo"})
INNER |= {"functools", "contextlib", "concurrent", "threading"}


def warn_caller(message: str) -> None:
    """Warn at the innermost line that is of none of the packages in ``INNER``; here where a thread has none."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=1 if frame is None else level)
