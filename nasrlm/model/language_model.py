"""The regression language model: an encoder reads text, a decoder spells numbers after objective prompts.

N texts, L text tokens, R number rows an input, T number tokens, D width, V vocabulary of numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nasrlm.model.config import COMPACT, ModelConfig
from nasrlm.model.decoder import Decoder, Memory, masked_log_softmax
from nasrlm.model.encoder import Encoder
from nasrlm.model.number import NumberCode
from nasrlm.model.point_decoder import PointDecoder
from nasrlm.model.readout import Readouts
from nasrlm.model.t5gemma import T5GemmaTextEncoder
from nasrlm.text.counts import NUM_COUNTS


class RegressionLanguageModel(nn.Module):
    """Text ids in, distributions over number tokens out.

    Args:
        config: sizes and kinds.
        vocabulary_size: text tokens of the compact backbone; id 0 is padding.
        num_objectives: objective prompts.
        code: how numbers are spelled.
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int, num_objectives: int, code: NumberCode) -> None:
        super().__init__()
        self.config, self.code = config, code
        self.encoder = Encoder(config, vocabulary_size) if config.backbone == COMPACT else T5GemmaTextEncoder(config)
        kind = Decoder if config.head == "digits" else PointDecoder
        self.decoder: Decoder | PointDecoder = kind(config, num_objectives, code)
        self.readouts = Readouts(config, self.summary_width) if config.num_readouts else None

    @property
    def summary_width(self) -> int:
        """Numbers that sum up a text, see ``Encoded.summaries``."""
        return self.config.width + self.encoder.embedding.embedding_dim + NUM_COUNTS

    @property
    def num_parameters(self) -> int:
        """Number of parameters, frozen ones included."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.decoder.objectives.weight.device

    def weights_without_readouts(self) -> dict[str, Tensor]:
        """By name, of all that spells objectives."""
        return {name: x for name, x in self.state_dict().items() if not name.startswith("readouts.")}

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
        return self.decode(self.decoder.remember(self.encoder(text_ids)), objectives, numbers, visible)

    def decode(self, memory: Memory, objectives: Tensor, numbers: Tensor, visible: Tensor) -> Tensor:
        """Log-probabilities as ``forward`` gives them, of texts that were encoded before; ``memory`` holds them."""
        logits = self.decoder(memory, objectives, numbers, visible)
        allowed = self.decoder.grammar[numbers[..., :1], torch.arange(self.code.length, device=numbers.device)]
        return masked_log_softmax(logits, allowed)
