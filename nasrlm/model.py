"""The regression language model: an encoder reads text, a decoder spells numbers after objective prompts.

N texts, L text tokens, R number rows an input, T number tokens, D width, H heads, V vocabulary of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasrlm.number import NumberCode


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the compact backbone. The defaults have 3.2 M parameters at a vocabulary of 1,024."""

    width: int = 192
    num_heads: int = 6
    num_encoder_layers: int = 4
    num_decoder_layers: int = 2
    hidden: int = 512
    dropout: float = 0.1
    max_text_tokens: int = 2048

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # a misspelt key of a training config is an error

    def __post_init__(self) -> None:
        sizes = (self.width, self.num_heads, self.num_encoder_layers, self.num_decoder_layers, self.hidden)
        if min(*sizes, self.max_text_tokens) < 1 or self.width % (2 * self.num_heads) or not 0 <= self.dropout < 1:
            raise ValueError(
                f"ModelConfig: expected sizes of 1 or more, width a multiple of 2 * num_heads, dropout in [0, 1), "
                f"got {self}."
            )


class RegressionLanguageModel(nn.Module):
    """Text ids in, distributions over number tokens out.

    Args:
        config: sizes.
        vocabulary_size: text tokens; id 0 is padding.
        num_objectives: objective prompts.
        code: how numbers are spelled.
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int, num_objectives: int, code: NumberCode) -> None:
        super().__init__()
        self.config, self.code = config, code
        self.encoder = Encoder(config, vocabulary_size)
        self.decoder = Decoder(config, num_objectives, code)

    @property
    def num_parameters(self) -> int:
        """Trainable numbers."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, text_ids: Tensor, objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """Teacher-forced log-probabilities of number tokens.

        Args:
            text_ids: (N, L), 0 = padding.
            objectives: (N, R) objective ids, in decoding order.
            numbers: (N, R, T) number ids.
            visible: (N, R, R) bool: row r may read the number of row s before it.

        Returns:
            (N, R, T, V) log-probabilities under the grammar.
        """
        memory = self.encoder(text_ids)
        logits = self.decoder(memory, objectives, numbers, visible)
        allowed = self.decoder.grammar[numbers[..., :1], torch.arange(self.code.length, device=numbers.device)]
        return masked_log_softmax(logits, allowed)


def masked_log_softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    """Log-probabilities of the allowed ids; the others get a very low one."""
    return F.log_softmax(logits.float().masked_fill(~allowed, -1e4), dim=-1)


class Memory(NamedTuple):
    """What the decoder reads of the encoded texts: keys and values of every layer, shared by all rows of an input."""

    keys: list[Tensor]  # (N, H, L, D/H)
    values: list[Tensor]
    mask: Tensor  # (N, 1, 1, L) bool, True where there is text

    def select(self, rows: Tensor) -> Memory:
        """The memory of some texts."""
        return Memory([k[rows] for k in self.keys], [v[rows] for v in self.values], self.mask[rows])


class Encoder(nn.Module):
    """Bidirectional transformer with rotary positions."""

    rotation: Tensor

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, config.width, padding_idx=0)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.num_encoder_layers)])
        self.norm = nn.RMSNorm(config.width)
        self.dropout = nn.Dropout(config.dropout)
        rotation = _rotation(config.max_text_tokens, config.width // config.num_heads)
        self.register_buffer("rotation", rotation, persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, text_ids: Tensor) -> tuple[Tensor, Tensor]:
        """(N, L) ids to (N, L, D) states and the (N, 1, 1, L) mask of what is text."""
        mask = (text_ids != 0)[:, None, None, :]
        x = self.dropout(self.embedding(text_ids))
        rotation = self.rotation[:, : text_ids.shape[1]]
        attended = None if bool(mask.all()) else mask
        for layer in self.layers:
            x = layer(x, rotation, attended)
        return self.norm(x), mask


class EncoderLayer(nn.Module):
    """Self-attention, then a gated MLP, each on a normalised copy of the stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.attention_norm = nn.RMSNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.mlp = GatedMLP(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, rotation: Tensor, mask: Tensor | None) -> Tensor:
        """(N, L, D) to (N, L, D)."""
        q, k, v = _heads(self.qkv(self.attention_norm(x)), 3, self.num_heads)
        attended = _attend(_rotate(q, rotation), _rotate(k, rotation), v, mask)
        x = x + self.dropout(self.out(_merge(attended)))
        return x + self.dropout(self.mlp(x))


