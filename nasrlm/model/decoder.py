"""The decoder: writes a number, token by token, after each objective prompt, attending to an encoded text.

A row is an objective prompt with its number.

N texts, L text tokens, R rows per text, T number tokens, D width, H heads, V vocabulary of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasrlm.model.config import ModelConfig
from nasrlm.model.encoded import Encoded
from nasrlm.model.layers import DecoderLayer, Memory, decoder_layers
from nasrlm.model.number import NumberCode

FORBIDDEN = -1e4  # logit of a token that the grammar forbids; its probability is 0


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

    def forward(self, memories: Sequence[Memory], objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """Return (N, R, T, V) logits of all number tokens, given those before (teacher forcing)."""
        N, R, T = numbers.shape
        x = self.positions.weight + self.objectives(objectives)[:, :, None, :]
        x = torch.cat([x[:, :, :1], x[:, :, 1:] + self.tokens(numbers[:, :, :-1])], dim=2)
        x = self.dropout(x.reshape(N, R * T, -1))
        mask = _row_mask(visible, T)
        for layer, memory in zip(self.layers, memories, strict=True):
            x = layer(x, mask, memory)
        return self.head(self.norm(x)).reshape(N, R, T, -1)

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
        """Compute the logits of the next token of each row; a row attends to its own past in the cache, not to others.

        Args:
            memories: of N texts, by layer.
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
        for index, (layer, memory) in enumerate(zip(decoder_layers(self.layers), memories, strict=True)):
            past = cache[index] if index < len(cache) else None
            x, present = layer.step(x, past, memory)
            cache[index : index + 1] = [present]
        return self.head(self.norm(x))


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
