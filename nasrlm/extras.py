"""Check for packages that are only installed with an extra of this one."""

from __future__ import annotations

from importlib.util import find_spec


def check_extra(what: str, extra: str, *packages: str) -> None:
    """Check, before any work is done, that packages are installed.

    Args:
        what: needs them; the message begins with it.
        extra: name of the extra that installs them.
        packages: names under which they are imported.

    Raises:
        ImportError: one is not installed; the command line prints it as one line.
    """
    for package in packages:
        if find_spec(package) is None:
            raise ImportError(f"{what}: expected the package {package}, got none. Install nasrlm[{extra}].")
