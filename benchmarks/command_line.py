"""How a benchmark's command ends where something is wrong with what it was given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Within this, a table, folder or device that cannot be used is told in one line, and the exit status is 2."""
    try:
        yield
    except (ValueError, OSError) as e:
        print(" ".join(str(e).split()), file=sys.stderr)
        sys.exit(2)


def check_counts(config: object, *names: str) -> None:
    """Refuse options whose number, or any of whose numbers, is below 1.

    Raises:
        ValueError: names the option and its value.
    """
    for name in names:
        counted = getattr(config, name)
        if (least := min(counted) if isinstance(counted, tuple) else counted) < 1:
            raise ValueError(f"--{name}: expected 1 or more, got {least}.")
