"""The regression language model: an encoder reads text, a decoder writes numbers after objective prompts.

A row is an objective prompt with its number.

N texts, L text tokens, R rows per text, T number tokens, D width, V vocabulary of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nasrlm.model.config import COMPACT, ModelConfig
from nasrlm.model.decoder import Decoder, masked_log_softmax
from nasrlm.model.encoder import Encoder
from nasrlm.model.layers import Memory
from nasrlm.model.number import NumberCode
from nasrlm.model.point_decoder import PointDecoder
from nasrlm.model.readout import Readouts
from nasrlm.model.t5gemma import T5GemmaTextEncoder
from nasrlm.text.counts import NUM_COUNTS


class RegressionLanguageModel(nn.Module):
    """A model from text ids to distributions over number tokens.

    Args:
        config: sizes and kinds of its parts.
        vocabulary_size: number of text tokens of the compact backbone; id 0 is padding.
        num_objectives: number of objective prompts.
        code: how numbers are written as tokens.
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int, num_objectives: int, code: NumberCode) -> None:
        super().__init__()
        self.config, self.code = config, code
        self.encoder = Encoder(config, vocabulary_size) if config.backbone == COMPACT else T5GemmaTextEncoder(config)
        kind = Decoder if config.head == "digits" else PointDecoder
        self.decoder: Decoder | PointDecoder = kind(config, num_objectives, code)
        self.readouts = Readouts(config, self.summary_width) if config.num_readouts else None

    @classmethod
    def to_fill(
        cls, config: ModelConfig, vocabulary_size: int, num_objectives: int, code: NumberCode
    ) -> RegressionLanguageModel:
        """Make a model whose weights will all be loaded; torch's random state stays as the user's program has it."""
        with torch.random.fork_rng(devices=[]):
            return cls(config, vocabulary_size, num_objectives, code)

    @property
    def summary_width(self) -> int:
        """Length of a text's summary, see ``Encoded.summaries``."""
        return self.config.width + self.encoder.embedding.embedding_dim + NUM_COUNTS

    @property
    def num_parameters(self) -> int:
        """Number of parameters, frozen ones included."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.decoder.objectives.weight.device

    def weights_without_readouts(self) -> dict[str, Tensor]:
        """Return the state of encoder and decoder, by name, without readouts."""
        return {name: x for name, x in self.state_dict().items() if not name.startswith("readouts.")}

    def forward(self, text_ids: Tensor, objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """Compute teacher-forced log-probabilities of number tokens.

        Args:
            text_ids: (N, L), 0 = padding.
            objectives: (N, R) objective ids, in decoding order.
            numbers: (N, R, T) number ids.
            visible: (N, R, R) bool, True at (n, r, s) if row r may attend to the number of the earlier row s.

        Returns:
            (N, R, T, V) log-probabilities under the grammar.
        """
        return self.decode(self.decoder.remember(self.encoder(text_ids)), objectives, numbers, visible)

    def decode(self, memories: Sequence[Memory], objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """Compute log-probabilities as ``forward`` does, for texts encoded before, which ``memories`` hold."""
        logits = self.decoder(memories, objectives, numbers, visible)
        allowed = self.decoder.grammar[numbers[..., :1], torch.arange(self.code.length, device=numbers.device)]
        return masked_log_softmax(logits, allowed)
