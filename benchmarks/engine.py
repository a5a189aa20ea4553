"""How many texts per second do nasrlm and regress-lm learn from and predict, with models of the same size?

Both run on the same machine, with the same texts, random weights, the same numbers of encoder and decoder layers, and
numbers of parameters within 10 % of each other.

- prediction: the median of each objective, exact in nasrlm, of 64 samples in regress-lm. The time includes
  tokenisation.
- encoding: the encoder of regress-lm alone, compared with predictions of nasrlm. This is the speed that regress-lm
  would have if samples cost nothing.
- training: a training step, from token ids. Batches of nasrlm have texts of similar length, padded to the longest of
  them. regress-lm cuts off the padding that all texts of a batch have in common, if its version can.

nasrlm always reads whole texts. Contexts of regress-lm are:

- "equal text": the length of the longest text in its own tokens, so it reads whole texts too;
- "equal tokens": the length of the longest text in the tokens of nasrlm; the rest of its tokens is cut off;
- "default": its default of 2,048 tokens, to which it pads texts;
- a number of tokens.

    python -m benchmarks.engine --json
    python -m benchmarks.engine --space darts --tokens-per-state 4    # texts of hundreds of tokens
    python -m benchmarks.engine --size 30M --space nds_amoebanet --texts 64 --contexts 1024    # both 512 wide
    python -m benchmarks.engine --peer ~/regress-lm    # a checkout of its source, or anything else that pip installs

regress-lm is installed into .bench/regress-lm. If that fails, only nasrlm is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any, get_args

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.circumstances import circumstances
from benchmarks.command_line import check_counts, one_line_errors
from benchmarks.engine_timing import Measurement, measure
from benchmarks.peer import TORCH, InstalledPeer, PeerError, ask_peer, install_peer
from benchmarks.training_step import SETTINGS, make_step
from converters.bulk import to_onnx_texts
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.engines.names import EngineName
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.predictor import Predictor
from nasrlm.text.tokenizer import TextTokenizer
from nasrlm.training.batches import Batches
from nasrlm.training.compiled import compiled
from nasrlm.training.loss import TrainingLoss
from spaces import get_space

OBJECTIVES = (1, 2, 6)
CONTEXTS = ("equal text", "equal tokens", "default")
SIZES = {
    "1M": ModelConfig(width=128, num_heads=4, num_encoder_layers=4, num_decoder_layers=2, hidden=384),
    "30M": ModelConfig(width=512, num_heads=8, num_encoder_layers=7, num_decoder_layers=2, hidden=1376),
}
VOCABULARY = 1024
STEPS = 8  # training steps per run, on different batches of texts of similar length, as in `nasrlm train`
SAMPLES = 64  # samples from which the peer computes a median
PEER_TEXTS = 1  # texts that the peer predicts per run


@dataclass(frozen=True)
class Config:
    """The configuration of the benchmark.

    Attributes:
        space: space from which different architectures are drawn.
        texts: number of texts, on which tokenizers are trained, and which we predict.
        batch: texts per training step.
        contexts: contexts of the peer, from ``CONTEXTS`` or numbers of tokens.
        seconds: time for a case, unless one run takes longer.
        repeats: largest number of runs per case.
        processor_time: measure processor time of all threads together, instead of wall time.
        model: sizes of our model.
        engine: engine of our predictions.
        threads: number of torch's threads, on both sides.
        compile: use ``torch.compile`` for training steps, on both sides.
    """

    space: str = "nasbench201"
    texts: int = 512
    batch: int = 16
    contexts: Sequence[str] = CONTEXTS
    seconds: float = 10.0
    repeats: int = 5
    processor_time: bool = False
    model: ModelConfig = SIZES["1M"]
    engine: EngineName = "auto"
    threads: int = torch.get_num_threads()
    compile: bool = False


@dataclass(frozen=True)
class Peer:
    """The measurements of the peer, regress-lm, with its version and size."""

    identity: str
    size: dict[str, int]
    cases: list[Measurement]


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print a table, or one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="regress-lm==0.0.1", help="Requirement for regress-lm that pip installs.")
    parser.add_argument("--torch", default=TORCH, help="Requirement for the torch that pip installs with it.")
    parser.add_argument("--size", default="1M", choices=SIZES, help="Approximate number of parameters of the models.")
    parser.add_argument("--space", default=Config.space, help="Search space of the networks whose texts are used.")
    drawn = f"Number of texts to predict; also to train on, if they are fewer than {STEPS} batches."
    parser.add_argument("--texts", type=int, default=Config.texts, help=drawn)
    parser.add_argument(
        "--batch", type=int, default=Config.batch, help="Number of texts in a training step, for both libraries."
    )
    joined = "Number of tokens that our encoder merges after its first layer; for texts of hundreds of tokens."
    parser.add_argument("--tokens-per-state", type=int, default=Config.model.tokens_per_state, help=joined)
    read = f"Contexts of regress-lm: {', '.join(CONTEXTS)}, or numbers of tokens."
    parser.add_argument("--contexts", nargs="+", default=CONTEXTS, help=read)
    parser.add_argument("--seconds", type=float, default=Config.seconds)
    parser.add_argument("--repeats", type=int, default=Config.repeats)
    busy = (
        "Measure processor time, on a machine with other work; use it with one thread, as several wait for each other."
    )
    parser.add_argument("--processor-time", action="store_true", help=busy)
    parser.add_argument(
        "--threads", type=int, default=Config.threads, help="Number of threads of torch, for both libraries."
    )
    parser.add_argument("--engine", default=Config.engine, choices=get_args(EngineName))
    parser.add_argument(
        "--compile", action="store_true", help="Run training steps with torch.compile, for both libraries."
    )
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args(words))
    peer, beside, as_json = (given.pop(name) for name in ("peer", "torch", "json"))
    model = replace(SIZES[given.pop("size")], tokens_per_state=given.pop("tokens_per_state"))
    config = Config(**given, model=model)
    check_counts(config, "texts", "threads", "batch", "repeats")
    for context in config.contexts:
        if context not in CONTEXTS and not (context.isdecimal() and int(context)):
            raise ValueError(f"--contexts: expected {', '.join(CONTEXTS)} or a number of tokens, got {context!r}.")
    torch.set_num_threads(config.threads)
    texts = draw_texts(config)  # before anything is installed, so that an unknown space is reported first
    size, ours = measure_ours(config, texts)
    try:
        theirs = measure_peer(config, texts, size, install_peer(peer, beside))
    except PeerError as e:
        theirs = None
        print(f"regress-lm: {e} Only nasrlm was measured.", file=sys.stderr)
    if as_json:
        print(json.dumps(report(config, size, ours, theirs)))
    else:
        print_report(config, size, ours, theirs)


def draw_texts(config: Config) -> list[str]:
    """Return different texts of random architectures."""
    space, rng = get_space(config.space), np.random.default_rng(0)
    architectures = [space.sample(rng) for _ in range(2 * config.texts)]
    return list(dict.fromkeys(to_onnx_texts(space, architectures, measured=True)))[: config.texts]


def measure_ours(config: Config, texts: Sequence[str]) -> tuple[dict[str, int], list[Measurement]]:
    """Return our numbers of parameters and tokens, and our measurements, which do not depend on the context.

    Raises:
        AssertionError: the engine's predictions differ from torch's.
    """
    torch.manual_seed(0)
    tokenizer = TextTokenizer.train(texts, VOCABULARY)
    code = NumberCode(3)
    model = RegressionLanguageModel(config.model, tokenizer.vocabulary_size, max(OBJECTIVES), code).eval()
    names = tuple(f"latency_ms@device{index}" for index in range(max(OBJECTIVES)))
    checkpoint = Checkpoint(model, tokenizer, names)
    predictor = Predictor(checkpoint, config.engine)
    if config.engine != "onnxruntime-int8":
        found, expected = (each.predict(texts[:8]).values for each in (predictor, Predictor(checkpoint)))
        assert np.allclose(found, expected, rtol=1e-3), "the engine answers as torch does"
    all_ids = tokenizer.to_ids(texts)
    cases = []
    for objectives in tqdm(OBJECTIVES, desc="nasrlm", disable=not sys.stderr.isatty()):
        asked = names[:objectives]

        def predict(asked: Sequence[str] = asked) -> int:
            return len(predictor.predict(texts, asked, [0.5]).median)

        train = _trainer(model, all_ids, objectives, config)
        for what, work in ("prediction", predict), ("training", train):
            cases.append(measure(what, objectives, "any", work, **_limits(config)))
    lengths = [*map(len, all_ids)]
    return {"parameters": model.num_parameters, "tokens": max(lengths), "mean_tokens": round(mean(lengths))}, cases


def measure_peer(config: Config, texts: Sequence[str], size: dict[str, int], installed: InstalledPeer) -> Peer:
    """Measure regress-lm.

    Raises:
        PeerError: regress-lm does not run.
    """
    request = {
        "texts": list(texts),
        "values": _labels(len(texts)).tolist(),
        "objectives": OBJECTIVES,
        **size,
        "layers": (config.model.num_encoder_layers, config.model.num_decoder_layers),
        "vocabulary": VOCABULARY,
        "samples": SAMPLES,
        "batch": config.batch,
        "predicted": PEER_TEXTS,
        "contexts": config.contexts,
        "limits": _limits(config),
        "threads": config.threads,
        "compile": config.compile,
    }
    num_cases = len(config.contexts) * (1 + 2 * len(OBJECTIVES))
    size_line, *cases = ask_peer([installed.python], "benchmarks.engine_peer", request, 1 + num_cases)
    return Peer(installed.identity, size_line, cases)


def report(config: Config, size: dict[str, int], ours: Sequence[Measurement], peer: Peer | None) -> dict[str, object]:
    """Collect sizes, cases, ratios and circumstances as values for JSON."""
    return {
        "nasrlm": {**size, "cases": ours},
        "regress_lm": {"identity": peer.identity, **peer.size, "cases": peer.cases} if peer else None,
        "ratios": [
            {key: theirs[key] for key in ("what", "objectives", "context")} | {"ratio": ratio}
            for theirs, ratio in _ratios(ours, peer)
        ],
        **circumstances(config),
    }


def print_report(config: Config, size: dict[str, int], ours: Sequence[Measurement], peer: Peer | None) -> None:
    """Print cases and ratios as a table."""
    second = "processor second" if config.processor_time else "second"
    title = f"texts a {second}, {config.threads} threads, nasrlm {_spell_size(size)}"
    if peer:
        title += f"; regress-lm {_spell_size(peer.size)}"
    table = Table(title=title, title_justify="left")
    for column in ("", "objectives", "context", "nasrlm", "regress-lm", "ratio"):
        table.add_column(column, justify="left" if column in ("", "context") else "right")
    rows: list[tuple[Measurement, Measurement | None, str]] = [(case, None, "") for case in ours]
    if peer:
        rows = [(_ours_of(ours, theirs), theirs, _spell_ratio(ratio)) for theirs, ratio in _ratios(ours, peer)]
    for mine, theirs, ratio in rows:
        context = theirs["context"] if theirs else mine["context"]
        cells = _spell(mine), _spell(theirs) if theirs else "", ratio
        table.add_row((theirs or mine)["what"], str(mine["objectives"]), context, *cells)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _limits(config: Config) -> dict[str, Any]:
    return {"seconds": config.seconds, "repeats": config.repeats, "processor_time": config.processor_time}


def _ratios(ours: Sequence[Measurement], peer: Peer | None) -> list[tuple[Measurement, float]]:
    cases = peer.cases if peer else []
    return [(theirs, _ours_of(ours, theirs)["per_second"] / theirs["per_second"]) for theirs in cases]


def _ours_of(ours: Sequence[Measurement], theirs: Measurement) -> Measurement:
    what = "prediction" if theirs["what"] == "encoding" else theirs["what"]
    return next(x for x in ours if (x["what"], x["objectives"]) == (what, theirs["objectives"]))


def _spell_size(size: dict[str, int]) -> str:
    return f"{size['parameters']:,} parameters, {size['tokens']:,} tokens a text at most"


def _spell_ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _spell(case: Measurement) -> str:
    return f"{case['per_second']:,.4g} ({case['slowest']:,.4g} to {case['fastest']:,.4g}, {case['runs']} runs)"


def _trainer(
    model: RegressionLanguageModel, token_ids: Sequence[Sequence[int]], objectives: int, config: Config
) -> Callable[[], int]:
    drawn = Batches(
        token_ids,
        _labels(len(token_ids))[:, :objectives],
        np.ones(objectives),
        model.code,
        batch_size=config.batch,
        objectives_per_row=objectives,
        alone_probability=0.0,
        seed=0,
    )
    batches = [drawn[step] for step in range(min(STEPS, drawn.steps_per_epoch))]
    loss = TrainingLoss(model, SETTINGS.smoothing_digits, 0.0)
    step = make_step(model, compiled(loss, "cpu") if config.compile else loss)

    def timed() -> int:
        model.train()
        for batch in batches:
            step(batch)
        model.eval()
        return sum(len(batch.text_ids) for batch in batches)

    if config.compile:
        timed()  # compiles, which takes longer than all measurements
    return timed


def _labels(num_texts: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.random.default_rng(0).uniform(1, 100, (num_texts, max(OBJECTIVES)))


if __name__ == "__main__":
    main()
