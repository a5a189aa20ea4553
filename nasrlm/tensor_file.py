"""Files of tensors, read with clear errors."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name.

    Raises:
        ValueError: there is no such file, or a broken one.
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError) as e:
        raise ValueError(f"{path}: expected a safetensors file, got {e}. It may be truncated.") from e
