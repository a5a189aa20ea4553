"""The T5Gemma backbone: the encoder of a T5Gemma from the Hugging Face hub or a folder, followed by our decoder.

``transformers`` takes seconds to import, so it is imported only where it is needed.

N texts, L text tokens, D width of the decoder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from nasrlm.model.config import ModelConfig
from nasrlm.model.encoded import Encoded
from nasrlm.model.lora import add_lora
from nasrlm.text.tokenizer import PADDING_ID, TextTokenizer

ATTENTION = frozenset({"q_proj", "k_proj", "v_proj", "o_proj"})  # layers that LoRA changes


class T5GemmaTextEncoder(nn.Module):
    """A T5Gemma encoder of ``config.backbone_sizes`` with random weights, and a projection to D."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        from transformers import T5GemmaConfig, T5GemmaEncoderModel

        assert config.backbone_sizes is not None, "load_t5gemma fills in the sizes of a backbone"
        sizes: Any = T5GemmaConfig.from_dict(dict(config.backbone_sizes))
        self.backbone = T5GemmaEncoderModel(sizes)
        if config.freeze_backbone or config.lora_rank:
            self.backbone.requires_grad_(False)
        if config.lora_rank:
            add_lora(self.backbone, ATTENTION, config.lora_rank)
        self.projection = nn.Linear(sizes.encoder.hidden_size, config.width, bias=False)

    @property
    def embedding(self) -> nn.Embedding:
        """The embedding of text tokens."""
        embedding: nn.Embedding = self.backbone.get_input_embeddings()  # type: ignore[no-untyped-call]
        return embedding

    def forward(self, text_ids: Tensor) -> Encoded:
        """Encode (N, L) ids; 0 is padding."""
        mask = text_ids != PADDING_ID
        states = self.backbone(input_ids=text_ids, attention_mask=mask.long()).last_hidden_state
        return Encoded(self.projection(states), mask[:, None, None, :], text_ids)


@dataclass(frozen=True)
class T5Gemma:
    """A published T5Gemma: the config with its sizes, its tokenizer, and its encoder's weights."""

    config: ModelConfig
    tokenizer: TextTokenizer
    weights: dict[str, Tensor]

    def fill(self, encoder: T5GemmaTextEncoder) -> None:
        """Load the weights into an encoder; LoRA's weights are not changed."""
        missing, unexpected = encoder.backbone.load_state_dict(self.weights, strict=False)
        wrong = [*unexpected, *[name for name in missing if not name.endswith((".down", ".up"))]]
        assert not wrong, f"an encoder of the same config has the same weights, not {wrong}"


def load_t5gemma(config: ModelConfig) -> T5Gemma:
    """Load a T5Gemma from the hub or a folder.

    Args:
        config: its ``backbone`` is the name or the folder.

    Raises:
        ValueError: it does not exist, cannot be reached, is another kind of model, or lacks weights; one line.
    """
    from transformers import AutoConfig, AutoTokenizer, T5GemmaEncoderModel

    encoders: Any = T5GemmaEncoderModel  # its type hints lack output_loading_info
    try:
        sizes = AutoConfig.from_pretrained(config.backbone)
        if sizes.model_type != "t5gemma":
            raise ValueError(f"a {sizes.model_type}")
        tokenizer = AutoTokenizer.from_pretrained(config.backbone)
        with _without_report():
            model, loaded = encoders.from_pretrained(
                config.backbone, is_encoder_decoder=False, dtype=torch.float32, output_loading_info=True
            )
        if lacking := sorted(loaded["missing_keys"]):
            raise ValueError(f"one without the weights {lacking[0]}")  # they would stay random
    except Exception as e:  # the hub, the network and broken files fail in many ways
        reason = " ".join(str(e).split())[:200]
        raise ValueError(
            f"model.backbone: expected compact, or a T5Gemma on the Hugging Face hub or in a folder, "
            f"got {config.backbone!r} ({reason})."
        ) from e
    _check(config, sizes, tokenizer)
    filled = replace(config, backbone_sizes=json.loads(model.config.to_json_string(use_diff=False)))
    return T5Gemma(filled, _text_tokenizer(tokenizer), model.state_dict())


@contextmanager
def _without_report() -> Iterator[None]:
    """Silence what transformers prints about weights: a bar, and a list of the decoder's weights, which are unused."""
    from huggingface_hub.utils.tqdm import enable_progress_bars
    from transformers.utils import logging as untyped

    logging: Any = untyped
    level, shows_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if shows_bars:
        logging.disable_progress_bar()
        enable_progress_bars()  # downloads may take minutes, so their bars stay
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shows_bars:
            logging.enable_progress_bar()


def _check(config: ModelConfig, sizes: Any, tokenizer: Any) -> None:
    longest = sizes.encoder.max_position_embeddings
    if config.max_text_tokens > longest:
        raise ValueError(
            f"model.max_text_tokens: expected at most {longest}, the limit of {config.backbone}, got "
            f"{config.max_text_tokens}."
        )
    if tokenizer.pad_token_id != PADDING_ID or len(tokenizer) > sizes.encoder.vocab_size:
        raise ValueError(
            f"{config.backbone}: expected a tokenizer that pads with id {PADDING_ID} and has at most "
            f"{sizes.encoder.vocab_size} tokens, got padding {tokenizer.pad_token_id} and {len(tokenizer)} tokens."
        )


def _text_tokenizer(tokenizer: Any) -> TextTokenizer:
    copy = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    copy.no_padding()
    copy.no_truncation()
    return TextTokenizer(copy)
