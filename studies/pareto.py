"""Pareto fronts and hypervolumes, computed by moocore.

N architectures, M objectives, F front members, P points; losses are minimised.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Generic, Self, TypeVar

import moocore
import numpy as np

from nasrlm.arrays import BoolArray, FloatArray, complete_mask
from nasrlm.objective import MAX_LABEL

T = TypeVar("T")


def pareto_mask(losses: FloatArray) -> BoolArray:
    """Flag the rows that no other row dominates; equal rows do not dominate each other.

    Args:
        losses: (N, M), minimised; values beyond ±``MAX_LABEL`` count as this.

    Returns:
        (N,) flags.

    Raises:
        ValueError: a NaN among the losses; leave those rows out first, see ``complete_mask``.

    Example:
        >>> pareto_mask(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])).tolist()
        [True, True, False]
    """
    losses = _checked("pareto_mask", losses)
    return np.asarray(moocore.is_nondominated(losses, keep_weakly=True), dtype=np.bool_)


@dataclass(frozen=True)
class Front(Generic[T]):
    """The Pareto front of everything that has joined it.

    Attributes:
        members: F members in the order in which they joined.
        losses: (F, M) losses of the members, minimised.
    """

    members: Sequence[T]
    losses: FloatArray

    @classmethod
    def empty(cls, num_goals: int) -> Self:
        """Return a front without members."""
        return cls((), np.empty((0, num_goals)))

    def joined(self, members: Iterable[T], losses: FloatArray) -> "Front[T]":
        """Return the front of these members and N more with (N, M) losses."""
        everyone, merged = [*self.members, *members], np.vstack([self.losses, losses])
        mask = pareto_mask(merged)
        return Front(list(compress(everyone, mask)), merged[mask])


def no_worse(front: FloatArray, points: FloatArray) -> BoolArray:
    """Return (P, F) flags: whether a member of the front (F, M) is no worse than a point (P, M) in every goal."""
    flags = np.ones((len(points), len(front)), dtype=np.bool_)
    for goal in range(points.shape[1]):  # one at a time: reducing over all goals at once takes 18 times as long
        flags &= front[:, goal] <= points[:, goal, None]
    return flags


def hypervolume(losses: FloatArray, reference_point: FloatArray) -> float:
    """Return the volume that the losses dominate, up to the reference point.

    Args:
        losses: (N, M), minimised; rows beyond the reference point add nothing.
        reference_point: (M,), in the same units.

    Returns:
        Volume in the product of the objectives' units; 0 without rows.

    Raises:
        ValueError: there is a NaN, or the reference point does not have M coordinates.
    """
    losses = _checked("hypervolume", losses)
    reference_point = np.asarray(reference_point, dtype=np.float64)
    if reference_point.shape != (losses.shape[1],) or np.isnan(reference_point).any():
        raise ValueError(
            f"hypervolume: expected a reference point of {losses.shape[1]} numbers, got {reference_point}. "
            "It has one coordinate for each objective."
        )
    front = losses[moocore.is_nondominated(losses)]  # otherwise 25 s for 10,341 rows of six objectives
    return float(moocore.hypervolume(front, ref=reference_point.clip(-MAX_LABEL, MAX_LABEL)))


def hypervolume_ratio(found_losses: FloatArray, true_losses: FloatArray, reference_point: FloatArray) -> float:
    """Return the share of the true front's hypervolume that the found rows reach.

    Args:
        found_losses: (N, M) true losses of the architectures found.
        true_losses: (K, M) losses of all architectures.
        reference_point: (M,), such as the worst true loss of each objective.

    Returns:
        In [0, 1] when the found rows are among the true ones; NaN when the true rows span no volume.

    Raises:
        ValueError: as for ``hypervolume``.
    """
    whole = hypervolume(true_losses, reference_point)
    return hypervolume(found_losses, reference_point) / whole if whole > 0 else math.nan


def _checked(place: str, losses: FloatArray) -> FloatArray:
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 2 or losses.shape[1] == 0:
        raise ValueError(f"{place}: expected losses of shape (N, M), got {losses.shape}. Use one column per goal.")
    if not complete_mask(losses).all():
        row = int(np.flatnonzero(~complete_mask(losses))[0])
        raise ValueError(f"{place}: expected numbers, got NaN in row {row}. Leave incomplete rows out first.")
    # Clipped so that volumes of ten objectives stay finite. With infinite losses moocore 0.3 gives wrong fronts or
    # kills the process.
    return np.clip(losses, -MAX_LABEL, MAX_LABEL)
