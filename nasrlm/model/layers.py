"""Layers of the transformers: attention, gated MLPs, rotary positions.

N texts, L text tokens, R numbers per text, T tokens of a number, D width, H heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasrlm.model.config import ModelConfig
from nasrlm.model.encoded import Encoded


class EncoderLayer(nn.Module):
    """Self-attention, then a gated MLP, each with RMS normalisation before it and a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.attention_norm = nn.RMSNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.mlp = GatedMLP(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, rotation: Tensor, mask: Tensor | None) -> Tensor:
        """Map (N, L, D) to (N, L, D)."""
        q, k, v = split_heads(self.qkv(self.attention_norm(x)), 3, self.num_heads)
        attended = attend(rotate(q, rotation), rotate(k, rotation), v, mask)
        x = x + self.dropout(self.out(merge_heads(attended)))
        return x + self.dropout(self.mlp(x))


class Memory(NamedTuple):
    """Keys and values of encoded texts for the cross-attention of one layer, shared by all rows of a text."""

    keys: Tensor  # (N, H, L, D/H)
    values: Tensor
    mask: Tensor  # (N, 1, 1, L) bool, True where there is text


class DecoderLayer(nn.Module):
    """Self-attention over number tokens, cross-attention to the text, gated MLP."""

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

    def remember(self, encoded: Encoded) -> Memory:
        """Compute the keys and values of encoded texts."""
        keys, values = split_heads(self.memory(encoded.states), 2, self.num_heads)
        return Memory(keys, values, encoded.mask)

    def forward(self, x: Tensor, mask: Tensor, memory: Memory) -> Tensor:
        """Map (N, R*T, D) to (N, R*T, D)."""
        q, k, v = split_heads(self.qkv(self.self_norm(x)), 3, self.num_heads)
        attended = attend(q, k, v, mask)
        x = x + self.dropout(self.self_out(merge_heads(attended)))
        x = x + self.dropout(self._read(x, memory))
        return x + self.dropout(self.mlp(x))

    def step(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None, memory: Memory
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Process one token of (N, R, D) rows, each attending to its own past of (N*R, H, t, D/H) keys and values."""
        N, R, D = x.shape
        q, k, v = split_heads(self.qkv(self.self_norm(x)).reshape(N * R, 1, -1), 3, self.num_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        attended = attend(q, k, v, None)
        x = x + self.self_out(merge_heads(attended).reshape(N, R, D))
        x = x + self._read(x, memory)
        return x + self.mlp(x), (k, v)

    def _read(self, x: Tensor, memory: Memory) -> Tensor:
        (q,) = split_heads(self.query(self.cross_norm(x)), 1, self.num_heads)
        return self.cross_out(merge_heads(attend(q, *memory)))


def decoder_layers(layers: nn.ModuleList) -> list[DecoderLayer]:
    """Return the layers of a decoder with their type."""
    return list(cast(Iterator[DecoderLayer], iter(layers)))


class GatedMLP(nn.Module):
    """SwiGLU on a normalised input."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(config.width)
        self.up = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., D) to (..., D)."""
        gate, value = self.up(self.norm(x)).chunk(2, dim=-1)
        return self.down(F.silu(gate) * value)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Compute (N, H, L, D/H) attention; in 32 bits on a CPU, where its gradient takes many times as long in 16."""
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def split_heads(x: Tensor, parts: int, num_heads: int) -> tuple[Tensor, ...]:
    """Split (N, L, parts*D) into ``parts`` tensors (N, H, L, D/H)."""
    N, L, width = x.shape
    split = x.reshape(N, L, parts, num_heads, width // (parts * num_heads))
    return split.permute(2, 0, 3, 1, 4).unbind(0)


def merge_heads(x: Tensor) -> Tensor:
    """Merge (N, H, L, D/H) to (N, L, D)."""
    return x.transpose(1, 2).flatten(2)


def rotation_angles(length: int, head_width: int) -> Tensor:
    """Compute (2, length, head_width / 2) cosines and sines of the rotary position angles.

    Source:
        Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
    """
    frequencies = 10_000.0 ** (-torch.arange(0, head_width, 2) / head_width)
    angles = torch.arange(length)[:, None] * frequencies
    return torch.stack([angles.cos(), angles.sin()])


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Rotate (N, H, L, D/H) by the angle of each position; ``rotation`` is from ``rotation_angles``."""
    cos, sin = rotation.to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
