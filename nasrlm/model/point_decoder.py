"""A decoder that predicts one number without a distribution, as a baseline for decoding digit by digit.

A row is an objective prompt with its number.

N texts, L text tokens, R rows per text, T number tokens, D width, V vocabulary of numbers, M objectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasrlm.arrays import FloatArray
from nasrlm.deviations import deviation_of
from nasrlm.model.config import ModelConfig
from nasrlm.model.encoded import Encoded
from nasrlm.model.layers import DecoderLayer, Memory, decoder_layers
from nasrlm.model.number import NumberCode
from nasrlm.objective import MAX_LABEL

POINT_DIGITS = 15  # of the number code of points: as many as float64 holds
ROUNDING = 1e-6  # share of the largest label: the precision of a mean in 32 bits


class PointDecoder(nn.Module):
    """A regression head on each objective prompt that predicts a standardised number; its layers are those of
    ``Decoder``.

    For ``decoding``, a point is a distribution concentrated on one number: every quantile and every sample is that
    number.
    """

    grammar: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(self, config: ModelConfig, num_objectives: int, code: NumberCode) -> None:
        super().__init__()
        self.config, self.code = config, code
        self.objectives = nn.Embedding(num_objectives, config.width)
        self.positions = nn.Embedding(1, config.width)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.num_decoder_layers)])
        self.norm = nn.RMSNorm(config.width)
        self.head = nn.Linear(config.width, 1)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("grammar", code.grammar, persistent=False)
        self.register_buffer("mean", torch.zeros(num_objectives))
        self.register_buffer("scale", torch.ones(num_objectives))
        for embedding in (self.objectives, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def standardise_by(self, labels: FloatArray) -> None:
        """Standardise every objective that has two or more labels by the mean and deviation of these (N, M) labels.

        Raises:
            ValueError: labels are too large for their mean and deviation to be stored in 32 bits.
        """
        for index, column in enumerate(labels.T):
            known = column[~np.isnan(column)]
            if len(known) and (largest := np.abs(known).max()) > MAX_LABEL:
                raise ValueError(f"labels: expected values up to {MAX_LABEL:g} for the mse head, got {largest:g}.")
            if len(known) > 1:
                self.mean[index] = known.mean()
                self.scale[index] = deviation_of(known, rounding=ROUNDING)

    def standardised(self, values: Tensor, objectives: Tensor) -> Tensor:
        """Standardise (N, R) values in the objectives' own units, to be compared with ``points``."""
        return ((values - self.mean[objectives]) / self.scale[objectives]).float()

    def forward(self, memories: Sequence[Memory], objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """Return (N, R, T, V) logits of the points as number tokens; ``numbers`` and ``visible`` have no effect."""
        return self._logits(self._spelled(memories, objectives))

    def remember(self, encoded: Encoded) -> list[Memory]:
        """Return the keys and values of encoded texts for every layer."""
        return [layer.remember(encoded) for layer in decoder_layers(self.layers)]

    def step(
        self,
        memories: Sequence[Memory],
        objectives: Tensor,
        position: int,
        tokens: Tensor | None,
        cache: list[tuple[Tensor, Tensor]],
    ) -> Tensor:
        """Return (N, R, V) logits of the next token, as ``Decoder.step``; the cache holds the points' tokens."""
        if position == 0:
            spelled = self._spelled(memories, objectives)
            cache[:] = [(spelled, spelled)]
        return self._logits(cache[0][0][..., position])

    def points(self, memories: Sequence[Memory], objectives: Tensor) -> Tensor:
        """Return (N, R) standardised predictions, each from its prompt and the text alone."""
        x = self.dropout(self.positions.weight[0] + self.objectives(objectives))
        alone = torch.eye(objectives.shape[1], dtype=torch.bool, device=objectives.device)[None, None]
        for layer, memory in zip(self.layers, memories, strict=True):
            x = layer(x, alone, memory)
        return self.head(self.norm(x))[..., 0].float()

    def _spelled(self, memories: Sequence[Memory], objectives: Tensor) -> Tensor:
        """Return (N, R, T) number ids of the points in the objectives' own units; each objective is computed once."""
        asked, row = torch.unique(objectives, return_inverse=True)
        points = self.points(memories, asked.expand(len(objectives), -1)).gather(1, row).double()
        values = (points * self.scale[objectives] + self.mean[objectives]).detach().cpu().numpy()
        ids = self.code.encode(values.ravel()).reshape(*values.shape, self.code.length)
        return torch.from_numpy(ids).to(objectives.device)

    def _logits(self, ids: Tensor) -> Tensor:
        """Return (..., V) logits that make these tokens certain at any temperature: 0 for them, -inf for others."""
        return F.one_hot(ids, self.code.vocabulary_size).float().log()
