"""Objectives and their names, and goals: the only module that knows about maximise and minimise."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from nasrlm.arrays import BoolArray, FloatArray

PERCENT = (0.0, 100.0)  # bounds of accuracies
MAX_LABEL = 1e30  # so that means and deviations of labels, and their products, fit 32 bits

_ACCURACIES = ("accuracy", "acc")
_COSTS = frozenset({"latency", "energy", "params", "macs", "memory"})
_COST_UNITS = ("us", "ms", "s", "uj", "mj", "j", "mw", "w", "bytes", "kb", "mb")
_NEVER_NEGATIVE = ("latency", "energy", "throughput")  # nor are objectives with a unit other than percent

_NAME = re.compile(r"(?P<metric>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)(?:@(?P<context>[A-Za-z0-9][\w.-]*))?")
_UNITS = (*_COST_UNITS, "ips", "percent")
_WRITTEN = {"percent": "%", "us": "µs", "uj": "µJ", "mj": "mJ", "j": "J", "mw": "mW", "w": "W", "ips": "images/s"}
_SIZES: Sequence[Mapping[str, float]] = (  # units of one quantity, in terms of a common one
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
        metric: the quantity, for example "latency".
        unit: "ms", "mj", …; "percent" for accuracies, whose names have no unit; "" for plain counts.
        context: the target device or data set; "" if the number needs none, as for "params".
        name: the string it was parsed from.
    """

    metric: str
    unit: str
    context: str
    name: str

    @classmethod
    def parse(cls, name: str) -> Self:
        """Parse a name.

        Args:
            name: ``metric_unit@context``, ``metric@context`` or ``metric``.

        Returns:
            The objective; ``.name == name``.

        Raises:
            ValueError: the name has another form.

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
        """Whether it is an accuracy: ``accuracy``, ``valid_accuracy``, ``Accuracy``, ``acc``, …"""
        return _names_accuracy(self.metric)

    @property
    def is_better_larger(self) -> bool | None:
        """Whether larger is better, as for accuracies and throughputs; False for latencies, None if not known."""
        if self.is_accuracy or self.is_rate:
            return True
        return False if (_COSTS | {"error"}) & _words(self.metric) else None

    @property
    def other_units(self) -> Mapping[str, float]:
        """Units that labels may be given in by mistake, with the number of them that equals one of its own unit."""
        sizes = next(sizes for sizes in _SIZES if self.unit in sizes)
        return {_WRITTEN.get(unit, unit): sizes[self.unit] / size for unit, size in sizes.items() if unit != self.unit}

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate per second, whose reciprocal is the sum of operators' costs."""
        return "throughput" in _words(self.metric)

    @property
    def grows_with_size(self) -> bool | None:
        """Whether larger networks usually have more of it, as of latency; False for throughputs, None if not known."""
        if self.is_rate:
            return False
        return True if self.unit in _COST_UNITS or _words(self.metric) & _COSTS else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and largest possible value: 0 and 100 for accuracies, 0 and infinity for measured quantities."""
        if self.is_accuracy:
            return PERCENT
        is_measured = not _words(self.metric).isdisjoint(_NEVER_NEGATIVE) or self.unit not in ("", "percent")
        return (0.0 if is_measured else -math.inf, math.inf)

    def allows(self, values: ArrayLike) -> BoolArray:
        """Return, for each of any number of values, whether it is within ``bounds``; NaN, which is no value, passes."""
        low, high = self.bounds
        given = np.asarray(values, dtype=np.float64)
        return np.asarray(~((given < low) | (given > high)))

    def seems_fraction(self, value: float) -> bool:
        """Return whether a value looks like an accuracy from 0 to 1 instead of percent."""
        return self.is_accuracy and 0 < value < 1

    @property
    def range_in_words(self) -> str:
        """Its ``bounds`` in the words of error messages."""
        low, high = self.bounds
        return f"percent, {low:g} to {high:g}," if self.is_accuracy else f"numbers of {low:g} or more"

    @property
    def label(self) -> str:
        """Name and unit for axes and tables: ``latency raspi4 [ms]``, ``accuracy cifar10 [%]``."""
        unit = _WRITTEN.get(self.unit, self.unit)
        words = f"{self.metric.replace('_', ' ')} {self.context}".strip()
        return f"{words} [{unit}]" if unit else words


@dataclass(frozen=True)
class Goal:
    """An objective with the direction of a search.

    Attributes:
        maximise: whether the largest values are searched for, else the smallest.
        objective: its name.

    Raises:
        ValueError: ``maximise`` is neither true nor false, or the name is not that of an objective.
    """

    maximise: bool
    objective: str

    def __post_init__(self) -> None:
        if not isinstance(self.maximise, bool | np.bool_):
            raise ValueError(f"goal: expected maximise to be True or False, got {self.maximise!r}.")
        Objective.parse(self.objective)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``max:accuracy@cifar10`` or ``min:latency_ms@pixel3``.

        Raises:
            ValueError: no string, no direction before the colon, or no name of an objective.

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
        """A question to the user if the goal is the worst value of its objective; "" if it is not, or not known."""
        better = Objective.parse(self.objective).is_better_larger
        if better is None or better == self.maximise:
            return ""
        return f"{self}: looks for the {'largest' if self.maximise else 'smallest'} values; is that what you want?"

    def __str__(self) -> str:
        return f"{'max' if self.maximise else 'min'}:{self.objective}"


def to_losses(goals: Sequence[Goal], objectives: FloatArray) -> FloatArray:
    """Convert objectives to losses, which are always minimised.

    Args:
        goals: M goals, in the order of the columns.
        objectives: (N, M) in their own units; NaN stays NaN.

    Returns:
        (N, M) losses in the same units, with maximised columns negated.

    Raises:
        ValueError: there are not as many columns as goals.
    """
    objectives = np.asarray(objectives, dtype=np.float64)
    if objectives.ndim != 2 or objectives.shape[1] != len(goals):
        raise ValueError(
            f"losses: expected (N, {len(goals)}) values, one column per goal, got shape {objectives.shape}. Goals: "
            f"{', '.join(map(str, goals))}."
        )
    losses: FloatArray = objectives * np.array([-1.0 if goal.maximise else 1.0 for goal in goals])
    return losses + 0.0  # a maximised zero becomes 0.0 instead of -0.0


def from_losses(goals: Sequence[Goal], losses: FloatArray) -> FloatArray:
    """Convert (N, M) losses to (N, M) objectives in their own units: the inverse of ``to_losses``."""
    return to_losses(goals, losses)


def decoding_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort objectives in decoding order: accuracies first, since a known one prunes networks; the rest as given."""
    return tuple(sorted(names, key=lambda name: not Objective.parse(name).is_accuracy))


def _names_accuracy(metric: str) -> bool:
    return not _words(metric).isdisjoint(_ACCURACIES)


def _words(metric: str) -> frozenset[str]:
    return frozenset(metric.lower().split("_"))
