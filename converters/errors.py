"""The errors of files that cannot be read or written, and of models that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class OnnxModelError(ValueError):
    """A file, model or torch module that cannot be read as a network."""


def instead_of_file(path: Path) -> str:
    """What is at a path that leads to no file, in words."""
    return "a folder" if path.is_dir() else "no such file"


def check_ending(path: Path, *endings: str) -> None:
    """Check the ending of a file that is to be written.

    Raises:
        ValueError: it has none of these endings.
    """
    if path.suffix not in endings:
        wanted, got = " or ".join(endings), path.suffix or "no ending"
        raise ValueError(f"{path}: expected a file ending in {wanted}, got {got}.")


@contextmanager
def one_line_errors(expected: str, advice: str = "") -> Iterator[None]:
    """Whatever kind of error a library raises, as an OnnxModelError of one line."""
    try:
        yield
    except OnnxModelError:
        raise
    except (Exception, SystemExit) as e:  # protobuf, the checker, the converter, inference and torch raise many kinds
        said = f"{type(e).__name__}: {e}" if isinstance(e, LookupError) else str(e)  # a KeyError says its key alone
        got = (" ".join(said.split())[:300] or type(e).__name__).rstrip(".")
        raise OnnxModelError(f"{expected}, got: {got}. {advice}".rstrip()) from e
