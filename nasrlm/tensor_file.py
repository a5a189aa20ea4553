"""Files of tensors, read and checked with clear errors."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

LARGEST_GRAPH_WEIGHT = 1e3  # of a graph network, which multiplies them along the edges; 6e4 overflows
LARGEST_WEIGHT = 1e6  # the released model's is 3.5; what is made of weights from 1e19 on overflows, and answers are NaN
LARGEST_NUMBER = torch.finfo(torch.float32).max


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name.

    Raises:
        ValueError: there is no such file, or a broken one.
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError) as e:
        raise ValueError(f"{path}: expected a safetensors file, got {e}. It may be truncated.") from e


def check_numbers(path: Path, name: str, tensor: Tensor, largest: float) -> None:
    """Refuse a tensor of which a number is NaN or lies beyond ``largest`` on either side of 0.

    Raises:
        ValueError: one does; the message names the file and the tensor.
    """
    if not (tensor.float().abs() <= largest).all():
        raise ValueError(f"{path}: expected numbers within ±{largest:.3g}, got NaN or larger ones in tensor {name}.")
