"""Make the model that training starts from: random weights, a pretrained backbone, or a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.model.config import COMPACT, ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.model.point_decoder import POINT_DIGITS, PointDecoder
from nasrlm.model.t5gemma import T5Gemma, T5GemmaTextEncoder, load_t5gemma
from nasrlm.text.tokenizer import TextTokenizer
from nasrlm.training.config import TrainConfig

TOKENS = "encoder.embedding.weight"
# Settings that training from a checkpoint cannot change.
KEPT_OF_MODEL = (
    "width",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "hidden",
    "tokens_per_state",
    "head",
    "backbone",
    "lora_rank",
)
KEPT_OF_NUMBERS = ("num_digits", "min_exponent", "max_exponent")


def check_origin(config: TrainConfig) -> None:
    """Check what ``initial_model`` checks that does not depend on the rows.

    Raises:
        ValueError: a backbone or checkpoint cannot be loaded, or its sizes or tokens differ from the config's.
    """
    if config.initial_checkpoint is not None:
        _kept_sizes(config, Checkpoint.from_pretrained(config.initial_checkpoint))
    elif config.model.backbone != COMPACT:
        _backbone(config)
    elif config.initial_tokenizer is not None:
        _given_tokenizer(config, config.initial_tokenizer)


def initial_model(
    config: TrainConfig, rows: Examples, known: TextTokenizer | None
) -> tuple[RegressionLanguageModel, TextTokenizer]:
    """Return the model before the first step, seeded, and its tokenizer.

    Args:
        config: of the run.
        rows: to train on, with the objectives to learn in decoding order.
        known: the tokenizer, if it was trained on these rows before, which can take minutes.

    Raises:
        ValueError: a backbone or checkpoint cannot be loaded.
    """
    if config.initial_checkpoint is not None:
        model, tokenizer = _from_checkpoint(config, Checkpoint.from_pretrained(config.initial_checkpoint), rows, known)
    elif config.model.backbone != COMPACT:
        model, tokenizer = _from_backbone(config, rows)
    else:
        tokenizer = known or _tokenizer(config, rows)
        model = _untrained(config, config.model, tokenizer, rows, _code(config))
    if config.only_encoder:
        for name, weights in model.named_parameters():
            weights.requires_grad_(name.startswith("encoder.") and name != TOKENS)
    return model, tokenizer.limited(model.config.token_limit)


def _untrained(
    config: TrainConfig, sizes: ModelConfig, tokenizer: TextTokenizer, rows: Examples, code: NumberCode
) -> RegressionLanguageModel:
    """Return a model with random weights, seeded, that standardises by the labels of the rows if its head does."""
    torch.manual_seed(config.seed)
    model = RegressionLanguageModel(sizes, tokenizer.vocabulary_size, len(rows.objectives), code)
    if isinstance(model.decoder, PointDecoder):
        model.decoder.standardise_by(rows.labels)
    return model


def _tokenizer(config: TrainConfig, rows: Examples) -> TextTokenizer:
    if config.initial_tokenizer is None:
        return TextTokenizer.train(rows.texts, config.vocabulary_size, config.tokenizer)
    return _given_tokenizer(config, config.initial_tokenizer)


def _given_tokenizer(config: TrainConfig, folder: Path) -> TextTokenizer:
    tokenizer = Checkpoint.from_pretrained(folder).tokenizer
    _check_tokens(config, tokenizer, str(folder))
    return tokenizer


def _backbone(config: TrainConfig) -> T5Gemma:
    loaded = load_t5gemma(config.model)
    _check_tokens(config, loaded.tokenizer, config.model.backbone)
    return loaded


def _from_backbone(config: TrainConfig, rows: Examples) -> tuple[RegressionLanguageModel, TextTokenizer]:
    loaded = _backbone(config)
    model = _untrained(config, loaded.config, loaded.tokenizer, rows, _code(config))
    assert isinstance(model.encoder, T5GemmaTextEncoder)
    loaded.fill(model.encoder)
    return model, loaded.tokenizer


def _from_checkpoint(
    config: TrainConfig, initial: Checkpoint, rows: Examples, known: TextTokenizer | None
) -> tuple[RegressionLanguageModel, TextTokenizer]:
    """Start from the weights of another model; weights of objectives that it does not know are new."""
    sizes = _kept_sizes(config, initial)
    tokenizer = initial.tokenizer
    if config.extend_tokenizer:
        tokenizer = known or _extended_tokenizer(tokenizer, config, rows)
    model = _untrained(config, sizes, tokenizer, rows, initial.model.code)
    fresh = model.state_dict()
    weights = initial.model.weights_without_readouts()
    if config.extend_tokenizer:
        weights[TOKENS] = _extended(weights[TOKENS], initial.tokenizer, tokenizer)
    shared = [(row, initial.objectives.index(x)) for row, x in enumerate(rows.objectives) if x in initial.objectives]
    for name in ("decoder.objectives.weight", "decoder.mean", "decoder.scale"):
        if name in weights:
            old, weights[name] = weights[name], fresh[name].clone()
            for row, old_row in shared:
                weights[name][row] = old[old_row]
    model.load_state_dict(weights)
    return model, tokenizer


def _kept_sizes(config: TrainConfig, initial: Checkpoint) -> ModelConfig:
    """Return the sizes of a model that starts from a checkpoint; refuse settings that it cannot have."""
    _check_kept(config, initial)
    sizes = replace(
        initial.model.config.without_readouts(),
        dropout=config.model.dropout,
        max_text_tokens=_context(config, initial),
        truncation=config.model.truncation,
        freeze_backbone=config.model.freeze_backbone,
    )
    if (config.extend_tokenizer or config.only_encoder) and sizes.backbone != COMPACT:
        raise ValueError(
            f"extend_tokenizer, only_encoder: expected an initial_checkpoint of a compact model, got {sizes.backbone}."
        )
    if not config.extend_tokenizer:
        _check_tokens(config, initial.tokenizer, str(config.initial_checkpoint))
        return sizes
    if (initial.tokenizer.pieces, config.tokenizer) != ("onnx", "chains"):  # tokens of lines may be extended by chains
        _check_pieces(config, initial.tokenizer, str(config.initial_checkpoint))
    initial.tokenizer.check_room(config.vocabulary_size)
    return sizes


def _check_kept(config: TrainConfig, initial: Checkpoint) -> None:
    """Refuse settings of the model or number code that differ from the checkpoint's; defaults are ignored."""
    for place, names, asked, known, default in (
        ("model.", KEPT_OF_MODEL, config.model, initial.model.config, ModelConfig()),
        ("", KEPT_OF_NUMBERS, _code(config), initial.model.code, NumberCode()),
    ):
        for name in names:
            if getattr(asked, name) not in (getattr(default, name), getattr(known, name)):
                raise ValueError(
                    f"{place}{name}: expected {getattr(known, name)}, as in {config.initial_checkpoint}, or no value, "
                    f"got {getattr(asked, name)}."
                )


