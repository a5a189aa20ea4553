"""Names of objectives, and the one place that knows about maximise and minimise."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from nasrlm.arrays import BoolArray, FloatArray

PERCENT = (0.0, 100.0)  # of accuracies
MAX_LABEL = 1e30  # of what is standardised: means, deviations and their products stay within 32 bits

_ACCURACIES = ("accuracy", "acc")
_NEVER_NEGATIVE = ("latency", "energy", "throughput")  # nor is what has a unit other than percent

_NAME = re.compile(r"(?P<metric>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)(?:@(?P<context>[A-Za-z0-9][\w.-]*))?")
_UNITS = ("us", "ms", "s", "uj", "mj", "j", "mw", "w", "bytes", "kb", "mb", "ips", "percent")
_WRITTEN = {"percent": "%", "us": "µs", "uj": "µJ", "mj": "mJ", "j": "J", "mw": "mW", "w": "W", "ips": "images/s"}
_SIZES: Sequence[Mapping[str, float]] = (  # of units of one quantity, by each other
    {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    {"uj": 1e-6, "mj": 1e-3, "j": 1.0},
    {"mw": 1e-3, "w": 1.0},
    {"bytes": 1.0, "kb": 1e3, "mb": 1e6},
    {"percent": 1.0, "fractions": 100.0},
    {"": 1.0, "thousands": 1e3, "millions": 1e6},
    {"ips": 1.0, "thousands of images/s": 1e3},
)


@dataclass(frozen=True)
class Objective:
    """One number about an architecture, named ``metric_unit@context``.

    Attributes:
        metric: what is meant, for example "latency".
        unit: "ms", "mj", …; "percent" for accuracies, whose names carry no unit; "" for plain counts.
        context: the target device or data set; "" where the number needs none, as for "params".
        name: the spelling it was parsed from.
    """

    metric: str
    unit: str
    context: str
    name: str

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read a name.

        Args:
            name: ``metric_unit@context``, ``metric@context`` or ``metric``.

        Returns:
            The objective; ``.name == name``.

        Raises:
            ValueError: not a name of that form.

        Example:
            >>> Objective.parse("latency_ms@raspi4").unit
            'ms'
        """
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            raise ValueError(
                f"objective: expected metric_unit@context, got {name!r}. "
                "Examples: accuracy@cifar10, latency_ms@pixel3, params."
            )
        metric, context = match["metric"], match["context"] or ""
        stem, _, suffix = metric.rpartition("_")
        if stem and suffix in _UNITS:
            return cls(stem, suffix, context, name)
        return cls(metric, "percent" if _names_accuracy(metric) else "", context, name)

    @property
    def is_accuracy(self) -> bool:
        """Whether it is one of the accuracies: ``accuracy``, ``valid_accuracy``, ``Accuracy``, ``acc``, …"""
        return _names_accuracy(self.metric)

    @property
    def is_better_larger(self) -> bool | None:
        """Whether more of it is better, as of accuracies and throughputs, or less, as of latencies; None if unclear."""
        if self.is_accuracy or self.is_rate:
            return True
        return False if {"latency", "energy", "params", "macs", "memory", "error"} & _words(self.metric) else None

    @property
    def other_units(self) -> Mapping[str, float]:
        """Units that its number may be given in by mistake, and how many of each are one of its own."""
        sizes = next(sizes for sizes in _SIZES if self.unit in sizes)
        return {_WRITTEN.get(unit, unit): sizes[self.unit] / size for unit, size in sizes.items() if unit != self.unit}

    @property
    def is_rate(self) -> bool:
        """Whether it says how many a second, so that its reciprocal is what adds up."""
        return "throughput" in _words(self.metric)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that it can have: of accuracies in percent, and of what is measured."""
        if self.is_accuracy:
            return PERCENT
        is_measured = not _words(self.metric).isdisjoint(_NEVER_NEGATIVE) or self.unit not in ("", "percent")
        return (0.0 if is_measured else -math.inf, math.inf)

    def allows(self, values: ArrayLike) -> BoolArray:
        """Whether it can have each of any number of values, as ``bounds`` tell; NaN, which is no value, passes."""
        low, high = self.bounds
        given = np.asarray(values, dtype=np.float64)
        return np.asarray(~((given < low) | (given > high)))

    def seems_fraction(self, value: float) -> bool:
        """Whether one number looks like an accuracy of 0 to 1, where percent are meant."""
        return self.is_accuracy and 0 < value < 1

    @property
    def range_in_words(self) -> str:
        """Its ``bounds`` as errors tell them."""
        low, high = self.bounds
        return f"percent, {low:g} to {high:g}," if self.is_accuracy else f"numbers of {low:g} or more"

    @property
    def label(self) -> str:
        """The name in words, for axes and tables: ``latency raspi4 [ms]``, ``accuracy cifar10 [%]``."""
        unit = _WRITTEN.get(self.unit, self.unit)
        words = f"{self.metric.replace('_', ' ')} {self.context}".strip()
        return f"{words} [{unit}]" if unit else words


@dataclass(frozen=True)
class Goal:
    """An objective with the direction in which it is better.

    Attributes:
        maximise: whether more is better.
        objective: its name.
    """

    maximise: bool
    objective: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``max:accuracy@cifar10`` or ``min:latency_ms@pixel3``.

        Raises:
            ValueError: no text, no direction before the colon, or a bad objective name.

        Example:
            >>> Goal.parse("min:latency_ms@pixel3")
            Goal(maximise=False, objective='latency_ms@pixel3')
        """
        direction, _, name = text.strip().partition(":") if isinstance(text, str) else ("", "", "")
        if direction not in ("max", "min"):
            raise ValueError(
                f"goal: expected max:objective or min:objective, got {text!r}. Example: max:accuracy@cifar10."
            )
        return cls(direction == "max", Objective.parse(name).name)

    @property
    def doubt(self) -> str:
        """What to ask where it looks for the worst of its objective; "" where it does not, or nobody knows."""
        better = Objective.parse(self.objective).is_better_larger
        if better is None or better == self.maximise:
            return ""
        return f"{self}: looks for the {'largest' if self.maximise else 'smallest'} values; is that what you want?"

    def __str__(self) -> str:
        return f"{'max' if self.maximise else 'min'}:{self.objective}"


