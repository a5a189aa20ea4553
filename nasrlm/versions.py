"""Versions of libraries, for the record."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version


def versions_of(*libraries: str) -> dict[str, str]:
    """Python's version and those of the libraries that are installed, by name."""
    found = {"python": platform.python_version()}
    for library in libraries:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found
