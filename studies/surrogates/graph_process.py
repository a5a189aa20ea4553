"""Learn an objective that the predictor does not know, from results and features of graphs.

All networks have to be known beforehand. A Gaussian process has groups of features: for accuracies predictions of other
accuracies, such as on another data set, and features of the canonical graph, such as walks, which are the same for
isomorphic architectures; for costs predictions of all objectives, the genes, and sizes and operators of the graph that
a compiler leaves; and for both what is counted in the text (``text_parts``). Networks with the same graph also share
the part of a label that features do not explain.

N networks or texts, S samples, F features of a group.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nasrlm.adaptation.group_process import PRIOR, GroupProcess
from nasrlm.adaptation.repeated_labels import places_of
from nasrlm.arrays import FloatArray
from nasrlm.objective import Objective
from spaces import SearchSpace
from studies.surrogates.corrected_predictor import LearnedObjective
from studies.surrogates.features import Features, cost_groups, feature_groups
from studies.surrogates.scale import LearningScale, Scale
from studies.surrogates.text_parts import TextParts

A = TypeVar("A", bound=Hashable)

# Standard deviations by which a result may differ from what all others lead to expect before it is doubted. Accuracies
# differ more than costs anyway; with 0 for them, intervals are wider, and the gate prunes 36 instead of 59 % of the
# networks that engines propose (docs/log.md, 2026-11-30).
TRUSTED_ACCURACY, TRUSTED_COST = 3.0, 0.0
PRIOR_ACCURACY, FULL_PRIOR = 0.2, 50  # prior of accuracies' scales, from this many labels on; see ``GraphProcess``
ACCURACY_MARGIN = 5.0  # percentage points by which an accuracy may lie below the lowest known one


@dataclass(frozen=True)
class Networks:
    """All networks that may be predicted, with their features.

    Attributes:
        row_of: row of each text; architectures with the same text share one.
        computed: groups (N, F) of features of the canonical graphs, see ``features.feature_groups``.
        compiled: ``features.cost_groups`` of the graphs that a compiler leaves, see
            ``converters.passes.executed.compiled_graph``.
        computed_kinds: (N,) indices, equal for networks whose canonical graphs have equal features.
        compiled_kinds: (N,) indices, equal for networks whose compiled graphs have equal features.
        genes: (N, F) one-hot genes, centred, with a mean variance of 1.
        counted: groups (N, F) of what is counted in the texts, and indices of those that are about sizes.
        for_accuracies: (N, F) standardised predictions of accuracies of the same space, if there are any.
        for_costs: (N, F) standardised predictions of all objectives; no logarithms, because costs add up.
    """

    row_of: dict[str, int]
    computed: Sequence[FloatArray]
    compiled: Sequence[FloatArray]
    computed_kinds: NDArray[np.intp]
    compiled_kinds: NDArray[np.intp]
    genes: FloatArray
    counted: tuple[Sequence[FloatArray], Sequence[int]]
    for_accuracies: FloatArray
    for_costs: FloatArray

    def rows(self, texts: Sequence[str]) -> NDArray[np.intp]:
        """Return the (N,) rows of N texts.

        Raises:
            ValueError: a text is of an unknown network.
        """
        unknown = [text for text in texts if text not in self.row_of]
        if unknown:
            raise ValueError(
                f"process: expected one of {len(self.row_of)} networks that are known beforehand, got "
                f"{unknown[0][:60]!r}. Include it when creating the adapter."
            )
        return np.array([self.row_of[text] for text in texts], dtype=np.intp)


def networks_of(
    space: SearchSpace[A],
    architectures: Sequence[A],
    texts: Sequence[str],
    computed: Sequence[Features],
    compiled: Sequence[Features],
    *,
    for_accuracies: FloatArray,
    for_costs: FloatArray,
    progress: bool = False,
) -> Networks:
    """Build ``Networks`` from N architectures, their texts, features of canonical and compiled graphs, and predictions.

    ``progress`` shows a bar on stderr while texts are counted.
    """
    genes = one_hot_genes(space, architectures)
    genes -= genes.mean(axis=0)
    genes /= max(float(np.sqrt(genes.var(axis=0).mean())), 1e-9)
    parts = TextParts(texts, progress=progress)
    return Networks(
        {text: row for row, text in enumerate(texts)},
        feature_groups(computed),
        cost_groups(compiled),
        _kinds(computed),
        _kinds(compiled),
        genes,
        ([_varying(group) for group in parts.of(texts)], parts.of_sizes),
        for_accuracies,
        for_costs,
    )


def one_hot_genes(space: SearchSpace[A], architectures: Sequence[A]) -> FloatArray:
    """Return the (N, F) one-hot encoding of genes, with a column for each choice of each gene."""
    genotypes = np.array([space.encode(architecture) for architecture in architectures])
    chosen = [np.eye(size)[genotypes[:, gene]] for gene, size in enumerate(space.gene_sizes)]
    return np.concatenate(chosen, axis=1)


def _varying(group: FloatArray) -> FloatArray:
    """Return the columns of (N, F) features that are not constant, with the same mean variance of a feature."""
    varying = group[:, np.ptp(group, axis=0) > 0]
    return np.asarray(varying * np.sqrt(varying.shape[1] / group.shape[1]))


def graph_scale(name: str, labels: FloatArray) -> LearningScale:
    """Choose the scale of an objective: errors for accuracies, plain values for costs.

    Logarithms would stretch the differences among the cheapest networks.

    NOTE: networks that fail to train are all as accurate as chance. On the scale of errors alone, 10 % and 25 % are
    hardly farther apart than 93 % and 94 %, so cheap networks that fail were evaluated again and again for their
    possible gain. Hence the scale has a floor, ``ACCURACY_MARGIN`` below the lowest accuracy, near which it is
    stretched too.
    """
    kind, least = Scale.of(name, labels).kind, float(labels.min())
    if kind == "error":
        return LearningScale.of(Scale(kind, least - ACCURACY_MARGIN), labels)
    return LearningScale.of(Scale("linear"), labels, low=0.5 * least if kind == "log" else -np.inf)


def _kinds(rows: Sequence[Features]) -> NDArray[np.intp]:
    """Return (N,) indices that are equal for rows with equal features."""
    return places_of([frozenset(row.items()) for row in rows])


class GraphProcess(LearnedObjective):
    """An objective learned from features of graphs.

    NOTE: a result that differs from what all others lead to expect is hardly followed. One in 25 energies of
    NAS-Bench-201 is more than a tenth larger than those of other networks with the same graph, some by half. A search
    that met such a one first never measured the others, which were on the front (docs/log.md, 2026-11-29). Likewise,
    one that met a chain of convolutions that had hardly learned anything never tried the best networks, which are as
    large (2026-11-30).

    NOTE: a search evaluates few of the networks that are neither cheap nor accurate. With scales that fit its
    accuracies too closely, it expected the others to be 2 to 5 percentage points worse than they are and was sure of
    it, so the gate pruned 12 % of the front for accuracy and latency. A stronger prior keeps the scales near their
    starting values; with few labels it is weaker, as for costs. In four of these searches the gate then pruned 12
    instead of 18 %, still more than its risk. With another checkpoint it prunes 2 to 3 % either way (2026-11-30).

    Args:
        networks: all networks that may be predicted.
        name: name of the objective.
        texts: n texts with results.
        labels: (n,) results in own unit.
    """

    def __init__(self, networks: Networks, name: str, texts: Sequence[str], labels: FloatArray) -> None:
        self._networks, self.scale = networks, graph_scale(name, labels)
        counted, of_sizes = networks.counted
        if Objective.parse(name).is_accuracy:
            groups, num_linear = [networks.for_accuracies, *networks.computed], 1 + len(networks.computed[:1])
            kinds, trusted = networks.computed_kinds, TRUSTED_ACCURACY
            prior = PRIOR_ACCURACY * min(1.0, len(labels) / FULL_PRIOR)
        else:
            groups, num_linear = [networks.for_costs, *networks.compiled, networks.genes], 3
            kinds, trusted, prior = networks.compiled_kinds, TRUSTED_COST, PRIOR
        linear = [*range(num_linear), *[len(groups) + place for place in of_sizes]]
        process = GroupProcess([*groups, *counted], linear=linear, kinds=kinds)
        self._process = process.fit(networks.rows(texts), labels, self.scale, trusted=trusted, prior=prior)
        self._scores = self._process.predict(np.arange(len(networks.computed_kinds)))

    def normal(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return the (N,) means and standard deviations on the scale."""
        rows = self._networks.rows(texts)
        mean, deviation = (values[rows] for values in self._scores)
        return mean, np.sqrt(deviation**2 + self._process.noise)

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """Return (N, S) labels without the noise of a measurement, drawn jointly for all texts.

        NOTE: with that noise, a search goes on measuring the same network in other spellings for the luckiest result.
        One of NAS-Bench-201 tried a hundred spellings of a single convolution (docs/log.md, 2026-11-30).
        """
        return self.scale.backward(self._process.sample(self._networks.rows(texts), samples, rng))
