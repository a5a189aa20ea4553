"""A search in a process of its own, for tests that kill it."""

import multiprocessing
import multiprocessing.process
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nasrlm.prediction import Prediction
from studies import guided
from studies.config import SearchConfig
from studies.guided import guided_search
from studies.ledger import Entry
from studies.search import search
from tests.studies.scenes import Row, ToyEvaluator, ToyPredictor, ToyResults, ToySpace, toy_config

ASKED_FILE = "asked.txt"
HOLD_FILE = "hold"
TRIALS = {"surrogate": 100, "guided": 20}
WORKERS_TRIALS = 15


def start(target: Callable[..., None], *arguments: object) -> multiprocessing.process.BaseProcess:
    """From a server that has everything imported: a process takes milliseconds, not seconds, to begin."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


class SlowEvaluator(ToyEvaluator):
    """Answers slowly, a batch at a time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def evaluate(self, architectures: Sequence[Row]) -> Prediction:
        time.sleep(self.seconds * len(architectures))
        return super().evaluate(architectures)


class SlowResults(ToyResults):
    """Answers slowly, and writes down what it has been asked.

    Args:
        seconds: that one evaluation takes.
        asked: the file to write to.
        begun: a file to create at the first evaluation.
        hold: a file while which exists no evaluation ends.
    """

    def __init__(self, seconds: float, asked: Path, begun: Path | None = None, hold: Path | None = None) -> None:
        super().__init__()
        self.seconds = seconds
        self.file, self.begun, self.hold = asked, begun, hold

    def _result(self, notation: str) -> dict[str, float]:
        with self.file.open("a") as stream:
            stream.write(f"{notation}\n")
        if self.begun is not None:
            self.begun.touch()
        time.sleep(self.seconds)
        while self.hold is not None and self.hold.exists():
            time.sleep(0.01)
        return super()._result(notation)


def work(storage: str, folder: Path, name: str, seconds: float, trials: int, seconds_to_propose: float = 0.0) -> None:
    """Be one of the workers of a guided search in a storage.

    Args:
        storage: journal file or URL.
        folder: of the workers' folders, and of what all of them were asked.
        name: of this worker.
        seconds: that one evaluation takes.
        trials: of all workers together.
        seconds_to_propose: that it takes to propose a batch, in one's turn.
    """
    propose = guided.propose

    def slowly(*arguments: Any, **options: Any) -> list[Entry]:
        time.sleep(seconds_to_propose)
        return propose(*arguments, **options)

    guided.propose = slowly  # of this process alone
    space, config = ToySpace(), worker_config(trials)
    results = SlowResults(seconds, folder / ASKED_FILE, folder / f"{name}.begun", folder / HOLD_FILE)
    options = {"to_text": space.format, "resume": True, "storage": storage, "figures": False}
    guided_search(config, space, results, ToyPredictor(), folder / name, **options)  # type: ignore[arg-type]


def worker_config(trials: int = WORKERS_TRIALS) -> SearchConfig:
    """What the workers search for."""
    return toy_config(trials=trials, evaluator="function", guide={"batch_size": 3, "generations": 2, "samples": 4})


def run(kind: str, folder: Path, seconds: float) -> None:
    """Begin, or resume, a search on predictions ("surrogate") or with real results ("guided").

    Args:
        kind: in TRIALS.
        folder: of the study, and of what its evaluator was asked.
        seconds: that all evaluations take together.
    """
    folder.mkdir(parents=True, exist_ok=True)
    out, space, trials = folder / "study", ToySpace(), TRIALS[kind]
    if kind == "surrogate":
        config = toy_config(trials=trials, population_size=5)
        search(config, space, SlowEvaluator(seconds / trials), out, resume=True, figures=False)
    else:
        config = toy_config(trials=trials, guide={"batch_size": 3, "generations": 2, "samples": 4})
        results = SlowResults(seconds / trials, folder / ASKED_FILE)
        guided_search(config, space, results, ToyPredictor(), out, to_text=space.format, resume=True, figures=False)
