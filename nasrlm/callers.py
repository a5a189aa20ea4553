"""Warnings that name the line of the user's code, however deep in other packages they are raised."""

import sys
import warnings
from types import FrameType

# Packages whose frames are skipped.
INNER = frozenset({"nasrlm", "studies", "converters", "spaces", "optuna", "pymoo"})
INNER |= {"functools", "contextlib", "concurrent", "threading"}
COMMAND_LINE = "nasrlm.cli"  # a caller too: it prints its own warnings in one line


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside the packages in ``INNER``; at this line if there is none in the thread."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and _is_inner(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=1 if frame is None else level)


def _is_inner(module: str) -> bool:
    return module.partition(".")[0] in INNER and not module.startswith(COMMAND_LINE)
