"""What does each part of the method contribute? Accuracies of NAS-Bench-201, learned from 781 architectures.

    python -m benchmarks.ablation ../shared/data/nasbench201.parquet --minutes-per-run 7

Every variant, one row of the printed table, differs from the first, ``base``, in one property:

- ``flat-text``: reads the ONNX text that torch would export, instead of canonical text;
- ``named-values``, ``distances``: reads the operators of canonical text with the values that each one reads, given by
  name or by the number of rows since they were computed, instead of in postfix order (operands before the operator);
- ``reordered-sums``: the operands of sums are shuffled each time a text is read in training;
- ``mse-head``: predicts one number, learned by its squared error, instead of digits;
- ``no-smoothing``: learns labels without probability for neighbouring digits;
- ``costs-after``, ``costs-before``: also learns three costs of the same architectures, decoded after the accuracy, as
  always in nasrlm, or before it. In both cases the accuracy is predicted from the text alone;
- ``pretrained``: is first trained for the same time on counts of sampled architectures, as ``nasrlm stats --table``
  computes them;
- ``median-of-samples``: predicts the median of 64 samples, instead of the exact quantile at 0.5;
- ``regress-lm``, ``regress-lm-our-tokens``: with ``--peer``, a model of regress-lm with as many layers and about as
  many parameters (``benchmarks/ranking_peer.py``), which reads canonical text in its own tokens or in those of nasrlm.

All variants are trained for the same processor time. The number of steps that fit into it is measured before the first
run with each combination of text, head and number of objectives. This gives eleven runs per seed, and takes about four
hours on one core for three seeds. regress-lm has this time for each of its learning rates.

The printed number is Kendall's τ on test rows. No test row is a train row, but 15 to 18 % of them compute the same
function as a train row (seeds 0 to 2). Each result of a variant and seed is a line of ``results.jsonl`` in ``--out``
and is not computed again; a benchmark that was stopped is resumed by the same command.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.circumstances import circumstances
from benchmarks.command_line import check_counts, one_line_errors
from benchmarks.flat_text import to_flat_text
from benchmarks.peer import TORCH, InstalledPeer, install_peer
from benchmarks.ranking import SAMPLES, VOCABULARY, peer_medians
from benchmarks.text_forms import as_letters, with_distances, with_names
from converters import to_graph
from converters.bulk import to_onnx_texts
from converters.tables.counts import COUNTS, derive_counts
from converters.tables.stream import StreamConfig, convert_table
from nasrlm.arrays import FloatArray
from nasrlm.examples import Examples
from nasrlm.files import write_atomically, write_table
from nasrlm.json_lines import append_line, finished_lines
from nasrlm.metrics import tau_of
from nasrlm.model.config import Head, ModelConfig
from nasrlm.predictor import Predictor
from nasrlm.text.tokenizer import TextTokenizer
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from spaces import get_space
from spaces.drawing import draw
from studies.tables.files import read_table

OBJECTIVE = "accuracy@cifar10"
NO_ACCURACY = "share@cifar10"  # another name for the accuracy, so that it is decoded after costs
COSTS = ("latency_ms@raspi4", "latency_ms@fpga", "energy_mj@edgegpu")
CELLS_TO_COUNT = 5  # ratio of cells with counts to labelled cells
EVALUATIONS = 10  # number of evaluations on valid rows in a run
BATCH = 32
NO_SETTINGS = ("out", "only", "seeds", "peer")  # attributes of Config that may differ between results in one folder
WARMUP = 0.05  # share of all steps
TIMED_STEPS = 40  # largest number of steps that are timed; fewer if they would take longer than SECONDS_TO_TIME
SECONDS_TO_TIME = 60
Form = Literal["canonical", "flat", "names", "distances", "letters"]
FORMS: dict[Form, Callable[[str], str]] = {"canonical": str, "names": with_names, "distances": with_distances}
MODEL = ModelConfig(width=128, num_heads=4, hidden=384, dropout=0.1, max_text_tokens=4096)


@dataclass(frozen=True)
class Config:
    """The configuration of the ablation.

    Attributes:
        table: table of NAS-Bench-201.
        out: folder of the results.
        rows: number of labelled train cells; there are a quarter as many valid and at most four times as many test
            cells.
        seeds: seeds of every variant.
        minutes_per_run: processor time for training, without evaluations.
        steps: number of steps of every run, instead of minutes.
        only: names in VARIANTS; all if empty.
        peer: the installed regress-lm, which is stored with its results.
        model: sizes of the model; the head is the variant's.
    """

    table: Path
    out: Path = Path("runs/ablation")
    rows: int = 781
    seeds: tuple[int, ...] = (0, 1, 2)
    minutes_per_run: float = 7.0
    steps: int | None = None
    only: tuple[str, ...] = ()
    peer: InstalledPeer | None = None
    model: ModelConfig = MODEL


@dataclass(frozen=True)
class Variant:
    """A variant of the method, one row of the printed table."""

    form: Form = "canonical"
    augment: str = ""
    costs: Literal["", "after", "before"] = ""
    head: Head = "digits"
    smoothing_digits: float = 0.3
    pretrained: bool = False
    sampled: bool = False
    peer: bool = False


VARIANTS = {
    "base": Variant(),
    "flat-text": Variant(form="flat"),
    "named-values": Variant(form="names"),
    "distances": Variant(form="distances"),
    "reordered-sums": Variant(augment="benchmarks.text_forms:reordered"),
    "mse-head": Variant(head="mse"),
    "no-smoothing": Variant(smoothing_digits=0.0),
    "costs-after": Variant(costs="after"),
    "costs-before": Variant(costs="before"),
    "pretrained": Variant(pretrained=True),
    "median-of-samples": Variant(sampled=True),
    "regress-lm": Variant(peer=True),
    "regress-lm-our-tokens": Variant(form="letters", peer=True),
}


class Ablation:
    """The results of each variant and seed; those in ``results.jsonl`` are not computed again.

    Raises:
        ValueError: ``results.jsonl`` has other settings.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._space = get_space("nasbench201")
        self._settings = {key: str(value) for key, value in asdict(config).items() if key not in NO_SETTINGS}
        self._path = config.out / "results.jsonl"
        self.results: list[dict[str, Any]] = [json.loads(line) for line in finished_lines(self._path)]
        for result in self.results:
            expected = self._settings_of(result["variant"])
            if not expected.items() <= result["settings"].items():
                raise ValueError(f"{self._path}: expected results of {expected}, got others. Choose another --out.")

    def run(self, progress: bool) -> None:
        """Compute the missing results."""
        there = {(result["variant"], result["seed"]) for result in self.results}
        todo = [wanted for wanted in self._wanted() if wanted not in there]
        for name, seed in tqdm(todo, "results", disable=not progress):
            tau = self._measure(name, VARIANTS[name], seed)
            self.results.append(
                {"variant": name, "seed": seed, "kendall_tau": tau, "settings": self._settings_of(name)}
            )
            append_line(self._path, self.results[-1])

    def _settings_of(self, name: str) -> dict[str, str]:
        """Return the settings stored with a variant's results; those of regress-lm include its version.

        Without a peer in the config, the version is left out, so that earlier results of regress-lm are accepted.
        """
        if self.config.peer is None or name not in VARIANTS or not VARIANTS[name].peer:
            return self._settings
        return self._settings | {"peer": self.config.peer.identity}

    def tau(self, name: str, seed: int) -> float | None:
        """Return the Kendall τ of a result; None if it is missing, or if all predictions were equal."""
        found = [each["kendall_tau"] for each in self.results if (each["variant"], each["seed"]) == (name, seed)]
        return float(found[0]) if found and found[0] is not None and not math.isnan(found[0]) else None

    def _wanted(self) -> Iterator[tuple[str, int]]:
        names = [name for name in VARIANTS if name in (self.config.only or VARIANTS)]
        for seed in self.config.seeds:
            yield from ((name, seed) for name in names if self.config.peer or not VARIANTS[name].peer)

    def _measure(self, name: str, variant: Variant, seed: int) -> float:
        examples = self._examples(seed, variant)
        if variant.peer:
            assert self.config.peer is not None, "results of a peer are wanted where there is one"
            predicted = peer_medians(
                [self.config.peer.python],
                examples,
                self.config.model,
                letters=variant.form == "letters",
                batch=BATCH,
                evaluations=EVALUATIONS,
                seconds=60 * self.config.minutes_per_run,
                steps=self.config.steps,
                seed=seed,
            )
            return _tau(examples.split("test"), predicted)
        trained = "base" if variant.sampled else name
        initial = self._pretrain(seed) if variant.pretrained else None
        predictor = Predictor.from_pretrained(self._train(trained, variant, examples, seed, initial))
        test = examples.split("test")
        asked = test.objectives if variant.costs == "before" else test.objectives[:1]  # the last asked is the accuracy
        if variant.sampled:
            predicted = np.median(predictor.sample(test.texts, asked, SAMPLES, seed), axis=-1)
        else:
            predicted = predictor.predict(test.texts, asked, quantiles=(0.5,)).median
        return _tau(test, predicted)

    def _train(self, name: str, variant: Variant, examples: Examples, seed: int, initial: Path | None) -> Path:
        """Train a model and return the folder of its checkpoint."""
        out = self.config.out / f"{name}-seed{seed}"
        config = TrainConfig(
            table=(self.config.table,),
            out=out,
            initial_checkpoint=initial,
            model=replace(self.config.model, head=variant.head),
            augment=variant.augment,
            smoothing_digits=variant.smoothing_digits,
            num_digits=3,
            batch_size=BATCH,
            embedding_learning_rate=2e-3,
            seed=seed,
        )
        kind = f"{variant.form}-{variant.head}-{len(examples.objectives)}"
        steps = self._steps(kind, config, examples)
        rows = len(examples.split("train"))
        lasting = config.of_steps(steps, rows, evaluations=EVALUATIONS, warmup_share=WARMUP)
        train(lasting, examples, progress=sys.stderr.isatty())
        return out / "checkpoint"

    def _steps(self, kind: str, config: TrainConfig, examples: Examples) -> int:
        """Return the number of steps that fit into the minutes of a run; measured once for each kind, and saved."""
        if self.config.steps is not None:
            return self.config.steps
        path = self.config.out / f"steps-{kind}.json"
        if not path.exists():
            fitting = round(60 * self.config.minutes_per_run / _seconds_per_step(config, examples))
            write_atomically(path, json.dumps(max(1, fitting)).encode())
        return int(json.loads(path.read_text()))

    def _pretrain(self, seed: int) -> Path:
        """Train a model of counts of sampled cells; some may be test cells, but counts reveal no accuracies."""
        drawn, counted = (self.config.out / f"{name}-seed{seed}.parquet" for name in ("drawn", "counted"))
        if not drawn.exists():
            rows = [row._asdict() for row in draw(self._space, CELLS_TO_COUNT * self.config.rows, seed)]
            write_table(pd.DataFrame(rows).assign(space=self._space.name), drawn)
        convert_table(StreamConfig(drawn, counted, resume=True, derivation=derive_counts()))
        frame = read_table(counted)
        texts = to_onnx_texts(self._space, [self._space.parse(text) for text in frame["architecture"]])
        return self._train("counts", Variant(), Examples.of_table(frame, texts, COUNTS), seed, None)

    def _examples(self, seed: int, variant: Variant) -> Examples:
        """Return train rows drawn by seed, and the same valid and test rows for all seeds.

        Objectives are in the order of decoding.
        """
        costs = COSTS if variant.costs else ()
        frame = read_table(self.config.table, require=[OBJECTIVE, *costs])
        frame = frame[frame[OBJECTIVE].notna()]
        chosen = []
        for split, count, drawn_by in (
            ("train", self.config.rows, seed),
            ("valid", self.config.rows // 4, 0),
            ("test", 4 * self.config.rows, 0),
        ):
            rows = frame[frame["split"] == split]
            chosen.append(rows.sample(min(count, len(rows)), random_state=drawn_by))
        frame = pd.concat(chosen)
        texts = self._texts(frame, variant.form)
        if variant.costs == "before":
            return Examples.of_table(frame.rename(columns={OBJECTIVE: NO_ACCURACY}), texts, [*costs, NO_ACCURACY])
        return Examples.of_table(frame, texts, [OBJECTIVE, *costs])

    def _texts(self, frame: pd.DataFrame, form: Form) -> list[str]:
        architectures = [self._space.parse(text) for text in frame["architecture"]]
        if form == "flat":
            return [to_flat_text(to_graph(self._space, architecture)) for architecture in architectures]
        texts = to_onnx_texts(self._space, architectures)
        if form == "letters":
            learned = [text for text, split in zip(texts, frame["split"], strict=True) if split == "train"]
            return as_letters(texts, TextTokenizer.train(learned, VOCABULARY))
        return [*map(FORMS[form], texts)]

    def table(self) -> list[str]:
        """Return lines of Markdown: τ by seed, mean and standard deviation, and mean difference to base by seed."""
        seeds = self.config.seeds
        lines = [
            f"| | {' | '.join(f'seed {seed}' for seed in seeds)} | mean ± sd | against base |",
            f"|---|{'---|' * (len(seeds) + 2)}",
        ]
        for name in VARIANTS:
            taus = [self.tau(name, seed) for seed in seeds]
            known = [tau for tau in taus if tau is not None]
            if known:
                spread = f"{mean(known):.3f} ± {stdev(known) if len(known) > 1 else 0:.3f}"
                cells = [*("" if tau is None else f"{tau:.3f}" for tau in taus), spread, self._against_base(name)]
                lines.append(f"| {name} | {' | '.join(cells)} |")
        return lines

    def _against_base(self, name: str) -> str:
        pairs = [(self.tau(name, seed), self.tau("base", seed)) for seed in self.config.seeds]
        differences = [a - b for a, b in pairs if a is not None and b is not None]
        return f"{mean(differences):+.3f}" if differences and name != "base" else ""


def _tau(test: Examples, predicted: FloatArray) -> float:
    """Return the Kendall τ of the last predicted objective, the accuracy."""
    accuracy = predicted.shape[1] - 1
    return tau_of(predicted[:, accuracy], test.labels[:, accuracy])


def _seconds_per_step(config: TrainConfig, examples: Examples) -> float:
    """Measure the processor seconds of a training step, which do not depend on other processes.

    It runs three trainings: one to warm up, a short one to measure the overhead, and a longer one.
    """

    def seconds_of(steps: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            lasting = config.of_steps(steps, len(examples.split("train")), evaluations=1)
            train(lasting.model_copy(update={"out": Path(folder)}), examples, progress=False)
            return time.process_time() - started

    seconds_of(2)
    short = seconds_of(2)
    more = max(2, min(TIMED_STEPS, round(2 * SECONDS_TO_TIME / short)))
    return max(1e-3, (seconds_of(2 + more) - short) / more)


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Compute the missing results and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", default=Path("../shared/data/nasbench201.parquet"))
    parser.add_argument("--out", type=Path, default=Config.out)
    parser.add_argument("--rows", type=int, default=Config.rows)
    parser.add_argument("--seeds", type=int, nargs="+", default=Config.seeds)
    parser.add_argument("--minutes-per-run", type=float, default=Config.minutes_per_run)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--only", nargs="+", choices=tuple(VARIANTS), default=())
    parser.add_argument("--peer", help="Checkout of regress-lm, or another requirement that pip can install.")
    parser.add_argument("--torch", default=TORCH, help="Requirement for the torch that pip installs with it.")
    arguments = parser.parse_args(words)
    check_counts(arguments, "rows", *([] if arguments.steps is None else ["steps"]))
    if not 0 < arguments.minutes_per_run < math.inf:
        raise ValueError(f"--minutes-per-run: expected more than 0, got {arguments.minutes_per_run:g}.")
    given = vars(arguments)
    peer, beside = given.pop("peer"), given.pop("torch")
    if not peer and (asked := [name for name in given["only"] if VARIANTS[name].peer]):
        raise ValueError(f"--only {' '.join(asked)}: expected --peer with a checkout of regress-lm, got none.")
    installed = install_peer(peer, beside) if peer else None
    config = Config(**given | {"seeds": tuple(given["seeds"]), "only": tuple(given["only"])}, peer=installed)
    ablation = Ablation(config)
    ablation.run(progress=sys.stderr.isatty())
    print("\n".join(ablation.table()))
    print(json.dumps(circumstances(config)))


if __name__ == "__main__":
    main()
