"""A trained model in a folder of Hugging Face form: config.json, model.safetensors, tokenizer.json, README.md.

Where spaces have encoders of their own, these are in spaces.safetensors; what rows of their networks cost is in
config.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from nasrlm.calibration import Calibration, read_calibration
from nasrlm.checkpoint_folder import README, CheckpointError, folder_or_released, read_tokenizer, released_folder
from nasrlm.cost_sum import CostSum, CostSums
from nasrlm.devices import torch_device
from nasrlm.files import check_folder, make_readable, to_json
from nasrlm.model import RegressionLanguageModel
from nasrlm.model_config import COMPACT, ModelConfig
from nasrlm.number import NumberCode
from nasrlm.space_encoders import Changes, as_bytes, load_changes, of_bytes, save_changes, with_changes
from nasrlm.tensor_file import LARGEST_GRAPH_WEIGHT, LARGEST_NUMBER, LARGEST_WEIGHT, check_numbers, read_tensors
from nasrlm.tokenizer import TextTokenizer
from nasrlm.truncation import token_limit

FORMAT_VERSION = 5
# Before 2 no space had an encoder of its own, before 4 no cost was a sum, before 5 none went along the macs.
READABLE = (1, 2, 3, 4, FORMAT_VERSION)
READS, READS_SUMS = 3, 4  # before the first readouts read less, before the second their sums were others
SPACES_FILE = "spaces.safetensors"
WEIGHT_FILES = ("model.safetensors", SPACES_FILE)
WRITTEN = ("config.json", "tokenizer.json", *WEIGHT_FILES)


@dataclass(frozen=True)
class Checkpoint:
    """A model with all it needs to answer.

    Attributes:
        model: in evaluation mode, on the device on which it answers.
        tokenizer: of its texts, with the model's limit.
        objectives: M names; their order is the order of decoding.
        calibration: levels of the calibrated quantiles.
        card: how it was trained, on what, and its measured quality; shown by ``nasrlm info``.
        calibration_by_space: of every space's own rows, where it has learned several; its keys are the objectives that
            it learned of that space, with no levels where there were too few rows to calibrate.
        encoders: of spaces that have one of their own, what it changes of the model's.
        sums: of costs that are said as sums instead of being spelled, whatever the space.
        sums_by_space: of those that are in networks of one space.
        weight_bits: 32, or 16 where the model's weights are rounded to what 16 bits hold, and its file is half as long.
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
    weight_bits: int = 32

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"encoders": {space: as_bytes(changes) for space, changes in self.encoders.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, encoders={space: of_bytes(x) for space, x in state["encoders"].items()})

    def of_space(self, space: str) -> Checkpoint:
        """The checkpoint for networks of one space, with its own calibration, sums and encoder where it has them."""
        own = {name: levels for name, levels in self.calibration_by_space.get(space, {}).items() if levels}
        sums = {**self.sums, **self.sums_by_space.get(space, {})}
        known = replace(self, calibration={**self.calibration, **own}, sums=sums)
        if space not in self.encoders:
            return known
        return replace(known, model=with_changes(self.model, self.encoders[space]), encoders={})

    @property
    def sha256(self) -> str:
        """16 hexadecimal digits of all that answers depend on: weights, tokenizer, objectives, calibration and sums."""
        digest = hashlib.sha256(self.tokenizer.to_json().encode())
        calibrations = {"": self.calibration, **self.calibration_by_space}
        levels = [[space, sorted(x.items())] for space, x in sorted(calibrations.items())]
        digest.update(to_json([self.objectives, levels]).encode())
        own = {f"{space}/{name}": x for space, changes in self.encoders.items() for name, x in changes.items()}
        for name, weights in (*self.model.state_dict().items(), *sorted(own.items())):
            digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
            digest.update(weights.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        if sums := self._stored_sums():
            digest.update(to_json(sums).encode())
        return digest.hexdigest()[:16]

    @property
    def spaces(self) -> tuple[str, ...]:
        """Spaces it has learned from, as far as it was noted."""
        return tuple(self.calibration_by_space or self.card.get("test", ()))

    @property
    def read_off(self) -> frozenset[str]:
        """Objectives that are read off a text instead of being spelled."""
        readouts = self.model.readouts
        return frozenset() if readouts is None else frozenset(self.objectives[x] for x in readouts.objectives.tolist())

    @property
    def added(self) -> frozenset[str]:
        """Objectives that adapting has added or taught anew, of whichever networks."""
        trained = self._trained
        return frozenset(name for name in self.read_off if name not in trained or self.taught_spaces(name))

    def taught_spaces(self, objective: str) -> Sequence[str]:
        """Spaces of the networks that an objective was last adapted to, as far as they are noted."""
        steps = [x for x in self.card.get("commands", ()) if objective in x.get("objectives", ()) and "spaces" in x]
        return steps[-1]["spaces"] if steps else ()

    def was_taught(self, objective: str, space: str) -> bool:
        """Whether an objective of ``added`` was learned from networks of a space, or it is not noted of which."""
        spaces = self.taught_spaces(objective)
        return not spaces or _file_and_class(space) in map(_file_and_class, spaces)

    def guessed_of(self, space: str) -> frozenset[str]:
        """Objectives that were not learned from networks of a space, as far as that is known; none of no space, ""."""
        if not space or not self.spaces or space in self.spaces:
            return frozenset()
        added = self.added
        return frozenset(name for name in self.objectives if name not in added or not self.was_taught(name, space))

    def objectives_of(self, space: str) -> tuple[str, ...]:
        """Objectives learned from networks of a space, or from no known one; all, of a space that it does not know."""
        if space not in self.calibration_by_space:
            return self.objectives
        own, trained = self.calibration_by_space[space], self._trained
        anew = {name: self.was_taught(name, space) for name in self.added & trained}
        return tuple(x for x in self.objectives if x not in trained or anew.get(x, x in own))

    @property
    def _trained(self) -> frozenset[str]:
        """Objectives of the networks that it was trained on."""
        return frozenset(name for calibration in self.calibration_by_space.values() for name in calibration)

    def save_pretrained(self, folder: Path | str, readme: str | None = None) -> None:
        """Write the folder; an older checkpoint there is replaced when all files are written, other files stay.

        Args:
            folder: new, empty, or of an older checkpoint.
            readme: what README.md says of it; if None, one that is there stays as well.

        Raises:
            ValueError: as ``check_replaceable`` does.
            OSError: it cannot be written, and is as it was.
        """
        folder = Path(folder).resolve()
        check_replaceable(folder)
        fresh, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
        if old.exists() and not folder.exists():  # a save was killed between its two renames
            os.replace(old, folder)
        for leftover in (fresh, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            if folder.exists():
                shutil.copytree(folder, fresh, symlinks=True, ignore=lambda at, _: WRITTEN if at == str(folder) else ())
            self._write(fresh, readme)
        except BaseException as e:
            shutil.rmtree(fresh, ignore_errors=True)
            if isinstance(e, SafetensorError) or (isinstance(e, OSError) and e.filename is None):  # as on a full disk
                raise OSError(f"{folder}: expected to write a checkpoint, got {e}.") from e
            raise
        if folder.exists():
            os.replace(folder, old)
        os.replace(fresh, folder)
        shutil.rmtree(old, ignore_errors=True)

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
            "card": dict(self.card),
        }
        (folder / "config.json").write_text(to_json(config, indent=1) + "\n")
        if readme is not None:
            (folder / README).unlink(missing_ok=True)  # it may be a link
            (folder / README).write_text(readme, encoding="utf-8")
        self.tokenizer.save(folder / "tokenizer.json")
        save_file(self._stored_weights(), folder / "model.safetensors")
        if self.encoders:
            save_changes(folder / SPACES_FILE, self.encoders)
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
        """Read a folder; without one, the checkpoint released inside the package.

        Raises:
            CheckpointError: a file is missing, broken, of a newer version, or does not fit the others.
            ValueError: torch cannot use the device.
        """
        folder = folder_or_released(folder)
        tokenizer, config = read_tokenizer(folder), _read_config(folder)
        try:
            objectives, card = _objectives(config["objectives"]), dict(config["card"])
            calibration = read_calibration(config["calibration"])
            by_space = {space: read_calibration(x) for space, x in config.get("calibration_by_space", {}).items()}
            sums = _read_sums(config.get("sums", {}), objectives)
            stored = config.get("sums_by_space", {})
            sums_by_space = {space: _read_sums(of_space, objectives) for space, of_space in stored.items()}
            having_encoders = set(map(str, config.get("encoders", [])))
            code = NumberCode(**config["number_code"])
            sizes = ModelConfig(**config["model"])
            if sizes.backbone != COMPACT and not sizes.backbone_sizes:
                raise ValueError(f"backbone {sizes.backbone} without backbone_sizes")
            if sizes.num_readouts and config["format_version"] < (READS_SUMS if sizes.num_sum_rows else READS):
                raise ValueError("readouts of an earlier version; adapt again")
            model = RegressionLanguageModel(sizes, tokenizer.vocabulary_size, len(objectives), code)
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, RuntimeError) as e:  # no memory
            raise CheckpointError(f"{folder / 'config.json'}: expected a model of this version, got {e!r}.") from e
        try:
            weight_bits = _load_weights(model, len(objectives), folder / "model.safetensors")
            encoders = _load_encoders(having_encoders, folder / SPACES_FILE, model)
        except ValueError as e:
            raise CheckpointError(str(e)) from e
        model.to(torch_device(device)).eval()
        texts = tokenizer.limited(token_limit(sizes))
        known = calibration, card, by_space, encoders, sums, sums_by_space
        loaded = cls(model, texts, objectives, *known, weight_bits)
        if both := loaded.read_off.intersection([*sums, *(name for x in sums_by_space.values() for name in x)]):
            raise CheckpointError(f"{folder}: expected {', '.join(sorted(both))} to be read or added up, got both.")
        return loaded


