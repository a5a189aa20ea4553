"""How short are canonical texts, and how fast are they made?

For every space: characters and tokens of canonical text, beside the tokens of the same networks as flat ONNX text
(``benchmarks.flat_text``), under tokenizers trained alike; texts a second; and the seconds that ``torch.onnx.export``
takes, as it is called by default and with its older exporter, where ``tests.converters.rendered`` has the networks in
torch. Times are processor time of one core. Half of the architectures drawn train the tokenizers and warm up the
converters, the other half is measured.

    python -m tests.benchmarks.texts --architectures 40
"""

from __future__ import annotations

import argparse
import io
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from tqdm import tqdm

from benchmarks.circumstances import circumstances
from benchmarks.command_line import check_counts, one_line_errors
from benchmarks.flat_text import to_flat_text
from converters import to_graph, to_onnx_text
from converters.models.torch_module import EXPORT_OPSET
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.files import to_json
from nasrlm.text.presentation import present
from nasrlm.text.tokenizer import Pieces, TextTokenizer
from spaces import SearchSpace, get_space, space_names
from tests.converters.rendered import NETWORKS, module_of, rendered_goldens

PIECES: Pieces = "chains"  # within which tokens are learned, as those of the released tokenizer were
CHUNKS = 5  # of the architectures of a space, timed one by one
EXPORTERS: dict[str, dict[str, Any]] = {"default": {}, "TorchScript": {"dynamo": False, "opset_version": EXPORT_OPSET}}


@dataclass(frozen=True)
class Config:
    """What to measure.

    Attributes:
        architectures: measured of every space; as many more train the tokenizers.
        exports: networks that torch exports, of every space that has them in torch.
        spaces: names.
        seed: of the architectures drawn.
    """

    architectures: int = 40
    exports: int = 2
    spaces: tuple[str, ...] = space_names()
    seed: int = 0


@dataclass(frozen=True)
class Texts:
    """Of one space: texts to train on and texts to count, and how many a second were made in each chunk."""

    training: list[str]
    canonical: list[str]
    training_flat: list[str]
    flat: list[str]
    rates: list[float]


@dataclass(frozen=True)
class Spread:
    """Of a sample; ``middle`` is the mean of counts, the median of rates."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One space; tokens under the released tokenizer and under the two that are trained here, exports by exporter."""

    space: str
    characters: float
    released_tokens: Spread
    canonical_tokens: Spread
    flat_tokens: Spread
    times_fewer_tokens: float
    texts_per_second: Spread
    export_seconds: dict[str, float]
    times_faster: dict[str, float]


def measure(config: Config) -> list[Row]:
    """One row for every space."""
    released = Checkpoint.from_pretrained().tokenizer
    in_torch = [name for name in config.spaces if name in NETWORKS]
    with tqdm(total=len(config.spaces) + config.exports * len(in_torch), disable=not sys.stderr.isatty()) as bar:
        texts: dict[str, Texts] = {}
        for name in config.spaces:
            bar.set_description(name)
            texts[name] = make_texts(get_space(name), config)
            bar.update()
        bar.set_description("torch.onnx.export")
        seconds = {name: export_seconds(name, config.exports, bar) for name in in_torch if config.exports}
    size = released.vocabulary_size
    canonical = TextTokenizer.train([text for made in texts.values() for text in made.training], size, PIECES)
    flat = TextTokenizer.train([text for made in texts.values() for text in made.training_flat], size, PIECES)
    return [_row(name, made, (released, canonical, flat), seconds.get(name, {})) for name, made in texts.items()]


def make_texts(space: SearchSpace[Any], config: Config) -> Texts:
    """Draw, convert and time."""
    rng = np.random.default_rng(config.seed)
    drawn = [space.sample(rng) for _ in range(2 * config.architectures)]
    for_training, measured = drawn[: config.architectures], drawn[config.architectures :]
    training = [to_onnx_text(space, architecture) for architecture in for_training]  # warms up what is timed next
    canonical: list[str] = []
    rates: list[float] = []
    for chunk in np.array_split(np.arange(len(measured)), min(CHUNKS, len(measured))):
        start = time.process_time()
        made = [to_onnx_text(space, measured[index]) for index in chunk]
        rates.append(len(made) / (time.process_time() - start))
        canonical += made
    flat = [to_flat_text(to_graph(space, architecture)) for architecture in drawn]
    assert all(present(text) == text for text in flat), "flat text must reach the tokenizer as it stands"
    return Texts(training, canonical, flat[: len(training)], flat[len(training) :], rates)


