"""What regress-lm predicts once it has learned from the same rows as a model of ours: our side of `ranking_peer`."""

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
OWN_TOKENS = 259  # beside letters: bytes, padding, the unknown, the beginning of a word
CONTEXT = 2048  # its default
RATES = (1e-4, 1e-3)  # its default and one more
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
    """(N, 1) medians of the N test rows' only objective.

    Args:
        python: an interpreter with regress-lm.
        examples: of all splits.
        sizes: of our model, whose layers and parameters its model has as many as.
        letters: every letter of the texts is a token, of which it makes no longer ones.
        batch: rows of a step.
        evaluations: of valid rows in a run.
        seconds: of the processor, for each rate.
        steps: for each rate, instead of seconds.
        seed: of its weights and batches.

    Raises:
        PeerError: it does not run.
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
