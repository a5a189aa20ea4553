"""Texts in, calibrated quantiles of any objectives out. N texts, M objectives, Q quantiles, L text tokens."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from tqdm import tqdm

from nasrlm.answerer import Answerer, Levels
from nasrlm.arguments import checked_levels, checked_names, checked_values, checked_whole, known_values
from nasrlm.arrays import FloatArray
from nasrlm.by_space import predict_by_space
from nasrlm.calibration import Calibration, calibrated_levels
from nasrlm.checkpoints.checkpoint import Checkpoint, checked_checkpoint
from nasrlm.encoded_texts import EncodedTexts
from nasrlm.engines.engine import EngineName, make_engine
from nasrlm.in_threads import in_threads
from nasrlm.model.cost_sum import CostSum
from nasrlm.model.encoded import Encoded
from nasrlm.named_spaces import Space, checked_space
from nasrlm.prediction import Prediction
from nasrlm.reader import TEXTS_PER_PLAN, TextBatch, TextReader, checked_texts, naming_rows

TEACH = "New ones are learned by `nasrlm adapt`; name the checkpoint that it wrote."
MIN_TEMPERATURE = 1e-4  # logarithms of probabilities are divided by it
MEMORY_BYTES = 256 * 2**20  # of encoder states, some 12,000 texts


class Predictor:
    """A checkpoint that answers.

    Args:
        checkpoint: its weights may still change: answers follow.
        engine: see ``nasrlm.engines.engine``; all but "torch" stay with the weights as they are now.
        memory_bytes: for what the encoder made of texts, so that they are read once for several questions, and as
            much for each encoder of a space; states that are kept stay as they are when weights change.

    Example:
        >>> predictor = Predictor.from_pretrained().of_space("nasbench201")  # doctest: +SKIP
        >>> predictor.predict([onnx_text], ["accuracy@cifar10"]).median  # doctest: +SKIP
        array([[93.8]])
    """

    def __init__(self, checkpoint: Checkpoint, engine: EngineName = "torch", memory_bytes: int = 0) -> None:
        checked_checkpoint(checkpoint, "Predictor")
        self.checkpoint = checkpoint
        self.objectives = checkpoint.objectives  # by default, in the order of decoding
        self._index = {name: index for index, name in enumerate(checkpoint.objectives)}
        self._engine_name, self._memory_bytes = engine, memory_bytes
        self._use_answerer()
        self._own: dict[str, Predictor] = {}  # of spaces with an encoder of their own
        self._of_all = self

    @classmethod
    def from_pretrained(
        cls, folder: Path | str | None = None, device: str = "cpu", engine: EngineName = "auto"
    ) -> Predictor:
        """Load a checkpoint folder, or the released checkpoint.

        Args:
            folder: of Hugging Face form.
            device: where torch runs.
            engine: "torch", "onnxruntime", its less exact "onnxruntime-int8", whose answers depend a little on what is
                asked about together, or "auto", which is ONNX Runtime for a compact model on a CPU.

        Raises:
            CheckpointError: it is broken.
            ValueError: the engine cannot run this model, or the device is not there.
        """
        return cls(Checkpoint.from_pretrained(folder, device), engine, MEMORY_BYTES)

    def of_space(self, space: str | Space) -> Predictor:
        """Return a predictor for networks of one space, with what was learned of that space and its calibration.

        It costs nothing, except for a space with an encoder of its own, which is loaded into an engine once.

        Args:
            space: a space or its name; for one that the checkpoint does not know, all predictions are guesses.

        Raises:
            ValueError: ``space`` is neither a space nor the name of one.
        """
        of_all = self._of_all
        space = checked_space(space, of_all.checkpoint.spaces)
        if space in of_all._own:
            return of_all._own[space]
        other = copy(of_all)
        other.checkpoint = of_all.checkpoint.of_space(space)
        other.objectives = of_all.objectives_of(space)
        if space in of_all.checkpoint.encoders:
            other._use_answerer(common=of_all._answerer)
            of_all._own[space] = other
        elif other.checkpoint.sums:
            other._answerer = replace(of_all._answerer, sums=other._sums())
        return other

    def objectives_of(self, space: str) -> tuple[str, ...]:
        """Names of what it has learned of a space, in the order of decoding; all if the space is not known."""
        return self._of_all.checkpoint.objectives_of(space)

    def predict(
        self,
        texts: Sequence[str],
        objectives: Sequence[str] | None = None,
        quantiles: Sequence[float] = (0.1, 0.5, 0.9),
        progress: bool = False,
        spaces: Sequence[str | Space] | None = None,
    ) -> Prediction:
        """Calibrated quantiles of each objective given the text.

        Args:
            texts: N texts, canonical ONNX text or whatever the checkpoint was trained on.
            objectives: names to decode; all that it has learned if None.
            quantiles: ascending levels in (0, 1).
            progress: show a bar on stderr.
            spaces: of the N texts, where they are of several; each is answered as ``of_space`` does, "" as of none.

        Returns:
            (N, M, Q) values in the objectives' own units, with names and levels.

        Raises:
            ValueError: unknown or no objective, bad levels, no list of texts, objectives or levels, empty text, or text
                longer than the model's context.
        """
        texts = checked_texts(texts)
        if spaces is not None:
            return predict_by_space(self._of_all, texts, spaces, objectives, quantiles, progress)
        names = self.objectives if objectives is None else checked_names(objectives)
        ids, quantiles = self._objective_ids(names), checked_levels(quantiles)
        levels = Levels(*[torch.from_numpy(calibrated_levels(x, names, quantiles)) for x in self._calibrations()])
        different = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        asked = self._of_all if self._answerer.reads(ids) else self  # readouts go by the encoder that all spaces share
        sums = (lambda some: asked._answerer.summed(some, ids, levels)) if asked._answerer.adds_up(ids) else None
        with naming_rows(lambda row: texts.index(list(different)[row])):
            values = asked._in_batches(
                list(different),
                (len(names), len(quantiles)),
                lambda encoded, _: asked._answerer.quantiles(encoded, ids, levels),
                asked._engine.num_workers,
                progress,
                summed=sums,
            )
        return Prediction(names, quantiles, values[[different[text] for text in texts]])

    def sample(
        self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int | np.random.Generator = 0
    ) -> FloatArray:
        """Draw from each objective's calibrated distribution given the text.

        Few draws begin with a wrong exponent and lie far off: take quantiles of them, or ``expected``, not the mean.
        The same seed gives the same numbers, but for rounding: that depends on the texts asked about together, on
        engine and processor, and beyond ``answerer.ROWS_PER_SLICE`` on the slices. Another number of samples gives
        other draws.

        Args:
            texts: N texts.
            objectives: M names.
            samples: S draws a text and objective.
            seed: or a generator, with which several calls have different draws.

        Returns:
            (N, M, S) values in the objectives' own units.

        Raises:
            ValueError: as ``predict`` does, no samples, or a negative seed.
        """
        samples, rng = checked_whole("samples", samples, 1), _generator(seed)
        names = checked_names(objectives)
        texts = checked_texts(texts)
        uniform = rng.uniform(size=(len(texts), len(names), samples))
        both = np.empty((2, *uniform.shape))
        for index, name in enumerate(names):
            drawn = uniform[:, index].ravel()
            for levels, calibration in zip(both, self._calibrations(), strict=True):
                calibrated = calibrated_levels(calibration, [name], list(drawn))
                levels[:, index] = calibrated.reshape(len(texts), samples)
        ids = self._objective_ids(names)

        def draw(encoded: Encoded, rows: NDArray[np.intp]) -> Tensor:
            return self._answerer.quantiles(encoded, ids, Levels(*torch.from_numpy(both[:, rows])))

        return self._in_batches(texts, uniform.shape[1:], draw, self._engine.num_workers)

    def joint_samples(
        self,
        texts: Sequence[str],
        objectives: Sequence[str],
        samples: int,
        known: Mapping[str, Sequence[float]] | None = None,
        temperature: float = 1.0,
        seed: int | np.random.Generator = 0,
    ) -> FloatArray:
        """Draw the objectives of a text together: each after those before it, in the order of decoding.

        Calibration is of one objective at a time and does not enter. A seed says as much as one of ``sample``.

        Args:
            texts: N texts.
            objectives: M names, in any order.
            samples: S draws a text.
            known: values of some of the objectives, one a text or NaN; the others are drawn given these where
                they are decoded later. Accuracies are decoded first.
            temperature: below 1 sharpens the distribution of every token, above 1 flattens it.
            seed: as ``sample`` takes one.

        Returns:
            (N, M, S) values in the objectives' own units.

        Raises:
            ValueError: as ``predict`` does, no samples, a negative seed, a temperature below MIN_TEMPERATURE, or known
                values that do not fit.
        """
        samples, rng = checked_whole("samples", samples, 1), _generator(seed)
        if not MIN_TEMPERATURE <= temperature < math.inf:
            raise ValueError(f"temperature: expected {MIN_TEMPERATURE} or more, got {temperature}.")
        asked = checked_names(objectives)
        self._objective_ids(asked)
        names = tuple(sorted(asked, key=self._index.__getitem__))
        texts = checked_texts(texts)
        given = known_values(known, texts, names)
        levels = rng.uniform(size=(len(texts), len(names), samples))
        ids = self._objective_ids(names)

        def draw(encoded: Encoded, rows: NDArray[np.intp]) -> Tensor:
            some = torch.from_numpy(levels[rows]), torch.from_numpy(given[rows])
            return self._answerer.joint_samples(encoded, ids, *some, temperature)

        drawn = self._in_batches(texts, levels.shape[1:], draw)
        return drawn[:, [names.index(name) for name in asked]]

    def log_probabilities(
        self, texts: Sequence[str], objectives: Sequence[str], values: ArrayLike, joint: bool = False
    ) -> FloatArray:
        """Natural logarithm of the model's probability of the numbers of its code that are nearest to ``values``.

        Args:
            texts: N texts.
            objectives: M names; in the order of decoding if ``joint``.
            values: (N, M) finite values in the objectives' own units.
            joint: each value given those before it; otherwise each given the text alone.

        Returns:
            (N, M); uncalibrated. Of a head that gives points 0 for the point, and minus infinity for another number.

        Raises:
            ValueError: as ``predict`` does, values that do not fit or are not finite, or another order if ``joint``.
        """
        names = checked_names(objectives)
        ids = self._objective_ids(names)
        texts = checked_texts(texts)
        values = checked_values(values, texts, names)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            value = values[row, column]
            raise ValueError(f"values: expected finite numbers, got {value} of {names[column]} in row {row}.")
        if joint and sorted(names, key=self._index.__getitem__) != list(names):
            raise ValueError(
                f"objectives: expected the order of decoding, got {', '.join(names)}. `nasrlm info` lists it."
            )

        def score(encoded: Encoded, rows: NDArray[np.intp]) -> Tensor:
            return self._answerer.log_probabilities(encoded, ids, torch.from_numpy(values[rows]), joint)

        return self._in_batches(texts, (len(ids),), score)

    def cumulative_probabilities(
        self, texts: Sequence[str], objectives: Sequence[str], values: ArrayLike
    ) -> FloatArray:
        """P(objective <= value) under the model itself, uncalibrated.

        Args:
            texts: N texts.
            objectives: M names.
            values: (N, M) in the objectives' own units, NaN where there is none.

        Returns:
            (N, M) in [0, 1], NaN where ``values`` is NaN.

        Raises:
            ValueError: as ``predict`` does, or values that do not fit.
        """
        names = checked_names(objectives)
        ids = self._objective_ids(names)
        texts = checked_texts(texts)
        values = checked_values(values, texts, names)
        known = ~np.isnan(values)
        filled = torch.from_numpy(np.nan_to_num(values))

        def score(encoded: Encoded, rows: NDArray[np.intp]) -> Tensor:
            return self._answerer.cumulative_probabilities(encoded, ids, filled[rows])

        return np.where(known, np.clip(self._in_batches(texts, (len(ids),), score), 0, 1), np.nan)

    def summaries(self, texts: Sequence[str], progress: bool = False) -> FloatArray:
        """(N, S) one vector that sums up each text, see ``Encoded.summaries``; the same for texts of any space."""
        width, asked = self.checkpoint.model.summary_width, self._of_all  # by the encoder that all spaces share

        def summarise(encoded: Encoded, _: NDArray[np.intp]) -> Tensor:
            return asked._answerer.summaries(encoded)

        return asked._in_batches(texts, (width,), summarise, asked._engine.num_workers, progress, rows_per_text=1)

    def to_ids(self, texts: Sequence[str], progress: bool = False) -> list[NDArray[np.int32]]:
        """Token ids of every text, arrays: millions of texts have to fit.

        Raises:
            ValueError: a text is empty, or longer than the model's context where its ``truncation`` is "error".
        """
        texts = checked_texts(texts)
        result: list[NDArray[np.int32]] = []
        with tqdm(total=len(texts), desc="tokens", unit="text", disable=not progress) as bar:
            for start in range(0, len(texts), TEXTS_PER_PLAN):
                some = texts[start : start + TEXTS_PER_PLAN]
                token_ids = self._reader.to_ids(some, range(start, start + len(some)))
                result += [np.array(ids, dtype=np.int32) for ids in token_ids]
                bar.update(len(some))
        return result

    def _use_answerer(self, common: Answerer | None = None) -> None:
        """Put the checkpoint's model into an engine, with a memory of its own."""
        model, memory = self.checkpoint.model, EncodedTexts(self._memory_bytes)
        self._engine = make_engine(self._engine_name, model)
        self._answerer = Answerer(model, self._engine, common, self._sums())
        sizes = model.config
        self._reader = TextReader(
            self.checkpoint.tokenizer, self._engine, memory, sizes.max_text_tokens, sizes.tokens_per_state
        )

    def _calibrations(self) -> tuple[Calibration, Calibration]:
        """Return the calibrated levels of what the model says, and those of sums, by objective."""
        return self.checkpoint.calibration, {name: each.levels for name, each in self.checkpoint.sums.items()}

    def _sums(self) -> dict[int, CostSum]:
        return {self._index[name]: each for name, each in self.checkpoint.sums.items()}

    def _objective_ids(self, names: Sequence[str]) -> Tensor:
        if not names:
            raise ValueError("objectives: expected one or more, got none. `nasrlm info` lists them.")
        for name in names:
            if name not in self._index:
                close = difflib.get_close_matches(name, self._index, n=3, cutoff=0.5)
                hint = f"Did you mean {', '.join(close)}?" if close else "`nasrlm info` lists them."
                raise ValueError(
                    f"objective: expected one of the checkpoint's {len(self._index)}, got {name!r}. {hint} {TEACH}"
                )
        device = self.checkpoint.model.device
        return torch.tensor([self._index[name] for name in names], device=device)

    def _in_batches(
        self,
        texts: Sequence[str],
        shape: Sequence[int],
        answer: Callable[[Encoded, NDArray[np.intp]], Tensor],
        num_workers: int = 1,
        progress: bool = False,
        *,
        rows_per_text: int | None = None,
        summed: Callable[[Sequence[str]], tuple[NDArray[np.intp], Tensor]] | None = None,
    ) -> FloatArray:
        """(N, *shape) answers to N texts, batch by batch.

        Args:
            answer: of a batch, given its encoded texts and the numbers of their rows.
            num_workers: batches answered at a time, each in a thread.
            rows_per_text: numbers that the decoder spells for a text, by which batches are sized; the answer's if None.
            summed: answers texts that need not be encoded, see ``Answerer.summed``.
        """
        texts = checked_texts(texts)
        values, is_left = np.empty((len(texts), *shape)), np.ones(len(texts), dtype=np.bool_)
        with tqdm(total=len(texts), desc="predict", unit="text", disable=not progress) as bar:
            if summed is not None:
                for start in range(0, len(texts), TEXTS_PER_PLAN):
                    rows, sums = summed(texts[start : start + TEXTS_PER_PLAN])
                    values[start + rows], is_left[start + rows] = sums.numpy(), False
                    bar.update(len(rows))
            left = np.flatnonzero(is_left)

            def work(batch: TextBatch) -> NDArray[np.intp]:
                rows = left[batch.rows]
                values[rows] = answer(self._reader.read(batch), rows).cpu().numpy()
                return rows

            batches = self._reader.batches([texts[row] for row in left.tolist()], rows_per_text or math.prod(shape))
            with naming_rows(left.__getitem__):
                for rows in in_threads(work, batches, num_workers):
                    bar.update(len(rows))
        return values


def _generator(seed: int | np.random.Generator) -> np.random.Generator:
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(checked_whole("seed", seed, 0))
