"""Predict calibrated quantiles of objectives from texts. N texts, M objectives, Q quantiles, S samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from tqdm import tqdm

from nasrlm.answerer import Answerer, Levels
from nasrlm.arguments import (
    check_number,
    checked_generator,
    checked_levels,
    checked_names,
    checked_values,
    checked_whole,
    known_values,
    refuse_unknown,
)
from nasrlm.arrays import FloatArray
from nasrlm.by_space import predict_by_space
from nasrlm.calibration import Calibration, calibrated_levels
from nasrlm.checkpoints.checkpoint import Checkpoint, check_checkpoint
from nasrlm.encoded_texts import EncodedTexts
from nasrlm.engines.engine import make_engine
from nasrlm.engines.names import EngineName
from nasrlm.in_batches import in_batches
from nasrlm.model.cost_sum import CostSum
from nasrlm.model.encoded import Encoded
from nasrlm.named_spaces import Space, checked_space, known_as, name_of
from nasrlm.prediction import Prediction
from nasrlm.reader import TEXTS_PER_PLAN, TextReader, checked_texts
from nasrlm.unreadable_texts import naming_rows
from nasrlm.unsuitable_texts import warn_of_lost_operations

MIN_TEMPERATURE = 1e-4  # logarithms of probabilities are divided by it
MEMORY_BYTES = 256 * 2**20  # of encoder states, some 12,000 texts


class Predictor:
    """A model that predicts from texts.

    Args:
        checkpoint: the model with its tokenizer and calibration. With the engine "torch", predictions follow later
            changes of its weights; other engines, and those of spaces with an encoder of their own, keep a copy.
        engine: what runs the model, see ``nasrlm.engines.engine``.
        memory_bytes: size of the cache of encoded texts, for each encoder. It is not updated when weights change.

    Raises:
        ValueError: ``checkpoint`` is not a Checkpoint, or the engine does not exist or cannot run its model.

    Example:
        >>> predictor = Predictor.from_pretrained().of_space("nasbench201")  # doctest: +SKIP
        >>> predictor.predict([onnx_text], ["accuracy@cifar10"]).median  # doctest: +SKIP
        array([[93.8]])
    """

    def __init__(self, checkpoint: Checkpoint, engine: EngineName = "torch", memory_bytes: int = 0) -> None:
        check_checkpoint("Predictor", checkpoint)
        self.checkpoint = checkpoint
        self.objectives = checkpoint.objectives  # by default, in the order of decoding
        self._index = {name: index for index, name in enumerate(checkpoint.objectives)}
        self._engine_name, self._memory_bytes = engine, memory_bytes
        self._space = ""  # of its networks, see ``of_space``
        self._reader, self._answerer = self._with_engine()
        self._own: dict[str, Predictor] = {}  # by space, for spaces that have an encoder
        self._of_all = self

    @classmethod
    def from_pretrained(
        cls, folder: Path | str | None = None, device: str = "cpu", engine: EngineName = "auto"
    ) -> Predictor:
        """Load a checkpoint.

        Args:
            folder: the checkpoint's folder, in the form of Hugging Face; None for the released checkpoint.
            device: the torch device.
            engine: "torch", "onnxruntime", "onnxruntime-int8", which is less exact and whose predictions depend
                slightly on the other texts of a call, or "auto": ONNX Runtime for a compact model on a CPU, else torch.

        Raises:
            CheckpointError: the folder is missing or broken.
            ValueError: the engine cannot run this model, or the device does not exist.
        """
        return cls(Checkpoint.from_pretrained(folder, device), engine, MEMORY_BYTES)

    def of_space(self, space: str | Space) -> Predictor:
        """Return a predictor for networks of one space, with the calibration, encoder and readouts of that space.

        It is cheap, except for the first call for a space that has an encoder, which is loaded into an engine.

        Args:
            space: a space or its name. All predictions for a space that the checkpoint does not know are guesses.

        Raises:
            ValueError: ``space`` is neither a space nor the name of one.
        """
        of_all = self._of_all
        space = checked_space(space, of_all.checkpoint.spaces)
        if space in of_all._own:
            return of_all._own[space]
        other = copy(of_all)
        other._space = space
        other.checkpoint = of_all.checkpoint.of_space(space)
        other.objectives = of_all.objectives_of(space)
        other._answerer = replace(of_all._answerer, sums=other._sums(), preferred=other._preferred())
        if space in of_all.checkpoint.encoders:
            other._reader, other._answerer = other._with_engine(common=other._answerer)
            of_all._own[space] = other
        return other

    def objectives_of(self, space: str | Space) -> tuple[str, ...]:
        """Return the objectives that were learned in a space, in decoding order; all for an unknown space.

        Raises:
            ValueError: ``space`` is neither a space nor the name of one.
        """
        return self._of_all.checkpoint.objectives_of(name_of(space))

    def predict(
        self,
        texts: Iterable[str],
        objectives: Sequence[str] | None = None,
        quantiles: Iterable[float] = (0.1, 0.5, 0.9),
        progress: bool = False,
        spaces: Sequence[str | Space] | None = None,
    ) -> Prediction:
        """Predict calibrated quantiles of each objective, given the text.

        Args:
            texts: N texts of the kind that the checkpoint was trained on: ``nasrlm.to_measured_text`` for the spaces
                of the released one.
            objectives: M names; all learned objectives if None.
            quantiles: ascending levels in (0, 1); not calibrated below 0.01 and above 0.99, see docs/limits.md.
            progress: show a bar on stderr.
            spaces: the spaces of the N texts, "" where unknown; each text is predicted as by ``of_space``.

        Returns:
            (N, M, Q) values in the objectives' own units, with names and levels.

        Raises:
            ValueError: an objective is unknown, levels are not ascending in (0, 1), ``texts`` or ``objectives`` is not
                a list, a text is empty or longer than the model's context, or there is not one space for each text.
        """
        texts = checked_texts(texts)
        if spaces is not None:
            return predict_by_space(self._of_all, texts, spaces, objectives, quantiles, progress)
        names = self.objectives if objectives is None else checked_names(objectives)
        ids, quantiles = self._objective_ids(names), checked_levels(quantiles)
        warn_of_lost_operations(texts, self._space, self.checkpoint.measured_spaces)
        levels = Levels(*[torch.from_numpy(calibrated_levels(x, names, quantiles)) for x in self._calibrations()])
        different = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        reader, answerer = self._reader, self._answerer
        if answerer.reads(ids):  # readouts use the encoder that all spaces share
            reader, answerer = self._of_all._reader, answerer.common or answerer
        sums = (lambda some: answerer.summed(some, ids, levels)) if answerer.adds_up(ids) else None
        with naming_rows(lambda row: texts.index(list(different)[row])):
            values = in_batches(
                reader,
                list(different),
                (len(names), len(quantiles)),
                lambda encoded, _: answerer.quantiles(encoded, ids, levels),
                answerer.engine.num_workers,
                progress,
                summed=sums,
            )
        return Prediction(names, quantiles, values[[different[text] for text in texts]])

    def sample(
        self, texts: Iterable[str], objectives: Sequence[str], samples: int, seed: int | np.random.Generator = 0
    ) -> FloatArray:
        """Draw samples from the calibrated distribution of each objective, given the text.

        The same seed and number of samples give the same values up to rounding, which depends on the other texts of
        the call, the engine and the processor.

        Args:
            texts: N texts.
            objectives: M names.
            samples: S, the number of samples for each text and objective.
            seed: a seed, or a generator if several calls should draw different samples.

        Returns:
            (N, M, S) values in the objectives' own units.

        Raises:
            ValueError: as ``predict``; or ``samples`` is below 1, or the seed negative.
        """
        samples, rng = checked_whole("samples", samples, 1), checked_generator(seed)
        names, texts = checked_names(objectives), checked_texts(texts)
        uniform = rng.uniform(size=(len(texts), len(names), samples))
        both = np.empty((2, *uniform.shape))
        for index, name in enumerate(names):
            for levels, calibration in zip(both, self._calibrations(), strict=True):
                levels[:, index] = calibrated_levels(calibration, [name], uniform[:, index])[0]
        ids = self._objective_ids(names)

        def draw(encoded: Encoded, rows: NDArray[np.intp]) -> Tensor:
            return self._answerer.quantiles(encoded, ids, Levels(*torch.from_numpy(both[:, rows])))

        return in_batches(self._reader, texts, uniform.shape[1:], draw, self._answerer.engine.num_workers)

    def joint_samples(
        self,
        texts: Iterable[str],
        objectives: Sequence[str],
        samples: int,
        known: Mapping[str, Iterable[float]] | None = None,
        temperature: float = 1.0,
        seed: int | np.random.Generator = 0,
    ) -> FloatArray:
        """Draw joint samples of the objectives: each given those that are decoded before it, accuracies first.

        Samples are not calibrated, because calibration is for one objective at a time.

        Args:
            texts: N texts.
            objectives: M names, in any order.
            samples: S, the number of samples for each text.
            known: N values for some of the objectives, or NaN; objectives decoded later are drawn given these.
            temperature: sharpens the distribution of every token if below 1, flattens it if above.
            seed: as for ``sample``.

        Returns:
            (N, M, S) values in the objectives' own units.

        Raises:
            ValueError: as ``sample``; or the temperature is below MIN_TEMPERATURE, or ``known`` has another length or
                impossible values.
        """
        samples, rng = checked_whole("samples", samples, 1), checked_generator(seed)
        check_number("temperature", temperature, MIN_TEMPERATURE)
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

        drawn = in_batches(self._reader, texts, levels.shape[1:], draw)
        return drawn[:, [names.index(name) for name in asked]]

    def log_probabilities(
        self, texts: Iterable[str], objectives: Sequence[str], values: ArrayLike, joint: bool = False
    ) -> FloatArray:
        """Compute the model's uncalibrated log-probability of each value, rounded to a number that it can write.

        This includes unlikely signs and exponents, which quantiles and samples leave out.

        Args:
            texts: N texts.
            objectives: M names; in decoding order if ``joint``.
            values: (N, M) finite values in the objectives' own units.
            joint: condition each value on those before it, otherwise on the text alone.

        Returns:
            (N, M) natural logarithms. A head without distribution has 0 for its prediction, minus infinity elsewhere.

        Raises:
            ValueError: as ``predict``; or values have another shape or are not finite, or ``joint`` objectives have
                another order.
        """
        names, texts = checked_names(objectives), checked_texts(texts)
        ids = self._objective_ids(names)
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

        return in_batches(self._reader, texts, (len(ids),), score)

    def cumulative_probabilities(
        self, texts: Iterable[str], objectives: Sequence[str], values: ArrayLike
    ) -> FloatArray:
        """Compute the model's uncalibrated probability that each objective is at most the value.

        Args:
            texts: N texts.
            objectives: M names.
            values: (N, M) in the objectives' own units; may have NaN.

        Returns:
            (N, M) in [0, 1], NaN where ``values`` is NaN.

        Raises:
            ValueError: as ``predict``; or values have another shape.
        """
        names, texts = checked_names(objectives), checked_texts(texts)
        ids = self._objective_ids(names)
        values = checked_values(values, texts, names)
        known = ~np.isnan(values)
        filled = torch.from_numpy(np.nan_to_num(values))

        def score(encoded: Encoded, rows: NDArray[np.intp]) -> Tensor:
            return self._answerer.cumulative_probabilities(encoded, ids, filled[rows])

        return np.where(known, np.clip(in_batches(self._reader, texts, (len(ids),), score), 0, 1), np.nan)

    def summaries(self, texts: Iterable[str], progress: bool = False) -> FloatArray:
        """Compute an (N, summary_width) vector for each text, see ``Encoded.summaries``; it ignores the space."""
        width, asked = self.checkpoint.model.summary_width, self._of_all  # the encoder that all spaces share

        def summarise(encoded: Encoded, _: NDArray[np.intp]) -> Tensor:
            return asked._answerer.summaries(encoded)

        num_workers = asked._answerer.engine.num_workers
        return in_batches(
            asked._reader, checked_texts(texts), (width,), summarise, num_workers, progress, rows_per_text=1
        )

    def to_ids(self, texts: Iterable[str], progress: bool = False) -> list[NDArray[np.int32]]:
        """Return the token ids of every text, as arrays so that millions of texts fit into memory.

        Raises:
            ValueError: a text is empty, or longer than the model's context and its ``truncation`` is "error".
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

    def _with_engine(self, common: Answerer | None = None) -> tuple[TextReader, Answerer]:
        """Load the checkpoint's model into an engine; return what reads texts with it, and what predicts from them."""
        model, memory = self.checkpoint.model, EncodedTexts(self._memory_bytes)
        engine, sizes = make_engine(self._engine_name, model), model.config
        reader = TextReader(self.checkpoint.tokenizer, engine, memory, sizes.max_text_tokens, sizes.tokens_per_state)
        return reader, Answerer(model, engine, common, self._sums(), self._preferred())

    def _calibrations(self) -> tuple[Calibration, Calibration]:
        """Return the calibrations of the model and of cost sums, by objective."""
        return self.checkpoint.calibration, {name: each.levels for name, each in self.checkpoint.sums.items()}

    def _sums(self) -> dict[int, CostSum]:
        return {self._index[name]: each for name, each in self.checkpoint.sums.items()}

    def _preferred(self) -> Tensor | None:
        """Return (A,) flags of the readouts that were fitted to networks of this space; None if there are none."""
        spaces = self.checkpoint.readout_spaces
        space = known_as(self._space, dict.fromkeys(spaces))
        if not space or space not in spaces:
            return None
        return torch.tensor([other == space for other in spaces], device=self.checkpoint.model.device)

    def _objective_ids(self, names: Sequence[str]) -> Tensor:
        if not names:
            raise ValueError("objectives: expected one or more, got none. `nasrlm info` lists them.")
        for name in names:
            refuse_unknown(name, self._index)
        return torch.tensor([self._index[name] for name in names], device=self.checkpoint.model.device)
