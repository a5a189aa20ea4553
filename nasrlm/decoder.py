"""The decoder: numbers spelled after objective prompts, reading an encoded text.

N texts, L text tokens, R number rows an input, T number tokens, D width, H heads, V vocabulary of numbers, A steered
objectives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nasrlm.layers import DecoderLayer, split_heads
from nasrlm.model_config import ModelConfig
from nasrlm.number import NumberCode


class Memory(NamedTuple):
    """What the decoder reads of the encoded texts: keys and values of every layer, shared by all rows of an input."""

    keys: list[Tensor]  # (N, H, L, D/H)
    values: list[Tensor]
    mask: Tensor  # (N, 1, 1, L) bool, True where there is text
    changes: Tensor | None = None  # (N, A, D) of the prompts of steered objectives

    @classmethod
    def of(cls, layers: nn.ModuleList, states: Tensor, mask: Tensor) -> Memory:
        """Keys and values of (N, L, D) encoder states for every decoder layer."""
        pairs = [
            split_heads(layer.memory(states), 2, layer.num_heads)
            for layer in cast(Iterator[DecoderLayer], iter(layers))
        ]
        return cls([k for k, _ in pairs], [v for _, v in pairs], mask)

    def rows(self, rows: NDArray[np.intp]) -> Memory:
        """Of some of the texts."""
        changes = None if self.changes is None else self.changes[rows]
        return Memory([k[rows] for k in self.keys], [v[rows] for v in self.values], self.mask[rows], changes)


class Decoder(nn.Module):
    """Spells one number after each objective prompt.

    A row is ``prompt, token 1, …, token T-1`` and predicts tokens 1 to T. Positions are counted within the row and
    every token carries its objective, so a number means the same wherever it stands in the sequence.

    The prompt of a steered objective depends on the text: a matrix of its own times the mean of the text's states is
    added. That is how an objective that is learned with everything else at rest reads off what no other one needed.
    """

    grammar: Tensor
    steered: Tensor  # (A,) ids of objectives

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
        if config.num_steered:
            self.steering = nn.Parameter(torch.zeros(config.num_steered, config.width, config.width))
            self.register_buffer("steered", torch.zeros(config.num_steered, dtype=torch.int64))

    def forward(self, memory: Memory, objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """(N, R, T, V) logits of all number tokens, given those before."""
        N, R, T = numbers.shape
        x = self.positions.weight + self._prompts(objectives, memory)[:, :, None, :]
        x = torch.cat([x[:, :, :1], x[:, :, 1:] + self.tokens(numbers[:, :, :-1])], dim=2)
        x = self.dropout(x.reshape(N, R * T, -1))
        mask = _row_mask(visible, T)
        for layer, keys, values in zip(self.layers, memory.keys, memory.values, strict=True):
            x = layer(x, mask, keys, values, memory.mask)
        return self.head(self.norm(x)).reshape(N, R, T, -1)

    def remember(self, states: Tensor, mask: Tensor) -> Memory:
        """Keys and values of (N, L, D) encoder states for every layer, and what they change about prompts."""
        memory = Memory.of(self.layers, states, mask)
        if not self.config.num_steered:
            return memory
        return memory._replace(changes=self.changes(mean_state(states, mask)))

    def changes(self, means: Tensor) -> Tensor:
        """(N, A, D) what (N, D) means of states add to the prompts of steered objectives."""
        return torch.einsum("nd,ade->nae", means, self.steering)

    def step(
        self,
        memory: Memory,
        objectives: Tensor,
        position: int,
        tokens: Tensor | None,
        cache: list[tuple[Tensor, Tensor]],
    ) -> Tensor:
        """Logits of the next token of R rows an input; each reads its own past in the cache, not the other rows.

        Args:
            memory: of N texts.
            objectives: (N, R).
            position: of the token to predict, 0 to T-1.
            tokens: (N, R) ids at ``position - 1``; None at position 0.
            cache: keys and values of the rows so far, one pair a layer, the numbers before this one included; empty
                at the start; updated in place.

        Returns:
            (N, R, V).
        """
        x = self._prompts(objectives, memory) + self.positions.weight[position]
        if tokens is not None:
            x = x + self.tokens(tokens)
        for index, layer in enumerate(self._layers()):
            past = cache[index] if index < len(cache) else None
            x, present = layer.step(x, past, memory.keys[index], memory.values[index], memory.mask)
            cache[index : index + 1] = [present]
        return self.head(self.norm(x))

    def _prompts(self, objectives: Tensor, memory: Memory) -> Tensor:
        """(N, R, D); of objectives that are not steered, bit for bit what they are without any that is."""
        prompts: Tensor = self.objectives(objectives)
        if memory.changes is None:
            return prompts
        is_one = (objectives[..., None] == self.steered).to(prompts.dtype)
        return prompts + is_one @ memory.changes.to(prompts.dtype)

    def _layers(self) -> Iterator[DecoderLayer]:
        return cast(Iterator[DecoderLayer], iter(self.layers))


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """(N, D) means of (N, L, D) states where there is text."""
    present = mask[:, 0, 0, :, None].to(states.dtype)
    return (states * present).sum(dim=1) / present.sum(dim=1)


def _row_mask(visible: Tensor, T: int) -> Tensor:
    """(N, R, R) which rows see which, to the (N, 1, R*T, R*T) mask of their tokens; causal within a row."""
    N, R, _ = visible.shape
    causal = torch.ones(T, T, dtype=torch.bool, device=visible.device).tril()
    before = visible & ~torch.eye(R, dtype=torch.bool, device=visible.device)
    own = torch.eye(R, dtype=torch.bool, device=visible.device)[:, None, :, None] & causal[None, :, None, :]
    mask = before[:, :, None, :, None] | own
    return mask.reshape(N, 1, R * T, R * T)


def masked_log_softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    """Log-probabilities of the allowed ids; the others get a very low one."""
    return F.log_softmax(logits.float().masked_fill(~allowed, -1e4), dim=-1)
