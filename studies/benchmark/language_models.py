"""Methods that read text: the regression language model from scratch, from a checkpoint, or taught by a process.

A method returns (N,) scores of the N test rows of a task. Pool: train rows, of which few are labelled.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.pool import Pool, choose_diverse, make_pool
from nasrlm.arrays import FloatArray, standardised
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.model.config import Head, ModelConfig
from nasrlm.model.number import NumberCode
from nasrlm.predictor import Predictor
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from studies.benchmark.task import Rows, SpaceTable, Task
from studies.surrogates.features import feature_groups

ROWS_PER_VALID_ROW = 5  # one of this many labels is held out to choose the weights; the others are learned from
EVALUATIONS = 6
ENSEMBLE = 3
POOL = 2000  # most texts of the pool without labels, which ``taught`` labels by a process
NEVER_SECONDS = 1e9  # these short runs save no state to resume from
SMALL_MODEL = ModelConfig(width=128, num_heads=4, hidden=384, dropout=0.1, max_text_tokens=4096)
OF_ENSEMBLE = ModelConfig(width=96, num_heads=4, num_encoder_layers=3, hidden=256, dropout=0.1, max_text_tokens=4096)


@dataclass(frozen=True)
class LanguageModels:
    """The methods that train or adapt a language model.

    Attributes:
        steps: number of steps of every training.
        checkpoint: folder of a checkpoint to start from, for the methods that need one.
        device: where torch runs.
    """

    steps: int = 600
    checkpoint: Path | None = None
    device: str = "cpu"
    _pools: dict[Path, tuple[Pool, Rows]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def scratch(self, task: Task) -> FloatArray:
        """Train from random weights, with numbers predicted as digits."""
        return self._trained(task, self._config(SMALL_MODEL, task.seed), measured=False)

    def mse(self, task: Task) -> FloatArray:
        """Train the same encoder from random weights, with one number that is learned by its squared error."""
        return self._trained(task, self._config(replace(SMALL_MODEL, head="mse"), task.seed), measured=False)

    def ensemble(self, task: Task) -> FloatArray:
        """Return the mean of the standardised scores of ENSEMBLE smaller models from random weights."""
        seeds = [ENSEMBLE * task.seed + member for member in range(ENSEMBLE)]
        answers = [self._trained(task, self._config(OF_ENSEMBLE, seed), measured=False) for seed in seeds]
        mean: FloatArray = np.mean([standardised(answer) for answer in answers], axis=0)
        return mean

    def pretrained(self, task: Task) -> FloatArray:
        """Fine-tune all weights of the checkpoint."""
        config = self._fine_tuning(self._folder, task.seed)
        slower = config.model_copy(update={"learning_rate": 0.005, "embedding_learning_rate": 5e-4})
        return self._trained(task, slower, self._measured)

    def taught(self, task: Task) -> FloatArray:
        """Train with labels that a Gaussian process predicts for POOL rows, from the checkpoint if there is one."""
        config = self._config(SMALL_MODEL, task.seed)
        if self.checkpoint is not None:
            config = self._fine_tuning(self.checkpoint, task.seed)
        rows, known = _pool_rows(task), np.arange(len(task.train))
        fitted = GroupProcess(feature_groups(task.table.features(rows))).fit(known, task.labels)
        labels = np.concatenate([task.labels, fitted.expect(np.arange(len(known), len(rows)))])
        measured = self.checkpoint is not None and self._measured
        return self._answers(task, config, rows, labels, measured)

    def adapted(self, task: Task) -> FloatArray:
        """Adapt as ``nasrlm adapt``: the new objective is predicted from the checkpoint's states, which stay fixed."""
        pool = self._pool(task)
        return self._adapted(task, pool, np.arange(len(task.train)))

    def adapted_by_choice(self, task: Task) -> FloatArray:
        """Adapt to as many labels of rows chosen as by ``--choose active``, instead of the task's random ones."""
        pool, candidates = self._pool(task), np.arange(len(_pool_rows(task)))
        return self._adapted(task, pool, choose_diverse(pool, candidates, len(task.train)))

    def _adapted(self, task: Task, pool: Pool, labelled: Rows) -> FloatArray:
        """Adapt to the labels of these rows of ``_pool_rows``, and return the scores of the test rows."""
        objective = task.target.objective
        labels = np.full(len(pool.texts), np.nan)
        labels[labelled] = task.table.labels(objective)[_pool_rows(task)[labelled]]
        answer = Predictor(adapt(self._loaded, pool, objective, labels))
        tests = task.table.texts(task.test, self._measured)
        return answer.predict(tests, [objective], quantiles=(0.5,)).median[:, 0]

    def _pool(self, task: Task) -> Pool:
        """Return the checkpoint's pool of ``_pool_rows`` and, if there are fewer than POOL, of drawn architectures."""
        rows = _pool_rows(task)
        read, of_train = self._read(task.table)
        drawn = np.arange(len(of_train), len(read.texts))
        return read.pool_of(np.concatenate([np.searchsorted(of_train, rows), drawn]))

    def _read(self, table: SpaceTable) -> tuple[Pool, Rows]:
        """Return the checkpoint's pool of all train rows of a table, and these rows; cached.

        If there are fewer rows than POOL, the pool is filled up with architectures drawn like them.
        """
        if table.path not in self._pools:
            rows = np.flatnonzero((table.frame["split"] == "train").to_numpy())
            texts = table.texts(rows, self._measured) + table.drawn_texts(rows, POOL - len(rows), self._measured)
            pool = make_pool(self._loaded, texts, space=table.space.name)
            self._pools[table.path] = pool, rows
        return self._pools[table.path]

    @cached_property
    def _loaded(self) -> Checkpoint:
        return Checkpoint.from_pretrained(self._folder, self.device)

    @property
    def _measured(self) -> bool:
        """Whether the checkpoint reads measured text."""
        training = self._loaded.card.get("training", {})
        return bool(training.get("text", "measured") == "measured")

    @property
    def _folder(self) -> Path:
        if self.checkpoint is None:
            raise ValueError("methods that start from a checkpoint: expected --checkpoint, got none.")
        return self.checkpoint

    def _config(self, sizes: ModelConfig, seed: int) -> TrainConfig:
        head: Head = sizes.head
        return TrainConfig(
            out=Path("few labels"),
            model=sizes,
            num_digits=3,
            smoothing_digits=0.3 if head == "digits" else 0.0,
            batch_size=32,
            warmup_epochs=1,
            average_decay=0.99,
            bf16=True,
            device=self.device,
            save_every_seconds=NEVER_SECONDS,
            seed=seed,
        )

    def _fine_tuning(self, folder: Path, seed: int) -> TrainConfig:
        """Return the training config to fine-tune a checkpoint, with its sizes and number code."""
        config = self._config(ModelConfig(dropout=SMALL_MODEL.dropout), seed)
        return config.model_copy(update={"initial_checkpoint": folder, "num_digits": NumberCode().num_digits})

    def _trained(self, task: Task, config: TrainConfig, measured: bool) -> FloatArray:
        return self._answers(task, config, task.train, task.labels, measured)

    def _answers(self, task: Task, config: TrainConfig, rows: Rows, labels: FloatArray, measured: bool) -> FloatArray:
        """Train on labels of these rows, some of them held out to choose weights; return the test rows' scores."""
        objective = task.target.objective
        splits = np.where(np.arange(len(rows)) % ROWS_PER_VALID_ROW == 0, "valid", "train")
        spaces = np.full(len(rows), task.target.space)
        examples = Examples(task.table.texts(rows, measured), (objective,), labels[:, None], splits, spaces)
        lasting = config.of_steps(self.steps, int((splits == "train").sum()), evaluations=EVALUATIONS)
        with tempfile.TemporaryDirectory() as folder:
            chosen = lasting.model_copy(update={"out": Path(folder)})
            checkpoint = train(chosen, examples).checkpoint
        tests = task.table.texts(task.test, measured)
        return Predictor(checkpoint).predict(tests, [objective], quantiles=(0.5,)).median[:, 0]


def _pool_rows(task: Task) -> Rows:
    """Return the labelled rows, then up to POOL other train rows whose labels are not used."""
    others = np.setdiff1d(task.table.split("train", task.target.objective), task.train)
    return np.concatenate([task.train, np.random.default_rng((task.seed, 1)).permutation(others)[:POOL]])
