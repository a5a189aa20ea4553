"""Read files of tensors and check their numbers, with clear errors."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

LARGEST_GRAPH_WEIGHT = 1e3  # of a graph network, where products of weights grow along the edges; 6e4 overflows
LARGEST_WEIGHT = 1e6  # the released model's largest is 3.5; from 1e19 on, results overflow and predictions are NaN
LARGEST_NUMBER = torch.finfo(torch.float32).max


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, by name.

    Raises:
        ValueError: the file is missing, broken or may not be read.
    """
    try:
        path.open("rb").close()  # of a file that it may not read, load_file says that there is none
        return load_file(path)
    except OSError as e:
        raise ValueError(f"{path}: expected a safetensors file, got {e.strerror}. Copy the whole checkpoint.") from e
    except SafetensorError as e:
        raise ValueError(f"{path}: expected a safetensors file, got {e}. It may be truncated.") from e


def check_numbers(path: Path, name: str, tensor: Tensor, largest: float) -> None:
    """Check that the numbers of a tensor are within ±``largest``, and none is NaN.

    Raises:
        ValueError: they are not; the message names the file and the tensor.
    """
    if not (tensor.float().abs() <= largest).all():
        raise ValueError(f"{path}: expected numbers within ±{largest:.3g}, got NaN or larger ones in tensor {name}.")
