"""Warn of texts that lack operations with which the networks of their space were measured.

Some spaces run operations whose results are unused. Canonical text leaves them out. Measured text, from which published
labels are predicted, has them as executed blocks E0, E1, …, see ``nasrlm.text.network``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from nasrlm.text.network import has_executed_blocks


def warn_of_lost_operations(texts: Iterable[str], space: str) -> None:
    """Warn of canonical texts of a space that was learned from measured texts."""
    if any("\nnetwork (" in text and not has_executed_blocks(text) for text in texts):
        warnings.warn(
            f"texts: expected measured texts of {space}, got canonical ones, which lack operations that were measured, "
            "so predictions are less accurate. Give notations, or convert with nasrlm.to_measured_text.",
            stacklevel=3,
        )
