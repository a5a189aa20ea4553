"""What every process of these tests runs: ``python -m tests.nasrlm.training.train_together OUT whole|split [STEP]``."""

import json
import sys
from pathlib import Path

import torch

from nasrlm.training.processes import is_first_process
from nasrlm.training.run import TrainingRun
from nasrlm.training.sharding import whole
from tests.nasrlm.runs import config, killed_in
from tests.nasrlm.scenes import layer_examples

CHANGES = {
    "batch_size": 15,  # over two processes of two parts each, parts differ in size
    "accumulation_steps": 2,
    "epochs": 2,
    "evaluate_every_epochs": 0.5,
    "patience": 99,
    "save_every_seconds": 0,
    "clip_norm": 1e9,  # or the size of gradients would not show
}


def train_and_report(out: Path, shard: bool = False) -> None:
    """Write what this process ends with: the sums of its weights and the norm of the last step's gradients."""
    run = TrainingRun(config(out, **CHANGES, shard=shard), layer_examples(60))
    result = run.finish()
    sums = [float(x.double().sum()) for x in result.checkpoint.model.state_dict().values()]
    gradients = [p.grad for p in run.model.parameters() if p.grad is not None]
    norm = sum(float(x.double().square().sum()) for x in whole(gradients, keep=True)) ** 0.5
    name = "first.json" if is_first_process() else "second.json"
    (out / name).write_text(json.dumps({"sums": sums, "norm": norm}))


def main() -> None:
    """Train, or die at a step."""
    torch.set_num_threads(1)
    out, how, *step = sys.argv[1:]
    if step:
        TrainingRun._train_step = killed_in("_train_step", int(step[0]))
    train_and_report(Path(out), shard=how == "split")


if __name__ == "__main__":
    main()
