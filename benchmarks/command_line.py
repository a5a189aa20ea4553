"""Checks and errors of the benchmarks' command lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print errors, such as of a table, folder or device that cannot be used, in one line, and exit with status 2."""
    try:
        yield
    except (ValueError, OSError) as e:
        print(" ".join(str(e).split()), file=sys.stderr)
        sys.exit(2)


def check_counts(config: object, *names: str) -> None:
    """Check that numbers, or tuples of numbers, in a config are 1 or more.

    Raises:
        ValueError: one is not; the message names the option and the value.
    """
    for name in names:
        counted = getattr(config, name)
        if (least := min(counted) if isinstance(counted, tuple) else counted) < 1:
            raise ValueError(f"--{name}: expected 1 or more, got {least}.")