def to_losses(goals: Sequence[Goal], objectives: FloatArray) -> FloatArray:
    """Turn objectives into numbers that are always minimised.

    Args:
        goals: M goals, in the order of the columns.
        objectives: (N, M) in their own units; NaN stays NaN.

    Returns:
        (N, M) losses in the same units, maximised columns negated.

    Raises:
        ValueError: the columns are not as many as the goals.
    """
    objectives = np.asarray(objectives, dtype=np.float64)
    if objectives.ndim != 2 or objectives.shape[1] != len(goals):
        raise ValueError(
            f"losses: expected (N, {len(goals)}) values, one column a goal, got shape {objectives.shape}. "
            f"Goals: {', '.join(map(str, goals))}."
        )
    losses: FloatArray = objectives * np.array([-1.0 if goal.maximise else 1.0 for goal in goals])
    return losses + 0.0  # so that a maximised zero is 0.0 and not -0.0


def from_losses(goals: Sequence[Goal], losses: FloatArray) -> FloatArray:
    """The inverse of ``to_losses``: (N, M) losses to (N, M) objectives in their own units."""
    return to_losses(goals, losses)


def decoding_order(names: Iterable[str]) -> tuple[str, ...]:
    """Accuracies first, as what is known of them is what prunes; the rest as given."""
    return tuple(sorted(names, key=lambda name: not Objective.parse(name).is_accuracy))


def _names_accuracy(metric: str) -> bool:
    return not _words(metric).isdisjoint(_ACCURACIES)


def _words(metric: str) -> frozenset[str]:
    return frozenset(metric.lower().split("_"))
