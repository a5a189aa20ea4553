"""How a predictor guides a search with real evaluations, and its spelling in study.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from nasrlm.objective import Objective

ACQUISITIONS = ("hypervolume", "median")
RISK = 0.1

Risk = float | Mapping[str, float]  # of all objectives together, or of each by name
Levels = tuple[float, float, float]


def parse_risk(text: str) -> Risk:
    """Read ``0.1``, or ``accuracy@cifar10=0.05,latency_ms@pixel3=0.2``.

    Raises:
        ValueError: neither, a bad name, or an objective named twice.
    """
    try:
        if "=" not in text:
            return float(text)
        pairs = [part.rpartition("=") for part in text.split(",")]
        risks = {name.strip(): float(number) for name, _, number in pairs}
        if "" in risks or len(risks) < len(pairs):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"risk: expected a number, or objective=number each once, got {text!r}. "
            "Example: accuracy@cifar10=0.05,latency_ms@pixel3=0.2."
        ) from None
    return {Objective.parse(name).name: risk for name, risk in risks.items()}


def check_risk(risk: Risk) -> None:
    """Complain of a risk outside (0, 0.5).

    Raises:
        ValueError: naming it.
    """
    for name, value in risk.items() if isinstance(risk, Mapping) else [("", risk)]:
        try:
            fits = 0 < value < 0.5
        except TypeError:
            fits = False
        if not fits:
            place = f" of {name}" if name else ""
            raise ValueError(f"gate: expected a risk between 0 and 0.5, got {value!r}{place}. Example: 0.05.")


def levels_of(risk: Risk, objectives: Sequence[str]) -> tuple[Levels, ...]:
    """(share, 0.5, 1 - share) of each of M objectives: the quantiles that a gate with this risk asks for.

    That of all together is shared alike, a part of M each: it is then no less than the probability that one or more of
    them lie beyond their share, whatever they have to do with each other. Objectives that are not named have their
    share of ``RISK``.

    Raises:
        ValueError: a risk outside (0, 0.5), or of an unknown objective.
    """
    check_risk(risk)
    together, own = (RISK, risk) if isinstance(risk, Mapping) else (risk, {})
    unknown = [name for name in own if name not in objectives]
    if unknown:
        raise ValueError(f"gate: expected risks of {', '.join(objectives)}, got {', '.join(unknown)}.")
    shares = [own.get(name, together / len(objectives)) for name in objectives]
    return tuple((share, 0.5, 1 - share) for share in shares)


@dataclass(frozen=True)
class Guide:
    """Settings of a guided search.

    Attributes:
        acquisition: how candidates are chosen: "hypervolume", the improvement expected over samples of the
            predicted distributions, or "median", the improvement of the predicted medians.
        gate: whether the Pareto gate prunes candidates.
        risk: the gate's, of all objectives together, and of the predicted bounds that are recorded; in (0, 0.5), or
            such a number for each objective by name. See ``levels_of``.
        batch_size: architectures chosen at a time, before the predictions are looked at again.
        generations: populations proposed on the predictions for every batch.
        samples: of each candidate's distributions, for the acquisition "hypervolume".
        adapt_every: real results after which the predictor learns from all of them; 0 leaves it as it is.
        exhaustive: whether every architecture is looked at for each batch, instead of those that an engine proposes.
            For spaces of some ten thousand; a table's rows if a table answers.
        joint: whether the samples are the predictor's ``joint_samples``, each objective drawn given those before it
            and none of them calibrated, and the improvement is of all goals together. A predictor without them, as one
            is that has learned from real results (``adapt_every``), draws each objective on its own as ever.
    """

    acquisition: str = "hypervolume"
    gate: bool = True
    risk: Risk = RISK
    batch_size: int = 5
    generations: int = 10
    samples: int = 32
    adapt_every: int = 5
    exhaustive: bool = False
    joint: bool = False

    def __post_init__(self) -> None:
        if self.acquisition not in ACQUISITIONS:
            raise ValueError(
                f"search: expected an acquisition of {', '.join(ACQUISITIONS)}, got {self.acquisition!r}. Name one."
            )
        for name in ("batch_size", "generations", "samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"search: expected {name} of 1 or more, got {getattr(self, name)}.")
        if self.adapt_every < 0:
            raise ValueError(f"search: expected adapt_every of 0 or more, got {self.adapt_every}.")
        if self.joint and self.acquisition != "hypervolume":
            raise ValueError(
                f"search: expected joint samples with acquisition hypervolume, got {self.acquisition!r}. Leave one out."
            )
        check_risk(self.risk)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; ``Guide.from_dict`` reads them back.

        NOTE: ``joint`` is written where it is chosen, so that studies begun without it can be resumed.
        """
        names = [field.name for field in dataclasses.fields(self)]
        fields = {name: getattr(self, name) for name in names if name != "joint" or self.joint}
        return fields | {"risk": dict(self.risk) if isinstance(self.risk, Mapping) else self.risk}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build from names and values.

        Raises:
            ValueError: an unknown name or a bad value.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = [name for name in values if name not in names]
        if unknown:
            raise ValueError(
                f"search guide: expected {', '.join(names)}, got {', '.join(unknown)}. Check the spelling."
            )
        return cls(**values)
