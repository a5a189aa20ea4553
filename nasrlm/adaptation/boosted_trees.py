"""Boosted trees for few labels and many features; they fit steps, for which a Gaussian process is too smooth.

N rows, F features, n labelled rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import FloatArray
from nasrlm.threads import one_thread

SMALLEST_LEAF = 5  # rows; fewer with fewer than 40 labels
NUM_TREES = 1200  # 200 trees with four times the learning rate lose 0.01 with a hundred labels
MANY_LABELS = 1000  # from so many on, a larger learning rate and all cores are used
NUM_LEAVES = (8, 31)  # least and most of a tree; between them, a quarter of the square root of the number of labels


def expected_by_trees(features: FloatArray, rows: NDArray[np.intp], targets: FloatArray) -> FloatArray:
    """Fit trees to the targets of some rows and predict all rows; deterministic.

    Args:
        features: (N, F) of all rows.
        rows: (n,) indices of the rows that have targets.
        targets: (n,).

    Returns:
        (N,) predicted targets.

    Cost: two seconds for 80 labels and a thousand features on one core, 14 for 1,600, a minute for 15,000.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor  # the import takes a second

    varies = np.ptp(features[rows], axis=0) > 0
    if not varies.any():
        return np.full(len(features), targets.mean())
    trees = HistGradientBoostingRegressor(
        max_iter=NUM_TREES,
        learning_rate=0.05 if len(rows) >= MANY_LABELS else 0.02,
        max_leaf_nodes=round(np.clip(len(rows) ** 0.5 / 4, *NUM_LEAVES)),
        max_features=0.1,
        max_bins=63,  # 255 bins rank as well in twice the time
        min_samples_leaf=min(SMALLEST_LEAF, max(1, len(rows) // 8)),
        early_stopping=False,
        random_state=0,
    )
    with one_thread(len(rows) < MANY_LABELS):
        trees.fit(features[rows][:, varies], targets)
        return np.asarray(trees.predict(features[:, varies]), dtype=np.float64)
