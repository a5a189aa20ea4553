"""Evaluators: labels of a table, a function of the user, or measurements on this machine.

N architectures, M objectives, Q quantiles. Twin: an isomorphic architecture with another notation.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import pandas as pd

from converters.runtime import measure_latencies
from converters.tables.counts import COUNTS, counts_by_name, named_counts
from nasrlm.arguments import check_kind, checked_names
from nasrlm.arrays import FloatArray, complete_mask
from nasrlm.callers import warn_caller
from nasrlm.objective import MAX_LABEL, Objective
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from spaces.registry import opened
from spaces.shown import shown
from studies.config import SearchConfig
from studies.history import predicted_objectives
from studies.surrogates.memory import SamplingPredictor, of_space
from studies.tables.files import possible_numbers
from studies.tables.rows import parsed_rows, rows_of_space

A = TypeVar("A", bound=Hashable)
UsersFunction = Callable[[str], Mapping[str, float]]  # notation to values by objective name

A_contra = TypeVar("A_contra", bound=Hashable, contravariant=True)

MS_PER_UNIT = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@runtime_checkable
class Evaluator(Protocol[A_contra]):
    """Converts architectures to quantiles of every objective."""

    def evaluate(self, architectures: Sequence[A_contra]) -> Prediction:
        """Return (N, M, Q) values in own units, rows in the order given; NaN if there is no result."""
        ...


@runtime_checkable
class RealEvaluator(Protocol[A]):
    """An evaluator that gives real results, usually at a cost.

    If it has a true attribute ``one_at_a_time``, architectures are evaluated one by one and each result is saved at
    once. Otherwise a whole population is evaluated in one call, and an error may lose all of its results.

    Attributes:
        known: the only architectures, with their twins, that it has results for; None if it can evaluate any.
        modelled: objectives whose values it takes from a predictor, so that its results teach nothing about them.
    """

    @property
    def known(self) -> Sequence[A] | None: ...

    @property
    def modelled(self) -> tuple[str, ...]: ...

    def evaluate(self, architectures: Sequence[A]) -> Prediction: ...


class TableEvaluator(Generic[A]):
    """Gives true labels from a table: those of an architecture's own row, or of its simplest twin.

    Twins compute the same function, but their published labels differ because each was trained and measured
    separately. The simplest twin is that with the smallest genotype. In ``Spellings`` of a space there are no twins.

    Args:
        space: the search space, which parses the table's notations, or its name.
        table: a column ``architecture`` and label columns; if there is a column ``space``, other spaces' rows are
            ignored.
        objectives: M label columns. Counts such as ``macs@onnx`` are computed if the table lacks them.
        name: name of the table in errors, such as its path.
        progress: show a bar on stderr while counts are computed.

    Raises:
        ValueError: a column is missing, holds predictions, or has a label that is no number, beyond ±``MAX_LABEL`` or
            impossible for its metric; a notation is malformed; or no row is of this space.

    Attributes:
        row_labels: (N, M) labels of the table's rows of this space. Of rows with the same notation the first counts;
            missing labels are those of the simplest twin.
        num_overruled: number of rows that contradict an earlier row with the same notation.
        labels: (K, M) labels of each key, from its simplest row that has the label; NaN if none has it.
        keys: K architecture keys, in the table's order.
        known: architectures of the rows whose key has every label.
        modelled: always empty.
    """

    modelled = ()

    def __init__(
        self,
        space: SearchSpace[A] | str,
        table: pd.DataFrame,
        *,
        objectives: Sequence[str],
        name: str = "table",
        progress: bool = False,
    ) -> None:
        check_kind(name, table, pd.DataFrame)
        self.name = name
        self.space: SearchSpace[A] = opened(space)
        self.objectives = checked_names(objectives)
        if not self.objectives:
            raise ValueError(f"{name}: expected one or more objectives, got none.")
        counted = [objective for objective in self.objectives if objective in COUNTS and objective not in table]
        rows = _labelled_rows(table, self.space, [name for name in self.objectives if name not in counted], name)
        parsed = list(parsed_rows(self.space, rows, name))
        keys = [self.space.architecture_key(architecture) for architecture in parsed]
        if counted:
            counts = named_counts(self.space, parsed, counted, progress=progress)
            rows = rows.assign(**dict(zip(counted, counts.T, strict=True)))
        numbers = pd.DataFrame({name: possible_numbers(rows[name], self.name) for name in self.objectives})
        numbers = numbers.astype(np.float64)
        _check_sizes(numbers, self.name)
        notations = [self.space.format(architecture) for architecture in parsed]
        self._row_of_notation = {notation: row for row, notation in reversed([*enumerate(notations)])}
        simplest = sorted(range(len(parsed)), key=lambda row: self.space.encode(parsed[row]))
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
        """Return the (N, M) labels of N keys; a row of NaN for a key that is not in the table."""
        rows = np.array([self._row_of_key.get(key, -1) for key in keys], dtype=np.intp)
        return np.where(rows[:, None] >= 0, self.labels[rows], np.nan)

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Return (N, M, 1) labels; the median is the only quantile, because labels are certain."""
        labels = self.labels_of([self.space.architecture_key(architecture) for architecture in architectures])
        rows = [self._row_of_notation.get(self.space.format(architecture), -1) for architecture in architectures]
        here = [index for index, row in enumerate(rows) if row >= 0]
        labels[here] = self.row_labels[[rows[index] for index in here]]
        return Prediction(self.objectives, (0.5,), labels[:, :, None])


