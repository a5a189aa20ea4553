"""Evaluators: architectures to numbers, from a predictor or from a table of labels."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import pandas as pd

from nasrlm.objective import FloatArray, Goal, to_losses
from nasrlm.prediction import Prediction
from spaces import SearchSpace

A = TypeVar("A", bound=Hashable)
A_contra = TypeVar("A_contra", bound=Hashable, contravariant=True)


class Evaluator(Protocol[A_contra]):
    """What a search asks: architectures in, quantiles of every objective out."""

    def evaluate(self, architectures: Sequence[A_contra]) -> Prediction:
        """(N, M, Q) values in own units, rows in the order given; NaN where there is no answer."""
        ...


class TextPredictor(Protocol):
    """The part of ``nasrlm.Predictor`` that a surrogate needs."""

    def predict(
        self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]
    ) -> Prediction: ...


class Surrogate(Generic[A]):
    """A predictor in the terms of a search space; architectures of one text are predicted once.

    Args:
        space: the search space.
        predictor: texts to predictions.
        objectives: M names to predict, in this order.
        to_text: architecture to the text that the predictor reads.
        quantiles: Q levels, 0.5 among them.
    """

    def __init__(
        self,
        space: SearchSpace[A],
        predictor: TextPredictor,
        *,
        objectives: Sequence[str],
        to_text: Callable[[A], str],
        quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    ) -> None:
        self.space = space
        self.predictor = predictor
        self.objectives = tuple(objectives)
        self.to_text = to_text
        self.quantiles = tuple(quantiles)
        self._texts: dict[A, str] = {}
        self._values: dict[str, FloatArray] = {}  # text to (M, Q)

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Predict; one call of the predictor for all texts not met before.

        Args:
            architectures: N architectures, repetitions allowed.

        Returns:
            (N, M, Q) in own units.
        """
        for architecture in architectures:
            if architecture not in self._texts:
                self._texts[architecture] = self.to_text(architecture)
        texts = [self._texts[architecture] for architecture in architectures]
        new = [text for text in dict.fromkeys(texts) if text not in self._values]
        if new:
            predicted = self.predictor.predict(new, self.objectives, self.quantiles)
            self._values.update(zip(new, predicted.values, strict=True))
        shape = (len(texts), len(self.objectives), len(self.quantiles))
        values = np.array([self._values[text] for text in texts], dtype=np.float64).reshape(shape)
        return Prediction(self.objectives, self.quantiles, values)

    def predict(self, genotypes: Sequence[Sequence[int]]) -> Prediction:
        """The same for (N, G) genotypes."""
        return self.evaluate([self.space.decode(genotype) for genotype in genotypes])

    def losses(self, genotypes: Sequence[Sequence[int]], goals: Sequence[Goal]) -> FloatArray:
        """(N, M) losses of the medians of (N, G) genotypes, a column a goal."""
        columns = [self.objectives.index(goal.objective) for goal in goals]
        return to_losses(goals, self.predict(genotypes).median[:, columns])


class TableEvaluator(Generic[A]):
    """True labels from a table, found by architecture key; several rows of one key give their mean.

    Args:
        space: parses the table's notation.
        table: a column ``architecture``, label columns, and perhaps ``space``, of which only this
            space's rows are read.
        objectives: M label columns.

    Raises:
        ValueError: a column is missing, a notation is malformed, or no row is of this space.

    Attributes:
        labels: (K, M), one row a key, NaN where no row of the key has the label.
        keys: the K keys, in the table's order.
    """

    def __init__(self, space: SearchSpace[A], table: pd.DataFrame, *, objectives: Sequence[str]) -> None:
        self.space = space
        self.objectives = tuple(objectives)
        rows = _rows_of_space(table, space.name, self.objectives)
        keys = [self._key_of_row(index, text) for index, text in rows["architecture"].items()]
        means = rows[list(self.objectives)].astype(np.float64).groupby(keys, sort=False).mean()
        self.keys = tuple(str(key) for key in means.index)
        self.labels: FloatArray = means.to_numpy(dtype=np.float64)
        self._row_of_key = {key: row for row, key in enumerate(self.keys)}

    def _key_of_row(self, index: Hashable, notation: str) -> str:
        try:
            return self.space.architecture_key(self.space.parse(notation))
        except ValueError as error:
            raise ValueError(f"table row {index}, column architecture: {error}") from error

    def labels_of(self, keys: Sequence[str]) -> FloatArray:
        """(N, M) labels of N keys; a row of NaN where the table does not know the key."""
        unknown = np.full((1, len(self.objectives)), np.nan)
        return np.vstack([self.labels, unknown])[[self._row_of_key.get(key, -1) for key in keys]]

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """(N, M, 1) labels, certain, so the only quantile is the median."""
        labels = self.labels_of([self.space.architecture_key(architecture) for architecture in architectures])
        return Prediction(self.objectives, (0.5,), labels[:, :, None])


def _rows_of_space(table: pd.DataFrame, space: str, objectives: Sequence[str]) -> pd.DataFrame:
    missing = [name for name in ("architecture", *objectives) if name not in table.columns]
    if missing:
        raise ValueError(
            f"table: expected columns architecture and {', '.join(objectives)}, got no {', '.join(missing)}. "
            f"It has {', '.join(map(str, table.columns))}."
        )
    rows = table if "space" not in table.columns else table[table["space"] == space]
    if rows.empty:
        raise ValueError(f"table: expected rows of space {space}, got none in {len(table)} rows.")
    return rows
