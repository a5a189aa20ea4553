"""How well does `nasrlm adapt` rank costs in a space of which the checkpoint knows no label, from few labels?

A checkpoint trained from that of counts has read networks of all spaces, with their counts alone.
For comparison, costs are also ranked by multiply-accumulates, activations and the number of operators alone, without
any labels.

    python -m benchmarks.unknown_spaces ../shared/data/mnasnet.parquet --checkpoint runs/devices_held_out/checkpoint
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.circumstances import circumstances
from benchmarks.command_line import one_line_errors
from benchmarks.judged import Config, read_config, tested
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.metrics import coverage, rho_of
from nasrlm.objective import Objective
from nasrlm.predictor import Predictor
from nasrlm.text.counts import log_sizes
from studies.tables.files import objective_columns, read_table
from studies.tables.rows import only_space

LABELS = (5, 10, 20, 50)  # numbers of labels to learn from
DRAWS = 4  # draws of the labelled rows, for each cost and number of labels
POOL = 300  # largest number of train rows, with and without labels
TESTED = 200  # largest number of test rows


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print one line of JSON."""
    config = read_config(__doc__, words)
    print(json.dumps({"costs": measure(config), **circumstances(config)}))


def measure(config: Config) -> dict[str, Any]:
    """Measure how well an adapted checkpoint ranks each cost of the table.

    Returns:
        For each cost and number of labels, the mean and the worst of the draws' Spearman correlations on test rows, and
        the mean coverage of 80 % intervals; also the absolute correlations of multiply-accumulates, of activations and
        of the number of operators with the cost.

    Raises:
        ValueError: the table cannot be read, has no costs, or is of a space that the checkpoint knows.
    """
    frame = read_table(config.table)
    space, checkpoint = only_space(frame), Checkpoint.from_pretrained(config.checkpoint)
    costs = [name for name in objective_columns(frame, config.table) if not Objective.parse(name).is_accuracy]
    if not space or space in checkpoint.spaces or not costs:
        known = ", ".join(checkpoint.spaces)
        raise ValueError(f"{config.table}: expected costs of one space other than {known}, got {space or 'several'}.")
    table, _ = tested(config, space, *costs)
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for name in costs:
        test = rng.permutation(table.split("test", name))[:TESTED]
        train = rng.permutation(table.split("train", name))[:POOL]
        texts, tests = table.texts(train, measured=True), table.texts(test, measured=True)
        pool, truth = make_pool(checkpoint, texts, space=space), table.labels(name)[test]
        totals = zip(("macs", "activations", "operators"), log_sizes(tests).T, strict=True)
        of_cost: dict[str, Any] = {size: round(abs(rho_of(of_each, truth)), 3) for size, of_each in totals}
        for count in tqdm(LABELS, name):
            ranks, held = [], []
            for _ in range(DRAWS):
                labels = np.full(len(train), np.nan)
                drawn = rng.choice(len(train), count, replace=False)
                labels[drawn] = table.labels(name)[train[drawn]]
                answer = Predictor(adapt(checkpoint, pool, name, labels)).predict(tests, [name])
                ranks.append(rho_of(answer.median[:, 0], truth))
                held.append(coverage(answer.low, answer.high, truth[:, None])[0])
            shown = {"mean": np.mean(ranks), "worst": np.min(ranks), "coverage_80": np.mean(held)}
            of_cost[str(count)] = {key: round(float(value), 3) for key, value in shown.items()}
        found[name] = of_cost
    return found


if __name__ == "__main__":
    main()
