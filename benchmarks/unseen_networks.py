"""Does the checkpoint also rank networks that are in no train row, not even in another spelling?

Published splits compare architectures as strings, so some test rows of NAS-Bench-201 and of NAS-Bench-Macro compute the
same function as a train row. This benchmark measures them and the other test rows separately.

    python -m benchmarks.unseen_networks ../shared/data/nasbench201.parquet
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.circumstances import circumstances
from benchmarks.command_line import one_line_errors
from benchmarks.judged import Config, read_config, tested
from nasrlm.metrics import Quality, quality
from nasrlm.objective import Objective
from nasrlm.predictor import Predictor
from studies.tables.files import read_table
from studies.tables.rows import only_space


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print one line of JSON."""
    config = read_config(__doc__, words)
    print(json.dumps({"quality": measure(config), **circumstances(config)}))


def measure(config: Config) -> dict[str, Any]:
    """Measure the rank correlation and interval coverage of each accuracy.

    They are measured on all test rows, on those whose network is in no train row, and on the rest.

    Raises:
        ValueError: the table cannot be read, is not of one space, or has no two test rows of an accuracy that
            the checkpoint knows; or it knows none.
    """
    space = only_space(read_table(config.table))
    if not space:
        raise ValueError(f"{config.table}: expected rows of one space, got several or none.")
    predictor = Predictor.from_pretrained(config.checkpoint).of_space(space)
    accuracies = [name for name in predictor.objectives if Objective.parse(name).is_accuracy]
    if not accuracies:
        raise ValueError(f"{config.table}: expected a space whose accuracy the checkpoint knows, got {space}.")
    table, test = tested(config, space, *accuracies)
    prediction = predictor.predict(table.texts(test, measured=True), accuracies)
    labels = np.stack([table.labels(name)[test] for name in accuracies], axis=1)
    keys = np.array([table.space.architecture_key(architecture) for architecture in table.architectures])
    in_train = np.isin(keys[test], keys[table.frame["split"] == "train"])
    parts = {"test": np.ones_like(in_train), "not in train": ~in_train, "in train": in_train}
    found = {name: quality(replace(prediction, values=prediction.values[x]), labels[x]) for name, x in parts.items()}
    return {name: {x: _shown(q) for x, q in of_part.items()} for name, of_part in found.items()}


def _shown(judged: Quality) -> dict[str, float]:
    return {
        "n": judged["n"],
        "kendall_tau": round(judged["kendall_tau"], 4),
        "coverage_80": round(judged["coverage_80"], 4),
    }


if __name__ == "__main__":
    main()