def export_seconds(name: str, count: int, bar: tqdm[Any]) -> dict[str, float]:
    """Median of some networks by exporter, their construction left out."""
    seconds: dict[str, list[float]] = {exporter: [] for exporter in EXPORTERS}
    for row in rendered_goldens(name)[:count]:
        module = module_of(name, row)
        for exporter in EXPORTERS:
            seconds[exporter].append(_time_export(module, row["input_shape"], exporter))
        bar.update()
    return {exporter: median(times) for exporter, times in seconds.items()}


def _time_export(module: nn.Module, input_shape: Sequence[int], exporter: str) -> float:
    module.eval()
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of tracing, and that one of them is the old one
        start = time.process_time()
        torch.onnx.export(module, (torch.zeros(*input_shape),), io.BytesIO(), **EXPORTERS[exporter])
    return time.process_time() - start


def _row(name: str, made: Texts, tokenizers: Sequence[TextTokenizer], export: dict[str, float]) -> Row:
    texts = (made.canonical, made.canonical, made.flat)
    released, canonical, flat = (_count_tokens(*pair) for pair in zip(tokenizers, texts, strict=True))
    rate = median(made.rates)
    return Row(
        space=name,
        characters=fmean(map(len, made.canonical)),
        released_tokens=released,
        canonical_tokens=canonical,
        flat_tokens=flat,
        times_fewer_tokens=flat.middle / canonical.middle,
        texts_per_second=Spread(rate, min(made.rates), max(made.rates)),
        export_seconds=export,
        times_faster={exporter: seconds * rate for exporter, seconds in export.items()},
    )


def _count_tokens(tokenizer: TextTokenizer, texts: Sequence[str]) -> Spread:
    lengths = [len(ids) for ids in tokenizer.to_ids(texts)]
    return Spread(fmean(lengths), min(lengths), max(lengths))


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Measure all spaces and print a table, or one JSON document with commit, machine, versions and config."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", type=int, default=Config.architectures)
    parser.add_argument("--exports", type=int, default=Config.exports)
    parser.add_argument("--spaces", nargs="+", choices=space_names(), default=Config.spaces)
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args(words))
    as_json = given.pop("json")
    config = Config(**given | {"spaces": tuple(given["spaces"])})
    check_counts(config, "architectures")
    torch.set_num_threads(1)
    for exporter in EXPORTERS:
        _time_export(nn.Linear(1, 1), (1, 1), exporter)  # the first export imports half of torch
    rows = measure(config)
    if as_json:
        print(to_json({"spaces": [asdict(row) for row in rows], **circumstances(config)}, indent=1))
    else:
        _print(rows)


def _print(rows: Sequence[Row]) -> None:
    columns = ["space", "characters", "tokens (most)", "own tokenizer (most)", "flat (most)", "times fewer"]
    columns += ["texts/s (low to high)", "export s (TorchScript)", "times faster"]
    table = Table(*columns, title="canonical ONNX text")
    for row in rows:
        table.add_row(
            row.space,
            f"{row.characters:,.0f}",
            *[f"{x.middle:,.0f} ({x.high:,})" for x in (row.released_tokens, row.canonical_tokens, row.flat_tokens)],
            f"{row.times_fewer_tokens:.1f}",
            f"{row.texts_per_second.middle:.0f} ({row.texts_per_second.low:.0f} to {row.texts_per_second.high:.0f})",
            _of_exporters(row.export_seconds, ".2f"),
            _of_exporters(row.times_faster, ".0f"),
        )
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    fewer, rates = [row.times_fewer_tokens for row in rows], [row.texts_per_second.middle for row in rows]
    print(f"Median space: {median(fewer):.1f} times fewer tokens, {median(rates):.0f} texts/s.")
    print(f"Slowest space: {min(rates):.0f} texts/s.")


def _of_exporters(values: dict[str, float], spelling: str) -> str:
    return f"{values['default']:{spelling}} ({values['TorchScript']:{spelling}})" if values else ""


if __name__ == "__main__":
    main()
