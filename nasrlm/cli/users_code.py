"""Import users' code, such as a space, an evaluator or an augmentation, and report its errors in one line."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

# Located without importing, which would take longer than `nasrlm --help` does.
_SPECS = [find_spec(package) for package in ("converters", "nasrlm", "spaces", "studies")]
_OURS = [Path(spec.origin).parent.resolve() for spec in _SPECS if spec and spec.origin]
_PATHS = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")]
_INSTALLED = [Path(path).resolve() for path in (*_PATHS, *site.getsitepackages(), site.getusersitepackages())]


def add_working_directory() -> None:
    """Make modules in the working directory importable, as ``python -m`` does."""
    sys.path.insert(0, os.getcwd())


def is_ours(filename: str) -> bool:
    """Return whether a source file belongs to this project."""
    return any(Path(filename).resolve().is_relative_to(place) for place in _OURS)


def describe_error(error: BaseException) -> str | None:
    """Describe, in one line, an error that was raised in or passed through a user's code, with the last line of theirs.

    Returns None for an error that has nothing to do with their code. A ``ValueError``, which refuses bad input, is
    described by its message alone, any other error by type and message. Notes of the error follow.
    """
    said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and not any(path.resolve().is_relative_to(place) for place in _OURS + _INSTALLED):
            told = [f"{said} ({frame.filename}:{frame.lineno})", *getattr(error, "__notes__", ())]
            return " ".join(", ".join(told).split())
    return None


@contextmanager
def one_line_of_users(expected: str) -> Iterator[None]:
    """Turn any error of a user's code in this context into a ValueError of one line that names the line of theirs.

    Args:
        expected: start of the message; the error follows.
    """
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as e:  # SystemExit and asyncio.CancelledError are not subclasses of Exception
        said = describe_error(e)
        if said is None and isinstance(e, ValueError):
            raise
        raise ValueError(f"{expected}, got {said or repr(e)}.") from e
