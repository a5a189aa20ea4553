"""Read and check the files of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import torch

from nasrlm.checkpoints.folder import CheckpointError
from nasrlm.model.cost_sum import CostSum, CostSums
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.space_encoders import Changes, load_changes
from nasrlm.tensor_file import LARGEST_GRAPH_WEIGHT, LARGEST_NUMBER, LARGEST_WEIGHT, check_numbers, read_tensors

FORMAT_VERSION = 6
# Version 2 added encoders of single spaces, 4 costs as sums, 5 readouts with a slope along the macs, 6 one along the
# activations.
READABLE = (1, 2, 3, 4, 5, FORMAT_VERSION)
READS, READS_SUMS = 3, 4  # oldest versions whose readouts, without and with row sums, can still be used


def read_config(folder: Path) -> dict[str, Any]:
    """Read config.json; a CheckpointError if it is no JSON or of another version."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except ValueError as e:
        raise CheckpointError(f"{folder / 'config.json'}: expected JSON, got {e}.") from e
    version = config.get("format_version") if isinstance(config, dict) else None
    if version not in READABLE:
        raise CheckpointError(
            f"{folder / 'config.json'}: expected format_version {READABLE[0]} to {READABLE[-1]}, got {version}. "
            "A newer checkpoint needs a newer nasrlm."
        )
    return dict(config)


def objectives_of_json(stored: Any) -> tuple[str, ...]:
    """Return stored names of objectives; a ValueError if they are something else or repeat."""
    named = isinstance(stored, list) and all(isinstance(name, str) for name in stored)
    if not named or len(set(stored)) < len(stored):
        raise ValueError(f"objectives: expected a list of different names, got {str(stored)[:60]}")
    return tuple(stored)


def sums_of_json(stored: Any, objectives: Sequence[str]) -> CostSums:
    """Return stored sums by objective; a ValueError, KeyError or TypeError if they are something else."""
    if not isinstance(stored, dict) or not set(stored) <= set(objectives):
        raise ValueError(f"sums: expected sums for objectives of the checkpoint, got {str(stored)[:60]}")
    return {name: CostSum.of_json(x) for name, x in stored.items()}


def readout_spaces_of_json(stored: Any, num_readouts: int) -> tuple[str, ...]:
    """Return stored names of the spaces of readouts; a ValueError if there is not one for each."""
    named = isinstance(stored, list) and all(isinstance(name, str) for name in stored)
    if not named or len(stored) != num_readouts:
        raise ValueError(f"readout_spaces: expected {num_readouts} names, got {str(stored)[:60]}")
    return tuple(stored)


def load_weights(model: RegressionLanguageModel, num_objectives: int, path: Path) -> int:
    """Check a file of weights and load it into the model; return the precision of learned weights, 16 or 32 bits."""
    weights = read_tensors(path)
    expected, learned = model.state_dict(), dict(model.named_parameters())
    for name in sorted(expected.keys() | weights.keys()):
        have = tuple(weights[name].shape) if name in weights else "none"
        want = tuple(expected[name].shape) if name in expected else "none"
        if have != want:
            raise ValueError(f"{path}: expected tensor {name} of shape {want}, got {have}.")
        kinds = [x.dtype.is_floating_point for x in (weights[name], expected[name])]
        if kinds[0] != kinds[1] or weights[name].is_complex():
            raise ValueError(f"{path}: expected tensor {name} of {expected[name].dtype}, got {weights[name].dtype}.")
        check_numbers(path, name, weights[name], _largest(name) if name in learned else LARGEST_NUMBER)
    if model.readouts is not None:
        read = weights["readouts.objectives"].tolist()
        if not set(read) <= set(range(num_objectives)):
            raise ValueError(f"{path}: expected readouts of objectives 0..{num_objectives - 1}, got {read}.")
        for name in ("readouts.shares", "readouts.sum_shares"):
            shares = weights.get(name, torch.zeros(1))
            if shares.min() < 0 or shares.max() > 1:
                raise ValueError(f"{path}: expected {name} between 0 and 1, got {shares.min():g} to {shares.max():g}.")
    model.load_state_dict(weights)
    return 16 if all(weights[name].dtype == torch.float16 for name in learned) else 32


def _largest(name: str) -> float:
    """Return the largest allowed magnitude of a weight; smaller in graph networks, which multiply them along edges."""
    return LARGEST_GRAPH_WEIGHT if name.startswith("readouts.networks.") else LARGEST_WEIGHT


def load_encoders(spaces: Set[str], path: Path, model: RegressionLanguageModel) -> Mapping[str, Changes]:
    """Read the encoders of these spaces; a ValueError if the file has others, is broken or does not fit the model."""
    if not spaces:
        return {}
    encoders = load_changes(path, model)
    if set(encoders) != spaces:
        raise ValueError(
            f"{path}: expected encoders of {', '.join(sorted(spaces))}, got {', '.join(encoders) or 'none'}."
        )
    return encoders
