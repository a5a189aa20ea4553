"""Predict texts of several spaces, each with the encoder, calibration and sums of its own space. N texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nasrlm.arguments import checked_levels, checked_names, has_order, items_of
from nasrlm.arrays import FloatArray
from nasrlm.named_spaces import TEXT_SPACE, Space, known_as, name_of
from nasrlm.prediction import Prediction
from nasrlm.unreadable_texts import naming_rows

if TYPE_CHECKING:
    from nasrlm.predictor import Predictor


def objectives_of_spaces(predictor: Predictor, spaces: Sequence[str]) -> tuple[str, ...]:
    """Return the objectives that are known in any of these spaces, in decoding order."""
    known = {name for space in set(spaces) for name in predictor.objectives_of(space or TEXT_SPACE)}
    return tuple(name for name in predictor.objectives if name in known)


def predict_by_space(
    predictor: Predictor,
    texts: Sequence[str],
    spaces: Sequence[str | Space],
    objectives: Sequence[str] | None,
    quantiles: Iterable[float],
    progress: bool,
) -> Prediction:
    """Call ``Predictor.predict`` for N texts of N spaces or names of spaces; "", None, NaN or NA if one is not known.

    Raises:
        ValueError: as ``Predictor.predict``, or there are not as many spaces as texts.
    """
    if not has_order(spaces):
        raise ValueError(f"spaces: expected one for each text, got {spaces!r:.60}. For a single space, use of_space.")
    listed, known = items_of(spaces), predictor.checkpoint.spaces
    if len(listed) != len(texts):
        raise ValueError(f"spaces: expected one for each of {len(texts)} texts, got {len(listed)}.")
    named = ["" if _is_missing(space) else known_as(name_of(space), known) for space in listed]
    of_spaces = objectives_of_spaces(predictor, named) or predictor.objectives  # without texts, all
    names = of_spaces if objectives is None else checked_names(objectives)

    def ask(own: Predictor, some: Sequence[str]) -> FloatArray:
        return own.predict(some, names, quantiles, progress).values

    return Prediction(names, checked_levels(quantiles), answer_by_space(predictor, texts, named, ask))


def answer_by_space(
    predictor: Predictor,
    texts: Sequence[str],
    spaces: Sequence[str],
    ask: Callable[[Predictor, Sequence[str]], FloatArray],
) -> FloatArray:
    """Call ``ask`` once per space, and return the results in the order of the texts.

    Args:
        predictor: of all spaces.
        texts: N texts.
        spaces: N names, "" if one is not known.
        ask: takes the predictor and the texts of one space; returns an array with one row per text.

    Raises:
        UnreadableTextError: a text is empty or too long; its row is its index among the N.
    """
    if not texts:
        return ask(predictor, texts)
    rows: dict[str, list[int]] = defaultdict(list)
    for row, space in enumerate(spaces):
        rows[space].append(row)
    answers = []
    for space, own in rows.items():
        with naming_rows(own.__getitem__):
            answers.append(ask(predictor.of_space(space or TEXT_SPACE), [texts[row] for row in own]))
    in_order: FloatArray = np.concatenate(answers)[np.argsort(np.concatenate(list(rows.values())))]
    return in_order


def _is_missing(space: object) -> bool:
    """Return whether a name is missing: None, or pandas' NaN and NA, neither of which is known to equal itself."""
    equal = space == space
    return space is None or not (isinstance(equal, bool | np.bool_) and equal)
