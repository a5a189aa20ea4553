"""A tiny space and deterministic evaluators for the tests of studies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import ArchitectureError, SearchSpace
from studies.config import SAMPLERS, SearchConfig
from studies.evaluators import FunctionEvaluator

OBJECTIVES = ("accuracy@toy", "latency_ms@toy", "energy_mj@toy")
SLOW_SAMPLERS = ("gp", "agemoea")  # one fits processes, the other compiles itself
ENGINES = [
    pytest.param(
        {"engine": engine, "sampler": sampler},
        id=f"{engine}-{sampler}",
        marks=[pytest.mark.slow] if sampler in SLOW_SAMPLERS else [],
    )
    for engine, samplers in SAMPLERS.items()
    for sampler in samplers
]


@dataclass(frozen=True)
class Row:
    genes: tuple[int, ...]


class ToySpace(SearchSpace[Row]):
    """Four genes, the first three interchangeable: 500 genotypes, of which 20 are invalid, and 120 keys."""

    name = "toy"
    objectives = OBJECTIVES
    gene_sizes = (5, 5, 5, 4)

    def encode(self, architecture: Row) -> tuple[int, ...]:
        return architecture.genes

    def _build(self, genotype: tuple[int, ...]) -> Row:
        if genotype[0] == genotype[1] == genotype[2]:
            raise ArchitectureError(f"toy: expected different genes, got {genotype}.")
        return Row(tuple(genotype))

    def parse(self, notation: str) -> Row:
        if not notation.replace("-", "").isdigit():
            raise ArchitectureError(f"toy: expected digits, got {notation!r}.")
        return self.decode([int(gene) for gene in notation.split("-")])

    def format(self, architecture: Row) -> str:
        return "-".join(map(str, architecture.genes))

    def architecture_key(self, architecture: Row) -> str:
        *twins, last = architecture.genes
        return f"{sorted(twins)} {last}"


SPACE = ToySpace()


def keys_of(notations: Sequence[str]) -> list[str]:
    """Of toy architectures."""
    return [SPACE.architecture_key(SPACE.parse(notation)) for notation in notations]


def true_values(architecture: Row) -> list[float]:
    """Accuracy, latency and energy; equal for twins."""
    *twins, last = architecture.genes
    width, depth = sum(twins), max(twins)
    return [60 + 3 * width - 0.2 * width**2 + depth + 2 * last, 1.0 + width + 1.7 * last, 5.0 + 3 * depth - last]


def columns_of(objectives: Sequence[str]) -> list[int]:
    return [OBJECTIVES.index(name) for name in objectives]


class ToyEvaluator:
    """True values with an interval around them; remembers what it was asked, and can break down."""

    def __init__(self, objectives: Sequence[str] = OBJECTIVES, *, breaks_at: int | None = None) -> None:
        self.objectives = tuple(objectives)
        self.breaks_at = breaks_at
        self.batches: list[list[str]] = []

    @property
    def keys(self) -> list[str]:
        return [key for batch in self.batches for key in batch]

    def evaluate(self, architectures: Sequence[Row]) -> Prediction:
        if len(self.batches) == self.breaks_at:
            raise KeyboardInterrupt("as if killed")
        self.batches.append([ToySpace().architecture_key(architecture) for architecture in architectures])
        median = np.array([true_values(a) for a in architectures])[:, columns_of(self.objectives)]
        return Prediction(self.objectives, (0.1, 0.5, 0.9), np.stack([median - 0.5, median, median + 1.0], axis=2))


class ToyPredictor:
    """Normal distributions around true values that are ``sigma`` off, each notation with an error of its own.

    Its quantiles are calibrated. It remembers which objectives it was asked of which texts, and can know fewer.
    """

    def __init__(self, *, sigma: float = 1.0, objectives: Sequence[str] = OBJECTIVES) -> None:
        self.sigma = sigma
        self.objectives = tuple(objectives)
        self.calls: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        names = tuple(objectives or self.objectives)
        self.calls.append((tuple(texts), names))
        values = self._centres(texts, names)[:, :, None] + self.sigma * norm.ppf(quantiles)
        return Prediction(names, tuple(quantiles), values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        drawn = np.random.default_rng(seed).normal(size=(len(texts), len(objectives), samples))
        return self._centres(texts, objectives)[:, :, None] + self.sigma * drawn

    def _centres(self, texts: Sequence[str], objectives: Sequence[str]) -> FloatArray:
        rows = [ToySpace().parse(text) for text in texts]
        centres = np.array([true_values(row) + self.sigma * self._errors(row) for row in rows])
        return np.asarray(centres.reshape(len(texts), -1)[:, columns_of(objectives)])

    def _errors(self, row: Row) -> FloatArray:
        return np.random.default_rng(row.genes).normal(size=len(OBJECTIVES))


def toy_results(notation: str) -> dict[str, float]:
    """True values of every objective: the function of a user."""
    return dict(zip(OBJECTIVES, true_values(ToySpace().parse(notation)), strict=True))


class ToyResults(FunctionEvaluator[Row]):
    """Real results; remembers what it was asked, and can break down."""

    def __init__(self, objectives: Sequence[str] = OBJECTIVES, *, breaks_at: int | None = None) -> None:
        super().__init__(ToySpace(), self._result, objectives=objectives)
        self.breaks_at = breaks_at
        self.asked: list[str] = []

    def _result(self, notation: str) -> dict[str, float]:
        if len(self.asked) == self.breaks_at:
            raise KeyboardInterrupt("as if killed")
        self.asked.append(notation)
        return toy_results(notation)


class HalfFailing(ToyResults):
    """The latency of every second architecture stays unknown."""

    def _result(self, notation: str) -> dict[str, float]:
        found = super()._result(notation)
        return found if len(self.asked) % 2 else found | {"latency_ms@toy": float("nan")}


def toy_table(share: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """True values of every genotype, or of a random share of them."""
    space = ToySpace()
    rows = list(space.enumerate())
    chosen = np.random.default_rng(seed).permutation(len(rows))[: round(share * len(rows))]
    values: FloatArray = np.array([true_values(rows[index]) for index in chosen])
    table = pd.DataFrame(values, columns=list(OBJECTIVES))
    return table.assign(space="toy", architecture=[space.format(rows[index]) for index in chosen])


def toy_config(**changes: object) -> SearchConfig:
    """A small search, ``changes`` replacing its values; goals and constraints are strings."""
    values = {
        "space": "toy",
        "goals": ["max:accuracy@toy", "min:latency_ms@toy"],
        "trials": 60,
        "population_size": 10,
        "seed": 3,
    }
    return SearchConfig.from_dict({**values, **changes})


def history_of(folder: Path) -> pd.DataFrame:
    """What a finished study has written."""
    return pd.read_parquet(folder / "history.parquet")
