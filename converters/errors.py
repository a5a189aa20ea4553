"""The error of a model that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class OnnxModelError(ValueError):
    """A file, model or torch module that cannot be read as a network."""


@contextmanager
def one_line_errors(expected: str, advice: str = "") -> Iterator[None]:
    """Whatever kind of error a library raises, as an OnnxModelError of one line."""
    try:
        yield
    except OnnxModelError:
        raise
    except (Exception, SystemExit) as e:  # protobuf, the checker, the converter, inference and torch raise many kinds
        got = (" ".join(str(e).split())[:300] or type(e).__name__).rstrip(".")
        raise OnnxModelError(f"{expected}, got: {got}. {advice}".rstrip()) from e
