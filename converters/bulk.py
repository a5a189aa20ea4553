"""Texts of many architectures, on several cores where that pays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from tqdm import tqdm

from converters.convert import to_measured_text, to_onnx_text
from converters.engines import map_in_order, num_workers
from spaces.space import SearchSpace

A = TypeVar("A", bound=Hashable)

CHUNK = 64


def to_onnx_texts(
    space: SearchSpace[A],
    architectures: Sequence[A],
    *,
    measured: bool = False,
    progress: bool = False,
) -> list[str]:
    """Canonical text of every architecture, in the order given; equal ones are converted once.

    Processes share the work, as many as there are cores, if there is enough of it. Where they are not forked the
    program needs its ``if __name__ == "__main__":``. A table too long for memory is the work of ``converters.stream``.

    Args:
        space: of all architectures.
        architectures: N architectures.
        measured: give ``to_measured_text`` instead.
        progress: show a bar on stderr.

    Raises:
        RuntimeError: a worker was killed, or could not start.
    """
    distinct = list(dict.fromkeys(architectures))
    chunks = [distinct[start : start + CHUNK] for start in range(0, len(distinct), CHUNK)]
    convert = partial(_texts, to_measured_text if measured else to_onnx_text, space)
    converted = map_in_order(convert, chunks, workers=num_workers(None, len(distinct)))
    flat = tqdm(chain.from_iterable(converted), "convert", len(distinct), unit="text", disable=not progress)
    texts = dict(zip(distinct, flat, strict=True))
    return [texts[architecture] for architecture in architectures]


def _texts(convert: Callable[[SearchSpace[A], A], str], space: SearchSpace[A], architectures: Sequence[A]) -> list[str]:
    return [convert(space, architecture) for architecture in architectures]
