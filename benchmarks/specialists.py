"""Is one model of all spaces (the joint model) as good as one model per space (a specialist)?

    python -m benchmarks.specialists --recipes studies/recipes/labels.yaml

For every space with labels that are not just counts, a specialist is trained from random weights. It has the same
layers as the joint model, the same rows of this space and no others, and as many steps as all recipes together spend on
rows of this space. Its tokens are learned from the texts of the space, and may span several lines. Both models predict
the test rows. A finished specialist is a folder in ``--out`` and is not trained again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.circumstances import circumstances
from benchmarks.command_line import one_line_errors
from converters.tables.counts import COUNTS
from nasrlm.evaluation import evaluate
from nasrlm.examples import Examples
from nasrlm.metrics import Quality
from nasrlm.objective import Objective
from nasrlm.predictor import Predictor
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from studies.tables.training_examples import training_examples

VOCABULARY = 1536  # tokens, as in recipes of a single space
WARMUP = 0.05  # share of all steps
EVALUATIONS = 8  # number of evaluations on valid rows in a run


@dataclass(frozen=True)
class Config:
    """The configuration of the benchmark.

    Attributes:
        recipes: the recipes by which the joint checkpoint was trained, in order; specialists use the last one.
        checkpoint: folder of the joint checkpoint; that of the last recipe if None.
        out: folder of the specialists.
        only: spaces to compare; all with labels beyond counts if empty.
    """

    recipes: tuple[Path, ...]
    checkpoint: Path | None = None
    out: Path = Path("runs/specialists")
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The quality of both models on the test rows of one space."""

    space: str
    steps: int
    specialist: dict[str, Quality]
    joint: dict[str, Quality]

    @property
    def accuracies(self) -> list[str]:
        """The names of the tested accuracies."""
        return [name for name in self.joint if Objective.parse(name).is_accuracy]

    @property
    def costs(self) -> list[str]:
        """The names of the other tested objectives."""
        return [name for name in self.joint if name not in self.accuracies]


def compare(config: Config, progress: bool = False) -> list[Comparison]:
    """Train the specialists that are missing, and compare all of them with the joint model.

    Raises:
        ValueError: a recipe or one of its tables cannot be read, or ``only`` names a space without such labels.
    """
    recipes = [TrainConfig.load(path) for path in config.recipes]
    read = [training_examples(recipe) for recipe in recipes]
    steps = sum((steps_by_space(r, e) for r, e in zip(recipes, read, strict=True)), Counter[str]())
    parts = {space: part for space, part in read[-1].by_space() if not set(part.objectives) <= set(COUNTS)}
    if unknown := [space for space in config.only if space not in parts]:
        raise ValueError(f"specialists: expected spaces among {', '.join(parts)}, got {', '.join(unknown)}.")
    joint = Predictor.from_pretrained(config.checkpoint or recipes[-1].out / "checkpoint")
    result = []
    for space in config.only or parts:
        out = config.out / quote(space, safe="")  # the name of a user's own space is a path
        if not (out / "checkpoint").is_dir():
            train(specialist_config(recipes[-1], parts[space], steps[space], out), parts[space], progress)
        specialist, test = Predictor.from_pretrained(out / "checkpoint"), parts[space].split("test")
        both = [evaluate(x, test).quality[space] for x in (specialist, joint.of_space(space))]
        result.append(Comparison(space, steps[space], *both))
    return result


def steps_by_space(recipe: TrainConfig, examples: Examples) -> Counter[str]:
    """Return how many of a recipe's steps are spent on rows of each space."""
    spaces = examples.labelled(examples.objectives).split("train").spaces
    weights, steps = recipe.row_weights(spaces), recipe.num_steps(len(spaces))
    shares = {str(space): weights[spaces == space].sum() / weights.sum() for space in np.unique(spaces)}
    return Counter({space: round(steps * share) for space, share in shares.items()})


def specialist_config(recipe: TrainConfig, examples: Examples, steps: int, out: Path) -> TrainConfig:
    """Return the recipe for the rows of one space, from random weights."""
    changes: dict[str, Any] = {
        "out": out,
        "initial_checkpoint": None,
        "initial_tokenizer": None,
        "extend_tokenizer": False,
        "tokenizer": "chains",
        "vocabulary_size": VOCABULARY,
        "space_weights": {},
    }
    rows = len(examples.labelled(examples.objectives).split("train"))
    own = recipe.of_objectives(examples.objectives).model_copy(update=changes)
    return own.of_steps(steps, rows, evaluations=EVALUATIONS, warmup_share=WARMUP)


def table(comparisons: Sequence[Comparison]) -> list[str]:
    """Return lines of Markdown: Kendall τ of every accuracy, and the median over costs."""
    lines = ["| | steps | rows | specialist | all spaces | difference |", "|---|---|---|---|---|---|"]
    for x in comparisons:
        rows: list[tuple[str, int, float, float]] = [
            (name, x.joint[name]["n"], x.specialist[name]["kendall_tau"], x.joint[name]["kendall_tau"])
            for name in x.accuracies
        ]
        if x.costs:
            alone, together = (median(q[name]["kendall_tau"] for name in x.costs) for q in (x.specialist, x.joint))
            most = max(x.joint[name]["n"] for name in x.costs)
            rows.append((f"median of {len(x.costs)} costs", most, alone, together))
        lines += [
            f"| {x.space} {name} | {x.steps:,} | {n:,} | {alone:.3f} | {together:.3f} | {together - alone:+.3f} |"
            for name, n, alone, together in rows
        ]
    return lines


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Train the missing specialists and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", type=Path, nargs="+", required=True)
    parser.add_argument("--checkpoint", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=Config.out)
    parser.add_argument("--only", nargs="+", default=())
    given = vars(parser.parse_args(words))
    config = Config(**given | {"recipes": tuple(given["recipes"]), "only": tuple(given["only"])})
    print("\n".join(table(compare(config, progress=sys.stderr.isatty()))))
    print(json.dumps(circumstances(config)))


if __name__ == "__main__":
    main()
