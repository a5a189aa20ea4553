"""Predictions of regress-lm after learning from the same rows as our model; calls ``ranking_peer``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from benchmarks.peer import ask_peer
from nasrlm.arrays import FloatArray
from nasrlm.examples import SPLITS, Examples
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode

VOCABULARY = 1024
OWN_TOKENS = 259  # tokens besides letters: bytes, padding, unknown, beginning of a word
CONTEXT = 2048  # regress-lm's default, in tokens
RATES = (1e-4, 1e-3)  # learning rates: regress-lm's default and one more
SAMPLES = 64


def peer_medians(
    python: Sequence[str],
    examples: Examples,
    sizes: ModelConfig,
    *,
    letters: bool,
    batch: int,
    evaluations: int,
    seconds: float,
    steps: int | None,
    seed: int,
) -> FloatArray:
    """Train regress-lm and return its (N, 1) predicted medians of the only objective for the N test rows.

    Args:
        python: command of an interpreter with regress-lm.
        examples: examples of all splits.
        sizes: sizes of our model; that of regress-lm has as many layers and about as many parameters.
        letters: make every letter of the texts a token, and no longer tokens.
        batch: rows per step.
        evaluations: number of evaluations on valid rows in a run.
        seconds: processor time for each learning rate.
        steps: number of steps for each learning rate, instead of seconds.
        seed: seed of weights and batches.

    Raises:
        PeerError: regress-lm does not run.
    """
    parts = {split: examples.split(split) for split in SPLITS}
    ours = RegressionLanguageModel(sizes, VOCABULARY, 1, NumberCode())
    request = {
        **{split: {"texts": list(part.texts), "values": part.labels.tolist()} for split, part in parts.items()},
        "parameters": ours.num_parameters,
        "layers": (sizes.num_encoder_layers, sizes.num_decoder_layers),
        "vocabulary": len(set("".join(parts["train"].texts))) + OWN_TOKENS if letters else VOCABULARY,
        "context": CONTEXT,
        "samples": SAMPLES,
        "batch": batch,
        "evaluations": evaluations,
        "rates": RATES,
        "seconds": seconds,
        "steps": steps,
        "seed": seed,
        "threads": torch.get_num_threads(),
    }
    *_, answer = ask_peer(python, "benchmarks.ranking_peer", request, len(RATES) + 1)
    return np.array(answer["medians"])
