"""Models of regress-lm as large as ours, by its public interface; imported only in an environment with regress-lm."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from regress_lm import core, rlm, vocabs

NUM_HEADS = 8  # of regress-lm's decoder, for every width


@dataclass(frozen=True)
class PeerModel:
    """Sizes and vocabulary of models of regress-lm.

    Attributes:
        vocabulary: vocabulary of the encoder.
        layers: numbers of layers of encoder and decoder.
        width: width of both.
    """

    vocabulary: Any
    layers: Sequence[int]
    width: int = 0

    def make(self, length: int, objectives: int = 1) -> Any:
        """Make a model with random weights that reads up to ``length`` tokens."""
        encoder_layers, decoder_layers = self.layers
        return rlm.RegressLM.from_scratch(
            device="cpu",
            encoder_vocab=self.vocabulary,
            max_input_len=length,
            max_num_objs=objectives,
            d_model=self.width,
            num_encoder_layers=encoder_layers,
            num_decoder_layers=decoder_layers,
            compile_model=False,
        )

    def of_size(self, parameters: int, length: int) -> PeerModel:
        """Return a copy with the width, a multiple of the heads, that is nearest to this number of parameters."""
        sizes: dict[int, int] = {}
        for width in count(2 * NUM_HEADS, 2 * NUM_HEADS):
            sizes[width] = num_parameters(replace(self, width=width).make(length))
            if sizes[width] >= parameters:
                break
        return replace(self, width=min(sizes, key=lambda width: abs(sizes[width] - parameters)))


def num_parameters(lm: Any) -> int:
    """Return the number of parameters of a model."""
    return sum(parameter.numel() for parameter in lm.model.parameters())


def train_vocabulary(texts: Sequence[str], size: int) -> Any:
    """Train a SentencePiece vocabulary for regress-lm's encoder."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "texts.txt"
        corpus.write_text("\n".join(texts))
        return vocabs.SentencePieceVocab.from_corpus(corpus, size, model_prefix=Path(folder) / "vocabulary")


def longest(vocabulary: Any, texts: Sequence[str]) -> int:
    """Return the number of tokens of the longest text."""
    return max(len(vocabulary.to_token_ids(text)) for text in texts)


def make_examples(texts: Sequence[str], values: Sequence[Sequence[float]]) -> list[Any]:
    """Return regress-lm's examples of texts with their values."""
    return [core.Example(x=text, y=list(y)) for text, y in zip(texts, values, strict=True)]


def to_tensors(lm: Any, examples: Sequence[Any]) -> dict[str, Any]:
    """Convert examples to tensors by name, a row for each, padded to the model's full context."""
    return dict(_converter(lm).convert_examples(examples))


def trimmed(lm: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    """Cut off padding that all texts have in common, if this version can do so, as its own training does then."""
    converter = _converter(lm)
    return converter.trim_padding(tensors) if hasattr(converter, "trim_padding") else tensors


def _converter(lm: Any) -> Any:
    return getattr(lm.model, "converter", lm.model)  # older versions: the model itself


def losses_of(lm: Any, tensors: dict[str, Any]) -> Any:
    """Return the (N,) losses of a batch of N rows."""
    return lm.model.compute_losses_and_metrics(tensors)[0]


def train_step(lm: Any, optimizer: torch.optim.Optimizer, tensors: dict[str, Any]) -> int:
    """Train one step on a batch; return its number of rows."""
    lm.model.train()
    losses = losses_of(lm, tensors)
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    return len(losses)


def sampled_medians(lm: Any, texts: Sequence[str], samples: int) -> list[list[float]]:
    """Return the median of samples for each text and objective; texts one by one, to save memory."""
    lm.model.eval()
    medians = []
    for text in texts:
        (drawn,) = lm.sample([core.ExampleInput(x=text)], samples)
        medians.append(np.median(np.asarray(drawn, dtype=float), axis=0).tolist())
    return medians