def _check_sizes(labels: pd.DataFrame, name: str) -> None:
    for objective, column in labels.items():
        beyond = column[column.abs() > MAX_LABEL]
        if len(beyond):
            raise ValueError(
                f"{name}: expected numbers within ±{MAX_LABEL:g} in column {objective}, got {beyond.iloc[0]:g} in row "
                f"{beyond.index[0]}. Leave it empty where there is no label."
            )


def _labelled_rows(table: pd.DataFrame, space: SearchSpace[A], objectives: Sequence[str], name: str) -> pd.DataFrame:
    missing = [column for column in ("architecture", *objectives) if column not in table.columns]
    if missing:
        raise ValueError(
            f"{name}: expected columns architecture and {', '.join(objectives)}, got no {', '.join(missing)}. "
            f"It has {', '.join(map(str, table.columns))}."
        )
    if predicted := predicted_objectives(table, objectives):
        raise ValueError(
            f"{name}: expected real results of {', '.join(predicted)}, got predictions, which have intervals. Give "
            "measured values, or the history of a search with an evaluator."
        )
    rows = rows_of_space(table, space)
    rows = rows[rows["architecture"].notna()]
    if rows.empty:
        raise ValueError(f"{name}: expected architectures of space {space.address}, got none in {len(table)} rows.")
    return rows


class WithResults(Generic[A]):
    """Takes results from a table if it has them, and otherwise from another evaluator.

    Args:
        evaluator: gives the other results.
        results: a table of the same objectives; it is used for architectures for which it has all of them.
    """

    one_at_a_time = True

    def __init__(self, evaluator: RealEvaluator[A], results: TableEvaluator[A]) -> None:
        self.evaluator = evaluator
        self.results = results
        self.known = evaluator.known
        self.modelled = evaluator.modelled

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Return (N, M, 1) results, from the table if it has them."""
        answer = self.results.evaluate(architectures)
        unknown = np.flatnonzero(~complete_mask(answer.median)).tolist()
        if unknown:
            asked = self.evaluator.evaluate([architectures[index] for index in unknown])
            answer.values[unknown, :, 0] = asked.median
        return answer


def _number(value: object) -> float:
    """Convert a user's answer to a number; refuse strings and booleans, which ``float`` would accept."""
    if hasattr(value, "item"):  # of a NumPy array or a torch tensor
        number = value.item()
        value = math.nan if np.ma.is_masked(value) else number  # of a masked one this is any number, often 0
    if isinstance(value, str | bytes | bool):
        raise TypeError
    return float(value)  # type: ignore[arg-type]


class FunctionEvaluator(Generic[A]):
    """Gives real results by a function of the user, from a notation to the value of every objective.

    Warns once if an accuracy is between 0 and 1, because accuracies are in percent.

    Args:
        space: the search space, which writes the notations.
        function: returns a mapping with a value for each objective, NaN if there is no result. Counts such as
            ``macs@onnx`` are computed if it leaves them out. Additional entries are ignored.
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
        """Return (N, M, 1) results, by one call of the function per architecture.

        Raises:
            ValueError: the function does not return a mapping from all objectives to numbers within ±``MAX_LABEL``, or
                a number is impossible for its metric, such as a negative latency.
        """
        values: list[list[float]] = []
        for architecture in architectures:
            notation = self.space.format(architecture)
            values.append(self._results(notation))
            if not self._has_warned and (warning := self._fractions(values[-1], notation)):
                self._has_warned = True
                warn_caller(warning)
        shape = (len(architectures), len(self.objectives), 1)
        return Prediction(self.objectives, (0.5,), np.array(values, dtype=np.float64).reshape(shape))

    def _results(self, notation: str) -> list[float]:
        answer = self._with_counts(self.function(notation), notation)
        if isinstance(answer, Mapping) and (lacking := [name for name in self.objectives if name not in answer]):
            raise ValueError(
                f"evaluator: expected a value for each of {', '.join(self.objectives)}, got none for "
                f"{', '.join(lacking)} of {notation}: {shown(answer)}. Return NaN where there is no result."
            )
        try:
            values = [_number(answer[name]) for name in self.objectives]
        except (LookupError, AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
            # RuntimeError is raised by torch tensors.
            values = [math.inf]
        if any(abs(value) > MAX_LABEL for value in values):
            raise ValueError(
                f"evaluator: expected a dict with a finite number, or NaN, for each of {', '.join(self.objectives)}, "
                f"got {shown(answer)} for {notation}. Numbers beyond {MAX_LABEL:g} are not accepted: return NaN for "
                "no result."
            )
        for name, value in zip(self.objectives, values, strict=True):
            objective = Objective.parse(name)
            if not objective.allows(value):
                raise ValueError(
                    f"evaluator: expected {objective.range_in_words} for {name}, got {value:g} for {notation}. Return "
                    "NaN where there is no result."
                )
        return values

    def _with_counts(self, answer: Mapping[str, float], notation: str) -> Mapping[str, float]:
        """Add the counts that a user's answer lacks; return an answer that is not a mapping unchanged."""
        lacking = [name for name in self._counted if isinstance(answer, Mapping) and name not in answer]
        if not lacking:
            return answer
        return {**answer, **counts_by_name(self.space, self.space.parse(notation), lacking)}

    def _fractions(self, values: Sequence[float], notation: str) -> str | None:
        """Return a warning if an accuracy looks like a fraction instead of percent, else None."""
        for name, value in zip(self.objectives, values, strict=True):
            if Objective.parse(name).seems_fraction(value):
                return (
                    f"evaluator: expected accuracies in percent, 0 to 100, got {value:g} for {name} of {notation}. If "
                    f"it is a fraction, let the function return {100 * value:g}."
                )
        return None


