"""Errors about files that cannot be read or written and about models that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PLACE_IN_CODE = re.compile(r"/\S+:\d+: \S+: Assertion `.*?` failed: ")  # of onnx's version converter


class OnnxModelError(ValueError):
    """A file, model or torch module that cannot be read as a network."""


def instead_of_file(path: Path) -> str:
    """Describe for a message what is at a path that should be a file and is not."""
    return "a folder" if path.is_dir() else "no such file"


def check_ending(path: Path, *endings: str) -> None:
    """Check the ending, in any case of letters, of the name of a file to be written.

    Raises:
        ValueError: the name has none of these endings.
    """
    if path.suffix.lower() not in endings:
        wanted, got = " or ".join(endings), path.suffix or "no ending"
        raise ValueError(f"{path}: expected a file ending in {wanted}, got {got}.")


@contextmanager
def one_line_errors(expected: str, advice: str = "") -> Iterator[None]:
    """Turn any error that a library raises into an OnnxModelError with a message of one line."""
    try:
        yield
    except OnnxModelError:
        raise
    except (Exception, SystemExit) as e:  # protobuf, the checker, the converter, inference and torch raise many kinds
        said = f"{type(e).__name__}: {e}" if isinstance(e, LookupError) else str(e)  # a KeyError's text is only the key
        got = (_PLACE_IN_CODE.sub("", " ".join(said.split()))[:300] or type(e).__name__).rstrip(".")
        raise OnnxModelError(f"{expected}, got: {got}. {advice}".rstrip()) from e
