"""Texts in, calibrated quantiles of any objectives out. N texts, M objectives, Q quantiles, L text tokens."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from nasrlm.calibration import calibrated_levels
from nasrlm.checkpoint import Checkpoint
from nasrlm.decoding import cumulative_probabilities, quantiles
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
