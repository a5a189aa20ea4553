"""The decoder: writes a number, token by token, after each objective prompt, attending to an encoded text.

A row is an objective prompt with its number.

N texts, L text tokens, R rows per text, T number tokens, D width, H heads, V vocabulary of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasrlm.model.config import ModelConfig
from nasrlm.model.encoded import Encoded
from nasrlm.model.layers import DecoderLayer, split_heads
from nasrlm.model.number import NumberCode

FORBIDDEN = -1e4  # logit of a token that the grammar forbids; its probability is 0


class Memory(NamedTuple):
    """Keys and values of the encoded texts for cross-attention in every layer, shared by all rows of a text."""

    keys: list[Tensor]  # (N, H, L, D/H)
    values: list[Tensor]
    mask: Tensor  # (N, 1, 1, L) bool, True where there is text

    @classmethod
    def of(cls, layers: nn.ModuleList, encoded: Encoded) -> Memory:
        """Compute the keys and values of encoded texts for every decoder layer."""
        pairs = [
            split_heads(layer.memory(encoded.states), 2, layer.num_heads)
            for layer in cast(Iterator[DecoderLayer], iter(layers))
        ]
        return cls([k for k, _ in pairs], [v for _, v in pairs], encoded.mask)


class Decoder(nn.Module):
    """A transformer that writes one number after each objective prompt.

    The row ``prompt, token 1, …, token T-1`` predicts tokens 1 to T. Positions are counted within the row, and the
    embedding of the objective is added to every token, so a number means the same anywhere in the sequence.
    """

    grammar: Tensor

    def __init__(self, config: ModelConfig, num_objectives: int, code: NumberCode) -> None:
        super().__init__()
        self.config, self.code = config, code
        self.objectives = nn.Embedding(num_objectives, config.width)
        self.tokens = nn.Embedding(code.vocabulary_size, config.width)
        self.positions = nn.Embedding(code.length, config.width)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.num_decoder_layers)])
        self.norm = nn.RMSNorm(config.width)
        self.head = nn.Linear(config.width, code.vocabulary_size, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("grammar", code.grammar, persistent=False)
        for embedding in (self.objectives, self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, memory: Memory, objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """Return (N, R, T, V) logits of all number tokens, given those before (teacher forcing)."""
        N, R, T = numbers.shape
        x = self.positions.weight + self.objectives(objectives)[:, :, None, :]
        x = torch.cat([x[:, :, :1], x[:, :, 1:] + self.tokens(numbers[:, :, :-1])], dim=2)
        x = self.dropout(x.reshape(N, R * T, -1))
        mask = _row_mask(visible, T)
        for layer, keys, values in zip(self.layers, memory.keys, memory.values, strict=True):
            x = layer(x, mask, keys, values, memory.mask)
        return self.head(self.norm(x)).reshape(N, R, T, -1)

    def remember(self, encoded: Encoded) -> Memory:
        """Return the keys and values of encoded texts for every layer."""
        return Memory.of(self.layers, encoded)

    def step(
        self,
        memory: Memory,
        objectives: Tensor,
        position: int,
        tokens: Tensor | None,
        cache: list[tuple[Tensor, Tensor]],
    ) -> Tensor:
        """Compute the logits of the next token of each row; a row attends to its own past in the cache, not to others.

        Args:
            memory: of N texts.
            objectives: (N, R) ids.
            position: of the token to predict, 0 to T-1.
            tokens: (N, R) ids at ``position - 1``; None at position 0.
            cache: keys and values of the rows so far, one pair per layer, including numbers decoded before this one.
                Empty at the start; updated in place.

        Returns:
            (N, R, V) logits.
        """
        x = self.objectives(objectives) + self.positions.weight[position]
        if tokens is not None:
            x = x + self.tokens(tokens)
        for index, layer in enumerate(self._layers()):
            past = cache[index] if index < len(cache) else None
            x, present = layer.step(x, past, memory.keys[index], memory.values[index], memory.mask)
            cache[index : index + 1] = [present]
        return self.head(self.norm(x))

    def _layers(self) -> Iterator[DecoderLayer]:
        return cast(Iterator[DecoderLayer], iter(self.layers))


def _row_mask(visible: Tensor, T: int) -> Tensor:
    """Expand (N, R, R) flags of which rows see which to the (N, 1, R*T, R*T) mask of tokens, causal within a row."""
    N, R, _ = visible.shape
    causal = torch.ones(T, T, dtype=torch.bool, device=visible.device).tril()
    before = visible & ~torch.eye(R, dtype=torch.bool, device=visible.device)
    own = torch.eye(R, dtype=torch.bool, device=visible.device)[:, None, :, None] & causal[None, :, None, :]
    mask = before[:, :, None, :, None] | own
    return mask.reshape(N, 1, R * T, R * T)


def masked_log_softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    """Return log-probabilities of the allowed ids, and very low ones for all others."""
    return F.log_softmax(logits.float().masked_fill(~allowed, FORBIDDEN), dim=-1)
