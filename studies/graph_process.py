"""What real results tell about networks that are all known beforehand, by what these are made of.

An objective that the predictor does not know is learned with a Gaussian process of groups of features: accuracies by
the walks of the networks' canonical graphs, which tell no spellings apart; costs by what the predictor says of their
texts, and by their genes.

N texts, S samples, F features of a group.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nasrlm.group_process import GroupProcess
from nasrlm.objective import FloatArray, Objective
from spaces import SearchSpace
from studies.scale import Scale

A = TypeVar("A", bound=Hashable)

FEWEST = 10  # results of an objective from which it is learned


@dataclass(frozen=True)
class Networks:
    """Every network that will be asked about.

    Attributes:
        row_of: by text, into the features.
        graphs: (N, F) each, see ``converters.features.feature_groups``.
        genes: (N, F) one column a choice of a gene, centred, of variance 1 on average.
    """

    row_of: dict[str, int]
    graphs: Sequence[FloatArray]
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
    space: SearchSpace[A], architectures: Sequence[A], texts: Sequence[str], graphs: Sequence[FloatArray]
) -> Networks:
    """Of N architectures with their texts and the groups of their graphs' features."""
    genotypes = np.array([space.encode(architecture) for architecture in architectures])
    chosen = [np.eye(size)[genotypes[:, gene]] for gene, size in enumerate(space.gene_sizes)]
    genes = np.concatenate(chosen, axis=1)
    genes -= genes.mean(axis=0)
    genes /= max(float(np.sqrt(genes.var(axis=0).mean())), 1e-9)
    return Networks({text: row for row, text in enumerate(texts)}, graphs, genes)


@dataclass(frozen=True)
class LearningScale:
    """A scale whose labels have mean 0 and variance 1; what comes back is clipped.

    Attributes:
        scale: before.
        mean: of the labels on it.
        deviation: likewise.
        low: least label that may come back.
        high: largest.
    """

    scale: Scale
    mean: float
    deviation: float
    low: float
    high: float

    @classmethod
    def of(cls, name: str, labels: FloatArray) -> "LearningScale":
        """Accuracies are learned as errors. Costs are learned as they are: logarithms stretch the cheapest apart."""
        own = Scale.of(name, labels)
        scale = own if own.kind == "error" else Scale("linear")
        low, high = {"error": (0.0, 100.0), "log": (0.5 * float(labels.min()), np.inf)}.get(own.kind, (-np.inf, np.inf))
        values = scale.to(labels)
        return cls(scale, float(values.mean()), max(float(values.std()), 1e-9), low, high)

    def forward(self, labels: FloatArray) -> FloatArray:
        """Scores."""
        return np.asarray((self.scale.to(labels) - self.mean) / self.deviation, dtype=np.float64)

    def backward(self, scores: FloatArray) -> FloatArray:
        """Labels."""
        return np.clip(self.scale.back(scores * self.deviation + self.mean), self.low, self.high)


class GraphProcess:
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
        is_accuracy = "accuracy" in Objective.parse(name).metric
        groups = networks.graphs if is_accuracy else [predictions, networks.genes]
        self._process = GroupProcess(groups).fit(networks.rows(texts), labels, LearningScale.of(name, labels))
        # Spellings of a network differ in cost more than in accuracy, and failing networks all fail alike.
        self._noise = 0.0 if is_accuracy else self._process.noise
        self._scores = self._process.predict(np.arange(len(networks.row_of)))

    def quantiles(self, texts: Sequence[str], normal_quantiles: FloatArray) -> FloatArray:
        """(N, Q) labels at Q quantiles of a standard normal distribution."""
        rows = self._networks.rows(texts)
        mean, deviation = (values[rows] for values in self._scores)
        deviation = np.sqrt(deviation**2 + self._noise)
        return self._process.scores.backward(mean[:, None] + deviation[:, None] * normal_quantiles)

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """(N, S) labels, drawn jointly."""
        rows = self._networks.rows(texts)
        return self._process.scores.backward(self._process.sample(rows, samples, rng, self._noise))
