"""The encoder of the compact backbone. N texts, L text tokens, S states, D width, H heads."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasrlm.model.config import ModelConfig
from nasrlm.model.encoded import Encoded
from nasrlm.model.layers import EncoderLayer, rotation_angles

UNJOINED = 1  # number of layers before neighbouring tokens are joined


class Encoder(nn.Module):
    """A bidirectional transformer with rotary positions.

    If ``tokens_per_state`` is k > 1, every k neighbouring tokens are joined into one state after the first layer.

    Args:
        config: sizes of the model.
        vocabulary_size: number of text tokens; id 0 is padding.

    Source:
        Clark et al. 2022, "CANINE: Pre-training an Efficient Tokenization-Free Encoder for Language Representation":
        joining tokens after a first layer.
    """

    rotation: Tensor

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, config.width, padding_idx=0)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.num_encoder_layers)])
        self.norm = nn.RMSNorm(config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.join = Join(config.width, config.tokens_per_state) if config.tokens_per_state > 1 else None
        rotation = rotation_angles(config.max_text_tokens, config.width // config.num_heads)
        self.register_buffer("rotation", rotation, persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, text_ids: Tensor) -> Encoded:
        """Encode (N, L) token ids, with 0 for padding, to (N, S, D) states."""
        mask = (text_ids != 0)[:, None, None, :]
        x = self.dropout(self.embedding(text_ids))
        compiled = torch.compiler.is_compiling()  # reading values would break the compiled graph
        is_full = not compiled and bool(mask.all())
        for index, layer in enumerate(self.layers):
            if self.join is not None and index == UNJOINED:
                x, mask = self.join(x, mask)
            x = layer(x, self.rotation[:, : x.shape[1]], None if is_full else mask)
        return Encoded(self.norm(x), mask, text_ids)


class Join(nn.Module):
    """A linear layer that joins neighbouring tokens into one state; initialised close to their mean.

    Args:
        width: D of tokens and states.
        tokens: number of tokens per state.
    """

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.linear = nn.Linear(tokens * width, width, bias=False)
        with torch.no_grad():
            self.linear.weight.mul_(0.5).add_(torch.eye(width).repeat(1, tokens) / tokens)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Map (N, L, D) tokens and their (N, 1, 1, L) mask to (N, S, D) states and their (N, 1, 1, S) mask.

        Padding counts as zeros; S is L / tokens, rounded up.
        """
        N, L, D = x.shape
        missing = -L % self.tokens
        joined = F.pad(x * mask[:, 0, 0, :, None], (0, 0, 0, missing)).reshape(N, -1, self.tokens * D)
        present = F.pad(mask.to(torch.uint8), (0, missing))  # for bool, torch.compile generates invalid C++
        return self.linear(joined).to(x.dtype), present.reshape(N, 1, 1, -1, self.tokens).amax(dim=4) > 0
