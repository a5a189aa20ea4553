"""Models of regress-lm as large as ours, through its public interface; imported where regress-lm is installed."""

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

NUM_HEADS = 8  # of its decoder, whatever the width


@dataclass(frozen=True)
class PeerModel:
    """Sizes and vocabulary from which models of regress-lm are made.

    Attributes:
        vocabulary: of its encoder.
        layers: of encoder and decoder.
        width: of both.
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
        """Set the width, of those that heads divide evenly, that comes nearest to this number of parameters."""
        sizes: dict[int, int] = {}
        for width in count(2 * NUM_HEADS, 2 * NUM_HEADS):
            sizes[width] = num_parameters(replace(self, width=width).make(length))
            if sizes[width] >= parameters:
                break
        return replace(self, width=min(sizes, key=lambda width: abs(sizes[width] - parameters)))


def num_parameters(lm: Any) -> int:
    """Number of parameters of a model."""
    return sum(parameter.numel() for parameter in lm.model.parameters())


def train_vocabulary(texts: Sequence[str], size: int) -> Any:
    """Train a vocabulary of the peer's encoder, by SentencePiece."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "texts.txt"
        corpus.write_text("\n".join(texts))
        return vocabs.SentencePieceVocab.from_corpus(corpus, size, model_prefix=Path(folder) / "vocabulary")


def longest(vocabulary: Any, texts: Sequence[str]) -> int:
    """Tokens of the longest text."""
    return max(len(vocabulary.to_token_ids(text)) for text in texts)


def make_examples(texts: Sequence[str], values: Sequence[Sequence[float]]) -> list[Any]:
    """Texts with the values of each."""
    return [core.Example(x=text, y=list(y)) for text, y in zip(texts, values, strict=True)]


def to_tensors(lm: Any, examples: Sequence[Any]) -> dict[str, Any]:
    """Convert examples to tensors by name, a row for each, padded to all that the model reads."""
    return dict(_converter(lm).convert_examples(examples))


def trimmed(lm: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    """Cut off what is padding in all texts, as the peer's own training does in newer versions."""
    converter = _converter(lm)
    return converter.trim_padding(tensors) if hasattr(converter, "trim_padding") else tensors


def _converter(lm: Any) -> Any:
    return getattr(lm.model, "converter", lm.model)  # the model of older versions, a part of it in newer ones


def losses_of(lm: Any, tensors: dict[str, Any]) -> Any:
    """(N,) losses of a batch."""
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
    """Of each text's objectives; one by one, for samples of several texts need several times the memory."""
    lm.model.eval()
    medians = []
    for text in texts:
        (drawn,) = lm.sample([core.ExampleInput(x=text)], samples)
        medians.append(np.median(np.asarray(drawn, dtype=float), axis=0).tolist())
    return medians