def _context(config: TrainConfig, initial: Checkpoint) -> int:
    """Return the context, in tokens, of a model that starts from a checkpoint: the checkpoint's, or a longer one.

    Rotary positions have no weights, so a compact model's context may grow. The encoder of a single space keeps the
    context of the encoders that it is stored with, and a T5Gemma its own.
    """
    asked, known = config.model.max_text_tokens, initial.model.config.max_text_tokens
    may_grow = initial.model.config.backbone == COMPACT and not config.only_encoder
    if asked not in (ModelConfig().max_text_tokens, known) and (asked < known or not may_grow):
        expected = f"{known} or more" if may_grow else str(known)
        raise ValueError(
            f"model.max_text_tokens: expected {expected}, as in {config.initial_checkpoint}, or no value, got {asked}."
        )
    return max(asked, known) if may_grow else known


def _check_tokens(config: TrainConfig, tokenizer: TextTokenizer, source: str) -> None:
    """Refuse settings of a tokenizer that differ from one that is not trained anew; defaults are ignored."""
    _check_pieces(config, tokenizer, source)
    most = config.vocabulary_size
    if most != TrainConfig.model_fields["vocabulary_size"].default and most < tokenizer.vocabulary_size:
        raise ValueError(
            f"vocabulary_size: expected {tokenizer.vocabulary_size}, as in {source}, or more, or no value, got {most}."
        )


def _check_pieces(config: TrainConfig, tokenizer: TextTokenizer, source: str) -> None:
    """Refuse a kind of pieces that differs from the tokenizer's; the default is ignored."""
    if config.tokenizer not in (TrainConfig.model_fields["tokenizer"].default, pieces := tokenizer.pieces):
        known = f"{pieces}, as in {source}, or no value" if pieces else f"no value with {source}"
        raise ValueError(f"tokenizer: expected {known}, got {config.tokenizer}.")


def _extended_tokenizer(tokenizer: TextTokenizer, config: TrainConfig, rows: Examples) -> TextTokenizer:
    if config.extend_tokenizer is True:
        return tokenizer.extended(rows.texts, config.vocabulary_size, pieces=config.tokenizer)
    assert isinstance(config.extend_tokenizer, tuple)
    if missing := sorted(set(config.extend_tokenizer) - set(rows.spaces)):
        raise ValueError(f"extend_tokenizer: expected spaces with train rows, got {', '.join(missing)}.")
    named = [space in config.extend_tokenizer for space in rows.spaces]
    theirs, others = (
        [text for text, is_named in zip(rows.texts, named, strict=True) if is_named == wanted]
        for wanted in (True, False)
    )
    return tokenizer.extended(theirs, config.vocabulary_size, unchanged=others, pieces=config.tokenizer)


def _extended(embedding: Tensor, old: TextTokenizer, new: TextTokenizer) -> Tensor:
    """Return embeddings for the tokens of ``new``: those of ``old``, and for a new token the mean of its old tokens."""
    added = [new.from_ids([index]) for index in range(old.vocabulary_size, new.vocabulary_size)]
    return torch.stack([*embedding, *[embedding[ids].mean(dim=0) for ids in old.to_ids(added)]])


def _code(config: TrainConfig) -> NumberCode:
    digits = POINT_DIGITS if config.model.head == "mse" else config.num_digits
    return NumberCode(digits, config.min_exponent, config.max_exponent)
