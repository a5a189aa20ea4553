"""Code that a user brings, such as a space, an evaluator or an augmentation."""

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

# Found, not imported, which would take longer than `nasrlm --help` does.
_SPECS = [find_spec(package) for package in ("converters", "nasrlm", "spaces", "studies")]
_OURS = [Path(spec.origin).parent.resolve() for spec in _SPECS if spec and spec.origin]
_PATHS = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")]
_INSTALLED = [Path(path).resolve() for path in (*_PATHS, *site.getsitepackages(), site.getusersitepackages())]


def see_own_modules() -> None:
    """Let the user's modules in the working directory be imported, as ``python -m`` does."""
    sys.path.insert(0, os.getcwd())


def is_ours(filename: str) -> bool:
    """Whether a file of code is of this project."""
    return any(Path(filename).resolve().is_relative_to(place) for place in _OURS)


def told_in_one_line(error: BaseException) -> str | None:
    """Describe an error that arose in, or passed through, a user's code, with the last line of theirs: one line.

    None of an error that has nothing to do with their code. A ``ValueError``, which is how bad input is refused, is
    told by its message alone, any other error by its type and message. Notes of the error follow.
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
    """Within this, whatever the user's code raises becomes a ValueError of one line that names the line of theirs.

    Args:
        expected: how the message begins; what was raised follows.
    """
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as e:  # SystemExit and asyncio.CancelledError are no Exception
        said = told_in_one_line(e)
        if said is None and isinstance(e, ValueError):
            raise
        raise ValueError(f"{expected}, got {said or repr(e)}.") from e
