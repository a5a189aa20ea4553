"""What answers a search: labels of a table, a function of the user's, or measurements on this machine."""

import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import pandas as pd

from converters.runtime import measure_latencies
from converters.tables.counts import COUNTS, counts_by_name, named_counts
from nasrlm.arrays import FloatArray
from nasrlm.objective import MAX_LABEL, Objective
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from spaces.shown import shown
from studies.config import SearchConfig
from studies.pareto import complete_mask
from studies.surrogates.memory import SamplingPredictor
from studies.tables.rows import parsed_rows, rows_of_space

A = TypeVar("A", bound=Hashable)
UsersFunction = Callable[[str], Mapping[str, float]]  # a notation to a value for each objective, by its name

A_contra = TypeVar("A_contra", bound=Hashable, contravariant=True)

MS_PER_UNIT = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Evaluator(Protocol[A_contra]):
    """What a search asks: architectures in, quantiles of every objective out."""

    def evaluate(self, architectures: Sequence[A_contra]) -> Prediction:
        """(N, M, Q) values in own units, rows in the order given; NaN where there is no answer."""
        ...


@runtime_checkable
class RealEvaluator(Protocol[A]):
    """An evaluator whose answers are real, and cost something.

    One with a true attribute ``one_at_a_time`` is asked for one architecture at a time, and each answer saved at once;
    any other for a whole population, of which an error may lose all.

    Attributes:
        known: the only architectures it can answer, with their twins; None where it can answer any.
        modelled: objectives that it takes from a predictor, so that evaluating tells nothing new about them.
    """

    @property
    def known(self) -> Sequence[A] | None: ...

    @property
    def modelled(self) -> tuple[str, ...]: ...

    def evaluate(self, architectures: Sequence[A]) -> Prediction: ...


class TableEvaluator(Generic[A]):
    """True labels from a table: an architecture's own row, or that of its simplest twin where the table lacks it.

    Isomorphic twins compute the same, and yet their published labels differ: each was trained and measured on its
    own. The simplest is the one whose genotype is the smallest. Of ``Spellings`` of a space there are no twins.

    Args:
        space: parses the table's notation.
        table: a column ``architecture``, label columns, and perhaps ``space``, of which only this
            space's rows are read.
        objectives: M label columns; counts, such as ``macs@onnx``, are counted where the table lacks the column.
        name: of the table in errors, such as its path.
        progress: show a bar on stderr while architectures are counted.

    Raises:
        ValueError: a column is missing, a notation is malformed, or no row is of this space.

    Attributes:
        row_labels: (N, M), of the table's rows of this space; what a row lacks is its simplest twin's, and of rows of
            one notation the first counts.
        num_overruled: rows with another label than an earlier one of their notation.
        labels: (K, M), of the simplest row of each key that has the label; NaN where none has it.
        keys: the K keys, in the table's order.
        known: the rows' architectures of each key that has every label.
        modelled: nothing.
    """

    modelled = ()

    def __init__(
        self,
        space: SearchSpace[A],
        table: pd.DataFrame,
        *,
        objectives: Sequence[str],
        name: str = "table",
        progress: bool = False,
    ) -> None:
        self.name = name
        self.space = space
        self.objectives = tuple(objectives)
        counted = [objective for objective in self.objectives if objective in COUNTS and objective not in table]
        rows = _rows_of_space(table, space, [name for name in self.objectives if name not in counted], name)
        parsed = list(parsed_rows(space, rows, name))
        keys = [space.architecture_key(architecture) for architecture in parsed]
        if counted:
            counts = named_counts(space, parsed, counted, progress=progress)
            rows = rows.assign(**dict(zip(counted, counts.T, strict=True)))
        numbers = rows[list(self.objectives)].astype(np.float64)
        notations = [space.format(architecture) for architecture in parsed]
        self._row_of_notation = {notation: row for row, notation in reversed([*enumerate(notations)])}
        simplest = sorted(range(len(parsed)), key=lambda row: space.encode(parsed[row]))
        shared = numbers.iloc[simplest].groupby([keys[row] for row in simplest], sort=False).first()
        shared = shared.loc[list(dict.fromkeys(keys))]
        self.keys = tuple(str(key) for key in shared.index)
        self.labels: FloatArray = shared.to_numpy(dtype=np.float64)
        self._row_of_key = {key: row for row, key in enumerate(self.keys)}
        given = numbers.to_numpy()
        own = given[[self._row_of_notation[notation] for notation in notations]]
        self.num_overruled = int((~np.isnan(own) & ~np.isnan(given) & (own != given)).any(axis=1).sum())
        self.row_labels: FloatArray = np.where(np.isnan(own), self.labels_of([str(key) for key in keys]), own)
        complete = {key for key, flag in zip(self.keys, complete_mask(self.labels), strict=True) if flag}
        self.known = [architecture for key, architecture in zip(keys, parsed, strict=True) if key in complete]

    def labels_of(self, keys: Sequence[str]) -> FloatArray:
        """(N, M) labels of N keys; a row of NaN where the table does not know the key."""
        rows = np.array([self._row_of_key.get(key, -1) for key in keys], dtype=np.intp)
        return np.where(rows[:, None] >= 0, self.labels[rows], np.nan)

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """(N, M, 1) labels, certain, so the only quantile is the median."""
        labels = self.labels_of([self.space.architecture_key(architecture) for architecture in architectures])
        rows = [self._row_of_notation.get(self.space.format(architecture), -1) for architecture in architectures]
        here = [index for index, row in enumerate(rows) if row >= 0]
        labels[here] = self.row_labels[[rows[index] for index in here]]
        return Prediction(self.objectives, (0.5,), labels[:, :, None])


