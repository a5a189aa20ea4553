"""What a training run saves to go on from, and how it is known to be that of the same run."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

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
    """

    config: dict[str, Any]
    data: str

    @classmethod
    def of(cls, config: TrainConfig, examples: Examples) -> RunIdentity:
        """Of a run that begins with these."""
        return cls(_dependencies(config), examples.digest())

    def to_json(self) -> str:
        """As it is saved."""
        return json.dumps(asdict(self), sort_keys=True)

    def is_that_of(self, text: str) -> bool:
        """Whether a saved identity is this one; keys that it is too old to have had their defaults."""
        theirs = json.loads(text)
        try:
            config = _dependencies(TrainConfig(**theirs["config"], out=Path()))
        except ValidationError:
            return False
        return RunIdentity(config, theirs["data"]) == self


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
            f"{path}: expected the state of this run, got one with another config or other data. "
            "Choose another `out`, or set `resume: false` to start again."
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