class GatedMLP(nn.Module):
    """SwiGLU on a normalised input."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(config.width)
        self.up = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        gate, value = self.up(self.norm(x)).chunk(2, dim=-1)
        return self.down(F.silu(gate) * value)


class Decoder(nn.Module):
    """Spells one number after each objective prompt.

    A row is ``prompt, token 1, …, token T-1`` and predicts tokens 1 to T. Positions are counted within the row and
    every token carries its objective, so a number means the same wherever it stands in the sequence.
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

    def forward(self, encoded: tuple[Tensor, Tensor], objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """(N, R, T, V) logits of all number tokens, given those before."""
        N, R, T = numbers.shape
        memory = self.remember(*encoded)
        x = self.positions.weight + self.objectives(objectives)[:, :, None, :]
        x = torch.cat([x[:, :, :1], x[:, :, 1:] + self.tokens(numbers[:, :, :-1])], dim=2)
        x = self.dropout(x.reshape(N, R * T, -1))
        mask = _row_mask(visible, T)
        for layer, keys, values in zip(self.layers, memory.keys, memory.values, strict=True):
            x = layer(x, mask, keys, values, memory.mask)
        return self.head(self.norm(x)).reshape(N, R, T, -1)

    def remember(self, states: Tensor, mask: Tensor) -> Memory:
        """Keys and values of (N, L, D) encoder states for every layer."""
        pairs = [_heads(layer.memory(states), 2, self.config.num_heads) for layer in self._layers()]
        return Memory([k for k, _ in pairs], [v for _, v in pairs], mask)

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


class DecoderLayer(nn.Module):
    """Self-attention over number tokens, attention to the text, gated MLP."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.num_heads = config.num_heads
        self.self_norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.self_out = nn.Linear(width, width, bias=False)
        self.cross_norm = nn.RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.memory = nn.Linear(width, 2 * width, bias=False)
        self.cross_out = nn.Linear(width, width, bias=False)
        self.mlp = GatedMLP(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor, keys: Tensor, values: Tensor, text_mask: Tensor) -> Tensor:
        """(N, R*T, D) to (N, R*T, D)."""
        q, k, v = _heads(self.qkv(self.self_norm(x)), 3, self.num_heads)
        attended = _attend(q, k, v, mask)
        x = x + self.dropout(self.self_out(_merge(attended)))
        x = x + self.dropout(self._read(x, keys, values, text_mask))
        return x + self.dropout(self.mlp(x))

    def step(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None, keys: Tensor, values: Tensor, text_mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One token of (N, R, D) rows, each of which attends to its own past of (N*R, H, t, D/H)."""
        N, R, D = x.shape
        q, k, v = _heads(self.qkv(self.self_norm(x)).reshape(N * R, 1, -1), 3, self.num_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        attended = _attend(q, k, v, None)
        x = x + self.self_out(_merge(attended).reshape(N, R, D))
        x = x + self._read(x, keys, values, text_mask)
        return x + self.mlp(x), (k, v)

    def _read(self, x: Tensor, keys: Tensor, values: Tensor, text_mask: Tensor) -> Tensor:
        (q,) = _heads(self.query(self.cross_norm(x)), 1, self.num_heads)
        return self.cross_out(_merge(_attend(q, keys, values, text_mask)))


def _row_mask(visible: Tensor, T: int) -> Tensor:
    """(N, R, R) which rows see which, to the (N, 1, R*T, R*T) mask of their tokens; causal within a row."""
    N, R, _ = visible.shape
    causal = torch.ones(T, T, dtype=torch.bool, device=visible.device).tril()
    before = visible & ~torch.eye(R, dtype=torch.bool, device=visible.device)
    own = torch.eye(R, dtype=torch.bool, device=visible.device)[:, None, :, None] & causal[None, :, None, :]
    mask = before[:, :, None, :, None] | own
    return mask.reshape(N, 1, R * T, R * T)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """(N, H, L, D/H) attention; in 32 bits on a CPU, where its gradient takes many times as long in 16."""
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _heads(x: Tensor, parts: int, num_heads: int) -> tuple[Tensor, ...]:
    """(N, L, parts*D) to ``parts`` tensors (N, H, L, D/H)."""
    N, L, width = x.shape
    split = x.reshape(N, L, parts, num_heads, width // (parts * num_heads))
    return split.permute(2, 0, 3, 1, 4).unbind(0)


def _merge(x: Tensor) -> Tensor:
    """(N, H, L, D/H) to (N, L, D)."""
    return x.transpose(1, 2).flatten(2)


def _rotation(length: int, head_width: int) -> Tensor:
    """(2, length, head_width / 2): cosines and sines of the rotary position angles.

    Source:
        Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
    """
    frequencies = 10_000.0 ** (-torch.arange(0, head_width, 2) / head_width)
    angles = torch.arange(length)[:, None] * frequencies
    return torch.stack([angles.cos(), angles.sin()])


def _rotate(x: Tensor, rotation: Tensor) -> Tensor:
    cos, sin = rotation.to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