def _rows_of_space(table: pd.DataFrame, space: SearchSpace[A], objectives: Sequence[str], name: str) -> pd.DataFrame:
    missing = [column for column in ("architecture", *objectives) if column not in table.columns]
    if missing:
        raise ValueError(
            f"{name}: expected columns architecture and {', '.join(objectives)}, got no {', '.join(missing)}. "
            f"It has {', '.join(map(str, table.columns))}."
        )
    rows = rows_of_space(table, space)
    rows = rows[rows["architecture"].notna()]
    if rows.empty:
        raise ValueError(f"{name}: expected architectures of space {space.address}, got none in {len(table)} rows.")
    return rows


class WithResults(Generic[A]):
    """An evaluator beside results that are known already: it is not asked for what a table has.

    Args:
        evaluator: gives the other results.
        results: of the same objectives; an architecture is known where it has all of them.
    """

    one_at_a_time = True

    def __init__(self, evaluator: RealEvaluator[A], results: TableEvaluator[A]) -> None:
        self.evaluator = evaluator
        self.results = results
        self.known = evaluator.known
        self.modelled = evaluator.modelled

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """(N, M, 1) results, the table's where it has them."""
        answer = self.results.evaluate(architectures)
        unknown = np.flatnonzero(~complete_mask(answer.median)).tolist()
        if unknown:
            asked = self.evaluator.evaluate([architectures[index] for index in unknown])
            answer.values[unknown, :, 0] = asked.median
        return answer


def _number(value: object) -> float:
    """Convert a user's answer to a number; refuse strings and truth values, which Python would convert as well."""
    if isinstance(value, str | bytes | bool | np.bool_):
        raise TypeError
    return float(value)  # type: ignore[arg-type]


class FunctionEvaluator(Generic[A]):
    """Real results from a function of the user's: the notation in, the value of every objective out.

    The first accuracy between 0 and 1 is warned of: accuracies are in percent.

    Args:
        space: writes the notation.
        function: answers a mapping with every objective, but for those that are counted, such as ``macs@onnx``, if it
            leaves them out; others in it are left alone, NaN says that there is no result.
        objectives: M names.
    """

    known: Sequence[A] | None = None
    modelled = ()
    one_at_a_time = True

    def __init__(self, space: SearchSpace[A], function: UsersFunction, *, objectives: Sequence[str]) -> None:
        self.space = space
        self.function = function
        self.objectives = tuple(objectives)
        self._counted = tuple(name for name in self.objectives if name in COUNTS)
        self._has_warned = False

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """(N, M, 1) results, one call of the function an architecture.

        Raises:
            ValueError: the function answers no mapping of all objectives to numbers of ``MAX_LABEL`` at most, or a
                number that a metric cannot have, such as a negative latency.
        """
        values: list[list[float]] = []
        for architecture in architectures:
            notation = self.space.format(architecture)
            values.append(self._results(notation))
            if not self._has_warned and (warning := self._fractions(values[-1], notation)):
                self._has_warned = True
                warnings.warn(warning, stacklevel=2)
        shape = (len(architectures), len(self.objectives), 1)
        return Prediction(self.objectives, (0.5,), np.array(values, dtype=np.float64).reshape(shape))

    def _results(self, notation: str) -> list[float]:
        answer = self._with_counts(self.function(notation), notation)
        if isinstance(answer, Mapping) and (lacking := [name for name in self.objectives if name not in answer]):
            raise ValueError(
                f"evaluator: expected an answer for each of {', '.join(self.objectives)}, got none for "
                f"{', '.join(lacking)} of {notation}: {shown(answer)}. Answer NaN where there is no result."
            )
        try:
            values = [_number(answer[name]) for name in self.objectives]
        except (LookupError, AttributeError, TypeError, ValueError, OverflowError, RuntimeError):  # of torch's tensors
            values = [math.inf]
        if any(abs(value) > MAX_LABEL for value in values):
            raise ValueError(
                f"evaluator: expected a dict with a finite number, or NaN, for each of {', '.join(self.objectives)}, "
                f"got {shown(answer)} for {notation}. Beyond {MAX_LABEL:g} no number counts: answer NaN for no result."
            )
        for name, value in zip(self.objectives, values, strict=True):
            objective = Objective.parse(name)
            if not objective.allows(value):
                raise ValueError(
                    f"evaluator: expected {objective.range_in_words} for {name}, got {value:g} for {notation}. "
                    "Answer NaN where there is no result."
                )
        return values

    def _with_counts(self, answer: Mapping[str, float], notation: str) -> Mapping[str, float]:
        """Add counts that a user's answer lacks; an answer that is no mapping is returned as it is."""
        lacking = [name for name in self._counted if isinstance(answer, Mapping) and name not in answer]
        if not lacking:
            return answer
        return {**answer, **counts_by_name(self.space, self.space.parse(notation), lacking)}

    def _fractions(self, values: Sequence[float], notation: str) -> str | None:
        """Return a warning if an accuracy looks like a fraction instead of percent, else None."""
        for name, value in zip(self.objectives, values, strict=True):
            if Objective.parse(name).seems_fraction(value):
                return (
                    f"evaluator: expected accuracies in percent, 0 to 100, got {value:g} for {name} of {notation}. "
                    f"If it is a fraction, let the function answer {100 * value:g}."
                )
        return None