class MeasuringEvaluator(Generic[A]):
    """Measures latencies with ONNX Runtime on this machine, computes counts, and predicts all other objectives.

    Args:
        space: the search space.
        objectives: M names. All latencies are measured, whatever their context; ``params@onnx`` and the like are
            counts.
        predictor: predicts the objectives that are neither latencies nor counts; of a ``nasrlm.Predictor``, its
            ``of_space`` does.
        to_text: converts an architecture to the text that is measured and predicted from.
        repeats: number of timed runs per network.

    Raises:
        ValueError: no objective is a latency, or the predictor lacks one of the other objectives.
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
        self.predictor = of_space(predictor, space)
        self.to_text = to_text
        self.repeats = repeats
        parsed = [Objective.parse(name) for name in self.objectives]
        self.measured = tuple(part.name for part in parsed if part.metric == "latency" and part.unit in MS_PER_UNIT)
        self.counted = tuple(name for name in self.objectives if name in COUNTS)
        self.modelled = tuple(name for name in self.objectives if name not in (*self.measured, *self.counted))
        unknown = [name for name in self.modelled if name not in self.predictor.objectives]
        if not self.measured or unknown:
            raise ValueError(
                "evaluator measure: expected a latency, and other objectives that the predictor knows for "
                f"{space.name}, got {', '.join(unknown or self.objectives)}. Example: latency_ms@here."
            )

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Return (N, M, 1) values: median latencies, counts and predicted medians."""
        texts = [self.to_text(architecture) for architecture in architectures]
        milliseconds = np.array([latency.median_ms for latency in measure_latencies(texts, repeats=self.repeats)])
        columns = {name: milliseconds / MS_PER_UNIT[Objective.parse(name).unit] for name in self.measured}
        columns |= zip(self.counted, named_counts(self.space, architectures, self.counted).T, strict=True)
        if self.modelled:
            columns |= zip(self.modelled, self.predictor.predict(texts, self.modelled, (0.5,)).median.T, strict=True)
        values: FloatArray = np.array([columns[name] for name in self.objectives]).T
        return Prediction(self.objectives, (0.5,), values.reshape(len(texts), len(self.objectives), 1))


def as_evaluator(given: Evaluator[A] | UsersFunction, space: SearchSpace[A], objectives: Sequence[str]) -> Evaluator[A]:
    """Return an evaluator unchanged, or a function wrapped in a ``FunctionEvaluator``.

    Raises:
        ValueError: the argument is neither.
    """
    if isinstance(given, Evaluator):
        return given
    if not callable(given):
        raise ValueError(f"search: expected an evaluator, or a function that takes a notation, got {given!r:.60}.")
    return FunctionEvaluator(space, given, objectives=objectives)


def config_with_evaluator(config: SearchConfig, evaluator: Evaluator[A]) -> SearchConfig:
    """Return the config with the kind of a real evaluator recorded, so that its results are not taken for predictions.

    A config that already names an evaluator is returned unchanged.
    """
    if config.evaluator != "surrogate" or not isinstance(evaluator, RealEvaluator):
        return config
    if isinstance(evaluator, TableEvaluator):
        return replace(config, evaluator=f"table:{evaluator.name}")
    return replace(config, evaluator="measure" if isinstance(evaluator, MeasuringEvaluator) else "function")
