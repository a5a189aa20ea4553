"""Warn of texts that are not of the kind that a model was trained on, so that predictions for them are worse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nasrlm.callers import warn_caller
from nasrlm.named_spaces import known_as
from nasrlm.text.network import has_executed_blocks
from nasrlm.text.tokenizer import TextTokenizer


def lost_operations(texts: Iterable[str], space: str, measured_spaces: Sequence[str]) -> str:
    """Say in a sentence that texts of one of ``measured_spaces``, learned from measured texts, are canonical; or "".

    Some spaces run operations whose results are unused. Canonical text leaves them out. Measured text, from which
    published labels are predicted, has them as executed blocks E0, E1, …, see ``nasrlm.text.network``.
    """
    is_measured = known_as(space, measured_spaces) in measured_spaces
    if not is_measured or not any("\nnetwork (" in text and not has_executed_blocks(text) for text in texts):
        return ""
    return (
        f"texts: expected measured texts of {space}, got canonical ones, which lack operations that were measured, "
        "so predictions are less accurate. Give notations, or convert with nasrlm.to_measured_text."
    )


def notations(texts: Iterable[str], tokenizer: TextTokenizer) -> str:
    """Say in a sentence that lines given to a model of ONNX text look like notations or file names; "" if none does."""
    if not tokenizer.reads_onnx or not any("\n" not in text and not text.isalpha() for text in texts):
        return ""
    return (
        "texts: expected canonical ONNX text, on which the model was trained, got a line that looks like a notation or "
        "a file name: predictions for it are meaningless. Convert architectures with nasrlm.to_measured_text."
    )


def warn_of_lost_operations(texts: Iterable[str], space: str, measured_spaces: Sequence[str]) -> None:
    """Warn of ``lost_operations``, if there are any."""
    if words := lost_operations(texts, space, measured_spaces):
        warn_caller(words)


def warn_of_notations(texts: Iterable[str], tokenizer: TextTokenizer) -> None:
    """Warn of ``notations``, if there are any."""
    if words := notations(texts, tokenizer):
        warn_caller(words)
