"""Does the checkpoint rank cells that it has not seen in another spelling?

The published split of NAS-Bench-201 goes by strings; some test cells compute the same function as a train cell.
This leaves those out.

    python -m benchmarks.unseen_cells ../shared/data/nasbench201.parquet
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from benchmarks.circumstances import circumstances
from benchmarks.command_line import one_line_errors
from benchmarks.judged import Config, read_config
from converters.bulk import to_onnx_texts
from nasrlm.evaluation import evaluate
from nasrlm.examples import make_examples
from nasrlm.predictor import Predictor
from spaces import get_space
from studies.labelled_table import read_table

OBJECTIVES = ("accuracy@cifar10", "accuracy@cifar100", "accuracy@imagenet16-120")


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print one line of JSON."""
    config = read_config(__doc__, words)
    print(json.dumps({"kendall_tau": measure(config), **circumstances(config)}))


def measure(config: Config) -> dict[str, dict[str, float]]:
    """Kendall τ on all test rows, and on those whose key is not among the train rows."""
    space = get_space("nasbench201")
    frame = read_table(config.table, require=OBJECTIVES)
    frame["key"] = [space.architecture_key(space.parse(text)) for text in frame["architecture"]]
    test = frame[frame["split"] == "test"]
    unseen = test[~test["key"].isin(frame.loc[frame["split"] == "train", "key"])]
    predictor = Predictor.from_pretrained(config.checkpoint)
    result: dict[str, dict[str, float]] = {}
    for name, rows in (("test", test), ("test, cell not in train", unseen)):
        texts = to_onnx_texts(space, [space.parse(text) for text in rows["architecture"]], measured=True)
        quality = evaluate(predictor, make_examples(rows, texts, OBJECTIVES)).quality["nasbench201"]
        result[name] = {objective: round(q["kendall_tau"], 4) for objective, q in quality.items()} | {"rows": len(rows)}
    return result


if __name__ == "__main__":
    main()
