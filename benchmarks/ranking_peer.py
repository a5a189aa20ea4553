"""Train regress-lm on the same rows and for the same time as our model, for ``benchmarks/ablation.py``.

It is trained as by its own fine-tuner: by AdamW, on batches that are shuffled every epoch, and the weights that are
best on valid rows are kept. Each learning rate gets the whole time; the one that is best on valid rows predicts, by
medians of samples. It reads a request from stdin, one JSON document, and prints a line of JSON for each rate and one
with medians.

    python -m benchmarks.ranking_peer < request.json
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import torch

from benchmarks.peer_model import (
    PeerModel,
    longest,
    losses_of,
    make_examples,
    sampled_medians,
    to_tensors,
    train_step,
    train_vocabulary,
    trimmed,
)


def main() -> None:
    """Train with every learning rate and predict the test texts."""
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    parts = [request[name] for name in ("train", "valid", "test")]
    vocabulary = train_vocabulary(request["train"]["texts"], request["vocabulary"])
    length = min(request["context"], longest(vocabulary, [text for part in parts for text in part["texts"]]))
    peer = PeerModel(vocabulary, request["layers"]).of_size(request["parameters"], length)
    trained = []
    for rate in request["rates"]:
        torch.manual_seed(request["seed"])
        lm = peer.make(length)
        loss, steps = _train(lm, rate, request)
        print(json.dumps({"rate": rate, "valid_loss": loss, "steps": steps, "tokens": length}), flush=True)
        trained.append((loss, rate, lm))
    best = min(trained, key=lambda each: each[:2])[2]
    print(json.dumps({"medians": sampled_medians(best, request["test"]["texts"], request["samples"])}))


def _train(lm: Any, rate: float, request: dict[str, Any]) -> tuple[float, int]:
    """Train with one learning rate, keep the weights with the smallest valid loss; return this loss and the steps."""
    train, valid = (
        to_tensors(lm, make_examples(request[name]["texts"], request[name]["values"])) for name in ("train", "valid")
    )
    optimizer = torch.optim.AdamW(lm.model.parameters(), lr=rate)
    best, kept, spent, evaluated = float("inf"), {}, 0.0, 0
    for steps, rows in enumerate(_shuffled(len(request["train"]["texts"]), request["batch"]), start=1):
        started = time.process_time()
        train_step(lm, optimizer, _rows(lm, train, rows))
        spent += time.process_time() - started
        share = steps / request["steps"] if request["steps"] else spent / request["seconds"]
        if share < 1 and share * request["evaluations"] < evaluated + 1:
            continue
        evaluated += 1
        if (loss := _mean_loss(lm, valid, request["batch"])) < best:
            best, kept = loss, deepcopy(lm.model.state_dict())
        if share >= 1:
            break
    lm.model.load_state_dict(kept)
    return best, steps


def _shuffled(num_rows: int, size: int) -> Iterator[torch.Tensor]:
    while True:
        yield from torch.split(torch.randperm(num_rows), size)


def _rows(lm: Any, tensors: dict[str, Any], rows: torch.Tensor) -> dict[str, Any]:
    return trimmed(lm, {name: tensor[rows] for name, tensor in tensors.items()})


@torch.no_grad()
def _mean_loss(lm: Any, tensors: dict[str, Any], size: int) -> float:
    lm.model.eval()
    rows = torch.arange(len(next(iter(tensors.values()))))
    return float(torch.cat([losses_of(lm, _rows(lm, tensors, part)) for part in torch.split(rows, size)]).mean())


if __name__ == "__main__":
    main()
