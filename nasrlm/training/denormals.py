"""Treat denormal numbers as zero: those too small for a float's full precision slow a processor down many times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

DENORMAL = 1e-40  # a number that is denormal in 32 bits


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Flush denormals to zero in torch, if the CPU can, in this thread and in threads that start in this context."""
    before = float(torch.tensor(DENORMAL) * 1) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
