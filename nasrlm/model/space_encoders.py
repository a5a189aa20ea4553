"""Encoders of single spaces, each stored as the difference of its weights from those of the common encoder, in 8 bits.

One model for many spaces is less accurate on each than a model for that space alone; an encoder for each space
compensates for this. Differences are small compared to the weights, so 4 bits of exponent and 3 of mantissa suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.tensor_file import LARGEST_WEIGHT, check_numbers, read_tensors

# By name of the encoder's weights: 8-bit changes of each, and, with UNIT appended to the name, their scale.
Changes = Mapping[str, Tensor]

UNIT = ".unit"
EIGHT_BITS = torch.float8_e4m3fn
LARGEST = torch.finfo(EIGHT_BITS).max


def changes_of(own: nn.Module, common: nn.Module) -> Changes:
    """Return the changes that turn ``common`` into ``own``, up to rounding; unchanged weights are left out."""
    result: dict[str, Tensor] = {}
    before = common.state_dict()
    for name, weights in own.state_dict().items():
        change = (weights.cpu() - before[name].cpu()).detach()
        if change.any():
            unit = change.abs().max() / LARGEST
            result[name], result[name + UNIT] = (change / unit).to(EIGHT_BITS), unit
    return result


def with_changes(model: RegressionLanguageModel, changes: Changes) -> RegressionLanguageModel:
    """Return a copy of the model with a changed encoder."""
    changed = deepcopy(model)
    weights = changed.encoder.state_dict()
    with torch.no_grad():
        for name, change in changes.items():
            if not name.endswith(UNIT):
                weights[name] += (change.float() * changes[name + UNIT]).to(weights[name].device)
    return changed


def as_bytes(changes: Changes) -> Changes:
    """View 8-bit floats as bytes, because torch cannot unpickle such floats; ``of_bytes`` is the inverse."""
    return {name: x.view(torch.uint8) if x.dtype == EIGHT_BITS else x for name, x in changes.items()}


def of_bytes(changes: Changes) -> Changes:
    """View bytes as 8-bit floats again: the inverse of ``as_bytes``."""
    return {name: x.view(EIGHT_BITS) if x.dtype == torch.uint8 else x for name, x in changes.items()}


def save_changes(path: Path, encoders: Mapping[str, Changes]) -> None:
    """Write the changes of every space's encoder to one safetensors file."""
    save_file({f"{space}/{name}": x for space, changes in encoders.items() for name, x in changes.items()}, path)


def load_changes(path: Path, model: RegressionLanguageModel) -> Mapping[str, Changes]:
    """Read a file that ``save_changes`` wrote.

    Raises:
        ValueError: the file is broken or does not fit the model.
    """
    stored = read_tensors(path)
    weights = model.encoder.state_dict()
    result: dict[str, dict[str, Tensor]] = {}
    for key, tensor in stored.items():
        space, _, name = key.rpartition("/")
        changed = name.removesuffix(UNIT)
        want = () if name.endswith(UNIT) else tuple(weights[name].shape) if name in weights else None
        if changed not in weights or tuple(tensor.shape) != want or f"{space}/{changed}{UNIT}" not in stored:
            raise ValueError(f"{path}: expected changes of the encoder's weights, got {key} of {tuple(tensor.shape)}.")
        check_numbers(path, key, tensor, LARGEST_WEIGHT)
        result.setdefault(space, {})[name] = tensor
    return result
