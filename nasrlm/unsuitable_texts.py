"""Warn of texts that are not of the kind that a model was trained on, so that predictions for them are worse."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from nasrlm.text.network import has_executed_blocks


def warn_of_lost_operations(texts: Iterable[str], space: str) -> None:
    """Warn of canonical texts of a space that was learned from measured texts.

    Some spaces run operations whose results are unused. Canonical text leaves them out. Measured text, from which
    published labels are predicted, has them as executed blocks E0, E1, …, see ``nasrlm.text.network``.
    """
    if any("\nnetwork (" in text and not has_executed_blocks(text) for text in texts):
        warnings.warn(
            f"texts: expected measured texts of {space}, got canonical ones, which lack operations that were measured, "
            "so predictions are less accurate. Give notations, or convert with nasrlm.to_measured_text.",
            stacklevel=3,
        )


def warn_of_notations(texts: Iterable[str]) -> None:
    """Warn of single-line texts that look like a notation or a file name, given to a model of canonical ONNX text."""
    if any("\n" not in text and not text.isalpha() for text in texts):
        warnings.warn(
            "texts: expected canonical ONNX text, on which the model was trained, got a line that looks like a "
            "notation or a file name: predictions for it are meaningless. Convert architectures with "
            "nasrlm.to_measured_text.",
            stacklevel=3,
        )
