"""Warnings that name the line of the user's code, however deep in other packages they are raised."""

import sys
import warnings
from types import FrameType

# Packages whose frames are skipped.
INNER = frozenset({"nasrlm", "studies", "converters", "spaces", "optuna", "pymoo"})
INNER |= {"functools", "contextlib", "concurrent", "threading"}


def warn_caller(message: str) -> None:
    """Warn at the innermost line outside the packages in ``INNER``; at this line if there is none in the thread."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=1 if frame is None else level)
