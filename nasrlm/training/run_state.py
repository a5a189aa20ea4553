"""The state that a training run saves to be resumed from, and the check that it belongs to the same run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.files import remove_leftovers, replacing
from nasrlm.named_spaces import file_and_class
from nasrlm.text.tokenizer import TextTokenizer
from nasrlm.training.config import TrainConfig

# Keys that may differ between configs of one run, and that are not recorded in its checkpoint.
NOT_IDENTITY = frozenset(
    {"initial_share", "out", "resume", "save_every_seconds", "shard", "sources", "tensorboard", "weight_bits"}
)
# Keys that may change when a run is resumed: its steps do not depend on them, except for rounding on ``device``.
FREE_TO_CHANGE = NOT_IDENTITY | {"device", "patience", "table"}
# Keys of a saved state and the types of their values; ``identity`` and ``tokenizer`` are JSON.
KINDS: dict[str, type | tuple[type, ...]] = {
    "identity": str,
    "tokenizer": str,
    "step": int,
    "seconds": (int, float),
    "losses": list,
    "log": list,
    "best": tuple,
    "model": dict,
    "average": dict,
    "optimizers": list,
}
MOST_SAID = 200  # characters of a quoted error message; torch's messages list every weight
BY_CONTENT = ("initial_checkpoint", "initial_tokenizer")  # folders that may be moved


@dataclass(frozen=True)
class RunIdentity:
    """Everything that determines the numbers of a run.

    Attributes:
        config: without the keys in ``NOT_IDENTITY``.
        data: digest of the examples.
        spaces: digest of the examples' spaces, by which rows are weighted and intervals calibrated; without the paths
            of users' own spaces, which depend on the working directory.
        initial: digests of the checkpoints that the run starts from.
    """

    config: dict[str, Any]
    data: str
    spaces: str
    initial: list[str]

    @classmethod
    def of(cls, config: TrainConfig, examples: Examples) -> RunIdentity:
        """Identify a run by its config and examples."""
        folders = [getattr(config, name) for name in BY_CONTENT]
        initial = [Checkpoint.from_pretrained(folder).sha256 for folder in folders if folder is not None]
        spaces = hashlib.sha256("\n".join(map(file_and_class, examples.spaces)).encode()).hexdigest()
        return cls(config.model_dump(mode="json", exclude=set(NOT_IDENTITY)), examples.digest(), spaces, initial)

    def to_json(self) -> str:
        """Return JSON text, as it is saved in a state."""
        return json.dumps(asdict(self), sort_keys=True)

    def differences(self, text: str) -> list[str]:
        """List in words how a saved identity differs from this one, except for keys in ``FREE_TO_CHANGE``.

        Keys that the saved config lacks because it is older count as having their defaults.

        Raises:
            ValueError, TypeError: ``text`` is no identity.
        """
        theirs = RunIdentity(**asdict(self) | json.loads(text))
        try:
            saved, own = (_decisive(TrainConfig(**x.config, out=Path())) for x in (theirs, self))
        except ValidationError as e:
            where = ", ".join(f"{'.'.join(map(str, x['loc']))} {json.dumps(x['input'])}" for x in e.errors())
            return [f"{where}, which this version does not accept"]
        keys = [key for key in own if saved[key] != own[key]]
        found = [f"{key} {json.dumps(saved[key])} instead of {json.dumps(own[key])}" for key in keys]
        if theirs.data != self.data:
            found.append("other rows")
        elif theirs.spaces != self.spaces:
            found.append("other spaces of the rows")
        if theirs.initial != self.initial:
            found.append("another initial checkpoint")
        return found


def read_state(path: Path, identity: RunIdentity) -> dict[str, Any] | None:
    """Read a state that ``write_state`` wrote; return None if there is no such file.

    Raises:
        ValueError: the file is broken or belongs to another run; the message says what differs.
    """
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:  # a broken file fails in many ways
        raise ValueError(f"{path}: expected a training state, got {type(e).__name__}. Delete it.") from e
    if got := _misfit(state):
        raise ValueError(f"{path}: expected a training state, got {got}. Delete it.")
    with reported_as_broken(path):
        differences = identity.differences(state["identity"])
    if differences:
        raise ValueError(
            f"{path}: expected the state of this run, got one with {'; '.join(differences)}. "
            "Choose another `out`, or set `resume: false` to start again."
        )
    return state


@contextmanager
def reported_as_broken(path: Path) -> Iterator[None]:
    """Report any failure in this context as a broken state file, except a lack of memory.

    Raises:
        ValueError: something failed.
    """
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as e:  # broken states fail in many ways
        said = " ".join(f"{type(e).__name__}: {e}".split())
        raise ValueError(f"{path}: expected a training state, got {said[:MOST_SAID]}. Delete it.") from e


def _misfit(state: object) -> str:
    """Describe how a state differs from ``KINDS``; empty if it fits."""
    if not isinstance(state, dict):
        return type(state).__name__
    if lacking := KINDS.keys() - state.keys():
        return f"none of {', '.join(sorted(lacking))}"
    wrong = [key for key, kind in KINDS.items() if not isinstance(state[key], kind)]
    return ", ".join(f"{type(state[key]).__name__} for {key}" for key in wrong)


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state atomically, without copying it in memory; the run must be the only one in the folder."""
    assert state.keys() == KINDS.keys(), "what is saved is what is read"
    remove_leftovers(path)
    with replacing(path) as temporary, temporary.open("wb") as stream:
        try:
            torch.save(state, stream)
        except RuntimeError as e:  # torch raises it in place of the system's error
            if isinstance(e, torch.OutOfMemoryError):
                raise
            raise OSError(f"{path}: expected to write this file, got {e}. Is the disk full?") from e


def saved_tokenizer(path: Path, state: dict[str, Any] | None) -> TextTokenizer | None:
    """Return the tokenizer of a state that was read from ``path``; None without a state.

    Raises:
        ValueError: the state has no valid tokenizer.
    """
    with reported_as_broken(path):
        return TextTokenizer.from_json(state["tokenizer"]) if state else None


def _decisive(config: TrainConfig) -> dict[str, Any]:
    """Return the values that must not change, with the model's as separate keys.

    Of folders it tells whether there is one, of users' own spaces the file and the class.
    """
    values = config.model_dump(mode="json", exclude=set(FREE_TO_CHANGE))
    values["space"] = config.space and file_and_class(config.space)
    for name in ("encoder_steps", "space_weights"):
        values[name] = {file_and_class(space): number for space, number in values[name].items()}
    model = {f"model.{key}": value for key, value in values.pop("model").items()}
    return values | model | {name: values[name] is not None for name in BY_CONTENT}
