"""Which candidates to evaluate: those expected to add most hypervolume together.

N candidates, S samples, M goals, F front members; losses are minimised.
"""

import heapq

import numpy as np

from nasrlm.objective import FloatArray
from studies.pareto import BoolArray, hypervolume, pareto_mask


def improvements(losses: FloatArray, front: FloatArray, reference_point: FloatArray) -> FloatArray:
    """The hypervolume that each row alone would add to a front.

    Args:
        losses: (N, M).
        front: (F, M), none dominated by another.
        reference_point: (M,).

    Returns:
        (N,) in the product of the goals' units; 0 where dominated, or beyond the reference point.

    Cost: 15 µs a row that adds anything, with 30 front members.
    """
    dominated = np.any(np.all(front[None] <= losses[:, None], axis=2), axis=1)
    adds = np.all(losses < reference_point, axis=1) & ~dominated
    gains = np.zeros(len(losses))
    for row in np.flatnonzero(adds):
        # What the front already has of the box between the row and the reference point.
        shared = hypervolume(np.maximum(front, losses[row]), reference_point)
        gains[row] = np.prod(reference_point - losses[row]) - shared
    return gains


def choose(
    samples: FloatArray, feasible: BoolArray, front: FloatArray, reference_point: FloatArray, count: int
) -> list[int]:
    """The batch with the largest expected hypervolume improvement, found greedily.

    Each next candidate is the one that adds most in the mean over the samples, given those chosen before. Later
    gains are never larger than earlier ones, so only the candidates at the top are computed again.

    Args:
        samples: (N, S, M) losses, sample s of all objectives drawn jointly.
        feasible: (N, S) flags of the samples that meet the constraints.
        front: (F, M).
        reference_point: (M,).
        count: of candidates to choose.

    Returns:
        Up to ``count`` rows, best first; fewer where no other candidate adds anything in any sample.

    Source:
        Daulton, Balandat, Bakshy 2020, "Differentiable Expected Hypervolume Improvement"; lazy greedy: Minoux 1978.
    """
    samples = np.where(feasible[:, :, None], samples, np.inf)
    fronts = [front] * samples.shape[1]

    def gain(row: int) -> float:
        gains = [improvements(samples[row, None, s], fronts[s], reference_point)[0] for s in range(len(fronts))]
        return float(np.mean(gains))

    whole = np.array([improvements(candidate, front, reference_point).mean() for candidate in samples])
    queue = [(-value, row) for row, value in enumerate(whole.tolist()) if value > 0]
    heapq.heapify(queue)
    chosen: list[int] = []
    while queue and len(chosen) < count:
        _, row = heapq.heappop(queue)
        current = gain(row)
        if queue and -queue[0][0] > current:
            heapq.heappush(queue, (-current, row))
        elif current > 0:
            chosen.append(row)
            fronts = [_with(member, samples[row, s]) for s, member in enumerate(fronts)]
    return chosen


def _with(front: FloatArray, losses: FloatArray) -> FloatArray:
    merged = np.vstack([front, losses])
    return merged[pareto_mask(merged)]
