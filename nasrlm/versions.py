"""Versions of Python and libraries, for records of results."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version


def versions_of(*libraries: str) -> dict[str, str]:
    """Return Python's version and those of the libraries that are installed, by name."""
    found = {"python": platform.python_version()}
    for library in libraries:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found
