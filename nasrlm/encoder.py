"""The encoder of the compact backbone. N texts, L text tokens, D width, H heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nasrlm.encoded import Encoded
from nasrlm.layers import EncoderLayer, rotation_angles
from nasrlm.model_config import ModelConfig


class Encoder(nn.Module):
    """Bidirectional transformer with rotary positions."""

    rotation: Tensor

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, config.width, padding_idx=0)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.num_encoder_layers)])
        self.norm = nn.RMSNorm(config.width)
        self.dropout = nn.Dropout(config.dropout)
        rotation = rotation_angles(config.max_text_tokens, config.width // config.num_heads)
        self.register_buffer("rotation", rotation, persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, text_ids: Tensor) -> Encoded:
        """Read (N, L) ids."""
        mask = (text_ids != 0)[:, None, None, :]
        x = self.dropout(self.embedding(text_ids))
        rotation = self.rotation[:, : text_ids.shape[1]]
        compiled = torch.compiler.is_compiling()  # then looking at values would cut the graph in two
        attended = None if not compiled and bool(mask.all()) else mask
        for layer in self.layers:
            x = layer(x, rotation, attended)
        return Encoded(self.norm(x), mask, text_ids)
