"""Answers of a model, each objective in one of three ways.

- Spelled: the decoder writes the number digit by digit, as training teaches it.
- Read off: a kernel machine compares the text with others (``nasrlm.model.readout``). Adapting adds objectives so.
- Added up: a cost is the sum of what the rows of the text cost (``nasrlm.model.cost_sum``). Refining makes costs so
  that are closer to their labels then; for a text with a row whose cost is not known, they are still spelled.

N texts, M objectives, K of them, Q levels, S samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.engines.engine import Engine
from nasrlm.model import decoding
from nasrlm.model.cost_sum import CostSum, read_sums
from nasrlm.model.encoded import Encoded
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.readout import SMALLEST, Readings

Spelled = Callable[[Tensor], Tensor]  # (K,) places among the M objectives, of those that are spelled, to (N, K, ...)
Read = Callable[[Tensor, Readings], Tensor]  # the same of others, given the distributions that are read off or added up
ROWS_PER_SLICE = 16_384  # objectives x levels of a text that are spelled at a time: up to half a gigabyte


class Levels(NamedTuple):
    """Calibrated levels, (M, Q) or (N, M, Q): the model and the sums err differently, so each has levels of its own."""

    of_model: Tensor  # for what is spelled or read off
    of_sums: Tensor  # for what is added up


@dataclass(frozen=True)
class Answerer:
    """Answers of one model. Arguments and results are those of ``nasrlm.model.decoding``, on the CPU.

    Drawn jointly, objectives that are read off or added up are independent of all others.

    Attributes:
        model: whose objectives these are.
        engine: encodes texts and spells quantiles.
        common: the answerer of the encoder that all spaces share, if this one's encoder is of a single space: readouts
            were fitted to what the shared encoder makes of a text, so it has to encode for them.
        sums: by objective id, of those that are added up.
    """

    model: RegressionLanguageModel
    engine: Engine
    common: Answerer | None = None
    sums: Mapping[int, CostSum] = field(default_factory=dict)

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Levels) -> Tensor:
        """(N, M, Q) at levels of each kind of answer."""

        def spelled(columns: Tensor) -> Tensor:
            asked = objectives[columns]
            of_model = levels.of_model[..., columns, :]
            return _in_slices(of_model, lambda some: self.engine.quantiles(encoded, asked, some))

        def read(columns: Tensor, readings: Readings) -> Tensor:
            return readings.quantiles(levels.of_model[..., columns, :])

        def summed(columns: Tensor, readings: Readings) -> Tensor:
            return readings.quantiles(levels.of_sums[..., columns, :])

        return self._all(encoded, objectives, spelled, read, summed)

    def joint_samples(
        self, encoded: Encoded, objectives: Tensor, levels: Tensor, known: Tensor, temperature: float
    ) -> Tensor:
        """(N, M, S) at (N, M, S) levels; ``known`` are (N, M) values or NaN."""

        def spelled(columns: Tensor) -> Tensor:
            asked, given = objectives[columns], known[:, columns]
            return _in_slices(
                levels[:, columns],
                lambda some: decoding.joint_samples(self.model, encoded, asked, some, given, temperature),
            )

        def read(columns: Tensor, readings: Readings) -> Tensor:
            given = known[:, columns, None]
            return torch.where(given.isfinite(), given, readings.quantiles(levels[:, columns], temperature))

        return self._all(encoded, objectives, spelled, read)

    def log_probabilities(self, encoded: Encoded, objectives: Tensor, values: Tensor, joint: bool) -> Tensor:
        """(N, M) of the numbers of the code nearest to (N, M) values."""

        def spelled(columns: Tensor) -> Tensor:
            return decoding.log_probabilities(self.model, encoded, objectives[columns], values[:, columns], joint)

        def read(columns: Tensor, readings: Readings) -> Tensor:
            low, high = self.model.code.bounds(values[:, columns].numpy())
            below, up_to = (readings.cumulative_probabilities(torch.from_numpy(end)) for end in (low, high))
            return (up_to - below).clamp(min=SMALLEST).log()

        return self._all(encoded, objectives, spelled, read)

    def cumulative_probabilities(self, encoded: Encoded, objectives: Tensor, values: Tensor) -> Tensor:
        """(N, M) of (N, M) values."""

        def spelled(columns: Tensor) -> Tensor:
            return decoding.cumulative_probabilities(self.model, encoded, objectives[columns], values[:, columns])

        def read(columns: Tensor, readings: Readings) -> Tensor:
            return readings.cumulative_probabilities(values[:, columns])

        return self._all(encoded, objectives, spelled, read)

    def reads(self, objectives: Tensor) -> bool:
        """Whether all these objectives are read off the text."""
        readouts = self.model.readouts
        return readouts is not None and bool(readouts.hold(objectives).all())

    def adds_up(self, objectives: Tensor) -> bool:
        """Whether all these objectives are predicted as sums."""
        return all(x in self.sums for x in objectives.tolist())

    def summed(self, texts: Sequence[str], objectives: Tensor, levels: Levels) -> tuple[NDArray[np.intp], Tensor]:
        """Answer the texts whose every row has a known cost in all M sums; they need not be encoded.

        Returns:
            (K,) places of these texts among the N, and their (K, M, Q) quantiles.
        """
        readings, known = read_sums([self.sums[x] for x in objectives.tolist()], texts)
        rows = known.all(dim=1)
        return np.flatnonzero(rows.numpy()), readings.quantiles(levels.of_sums)[rows]

    def summaries(self, encoded: Encoded) -> Tensor:
        """(N, S) float64, what readouts go by."""
        with torch.inference_mode():
            if self.common is not None:
                states = self.common.engine.encode(encoded.text_ids)
                return self.common.summaries(encoded._replace(states=states))
            return encoded.summaries(self.model.encoder.embedding)

    def _all(
        self, encoded: Encoded, objectives: Tensor, spelled: Spelled, read: Read, summed: Read | None = None
    ) -> Tensor:
        """Combine spelled, read and summed answers to (N, M, ...), in the order of the objectives.

        ``read`` also answers for sums if ``summed`` is None; a text that a sum does not know is spelled.
        """
        columns, readouts = torch.arange(len(objectives)), self.model.readouts
        adds_up = torch.tensor([x in self.sums for x in objectives.tolist()], dtype=torch.bool)
        is_read = torch.zeros_like(adds_up) if readouts is None else readouts.hold(objectives).cpu()
        parts = columns[~is_read & ~adds_up], columns[is_read], columns[adds_up]
        if len(parts[0]) == len(columns):
            return spelled(columns)
        answers: list[Tensor] = []
        if len(parts[0]):
            answers.append(spelled(parts[0]))
        if readouts is not None and len(parts[1]):
            with torch.inference_mode():
                readings = readouts(self.summaries(encoded), objectives[parts[1]], encoded.texts)
                answers.append(read(parts[1], readings.cpu()))
        if len(parts[2]):
            sums = [self.sums[x] for x in objectives[parts[2]].tolist()]
            readings, known = read_sums(sums, encoded.texts)
            answers.append((summed or read)(parts[2], readings))
            if not known.all():
                rest = spelled(parts[2]).cpu()
                answers[-1] = torch.where(known.reshape(*known.shape, *[1] * (rest.ndim - 2)), answers[-1], rest)
        return torch.cat(answers, dim=1)[:, torch.cat(parts).argsort()]


def _in_slices(levels: Tensor, spell: Callable[[Tensor], Tensor]) -> Tensor:
    """(N, K, Q) at (N, K, Q) or (K, Q) levels, ROWS_PER_SLICE of each text at a time: one level needs no other."""
    step = max(1, ROWS_PER_SLICE // levels.shape[-2])
    slices = [levels[..., start : start + step] for start in range(0, levels.shape[-1], step)]
    return torch.cat(list(map(spell, slices)), dim=-1)
