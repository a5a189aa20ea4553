"""Settings of a guided search, and how they are written to study.json. M objectives."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from nasrlm.arguments import check_flag, checked_whole
from nasrlm.objective import Objective

ACQUISITIONS = ("hypervolume", "median")
RISK = 0.1

Risk = float | Mapping[str, float]  # of all objectives together, or for each by name
Levels = tuple[float, float, float]


def parse_risk(text: str) -> Risk:
    """Read ``0.1``, or ``accuracy@cifar10=0.05,latency_ms@pixel3=0.2``.

    Raises:
        ValueError: the text is neither, or an objective's name is invalid or given twice.
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
            f"risk: expected a number, or objective=number with each objective once, got {text!r}. Example: "
            "accuracy@cifar10=0.05,latency_ms@pixel3=0.2."
        ) from None
    return {Objective.parse(name).name: risk for name, risk in risks.items()}


def check_risk(risk: Risk) -> None:
    """Check that all risks are in (0, 0.5).

    Raises:
        ValueError: one is not.
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
    """Return the quantile levels (share, 0.5, 1 - share) of each of M objectives for a gate with this risk.

    A risk of all objectives together is divided by M. By the union bound it is then at least the probability that one
    or more objectives lie beyond their quantile, however they depend on each other. Objectives without a risk by name
    have the share RISK / M.

    Raises:
        ValueError: a risk is outside (0, 0.5) or of an unknown objective.
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
        acquisition: how candidates are chosen: by "hypervolume", the expected improvement over samples of the
            predicted distributions, or by "median", the improvement of the predicted medians.
        gate: whether the Pareto gate prunes candidates.
        risk: risk of the gate, in (0, 0.5), for all objectives together or for each by name. It also sets the predicted
            bounds that are recorded. See ``levels_of``.
        batch_size: number of architectures chosen at a time.
        generations: populations that the engine evaluates by predictions for each batch.
        samples: number of samples per candidate, for the acquisition "hypervolume".
        adapt_every: number of new real results after which the predictor learns from all of them; 0 for never.
        exhaustive: whether every architecture is predicted for each batch, instead of those that an engine proposes.
            For spaces of some ten thousand architectures, or for the rows of a table that gives the results.
        joint: whether to use the predictor's ``joint_samples``, in which each objective is drawn given those before it
            (uncalibrated), and the joint improvement. A predictor without them, such as one that has learned from
            real results (``adapt_every``), still samples each objective independently.

    Raises:
        ValueError: a setting has an impossible value, or ``joint`` is set with the acquisition "median".
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
                f"search: expected acquisition to be one of {', '.join(ACQUISITIONS)}, got {self.acquisition!r}. "
                "Choose one."
            )
        for name, least in (("batch_size", 1), ("generations", 1), ("samples", 1), ("adapt_every", 0)):
            object.__setattr__(self, name, checked_whole(f"search: {name}", getattr(self, name), least))
        for name in ("gate", "exhaustive", "joint"):
            check_flag(f"search: {name}", getattr(self, name))
        if self.joint and self.acquisition != "hypervolume":
            raise ValueError(
                f"search: expected joint samples with acquisition hypervolume, got {self.acquisition!r}. Leave one out."
            )
        check_risk(self.risk)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, which ``Guide.from_dict`` reads.

        NOTE: ``joint`` is written only if true, so that older studies without it can be resumed.
        """
        names = [field.name for field in dataclasses.fields(self)]
        fields = {name: getattr(self, name) for name in names if name != "joint" or self.joint}
        risk = self.risk
        plain = {name: float(of_one) for name, of_one in risk.items()} if isinstance(risk, Mapping) else float(risk)
        return fields | {"risk": plain}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build a guide from names and values.

        Raises:
            ValueError: a name is unknown or a value is invalid.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = [name for name in values if name not in names]
        if unknown:
            raise ValueError(
                f"search guide: expected {', '.join(names)}, got {', '.join(unknown)}. Check the spelling."
            )
        return cls(**values)


def checked_guide(who: str, given: Guide | None) -> Guide | None:
    """Return the guide that was given, or None.

    Raises:
        ValueError: it is something else, such as its settings by name; ``who`` starts the message.
    """
    if not isinstance(given, Guide | None):
        raise ValueError(f"{who}: expected a guide, got {given!r:.80}. Make it with nasrlm.optuna.Guide(...).")
    return given