def check_replaceable(folder: Path) -> None:
    """Check, before long work, that ``save_pretrained`` may write to ``folder``.

    Raises:
        ValueError: it is a file, the released checkpoint's folder, or one that holds other things than a checkpoint,
            such as the working directory.
        OSError: the folder that it is in cannot be written; the message names it.
    """
    place = folder.resolve()
    if Path.cwd().is_relative_to(place):
        which = "the working directory" if place == Path.cwd() else f"{place}, which holds the working directory"
        raise ValueError(f"checkpoint: expected a folder of its own, got {which}. Name one in it.")
    if place == released_folder().resolve():
        raise ValueError(f"{folder}: expected a folder of your own, got that of the released checkpoint. Name another.")
    if place.exists() and not place.is_dir():
        raise ValueError(f"{folder}: expected a folder for the checkpoint, got a file. Name another.")
    if place.is_dir() and not (place / "config.json").exists() and (others := sorted(place.iterdir())):
        raise ValueError(
            f"{folder}: expected a new folder for the checkpoint, an empty one or an earlier checkpoint, got one with "
            f"{others[0].name} in it. Name another."
        )
    check_folder(place.parent)  # where the new one is made, to be renamed


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text())
    except ValueError as e:
        raise CheckpointError(f"{folder / 'config.json'}: expected JSON, got {e}.") from e
    version = config.get("format_version") if isinstance(config, dict) else None
    if version not in READABLE:
        raise CheckpointError(
            f"{folder / 'config.json'}: expected format_version {READABLE[0]} to {READABLE[-1]}, got {version}. "
            "A newer checkpoint needs a newer nasrlm."
        )
    return dict(config)


