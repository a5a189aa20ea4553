"""How good is a search after few real evaluations, which are looked up in a published table?

    python -m benchmarks.simulation --table nasbench201.parquet --objectives max:accuracy@cifar10,min:latency_ms@raspi4

Two questions are answered: which share of the true front's hypervolume do 50 and 100 evaluations reach, with and
without the gate, and how often does the gate prune a member of the true front?
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from benchmarks.circumstances import circumstances
from benchmarks.command_line import check_counts, one_line_errors
from benchmarks.search_methods import SearchTask
from converters import to_measured_text
from nasrlm.objective import to_losses
from nasrlm.predictor import Predictor
from spaces import get_space
from studies.all_architectures import every_architecture
from studies.config import SearchConfig
from studies.constraints import feasible_mask
from studies.evaluators import TableEvaluator
from studies.folder import HISTORY_FILE
from studies.gate import Gate
from studies.guide import Guide
from studies.guided import guided_search
from studies.history import EVALUATED, PRUNED
from studies.pareto import hypervolume_ratio, pareto_mask
from studies.search import search
from studies.surrogates.learning import Adapt
from studies.surrogates.memory import PredictorMemory, SamplingPredictor, TextMemory
from studies.surrogates.process_adapter import ProcessAdapter, every_network
from studies.truth import true_labels

A = TypeVar("A", bound=Hashable)

ARMS: dict[str, Guide | None] = {
    "hypervolume, gate": Guide(),
    "hypervolume, no gate": Guide(gate=False),
    "median, gate": Guide(acquisition="median"),
    "median, no gate": Guide(acquisition="median", gate=False),
    "all, gate": Guide(exhaustive=True, samples=128, batch_size=2, adapt_every=2),
    "all, no gate": Guide(exhaustive=True, samples=128, batch_size=2, adapt_every=2, gate=False),
    "engine alone": None,
}
RISKS = (0.01, 0.05, 0.1, 0.2)  # of the gate


@dataclass(frozen=True)
class Config:
    """The configuration of the simulation.

    Attributes:
        table: table of the space with true labels.
        objectives: goals, separated by commas.
        space: name of the space.
        checkpoint: folder of the checkpoint; the released one if None.
        counts: numbers of evaluations at which the hypervolume is computed; the largest is the budget of a search.
        seeds: seeds of the searches of every arm.
        adapt: whether the checkpoint learns from results.
        graphs: whether it learns unknown objectives from features of all networks' graphs (``graph_process``).
        arms: names in ARMS.
    """

    table: Path
    objectives: str
    space: str = "nasbench201"
    checkpoint: Path | None = None
    counts: tuple[int, ...] = (50, 100)
    seeds: tuple[int, ...] = (0, 1, 2)
    adapt: bool = True
    graphs: bool = False
    arms: tuple[str, ...] = tuple(ARMS)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one search.

    Attributes:
        arm: name of the arm.
        seed: seed of the search.
        ratios: hypervolume ratio of the results to all rows of the table, by number of evaluations.
        looked_at: number of architectures that were pruned or evaluated.
        pruned: share of these that the gate pruned.
        pruned_first: share of these that it pruned at stage 1, by accuracies alone.
        front_pruned: share of the true front's members that it pruned.
        seconds: time of the search.
    """

    arm: str
    seed: int
    ratios: dict[int, float]
    looked_at: int
    pruned: float
    pruned_first: float
    front_pruned: float
    seconds: float


def simulate(
    config: SearchConfig,
    table: TableEvaluator[A],
    predictor: SamplingPredictor,
    *,
    to_text: Callable[[A], str],
    counts: Sequence[int],
    seeds: Sequence[int],
    arms: Mapping[str, Guide | None],
    adapt: Adapt | None = None,
) -> Iterator[Outcome]:
    """Search with every arm and seed, one after another.

    Args:
        config: goals, constraints and engine; guide, seed and trials are replaced.
        table: gives the results and the true front; its space is searched.
        predictor: guides the searches.
        to_text: converts an architecture to the text that the predictor reads.
        counts: numbers of evaluations at which the hypervolume is computed.
        seeds: seeds of the searches.
        arms: guides by name; None for an engine that evaluates in the table without a predictor.
        adapt: lets the predictor of every guided search learn.
    """
    front = true_front(config, table)
    for arm, guide in arms.items():
        for seed in seeds:
            chosen = replace(config, trials=max(counts), seed=seed, guide=guide)
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder)
                if chosen.guide is None:
                    result = search(chosen, table.space, table, out, known=table.known, figures=False)
                else:
                    result = guided_search(
                        chosen, table.space, table, predictor, out, to_text=to_text, adapt=adapt, figures=False
                    )
                history = pd.read_parquet(out / HISTORY_FILE)
            yield _outcome(arm, chosen, table, front, history, counts, result.seconds)


def true_front(config: SearchConfig, table: TableEvaluator[A]) -> dict[str, A]:
    """Return the front of all architectures in the table, by key."""
    architectures = every_architecture(config.searched(table.space), table.known)
    values = table.evaluate(list(architectures.values())).median
    feasible = feasible_mask(config.objectives, config.constraints, values)
    rows = np.flatnonzero(feasible)[pareto_mask(to_losses(config.goals, values[feasible, : len(config.goals)]))]
    members = list(architectures.items())
    return dict(members[row] for row in rows.tolist())


