"""Warnings told where the user's code is, however deep in ours or in an optimiser's they come about."""

import sys
import warnings

# Packages whose lines are not the user's.
INNER = frozenset({"nasrlm", "studies", "converters", "spaces", "optuna", "pymoo", "functools", "contextlib"})


def warn_caller(message: str) -> None:
    """Warn at the innermost line that is of none of the packages in ``INNER``."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level + 1)
