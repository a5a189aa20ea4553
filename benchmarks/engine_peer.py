"""The other side of ``benchmarks/engine.py``: regress-lm, in an environment of its own, through its public interface.

Reads a request from stdin, one JSON document, and prints a line of JSON for the model's size and for every case.

    python -m benchmarks.engine_peer < request.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from regress_lm import core, rlm, vocabs

from benchmarks.engine_timing import measure

DEFAULT_CONTEXT = 2048
NUM_HEADS = 8  # of its decoder, whatever the width


def main() -> None:
    """Measure what the request lists."""
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    torch.manual_seed(0)
    examples = [core.Example(x=text, y=y) for text, y in zip(request["texts"], request["values"], strict=True)]
    vocabulary = _train_vocabulary(request["texts"], request["vocabulary"])
    longest = max(len(vocabulary.to_token_ids(example.x)) for example in examples)
    width = _choose_width(request, vocabulary, longest)
    size = _size(_make(request, vocabulary, width, longest, 1))
    print(json.dumps({"parameters": size, "width": width, "tokens": longest}), flush=True)
    lengths = {"equal text": longest, "equal tokens": request["tokens"], "default": DEFAULT_CONTEXT}
    for context in request["contexts"]:
        length = lengths[context] if context in lengths else int(context)
        for objectives in request["objectives"]:
            lm = _make(request, vocabulary, width, length, objectives)
            labelled = [core.Example(x=example.x, y=list(example.y[:objectives])) for example in examples]
            batch = _batch(_converter(lm), labelled[: request["batch"]])
            work = {
                "training": _trainer(request, vocabulary, width, length, objectives, batch),
                "prediction": _predictor(lm, examples[: request["predicted"]], request["samples"]),
            }
            if objectives == 1:
                work["encoding"] = _encoder(lm, batch)
            for what in work:
                print(json.dumps(measure(what, objectives, context, work[what], **request["limits"])), flush=True)


def _converter(lm: Any) -> Any:
    """What turns texts and values into tensors: the model of older versions, a part of it in newer ones."""
    return getattr(lm.model, "converter", lm.model)


def _batch(converter: Any, examples: Sequence[Any]) -> dict[str, Any]:
    """Padded as its own training does: newer versions cut off what is padding in all texts."""
    batch: dict[str, Any] = converter.convert_examples(examples)
    return converter.trim_padding(batch) if hasattr(converter, "trim_padding") else batch


def _trainer(
    request: dict[str, Any], vocabulary: Any, width: int, length: int, objectives: int, batch: dict[str, Any]
) -> Callable[[], int]:
    lm = _make(request, vocabulary, width, length, objectives)
    if request["compile"]:
        parts = lm.model.encoder_decoder
        parts.forward = torch.compile(parts.forward)  # which it calls by name
    optimizer = torch.optim.AdamW(lm.model.parameters(), lr=1e-4)

    def step() -> int:
        lm.model.train()
        losses, _ = lm.model.compute_losses_and_metrics(batch)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        return len(losses)

    if request["compile"]:
        step()  # takes longer than all that is measured
    return step


def _encoder(lm: Any, batch: dict[str, Any]) -> Callable[[], int]:
    @torch.no_grad()
    def encode() -> int:
        lm.model.eval()
        return len(lm.model.encoder_decoder.encode(batch["encoder_input"])[0])

    return encode


def _predictor(lm: Any, examples: Sequence[Any], samples: int) -> Callable[[], int]:
    def predict() -> int:
        lm.model.eval()
        for example in examples:  # one by one: samples of several texts need several times the memory
            (drawn,) = lm.sample([core.ExampleInput(x=example.x)], samples)
            np.median(np.asarray(drawn, dtype=float), axis=0)
        return len(examples)

    return predict


def _make(request: dict[str, Any], vocabulary: Any, width: int, length: int, objectives: int) -> Any:
    encoder_layers, decoder_layers = request["layers"]
    return rlm.RegressLM.from_scratch(
        device="cpu",
        encoder_vocab=vocabulary,
        max_input_len=length,
        max_num_objs=objectives,
        d_model=width,
        num_encoder_layers=encoder_layers,
        num_decoder_layers=decoder_layers,
        compile_model=False,
    )


def _choose_width(request: dict[str, Any], vocabulary: Any, length: int) -> int:
    """Of widths that its heads divide evenly, the one whose model has the number of parameters nearest to ours."""
    sizes: dict[int, int] = {}
    for width in count(2 * NUM_HEADS, 2 * NUM_HEADS):
        sizes[width] = _size(_make(request, vocabulary, width, length, 1))
        if sizes[width] >= request["parameters"]:
            break
    return min(sizes, key=lambda width: abs(sizes[width] - request["parameters"]))


def _size(lm: Any) -> int:
    return sum(parameter.numel() for parameter in lm.model.parameters())


def _train_vocabulary(texts: Sequence[str], size: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "texts.txt"
        corpus.write_text("\n".join(texts))
        return vocabs.SentencePieceVocab.from_corpus(corpus, size, model_prefix=Path(folder) / "vocabulary")


if __name__ == "__main__":
    main()
