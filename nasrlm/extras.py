"""Packages that are only installed with an extra of this one."""

from __future__ import annotations

from importlib.util import find_spec


def check_extra(what: str, extra: str, *packages: str) -> None:
    """Check, before any work is done, that packages are installed.

    Args:
        what: needs them, with which the message begins.
        extra: that has them.
        packages: by the names that are imported.

    Raises:
        ImportError: one is not; the command line tells it in a line.
    """
    for package in packages:
        if find_spec(package) is None:
            raise ImportError(f"{what}: expected the package {package}, got none. Install nasrlm[{extra}].")
