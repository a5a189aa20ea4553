"""Choose the objectives that a training run learns: those that its config names, or all that train rows have."""

from __future__ import annotations

from itertools import compress

import numpy as np

from nasrlm.callers import warn_caller
from nasrlm.examples import Examples
from nasrlm.objective import decoding_order
from nasrlm.training.config import TrainConfig


def learned_objectives(config: TrainConfig, examples: Examples) -> tuple[str, ...]:
    """Return the objectives to learn, in decoding order: those of the config, or all that some train row has.

    Warns of objectives without labels in train rows.

    Raises:
        ValueError: no labelled train rows, or the config names objectives without labels or unknown ones.
    """
    labelled = list(compress(examples.objectives, np.isfinite(examples.labels[examples.splits == "train"]).any(axis=0)))
    names = config.objectives or tuple(labelled)
    check_names("objectives", names, examples.objectives)
    if not set(names) & set(labelled):
        raise ValueError("train: expected labelled rows with split 'train', got none. See the column `split`.")
    if not config.objectives and (idle := [name for name in examples.objectives if name not in labelled]):
        warn_caller(f"train: expected train rows with labels of {', '.join(idle)}, got none: they are not learned.")
    if missing := [name for name in names if name not in labelled]:
        raise ValueError(f"train: objectives: expected labels in rows with split 'train', got none of {missing[0]}.")
    check_names("monitor", config.monitor, names)
    check_names("objective_weights", tuple(config.objective_weights), names)
    return decoding_order(names)


def check_names(key: str, given: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Raise a ValueError if a config's key gives names that are not known."""
    if unknown := [name for name in given if name not in known]:
        raise ValueError(f"train: {key}: expected names among {', '.join(known)}, got {', '.join(unknown)}.")
