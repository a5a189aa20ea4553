"""Numbers too small for a float's full precision, which a processor computes with many times as slowly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

DENORMAL = 1e-40  # in 32 bits


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Within this, torch counts them as zero on a CPU that can: in this thread and those that start meanwhile."""
    before = float(torch.tensor(DENORMAL) * 1) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
