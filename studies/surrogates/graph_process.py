"""What real results tell about networks that are all known beforehand, by what these are made of.

An objective that the predictor does not know is learned with a Gaussian process of groups of features: accuracies by
the walks of the networks' canonical graphs, which tell no spellings apart; costs by what the predictor says of their
texts, by their genes, and by the sizes and operators of what a compiler leaves of them. Networks whose graphs are the
same share what features do not explain.

N texts, S samples, F features of a group.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.repeated_labels import places_of
from nasrlm.arrays import FloatArray
from nasrlm.objective import Objective
from spaces import SearchSpace
from studies.surrogates.corrected_predictor import LearnedObjective
from studies.surrogates.features import Features, feature_groups, operator_counts, whole_sizes
from studies.surrogates.scale import LearningScale, Scale

A = TypeVar("A", bound=Hashable)

ACCURACY_MARGIN = 5.0  # percent that an accuracy may lie below the least known one


@dataclass(frozen=True)
class Networks:
    """Every network that will be asked about.

    Attributes:
        row_of: by text, into the features; of architectures whose texts are the same, one.
        computed: (N, F) each, groups of features of what is computed, see ``features.feature_groups``.
        compiled: (N, F) each, sizes of what a compiler leaves, and how many operators of each kind, see
            ``converters.passes.executed.compiled_graph``.
        computed_kinds: (N,) numbers, the same where all features of what is computed are.
        compiled_kinds: likewise of what a compiler leaves.
        genes: (N, F) one column a choice of a gene, centred, of variance 1 on average.
    """

    row_of: dict[str, int]
    computed: Sequence[FloatArray]
    compiled: Sequence[FloatArray]
    computed_kinds: NDArray[np.intp]
    compiled_kinds: NDArray[np.intp]
    genes: FloatArray

    def rows(self, texts: Sequence[str]) -> NDArray[np.intp]:
        """(N,) rows of N texts.

        Raises:
            ValueError: a text of another network.
        """
        unknown = [text for text in texts if text not in self.row_of]
        if unknown:
            raise ValueError(
                f"process: expected one of {len(self.row_of)} networks that are known beforehand, got "
                f"{unknown[0][:60]!r}. Name it when the adapter is made."
            )
        return np.array([self.row_of[text] for text in texts], dtype=np.intp)


def networks_of(
    space: SearchSpace[A],
    architectures: Sequence[A],
    texts: Sequence[str],
    computed: Sequence[Features],
    compiled: Sequence[Features],
) -> Networks:
    """Of N architectures with their texts, and features of what is computed and of what a compiler leaves."""
    genes = one_hot_genes(space, architectures)
    genes -= genes.mean(axis=0)
    genes /= max(float(np.sqrt(genes.var(axis=0).mean())), 1e-9)
    return Networks(
        {text: row for row, text in enumerate(texts)},
        feature_groups(computed),
        (whole_sizes(compiled), operator_counts(compiled)),
        _kinds(computed),
        _kinds(compiled),
        genes,
    )


def one_hot_genes(space: SearchSpace[A], architectures: Sequence[A]) -> FloatArray:
    """(N, F) one column a choice of a gene."""
    genotypes = np.array([space.encode(architecture) for architecture in architectures])
    chosen = [np.eye(size)[genotypes[:, gene]] for gene, size in enumerate(space.gene_sizes)]
    return np.concatenate(chosen, axis=1)


def graph_scale(name: str, labels: FloatArray) -> LearningScale:
    """Choose the scale of an objective: errors for accuracies, values as they are for costs.

    Logarithms of costs would stretch the cheapest apart.

    NOTE: a network that fails is as accurate as chance, to a hair, and errors alone tell 10 % from 25 % worse than
    93 % from 94 %: what costs nothing and fails was then evaluated again and again for what it might gain.
    """
    kind, least = Scale.of(name, labels).kind, float(labels.min())
    if kind == "error":
        return LearningScale.of(Scale(kind, least - ACCURACY_MARGIN), labels)
    return LearningScale.of(Scale("linear"), labels, low=0.5 * least if kind == "log" else -np.inf)


def _kinds(rows: Sequence[Features]) -> NDArray[np.intp]:
    """(N,) numbers, the same where all features are."""
    return places_of([frozenset(row.items()) for row in rows])


class GraphProcess(LearnedObjective):
    """What was learned of one objective.

    Args:
        networks: all of them.
        predictions: (N, F) what the predictor says of each.
        name: of the objective.
        texts: that have results.
        labels: (N,) of these, own unit.
    """

    def __init__(
        self, networks: Networks, predictions: FloatArray, name: str, texts: Sequence[str], labels: FloatArray
    ) -> None:
        self._networks = networks
        if Objective.parse(name).is_accuracy:
            process = GroupProcess(networks.computed, linear=(0,), kinds=networks.computed_kinds)
        else:
            groups = [predictions, *networks.compiled, networks.genes]
            process = GroupProcess(groups, linear=(0, 1, 2), kinds=networks.compiled_kinds)
        self._process = process.fit(networks.rows(texts), labels, graph_scale(name, labels))
        self._scores = self._process.predict(np.arange(len(networks.computed_kinds)))

    def quantiles(self, texts: Sequence[str], normal_quantiles: FloatArray) -> FloatArray:
        """(N, Q) labels at quantiles of a standard normal distribution."""
        rows = self._networks.rows(texts)
        mean, deviation = (values[rows] for values in self._scores)
        deviation = np.sqrt(deviation**2 + self._process.noise)
        return self._process.scale.backward(mean[:, None] + deviation[:, None] * normal_quantiles)

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """(N, S) labels, drawn jointly."""
        rows = self._networks.rows(texts)
        return self._process.scale.backward(self._process.sample(rows, samples, rng, self._process.noise))