def _objectives(stored: Any) -> tuple[str, ...]:
    named = isinstance(stored, list) and all(isinstance(name, str) for name in stored)
    if not named or len(set(stored)) < len(stored):
        raise ValueError(f"objectives: expected a list of different names, got {str(stored)[:60]}")
    return tuple(stored)


def _read_sums(stored: Any, objectives: Sequence[str]) -> CostSums:
    if not isinstance(stored, dict) or not set(stored) <= set(objectives):
        raise ValueError(f"sums: expected those of the checkpoint's objectives, got {str(stored)[:60]}")
    return {name: CostSum.of_json(x) for name, x in stored.items()}


def round_weights(model: RegressionLanguageModel) -> None:
    """Round a model's weights to 16 bits in place, for a checkpoint whose ``weight_bits`` are 16.

    Raises:
        ValueError: a weight lies beyond what they hold.
    """
    with torch.no_grad():
        for name, weights in model.named_parameters():
            rounded = weights.half()
            if not rounded.isfinite().all():
                raise ValueError(f"weight_bits: expected weights within ±65,504 for 16, got larger ones in {name}.")
            weights.copy_(rounded)


def _load_weights(model: RegressionLanguageModel, num_objectives: int, path: Path) -> int:
    """Check a file of weights and load it into the model; return the bits of a learned weight, 16 or 32."""
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
        if len(set(read)) < len(read) or not set(read) <= set(range(num_objectives)):
            raise ValueError(f"{path}: expected readouts of different objectives, 0..{num_objectives - 1}, got {read}.")
        for name in ("readouts.shares", "readouts.sum_shares"):
            shares = weights.get(name, torch.zeros(1))
            if shares.min() < 0 or shares.max() > 1:
                raise ValueError(f"{path}: expected {name} of 0 to 1, got {shares.min():g} to {shares.max():g}.")
    model.load_state_dict(weights)
    return 16 if all(weights[name].dtype == torch.float16 for name in learned) else 32


def _largest(name: str) -> float:
    """Largest magnitude that a learned weight may have; a graph network multiplies its own along the edges."""
    return LARGEST_GRAPH_WEIGHT if name.startswith("readouts.networks.") else LARGEST_WEIGHT


def checked_checkpoint(given: object, who: str) -> None:
    """Complain of what is no checkpoint, such as its folder.

    Raises:
        ValueError: ``who`` needs one.
    """
    if not isinstance(given, Checkpoint):
        raise ValueError(
            f"{who}: expected a Checkpoint, got {given!r:.60}. "
            "Checkpoint.from_pretrained and Predictor.from_pretrained read a folder."
        )


def _file_and_class(space: str) -> str:
    """Return the file name and class of a user's own space, whatever the path to its file."""
    return space.rpartition("/")[2]


def _load_encoders(spaces: Set[str], path: Path, model: RegressionLanguageModel) -> Mapping[str, Changes]:
    if not spaces:
        return {}
    encoders = load_changes(path, model)
    if set(encoders) != spaces:
        raise ValueError(
            f"{path}: expected encoders of {', '.join(sorted(spaces))}, got {', '.join(encoders) or 'none'}."
        )
    return encoders
