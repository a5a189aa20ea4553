"""What a training run saves to go on from, and how it is known to be that of the same run."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from nasrlm.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.files import write_atomically
from nasrlm.tokenizer import TextTokenizer
from nasrlm.train_config import TrainConfig

# What the steps of a run do not depend on.
FREE_TO_CHANGE = frozenset({"initial_share", "out", "resume", "save_every_seconds", "shard", "sources", "tensorboard"})


@dataclass(frozen=True)
class RunIdentity:
    """What decides the numbers of a run.

    Attributes:
        config: without what is free to change.
        data: digest of the examples.
        spaces: digest of the examples' spaces, by which rows are weighed and intervals calibrated.
        initial: digests of the checkpoints that the run begins with.
    """

    config: dict[str, Any]
    data: str
    spaces: str
    initial: list[str]

    @classmethod
    def of(cls, config: TrainConfig, examples: Examples) -> RunIdentity:
        """Of a run that begins with these."""
        folders = (config.initial_checkpoint, config.initial_tokenizer)
        initial = [Checkpoint.from_pretrained(folder).sha256 for folder in folders if folder is not None]
        spaces = hashlib.sha256("\n".join(examples.spaces).encode()).hexdigest()
        return cls(_dependencies(config), examples.digest(), spaces, initial)

    def to_json(self) -> str:
        """As it is saved."""
        return json.dumps(asdict(self), sort_keys=True)

    def is_that_of(self, text: str) -> bool:
        """Whether a saved identity is this one, as far as it goes; keys of a config that it is too old to have had
        their defaults.
        """
        theirs = asdict(self) | json.loads(text)
        try:
            config = _dependencies(TrainConfig(**theirs.pop("config"), out=Path()))
        except ValidationError:
            return False
        return RunIdentity(config, **theirs) == self


def read_state(path: Path, identity: RunIdentity) -> dict[str, Any] | None:
    """What ``write_state`` wrote; None if there is no such file.

    Raises:
        ValueError: the file is broken, or of another run.
    """
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:  # a broken file fails in many ways
        raise ValueError(f"{path}: expected a training state, got {type(e).__name__}. Delete it.") from e
    if not identity.is_that_of(state["identity"]):
        raise ValueError(
            f"{path}: expected the state of this run, got one with another config, other data or another checkpoint to "
            "begin with. Choose another `out`, or set `resume: false` to start again."
        )
    return state


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Atomically; ``identity`` is among it."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getvalue())


def saved_tokenizer(state: dict[str, Any] | None) -> TextTokenizer | None:
    """That of a saved state, if there is one."""
    return TextTokenizer.from_json(state["tokenizer"]) if state else None


def _dependencies(config: TrainConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude=set(FREE_TO_CHANGE))
