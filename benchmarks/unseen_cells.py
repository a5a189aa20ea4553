"""Does the checkpoint rank cells that it has not seen in another spelling?

The published split of NAS-Bench-201 goes by strings; some test cells compute the same function as a train cell.
This leaves those out.

    python -m benchmarks.unseen_cells ../shared/data/nasbench201.parquet
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from benchmarks.circumstances import circumstances
from benchmarks.command_line import one_line_errors
from benchmarks.judged import Config, read_config, tested
from nasrlm.evaluation import evaluate
from nasrlm.examples import make_examples
from nasrlm.predictor import Predictor

OBJECTIVES = ("accuracy@cifar10", "accuracy@cifar100", "accuracy@imagenet16-120")


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print one line of JSON."""
    config = read_config(__doc__, words)
    print(json.dumps({"kendall_tau": measure(config), **circumstances(config)}))


def measure(config: Config) -> dict[str, dict[str, float]]:
    """Kendall τ on all test rows, and on those whose key is not among the train rows."""
    table, test = tested(config, *OBJECTIVES)
    keys = np.array([table.space.architecture_key(architecture) for architecture in table.architectures])
    unseen = test[~np.isin(keys[test], keys[table.frame["split"] == "train"])]
    predictor = Predictor.from_pretrained(config.checkpoint)
    result: dict[str, dict[str, float]] = {}
    for name, rows in (("test", test), ("test, cell not in train", unseen)):
        frame = table.frame.iloc[rows].assign(space=table.space.name)
        examples = make_examples(frame, table.texts(rows, measured=True), OBJECTIVES)
        quality = evaluate(predictor, examples).quality[table.space.name]
        result[name] = {objective: round(q["kendall_tau"], 4) for objective, q in quality.items()} | {"rows": len(rows)}
    return result


if __name__ == "__main__":
    main()