def pruned_front(
    config: SearchConfig,
    table: TableEvaluator[A],
    predictor: SamplingPredictor,
    to_text: Callable[[A], str],
    risks: Sequence[float] = RISKS,
) -> dict[str, Any]:
    """Return the number of the true front's members, and the share of them that a gate prunes, by risk.

    The gate's front has all other members. The result is {} if the predictor lacks an objective.
    """
    if not set(config.objectives) <= set(predictor.objectives):
        return {}
    front, memory = list(true_front(config, table).values()), PredictorMemory(predictor)
    names, results = list(map(table.space.format, front)), table.evaluate(front).median
    shares = {}
    for risk in risks:
        gate, pruned = Gate(config.goals, config.constraints, risk=risk), 0
        for row, architecture in enumerate(front):
            others = gate.with_front(names[:row] + names[row + 1 :], np.delete(results, row, axis=0))
            (decision,) = others.check([to_text(architecture)], memory)
            pruned += not decision.kept
        shares[risk] = pruned / len(front)
    return {"true_front": len(front), "pruned_by_risk": shares}


def _outcome(
    arm: str,
    config: SearchConfig,
    table: TableEvaluator[A],
    front: Collection[str],
    history: pd.DataFrame,
    counts: Sequence[int],
    seconds: float,
) -> Outcome:
    labels, goals = true_labels(config, table), len(config.goals)
    feasible = feasible_mask(config.objectives, config.constraints, labels)
    losses = to_losses(config.goals, labels[:, :goals])
    status = history["status"] if "status" in history else pd.Series(EVALUATED, index=history.index)
    evaluated = history[(status == EVALUATED) & history[list(config.objectives)].notna().all(axis=1)]
    pruned = history[status == PRUNED]
    ratios = {}
    for count in counts:
        first = evaluated[:count]
        found = first.loc[first["feasible"], list(config.objectives[:goals])].to_numpy(dtype=np.float64)
        ratios[count] = hypervolume_ratio(to_losses(config.goals, found), losses[feasible], losses.max(axis=0))
    looked_at = len(pruned) + len(evaluated)
    return Outcome(
        arm=arm,
        seed=config.seed,
        ratios=ratios,
        looked_at=looked_at,
        pruned=len(pruned) / max(1, looked_at),
        pruned_first=float((pruned["stage"] == 1).sum()) / looked_at if len(pruned) else 0.0,
        front_pruned=len(set(pruned["key"]) & set(front)) / len(front),
        seconds=seconds,
    )


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print one JSON line per search, then one about the gate and the circumstances."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--space", default=Config.space)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--objectives", required=True)
    parser.add_argument("--checkpoint", type=Path, default=None)
    parser.add_argument("--counts", type=int, nargs="+", default=Config.counts)
    parser.add_argument("--seeds", type=int, nargs="+", default=Config.seeds)
    no_adapt = "do not let the checkpoint learn from results"
    parser.add_argument("--no-adapt", dest="adapt", action="store_false", help=no_adapt)
    graphs = "learn unknown objectives from features of all networks' graphs too"
    parser.add_argument("--graphs", action="store_true", help=graphs)
    parser.add_argument("--arms", nargs="+", default=Config.arms, choices=tuple(ARMS))
    given = vars(parser.parse_args(words))
    config = Config(**given | {name: tuple(given[name]) for name in ("counts", "seeds", "arms")})
    check_counts(config, "counts")
    searched, table, predictor, to_text = _scene(config)
    arms = {arm: ARMS[arm] for arm in config.arms}
    adapt = _adapter(config, searched, table, predictor, to_text) if config.adapt else None
    for outcome in simulate(
        searched,
        table,
        predictor,
        to_text=to_text,
        counts=config.counts,
        seeds=config.seeds,
        arms=arms,
        adapt=adapt,
    ):
        print(json.dumps(asdict(outcome)), flush=True)
    print(json.dumps({**pruned_front(searched, table, predictor, to_text), **circumstances(config)}))


def _scene(config: Config) -> tuple[SearchConfig, TableEvaluator[Any], Predictor, TextMemory[Any]]:
    """Return the search config, the table, the predictor, and the cache of texts that it reads."""
    space = get_space(config.space)
    task = SearchTask.of(config.table, space, config.objectives.split(","), max(config.counts))
    predictor = Predictor.from_pretrained(config.checkpoint).of_space(space.address)
    return task.config, task.table, predictor, TextMemory(partial(to_measured_text, space))


def _adapter(
    config: Config,
    searched: SearchConfig,
    table: TableEvaluator[A],
    predictor: Predictor,
    to_text: Callable[[A], str],
) -> ProcessAdapter[A]:
    space = table.space
    networks = partial(every_network, space, searched.searched(space), table.known) if config.graphs else None
    return ProcessAdapter(space, predictor, searched.objectives, to_text=to_text, networks=networks)


if __name__ == "__main__":
    main()
