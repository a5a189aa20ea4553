"""Texts in, calibrated quantiles of any objectives out. N texts, M objectives, Q quantiles, L text tokens."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from nasrlm.calibration import calibrated_levels
from nasrlm.checkpoint import Checkpoint
from nasrlm.decoding import cumulative_probabilities, joint_samples, log_probabilities, quantiles
from nasrlm.objective import FloatArray
from nasrlm.prediction import Prediction
from nasrlm.tokenizer import PADDING_ID

TOKENS_PER_BATCH = 8192
ROWS_PER_BATCH = 4096  # number rows: texts x objectives x quantiles


class Predictor:
    """A checkpoint that answers.

    Example:
        >>> predictor = Predictor.from_pretrained()  # doctest: +SKIP
        >>> predictor.predict([onnx_text], ["accuracy@cifar10"]).median  # doctest: +SKIP
        array([[93.8]])
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._index = {name: index for index, name in enumerate(checkpoint.objectives)}

    @classmethod
    def from_pretrained(cls, folder: Path | str | None = None, device: str = "cpu") -> Predictor:
        """Load a checkpoint folder, or the released checkpoint. Raises CheckpointError if it is broken."""
        return cls(Checkpoint.from_pretrained(folder, device))

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names it knows, in the order of decoding."""
        return self.checkpoint.objectives

    def predict(
        self,
        texts: Sequence[str],
        objectives: Sequence[str] | None = None,
        quantiles: Sequence[float] = (0.1, 0.5, 0.9),
        progress: bool = False,
    ) -> Prediction:
        """Calibrated quantiles of each objective given the text.

        Args:
            texts: N texts, canonical ONNX text or whatever the checkpoint was trained on.
            objectives: names to decode; all if None.
            quantiles: ascending levels in (0, 1).
            progress: show a bar on stderr.

        Raises:
            ValueError: unknown or no objective, bad levels, empty text, or text longer than the model's context.
        """
        names = self.objectives if objectives is None else tuple(objectives)
        ids = self._objective_ids(names)
        values = np.empty((len(texts), len(names), len(quantiles)))
        prediction = Prediction(names, tuple(quantiles), values)
        levels = torch.from_numpy(calibrated_levels(self.checkpoint.calibration, names, quantiles))
        for rows, text_ids in self._batches(texts, len(names) * len(quantiles), progress):
            values[rows] = self._quantiles(text_ids, ids, levels)
        return prediction

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int = 0) -> FloatArray:
        """Draw from each objective's calibrated distribution given the text.

        Returns:
            (N, M, S) values in the objectives' own units.
        """
        names = tuple(objectives)
        levels = np.random.default_rng(seed).uniform(size=(len(texts), len(names), samples))
        for index, name in enumerate(names):
            drawn = levels[:, index].ravel()
            calibrated = calibrated_levels(self.checkpoint.calibration, [name], list(drawn))
            levels[:, index] = calibrated.reshape(len(texts), samples)
        ids = self._objective_ids(names)
        values = np.empty_like(levels)
        for rows, text_ids in self._batches(texts, len(names) * samples, progress=False):
            values[rows] = self._quantiles(text_ids, ids, torch.from_numpy(levels[rows]))
        return values

    def joint_samples(
        self,
        texts: Sequence[str],
        objectives: Sequence[str],
        samples: int,
        known: Mapping[str, Sequence[float]] | None = None,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> FloatArray:
        """Draw the objectives of a text together: each after those before it, in the order of decoding.

        Calibration is of one objective at a time and does not enter.

        Args:
            texts: N texts.
            objectives: M names, in any order.
            samples: S draws a text.
            known: values of some of the objectives, one a text or NaN; the others are drawn given these where
                they are decoded later. Accuracies are decoded first.
            temperature: below 1 sharpens the distribution of every token, above 1 flattens it.

        Returns:
            (N, M, S) values in the objectives' own units.
        """
        if temperature <= 0:
            raise ValueError(f"temperature: expected more than 0, got {temperature}.")
        asked = tuple(objectives)
        self._objective_ids(asked)
        names = tuple(sorted(asked, key=self._index.__getitem__))
        given = np.full((len(texts), len(names)), np.nan)
        for name, values in (known or {}).items():
            if name not in names or len(values) != len(texts):
                raise ValueError(
                    f"known: expected one value a text ({len(texts)}) of {', '.join(names)}, "
                    f"got {len(values)} of {name!r}."
                )
            given[:, names.index(name)] = values
        levels = np.random.default_rng(seed).uniform(size=(len(texts), len(names), samples))
        drawn = np.empty_like(levels)
        ids, model = self._objective_ids(names), self.checkpoint.model
        for rows, text_ids in self._batches(texts, len(names) * samples, progress=False):
            level, value = torch.from_numpy(levels[rows]), torch.from_numpy(given[rows])
            drawn[rows] = joint_samples(model, text_ids, ids, level, value, temperature).numpy()
        return drawn[:, [names.index(name) for name in asked]]

    def expected(self, texts: Sequence[str], objectives: Sequence[str] | None = None) -> FloatArray:
        """(N, M) means of the calibrated distributions, as the mean of 32 quantiles."""
        levels = (np.arange(32) + 0.5) / 32
        return self.predict(texts, objectives, quantiles=tuple(levels)).values.mean(axis=-1)

    def log_probabilities(
        self, texts: Sequence[str], objectives: Sequence[str], values: FloatArray, joint: bool = False
    ) -> FloatArray:
        """Natural logarithm of the model's probability of the numbers of its code that are nearest to ``values``.

        Args:
            texts: N texts.
            objectives: M names; in the order of decoding if ``joint``.
            values: (N, M) finite values in the objectives' own units.
            joint: each value given those before it; otherwise each given the text alone.

        Returns:
            (N, M); uncalibrated.
        """
        names = tuple(objectives)
        ids = self._objective_ids(names)
        if joint and sorted(names, key=self._index.__getitem__) != list(names):
            raise ValueError(
                f"objectives: expected the order of decoding, got {', '.join(names)}. `nasrlm info` lists it."
            )
        logs = np.empty(values.shape)
        for rows, text_ids in self._batches(texts, len(ids), progress=False):
            chosen = torch.from_numpy(values[rows])
            logs[rows] = log_probabilities(self.checkpoint.model, text_ids, ids, chosen, joint).numpy()
        return logs

    def cumulative_probabilities(
        self, texts: Sequence[str], objectives: Sequence[str], values: FloatArray
    ) -> FloatArray:
        """P(objective <= value) under the model itself, uncalibrated; (N, M), NaN where ``values`` is NaN."""
        ids = self._objective_ids(tuple(objectives))
        scores = np.empty(values.shape)
        known = np.isfinite(values)
        filled = torch.from_numpy(np.where(known, values, 1.0))
        for rows, text_ids in self._batches(texts, len(ids), progress=False):
            scores[rows] = cumulative_probabilities(self.checkpoint.model, text_ids, ids, filled[rows]).numpy()
        return np.where(known, scores, np.nan)

    def to_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of every text.

        Raises:
            ValueError: a text is empty or longer than the model's context; nothing is cut.
        """
        token_ids = self.checkpoint.tokenizer.to_ids(texts)
        longest = self.checkpoint.model.config.max_text_tokens
        for row, ids in enumerate(token_ids):
            if not 0 < len(ids) <= longest:
                start = texts[row][:40].replace("\n", " ")
                raise ValueError(
                    f"text: expected 1 to {longest} tokens, got {len(ids)} in row {row} ({start!r}…). "
                    "Use a model with a larger max_text_tokens."
                )
        return token_ids

    def _objective_ids(self, names: Sequence[str]) -> torch.Tensor:
        if not names:
            raise ValueError("objectives: expected one or more, got none. `nasrlm info` lists them.")
        for name in names:
            if name not in self._index:
                close = difflib.get_close_matches(name, self.objectives, n=3, cutoff=0.5)
                hint = f"Did you mean {', '.join(close)}?" if close else "`nasrlm info` lists them."
                raise ValueError(
                    f"objective: expected one of the checkpoint's {len(self.objectives)}, got {name!r}. {hint}"
                )
        device = self.checkpoint.model.decoder.positions.weight.device
        return torch.tensor([self._index[name] for name in names], device=device)

    def _batches(
        self, texts: Sequence[str], rows_per_text: int, progress: bool
    ) -> Iterator[tuple[NDArray[np.intp], torch.Tensor]]:
        """Row numbers and (N, L) padded ids, texts of similar length together."""
        token_ids = self.to_ids(texts)
        device = self.checkpoint.model.decoder.positions.weight.device
        order = sorted(range(len(texts)), key=lambda row: -len(token_ids[row]))  # the first of a batch is the longest
        with tqdm(total=len(texts), desc="predict", unit="text", disable=not progress) as bar:
            start = 0
            while start < len(order):
                size = max(1, min(ROWS_PER_BATCH // rows_per_text, TOKENS_PER_BATCH // len(token_ids[order[start]])))
                rows = np.array(order[start : start + size])
                yield rows, pad([token_ids[row] for row in rows]).to(device)
                start += size
                bar.update(len(rows))

    def _quantiles(self, text_ids: torch.Tensor, objectives: torch.Tensor, levels: torch.Tensor) -> FloatArray:
        values = quantiles(self.checkpoint.model, text_ids, objectives, levels.to(text_ids.device))
        return values.numpy()


def pad(token_ids: Sequence[Sequence[int]]) -> torch.Tensor:
    """(N, L) ids, shorter rows filled with padding."""
    longest = max(len(ids) for ids in token_ids)
    return torch.tensor([[*ids, *[PADDING_ID] * (longest - len(ids))] for ids in token_ids])
