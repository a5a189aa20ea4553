"""Answers to texts of several spaces, each by what was learned of its own. N texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nasrlm.arguments import checked_levels, checked_names, items_of
from nasrlm.arrays import FloatArray
from nasrlm.named_spaces import TEXT_SPACE, Space, checked_space
from nasrlm.prediction import Prediction
from nasrlm.reader import naming_rows

if TYPE_CHECKING:
    from nasrlm.predictor import Predictor


def objectives_of_spaces(predictor: Predictor, spaces: Sequence[str]) -> tuple[str, ...]:
    """What is known of any of these spaces, in the order of decoding."""
    known = {name for space in set(spaces) for name in predictor.objectives_of(space or TEXT_SPACE)}
    return tuple(name for name in predictor.objectives if name in known)


def predict_by_space(
    predictor: Predictor,
    texts: Sequence[str],
    spaces: Sequence[str | Space],
    objectives: Sequence[str] | None,
    quantiles: Sequence[float],
    progress: bool,
) -> Prediction:
    """``Predictor.predict`` of N texts of N spaces, or names of spaces; "", None or NaN where none is known.

    Raises:
        ValueError: as ``Predictor.predict`` does, or not as many spaces as texts.
    """
    if isinstance(spaces, str) or not isinstance(spaces, Iterable):
        raise ValueError(
            f"spaces: expected one of each text, got {spaces!r:.60}. For a single space there is of_space."
        )
    listed, known = items_of(spaces), predictor.checkpoint.spaces
    if len(listed) != len(texts):
        raise ValueError(f"spaces: expected one of each of {len(texts)} texts, got {len(listed)}.")
    # NaN, as pandas spells none, is no equal of itself.
    named = ["" if space is None or space != space else checked_space(space, known) for space in listed]
    of_spaces = objectives_of_spaces(predictor, named) or predictor.objectives  # of no texts, all
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
    """What ``ask`` gets from the predictor of each row's space, an array with a row a text.

    Args:
        predictor: of all spaces.
        texts: N texts.
        spaces: N names, empty where none is known.
        ask: of a space's predictor and its texts.

    Raises:
        UnreadableTextError: a text is empty or too long; its row is that among the N.
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