class MeasuringEvaluator(Generic[A]):
    """Latencies from ONNX Runtime on this machine, ``params@onnx`` and other counts, all else from a predictor.

    Args:
        space: the search space.
        objectives: M names; those of the metric latency are measured, whatever their context says.
        predictor: knows the other objectives.
        to_text: architecture to the text that is measured and predicted from.
        repeats: timed runs of a network.

    Raises:
        ValueError: no objective is a latency, or the predictor does not know another.
    """

    known: Sequence[A] | None = None
    one_at_a_time = True

    def __init__(
        self,
        space: SearchSpace[A],
        *,
        objectives: Sequence[str],
        predictor: SamplingPredictor,
        to_text: Callable[[A], str],
        repeats: int = 50,
    ) -> None:
        self.space = space
        self.objectives = tuple(objectives)
        self.predictor = predictor
        self.to_text = to_text
        self.repeats = repeats
        parsed = [Objective.parse(name) for name in self.objectives]
        self.measured = tuple(part.name for part in parsed if part.metric == "latency" and part.unit in MS_PER_UNIT)
        self.counted = tuple(name for name in self.objectives if name in COUNTS)
        self.modelled = tuple(name for name in self.objectives if name not in (*self.measured, *self.counted))
        unknown = [name for name in self.modelled if name not in predictor.objectives]
        if not self.measured or unknown:
            raise ValueError(
                f"evaluator measure: expected a latency, and else objectives known of {space.name}, got "
                f"{', '.join(unknown or self.objectives)}. Example: latency_ms@here."
            )

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """(N, M, 1): median latencies, counts, and predicted medians."""
        texts = [self.to_text(architecture) for architecture in architectures]
        milliseconds = np.array([latency.median_ms for latency in measure_latencies(texts, repeats=self.repeats)])
        columns = {name: milliseconds / MS_PER_UNIT[Objective.parse(name).unit] for name in self.measured}
        columns |= zip(self.counted, named_counts(self.space, architectures, self.counted).T, strict=True)
        if self.modelled:
            columns |= zip(self.modelled, self.predictor.predict(texts, self.modelled, (0.5,)).median.T, strict=True)
        values: FloatArray = np.array([columns[name] for name in self.objectives]).T
        return Prediction(self.objectives, (0.5,), values.reshape(len(texts), len(self.objectives), 1))


def as_evaluator(given: Any, space: SearchSpace[A], objectives: Sequence[str]) -> Any:
    """An evaluator itself; of a function the evaluator that asks it.

    Raises:
        ValueError: it is neither.
    """
    if hasattr(given, "evaluate"):
        return given
    if not callable(given):
        raise ValueError(f"search: expected an evaluator, or a function of a notation, got {given!r:.60}.")
    return FunctionEvaluator(space, given, objectives=objectives)


def told_config(config: SearchConfig, evaluator: Evaluator[A]) -> SearchConfig:
    """The config of a search with an evaluator, whose real results are not to be taken for predictions."""
    if config.evaluator != "surrogate" or not isinstance(evaluator, RealEvaluator):
        return config
    if isinstance(evaluator, TableEvaluator):
        return replace(config, evaluator=f"table:{evaluator.name}")
    return replace(config, evaluator="measure" if isinstance(evaluator, MeasuringEvaluator) else "function")
