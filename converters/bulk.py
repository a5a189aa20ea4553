"""Converts many architectures to text, in several processes if there is enough work."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from converters.convert import to_measured_text, to_onnx_text
from converters.engines import in_chunks
from spaces.space import SearchSpace

A = TypeVar("A", bound=Hashable)


def to_onnx_texts(
    space: SearchSpace[A],
    architectures: Sequence[A],
    *,
    measured: bool = False,
    progress: bool = False,
) -> list[str]:
    """Return the canonical text of every architecture, in the order given; equal ones are converted once.

    If there is enough work, it is shared by as many processes as there are cores; unless the start method is ``fork``,
    not if the space's class is defined in the program's own file. For tables that do not fit into memory use
    ``converters.tables.stream``.

    Args:
        space: the space of all architectures.
        architectures: N architectures.
        measured: return measured texts, see ``to_measured_text``.
        progress: show a bar on stderr.

    Raises:
        RuntimeError: a worker was killed, or could not start.
    """
    distinct = list(dict.fromkeys(architectures))
    to_text = partial(to_measured_text if measured else to_onnx_text, space)
    texts = dict(zip(distinct, texts_of(to_text, distinct, progress=progress), strict=True))
    return [texts[architecture] for architecture in architectures]


def texts_of(to_text: Callable[[A], str], architectures: Sequence[A], *, progress: bool = False) -> Iterator[str]:
    """Yield ``to_text`` of every architecture, in the order given.

    Uses processes under the same conditions as ``to_onnx_texts``.

    Args:
        to_text: function from architecture to text; if it cannot be pickled, as a lambda, no other process is used.
        architectures: N architectures.
        progress: show a bar on stderr.

    Raises:
        RuntimeError: a worker was killed, or could not start.
    """
    return in_chunks(partial(_texts, to_text), architectures, "convert", unit="text", progress=progress)


def _texts(to_text: Callable[[A], str], architectures: Sequence[A]) -> list[str]:
    return [to_text(architecture) for architecture in architectures]
