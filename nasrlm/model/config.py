"""The config of a model: sizes, kind of head, backbone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

from nasrlm.text.truncation import TokenLimit, Truncation

COMPACT = "compact"
Head = Literal["digits", "mse"]

LAYERS = ("num_encoder_layers", "num_decoder_layers")
SIZES = ("width", "num_heads", *LAYERS, "hidden", "max_text_tokens", "tokens_per_state")
# Fields that adapting sets.
OF_READOUTS = ("num_readouts", "num_anchors", "num_graph_networks", "num_sum_rows", "reads_macs", "reads_activations")
MOST_LAYERS = 1000  # or loading a broken config could take for ever


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and kinds of a model's parts. The defaults have 3.2 M parameters at a vocabulary of 1,024.

    Attributes:
        width: D of the decoder, and of the encoder of the compact backbone; a multiple of 2 * ``num_heads``.
        num_heads: attention heads of a layer.
        num_encoder_layers: layers of the compact encoder, up to ``MOST_LAYERS``, as for ``num_decoder_layers``.
        hidden: width within the MLP of a layer.
        dropout: probability, in [0, 1), that a number is dropped in training.
        max_text_tokens: the context; at least 2 if ``truncation`` is "head_and_tail".
        tokens_per_state: number of neighbouring tokens that the compact encoder joins after its first layer; more than
            one is for texts of hundreds of tokens.
        head: "digits" decodes numbers digit by digit; "mse" predicts one number, learned by its squared error, without
            intervals.
        truncation: the part that is kept of a longer text; by default a longer text is an error.
        backbone: "compact", or a T5Gemma by its name on the Hugging Face hub or its folder.
        freeze_backbone: do not train a T5Gemma.
        lora_rank: freeze a T5Gemma except for a learned change of this rank in its attention; 0 for none.
        backbone_sizes: a T5Gemma's own config, filled in when it is loaded.
        num_readouts: kernel machines that predict objectives instead of the decoder, see ``nasrlm.model.readout``.
        num_anchors: texts that each readout compares a text with.
        num_graph_networks: graph networks, each of which corrects one of the readouts.
        num_sum_rows: largest number of rows in the row sum of a readout, see ``nasrlm.model.row_sum``.
        reads_macs: whether a readout has a slope along the logarithm of the multiply-accumulates.
        reads_activations: whether a readout has one along the logarithm of the activations.

    Raises:
        ValueError: a value is impossible, or does not go with another one.
    """

    width: int = 192
    num_heads: int = 6
    num_encoder_layers: int = 4
    num_decoder_layers: int = 2
    hidden: int = 512
    dropout: float = 0.0
    max_text_tokens: int = 2048
    tokens_per_state: int = 1
    head: Head = "digits"
    truncation: Truncation = "error"
    backbone: str = COMPACT
    freeze_backbone: bool = False
    lora_rank: int = 0
    backbone_sizes: Mapping[str, Any] | None = None
    num_readouts: int = 0
    num_anchors: int = 0
    num_graph_networks: int = 0
    num_sum_rows: int = 0
    reads_macs: bool = False
    reads_activations: bool = False

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # a misspelt key of a training config is an error

    def __post_init__(self) -> None:
        for name in SIZES:
            size = getattr(self, name)
            if not isinstance(size, int) or size < 1:  # NumPy's integers cannot be written as JSON
                raise ValueError(f"ModelConfig: {name}: expected an int of 1 or more, got {size!r}.")
            if name in LAYERS and size > MOST_LAYERS:
                raise ValueError(f"ModelConfig: {name}: expected at most {MOST_LAYERS:,} layers, got {size:,}.")
        if self.width % (2 * self.num_heads):
            raise ValueError(
                f"ModelConfig: expected width to be a multiple of 2 * num_heads, got {self.width} and {self.num_heads}."
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"ModelConfig: dropout: expected a number in [0, 1), got {self.dropout}.")
        if self.truncation == "head_and_tail" and self.max_text_tokens < 2:
            raise ValueError("ModelConfig: expected max_text_tokens of 2 or more for truncation head_and_tail, got 1.")
        for name, kinds in (("head", Head), ("truncation", Truncation)):
            if getattr(self, name) not in get_args(kinds):
                raise ValueError(
                    f"ModelConfig: {name}: expected one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}."
                )
        if self.tokens_per_state > 1 and (self.backbone != COMPACT or self.num_encoder_layers < 2):
            raise ValueError(
                f"ModelConfig: expected a compact encoder of 2 or more layers to merge {self.tokens_per_state} tokens "
                f"per state, got {self.num_encoder_layers} layers of backbone {self.backbone}."
            )
        counts = {name: getattr(self, name) for name in OF_READOUTS}
        if min(counts.values()) < 0 or (self.num_readouts and self.head != "digits"):
            raise ValueError(
                f"ModelConfig: expected {', '.join(counts)} of 0 or more, and no readouts with head mse, "
                f"got {tuple(counts.values())} and {self.head}."
            )
        if self.lora_rank < 0 or (self.backbone == COMPACT and (self.freeze_backbone or self.lora_rank)):
            raise ValueError(
                f"ModelConfig: expected lora_rank of 0 or more, and a backbone to freeze or adapt, "
                f"got lora_rank {self.lora_rank}, freeze_backbone {self.freeze_backbone}, backbone {self.backbone}."
            )

    @property
    def token_limit(self) -> TokenLimit | None:
        """The limit that longer texts are truncated to; None if they are an error."""
        return None if self.truncation == "error" else TokenLimit(self.max_text_tokens, self.truncation)

    def without_readouts(self) -> ModelConfig:
        """Return the config of the same model without readouts."""
        none: dict[str, Any] = {field.name: field.default for field in fields(self) if field.name in OF_READOUTS}
        return replace(self, **none)
