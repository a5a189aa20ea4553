"""Texts of many architectures, on several cores where that pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeVar

from tqdm import tqdm

from converters.convert import to_onnx_text
from spaces.space import SearchSpace

A = TypeVar("A", bound=Hashable)

CHUNK = 64
WORTH_A_PROCESS = 512  # starting a worker costs about as much as so many texts


def to_onnx_texts(
    space: SearchSpace[A], architectures: Sequence[A], *, workers: int | None = None, progress: bool = False
) -> list[str]:
    """Canonical text of every architecture, in the order given; isomorphic ones are converted once.

    Args:
        space: of all architectures.
        architectures: N architectures.
        workers: processes; as many as there are cores, if there is work for them, when None.
        progress: show a bar on stderr.
    """
    keys = [space.architecture_key(architecture) for architecture in architectures]
    unique = dict(zip(keys, architectures, strict=True))
    if workers is None:
        workers = min(os.cpu_count() or 1, len(unique) // WORTH_A_PROCESS)
    convert: Callable[[A], str] = partial(to_onnx_text, space)
    with tqdm(total=len(unique), desc="convert", unit="text", disable=not progress) as bar:
        texts: dict[str, str] = {}
        if workers > 1:
            with ProcessPoolExecutor(workers) as pool:
                for key, text in zip(unique, pool.map(convert, unique.values(), chunksize=CHUNK), strict=True):
                    texts[key] = text
                    bar.update()
        else:
            for key, architecture in unique.items():
                texts[key] = convert(architecture)
                bar.update()
    return [texts[key] for key in keys]
