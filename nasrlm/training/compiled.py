"""Compile modules with ``torch.compile``, which needs a C++ compiler on a CPU."""

from __future__ import annotations

import os
import shutil
import sys
from typing import cast

import torch
from torch import nn


def compiled(module: nn.Module, device: str) -> nn.Module:
    """Return a module that compiles at its first call, for batches and texts of any size.

    Raises:
        ValueError: on a CPU without a C++ compiler.
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")  # as torch chooses it
    if torch.device(device).type == "cpu" and shutil.which(compiler) is None:
        raise ValueError(
            f"train: compile expects a C++ compiler, got no {compiler!r} on PATH. Install one or leave `compile` out."
        )
    return cast(nn.Module, torch.compile(module, dynamic=True))
