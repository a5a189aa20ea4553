"""Checkpoints: a trained model with everything that its predictions need, stored in a folder.

The folder has the form of Hugging Face: config.json, model.safetensors, tokenizer.json and README.md. If spaces have
encoders of their own, these are in spaces.safetensors. Costs of rows, for objectives predicted as row sums, are in
config.json.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from nasrlm.arguments import checked_folder
from nasrlm.calibration import Calibration, read_calibration
from nasrlm.checkpoints.files import (
    FORMAT_VERSION,
    READS,
    READS_SUMS,
    load_encoders,
    load_weights,
    objectives_of_json,
    read_config,
    readout_spaces_of_json,
    sums_of_json,
)
from nasrlm.checkpoints.folder import (
    README,
    SPACES_FILE,
    WEIGHT_FILES,
    CheckpointError,
    folder_or_released,
    read_tokenizer,
    replace_folder,
)
from nasrlm.files import make_readable, to_json
from nasrlm.model.config import COMPACT, ModelConfig
from nasrlm.model.cost_sum import CostSums
from nasrlm.model.devices import torch_device
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.model.space_encoders import Changes, stored_changes, with_changes
from nasrlm.named_spaces import known_as
from nasrlm.text.tokenizer import TextTokenizer


@dataclass(frozen=True)
class Checkpoint:
    """A trained model with everything that its predictions need.

    Attributes:
        model: the model, in evaluation mode, on the device on which it predicts.
        tokenizer: tokenizer of its texts, which truncates as the model's config says.
        objectives: names of the M objectives, in decoding order.
        calibration: calibrated levels by objective, see ``nasrlm.calibration``.
        card: how it was trained, on what, and its measured quality; shown by ``nasrlm info``.
        calibration_by_space: calibration by space, from that space's valid rows; empty if the model was trained on a
            single space. The keys of a space are the objectives learned from it; their levels are empty if there were
            too few rows to calibrate.
        encoders: for spaces with an encoder of their own, the differences of its weights from the model's encoder.
        sums: row sums by objective, for costs that are predicted as sums in every space.
        sums_by_space: row sums by space and objective, for costs that are predicted as sums in that space only.
        readout_spaces: of each of the model's A readouts, the space of the networks that it was fitted to, or "".
        weight_bits: 32, or 16 if the model's weights are rounded to 16 bits, which halves its file.
    """

    model: RegressionLanguageModel
    tokenizer: TextTokenizer
    objectives: tuple[str, ...]
    calibration: Calibration = field(default_factory=dict)
    card: Mapping[str, Any] = field(default_factory=dict)
    calibration_by_space: Mapping[str, Calibration] = field(default_factory=dict)
    encoders: Mapping[str, Changes] = field(default_factory=dict)
    sums: CostSums = field(default_factory=dict)
    sums_by_space: Mapping[str, CostSums] = field(default_factory=dict)
    readout_spaces: Sequence[str] = ()
    weight_bits: int = 32

    def __repr__(self) -> str:
        known = f"{len(self.objectives)} objectives, {len(self.spaces)} spaces"
        return f"Checkpoint({known}, {self.model.num_parameters:,} parameters; see objectives, spaces, card)"

    def of_space(self, space: str) -> Checkpoint:
        """Return the checkpoint for networks of one space, with the space's calibration, sums and encoder, if any."""
        space = known_as(space, self.spaces)
        own = {name: levels for name, levels in self.calibration_by_space.get(space, {}).items() if levels}
        sums = {**self.sums, **self.sums_of(space)}
        known = replace(self, calibration={**self.calibration, **own}, sums=sums)
        if space not in self.encoders:
            return known
        return replace(known, model=with_changes(self.model, self.encoders[space]), encoders={})

    def sums_of(self, space: str) -> CostSums:
        """Return the row sums of one space only, by objective; the space may be named by another path to its file."""
        return self.sums_by_space.get(known_as(space, self.sums_by_space), {})

    @property
    def sha256(self) -> str:
        """Hash of everything that predictions depend on, in 16 hexadecimal digits.

        That is weights, including encoders of spaces, tokenizer, objectives, calibration, sums, spaces of readouts and
        truncation. The rest of the model's config is left out: with other values, its weights would be of no use.
        """
        digest = hashlib.sha256(self.tokenizer.to_json().encode())
        calibrations = {"": self.calibration, **self.calibration_by_space}
        levels = [[space, sorted(x.items())] for space, x in sorted(calibrations.items())]
        digest.update(to_json([self.objectives, levels]).encode())
        for name, weights in (*self.model.state_dict().items(), *sorted(stored_changes(self.encoders).items())):
            digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
            digest.update(weights.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        if sums := self._stored_sums():
            digest.update(to_json(sums).encode())
        if any(self.readout_spaces):
            digest.update(to_json(self.readout_spaces).encode())
        if limit := self.model.config.token_limit:
            digest.update(to_json(asdict(limit)).encode())
        return digest.hexdigest()[:16]

    @property
    def spaces(self) -> tuple[str, ...]:
        """The spaces that the model has learned from, if they are recorded."""
        return tuple(self.calibration_by_space or self.card.get("test", ()))

    @property
    def measured_spaces(self) -> tuple[str, ...]:
        """Spaces that it has learned from measured texts, see ``nasrlm.text.network``; none if that was not noted."""
        return tuple(self.card.get("measured_spaces", ()))

    @property
    def read_off(self) -> frozenset[str]:
        """The objectives that a readout predicts instead of the decoder (``nasrlm.model.readout``)."""
        return frozenset(self.of_readouts)

    @property
    def of_readouts(self) -> list[str]:
        """The objective of each of the model's A readouts."""
        readouts = self.model.readouts
        return [] if readouts is None else [self.objectives[x] for x in readouts.objectives.tolist()]

    @property
    def added(self) -> frozenset[str]:
        """The objectives that ``adapt`` has added, and known ones that it has taught again, from any networks."""
        trained = self._trained
        return frozenset(name for name in self.read_off if name not in trained or self.taught_spaces(name))

    def taught_spaces(self, objective: str) -> Sequence[str]:
        """Return the spaces of the networks that an objective was adapted to; empty if one is not recorded."""
        spaces = [space for name, space in zip(self.of_readouts, self.readout_spaces, strict=True) if name == objective]
        return spaces if all(spaces) else []

    def was_taught(self, objective: str, space: str) -> bool:
        """Return whether an objective of ``added`` was adapted to networks of a space; True if none is recorded."""
        spaces = self.taught_spaces(objective)
        return not spaces or known_as(space, spaces) in spaces

    def guessed_of(self, space: str) -> frozenset[str]:
        """Return the objectives whose predictions for networks of an unknown space are guesses.

        These are all objectives except those that ``adapt`` has learned from networks of this space, or from networks
        whose spaces are not recorded. Empty for a space that the checkpoint was trained on, for no space (""), and if
        the trained spaces are not recorded.
        """
        if not space or not self.spaces or known_as(space, self.spaces) in self.spaces:
            return frozenset()
        added = self.added
        return frozenset(name for name in self.objectives if name not in added or not self.was_taught(name, space))

    def objectives_of(self, space: str) -> tuple[str, ...]:
        """Return the objectives that are predicted for networks of a space if none are named, in decoding order.

        These are the objectives learned from networks of the space, and those added by ``adapt``, from whatever
        networks. For a space that the checkpoint was not trained on, or if it was trained on a single space, these are
        all objectives.
        """
        space = known_as(space, self.spaces)
        if space not in self.calibration_by_space:
            return self.objectives
        own, trained = self.calibration_by_space[space], self._trained
        anew = {name: self.was_taught(name, space) for name in self.added & trained}
        return tuple(x for x in self.objectives if x not in trained or anew.get(x, x in own))

    @property
    def _trained(self) -> frozenset[str]:
        """The objectives that were learned in training, in any space; empty if it was trained on a single space."""
        return frozenset(name for calibration in self.calibration_by_space.values() for name in calibration)

    def save_pretrained(self, folder: Path | str, readme: str | None = None) -> None:
        """Write the folder; an older checkpoint is replaced once all files are written, other files stay.

        Args:
            folder: folder that is new, empty, or has an older checkpoint.
            readme: content of README.md; if None, an existing one stays.

        Raises:
            ValueError: it is no path, or as ``check_replaceable``.
            OSError: the folder cannot be written; it is unchanged.
        """
        replace_folder(checked_folder("checkpoint", folder).resolve(), lambda fresh: self._write(fresh, readme))

    def _write(self, folder: Path, readme: str | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        config = {
            "format_version": FORMAT_VERSION,
            "model": asdict(self.model.config),
            "number_code": asdict(self.model.code),
            "objectives": list(self.objectives),
            "calibration": dict(self.calibration),
            "calibration_by_space": {space: dict(x) for space, x in self.calibration_by_space.items()},
            "encoders": sorted(self.encoders),
            **self._stored_sums(),
            "readout_spaces": list(self.readout_spaces),
            "card": dict(self.card),
        }
        (folder / "config.json").write_text(to_json(config, indent=1) + "\n", encoding="utf-8")
        if readme is not None:
            (folder / README).unlink(missing_ok=True)  # it may be a link
            (folder / README).write_text(readme, encoding="utf-8")
        self.tokenizer.save(folder / "tokenizer.json")
        save_file(self._stored_weights(), folder / "model.safetensors")
        if self.encoders:
            save_file(stored_changes(self.encoders), folder / SPACES_FILE)
        for name in WEIGHT_FILES:
            if (folder / name).exists():
                make_readable(folder / name)

    def _stored_sums(self) -> dict[str, Any]:
        sums = {name: x.to_json() for name, x in self.sums.items()}
        by_space = {
            space: {name: x.to_json() for name, x in of_space.items()} for space, of_space in self.sums_by_space.items()
        }
        return {key: stored for key, stored in (("sums", sums), ("sums_by_space", by_space)) if stored}

    def _stored_weights(self) -> dict[str, Tensor]:
        halved = {name for name, _ in self.model.named_parameters()} if self.weight_bits == 16 else set()
        weights = self.model.state_dict().items()
        return {name: (x.half() if name in halved else x).contiguous() for name, x in weights}

    @classmethod
    def from_pretrained(cls, folder: Path | str | None = None, device: str = "cpu") -> Checkpoint:
        """Read a checkpoint from a folder; if None, the released checkpoint, which is part of the package.

        Raises:
            CheckpointError: a file is missing, broken or of a newer version, files do not fit each other, or the model
                does not fit into memory.
            ValueError: torch cannot use the device.
        """
        folder = folder_or_released(folder)
        tokenizer, config = read_tokenizer(folder), read_config(folder)
        try:
            untrained, own_encoders = cls._of_config(config, tokenizer), set(map(str, config.get("encoders", [])))
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, RuntimeError) as e:
            # RuntimeError: torch has no memory for these sizes.
            raise CheckpointError(f"{folder / 'config.json'}: expected a model of this version, got {e!r}.") from e
        model = untrained.model
        try:
            weight_bits = load_weights(model, len(untrained.objectives), folder / "model.safetensors")
            encoders = load_encoders(own_encoders, folder / SPACES_FILE, model)
        except ValueError as e:
            raise CheckpointError(str(e)) from e
        model.to(torch_device(device)).eval()
        loaded = replace(untrained, encoders=encoders, weight_bits=weight_bits)
        sums = [*loaded.sums, *(name for of_space in loaded.sums_by_space.values() for name in of_space)]
        if both := loaded.read_off.intersection(sums):
            raise CheckpointError(
                f"{folder}: expected {', '.join(sorted(both))} to have either a readout or a sum of costs, got both."
            )
        return loaded

    @classmethod
    def _of_config(cls, config: Mapping[str, Any], tokenizer: TextTokenizer) -> Checkpoint:
        """Return the checkpoint that a ``config.json`` describes, with random weights and no encoders of spaces."""
        objectives, card = objectives_of_json(config["objectives"]), dict(config["card"])
        calibration = read_calibration(config["calibration"])
        by_space = {space: read_calibration(x) for space, x in config.get("calibration_by_space", {}).items()}
        sums = sums_of_json(config.get("sums", {}), objectives)
        sums_by_space = {space: sums_of_json(x, objectives) for space, x in config.get("sums_by_space", {}).items()}
        code = NumberCode(**config["number_code"])
        sizes = ModelConfig(**config["model"])
        if sizes.backbone != COMPACT and not sizes.backbone_sizes:
            raise ValueError(f"backbone {sizes.backbone} without backbone_sizes")
        if sizes.num_readouts and config["format_version"] < (READS_SUMS if sizes.num_sum_rows else READS):
            raise ValueError("readouts of an earlier version; adapt again")
        spaces = readout_spaces_of_json(config.get("readout_spaces", [""] * sizes.num_readouts), sizes.num_readouts)
        model = RegressionLanguageModel.to_fill(sizes, tokenizer.vocabulary_size, len(objectives), code)
        limited = tokenizer.limited(sizes.token_limit)
        untrained = cls(model, limited, objectives, calibration, card, by_space)
        return replace(untrained, sums=sums, sums_by_space=sums_by_space, readout_spaces=spaces)


def round_weights(model: RegressionLanguageModel) -> None:
    """Round a model's weights to 16 bits in place, for a checkpoint with ``weight_bits`` of 16.

    Raises:
        ValueError: a weight is beyond ±65,504, the range of 16 bits; the message names its tensor.
    """
    with torch.no_grad():
        for name, weights in model.named_parameters():
            rounded = weights.half()
            if not rounded.isfinite().all():
                raise ValueError(f"weight_bits: expected weights within ±65,504 for 16, got larger ones in {name}.")
            weights.copy_(rounded)


def check_checkpoint(who: str, given: object) -> None:
    """Check that an argument of the function ``who`` is a checkpoint and not, for example, the path of its folder.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(given, Checkpoint):
        raise ValueError(
            f"{who}: expected a Checkpoint, got {given!r:.60}. To load a folder, use Checkpoint.from_pretrained or "
            "Predictor.from_pretrained."
        )
