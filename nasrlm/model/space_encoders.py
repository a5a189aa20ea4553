"""Encoders of single spaces, each stored as the difference of its weights from those of the common encoder, in 8 bits.

One model for many spaces is less accurate on each than a model for that space alone; an encoder for each space
compensates for this. Differences are small compared to the weights, so 4 bits of exponent and 3 of mantissa suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.tensor_file import LARGEST_WEIGHT, check_numbers, read_tensors

UNIT = ".unit"  # ending of a unit's name in a file
EIGHT_BITS = torch.float8_e4m3fn
LARGEST = torch.finfo(EIGHT_BITS).max


class Change(NamedTuple):
    """The change of one tensor of weights."""

    numbers: Tensor  # of ``EIGHT_BITS``, viewed as bytes, because torch cannot unpickle such floats
    unit: Tensor  # () that the numbers are multiplied by

    @classmethod
    def of(cls, difference: Tensor) -> Change:
        """Round a difference, which is not 0 everywhere."""
        unit = difference.abs().max() / LARGEST
        return cls((difference / unit).to(EIGHT_BITS).view(torch.uint8), unit)

    def difference(self) -> Tensor:
        """Return the rounded difference."""
        return self.numbers.view(EIGHT_BITS).float() * self.unit


Changes = Mapping[str, Change]  # by name of the encoder's weights


def changes_of(own: nn.Module, common: nn.Module) -> Changes:
    """Return the changes that turn ``common`` into ``own``, up to rounding; unchanged weights are left out."""
    before = common.state_dict()
    differences = {name: (x.cpu() - before[name].cpu()).detach() for name, x in own.state_dict().items()}
    return {name: Change.of(difference) for name, difference in differences.items() if difference.any()}


def with_changes(model: RegressionLanguageModel, changes: Changes) -> RegressionLanguageModel:
    """Return a copy of the model with a changed encoder."""
    changed = deepcopy(model)
    weights = changed.encoder.state_dict()
    with torch.no_grad():
        for name, change in changes.items():
            weights[name] += change.difference().to(weights[name].device)
    return changed


def stored_changes(encoders: Mapping[str, Changes]) -> dict[str, Tensor]:
    """Return the changes of every space's encoder as they are stored in one safetensors file."""
    stored: dict[str, Tensor] = {}
    for space, changes in encoders.items():
        for name, change in changes.items():
            stored[f"{space}/{name}"] = change.numbers.view(EIGHT_BITS)
            stored[f"{space}/{name}{UNIT}"] = change.unit
    return stored


def load_changes(path: Path, model: RegressionLanguageModel) -> Mapping[str, Changes]:
    """Read a file of ``stored_changes``.

    Raises:
        ValueError: the file is broken or does not fit the model.
    """
    stored = read_tensors(path)
    weights = model.encoder.state_dict()
    for key, tensor in stored.items():
        name = key.rpartition("/")[2]
        changed = name.removesuffix(UNIT)
        want = () if name.endswith(UNIT) else tuple(weights[name].shape) if name in weights else None
        if changed not in weights or tuple(tensor.shape) != want or f"{key.removesuffix(UNIT)}{UNIT}" not in stored:
            raise ValueError(f"{path}: expected changes of the encoder's weights, got {key} of {tuple(tensor.shape)}.")
        check_numbers(path, key, tensor, LARGEST_WEIGHT)
    result: dict[str, dict[str, Change]] = {}
    for key, tensor in stored.items():
        if not key.endswith(UNIT):
            space, _, name = key.rpartition("/")
            # Copies, because tensors that were read keep the file open, and Windows does not remove open files.
            numbers, unit = tensor.to(EIGHT_BITS, copy=True), stored[f"{key}{UNIT}"].clone()
            change = Change(numbers.view(torch.uint8), unit)
            result.setdefault(space, {})[name] = change
    return result
