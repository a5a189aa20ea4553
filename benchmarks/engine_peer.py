"""Measure how fast regress-lm is, for ``benchmarks/engine.py``; runs in an environment with regress-lm.

It reads a request from stdin, one JSON document, and prints a line of JSON for the model's size and for every case.

    python -m benchmarks.engine_peer < request.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.engine_timing import measure
from benchmarks.peer_model import (
    PeerModel,
    longest,
    make_examples,
    num_parameters,
    sampled_medians,
    to_tensors,
    train_step,
    train_vocabulary,
    trimmed,
)

DEFAULT_CONTEXT = 2048


def main() -> None:
    """Measure what the request lists."""
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    torch.manual_seed(0)
    texts = request["texts"]
    vocabulary = train_vocabulary(texts, request["vocabulary"])
    tokens = longest(vocabulary, texts)
    peer = PeerModel(vocabulary, request["layers"]).of_size(request["parameters"], tokens)
    size = num_parameters(peer.make(tokens))
    print(json.dumps({"parameters": size, "width": peer.width, "tokens": tokens}), flush=True)
    lengths = {"equal text": tokens, "equal tokens": request["tokens"], "default": DEFAULT_CONTEXT}
    for context in request["contexts"]:
        length = lengths[context] if context in lengths else int(context)
        for objectives in request["objectives"]:
            lm = peer.make(length, objectives)
            values = [labels[:objectives] for labels in request["values"]]
            batch = trimmed(lm, to_tensors(lm, make_examples(texts, values)[: request["batch"]]))
            work = {
                "training": _trainer(peer.make(length, objectives), batch, request["compile"]),
                "prediction": _predictor(lm, texts[: request["predicted"]], request["samples"]),
            }
            if objectives == 1:
                work["encoding"] = _encoder(lm, batch)
            for what in work:
                print(json.dumps(measure(what, objectives, context, work[what], **request["limits"])), flush=True)


def _trainer(lm: Any, batch: dict[str, Any], compiled: bool) -> Callable[[], int]:
    if compiled:
        parts = lm.model.encoder_decoder
        parts.forward = torch.compile(parts.forward)  # the model calls it by this name
    optimizer = torch.optim.AdamW(lm.model.parameters(), lr=1e-4)

    def step() -> int:
        return train_step(lm, optimizer, batch)

    if compiled:
        step()  # compiles, which takes longer than all measurements
    return step


def _encoder(lm: Any, batch: dict[str, Any]) -> Callable[[], int]:
    @torch.no_grad()
    def encode() -> int:
        lm.model.eval()
        return len(lm.model.encoder_decoder.encode(batch["encoder_input"])[0])

    return encode


def _predictor(lm: Any, texts: list[str], samples: int) -> Callable[[], int]:
    return lambda: len(sampled_medians(lm, texts, samples))


if __name__ == "__main__":
    main()
