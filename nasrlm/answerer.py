"""Predictions of a model, with each objective predicted in one of three ways.

- Spelled: the decoder writes the number digit by digit, as learned in training.
- Read off: a readout, which is a kernel machine, compares the text with others (``nasrlm.model.readout``). Objectives
  that ``nasrlm.adaptation.adapt`` has added are predicted in this way.
- Added up: a cost is the sum of what the rows of the text cost (``nasrlm.model.cost_sum``).
  ``nasrlm.adaptation.refine`` chooses this for costs whose sums are closer to the labels. For a text with a row whose
  cost is unknown, the cost is still spelled.

N texts, M objectives, K objectives that are predicted in the same way, A readouts, Q levels, S samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

# Function that spells the objectives at (K,) columns of the M; returns (N, K, ...) predictions.
Spelled = Callable[[Tensor], Tensor]
# The same for objectives that are read off or added up, given their predicted distributions; a column is repeated if
# its objective has several readouts.
Read = Callable[[Tensor, Readings], Tensor]
ROWS_PER_SLICE = 16_384  # objectives x levels of a text decoded at a time, which takes up to half a gigabyte


class Levels(NamedTuple):
    """Calibrated levels, (M, Q) or (N, M, Q); separate for sums, because their errors differ from the model's."""

    of_model: Tensor  # of objectives that are spelled or read off
    of_sums: Tensor  # of objectives that are added up


@dataclass(frozen=True)
class Answerer:
    """Predicts the objectives of one model.

    Arguments and results are those of the functions in ``nasrlm.model.decoding``: objective ids are on the model's
    device, levels, values and results on the CPU. In joint samples, objectives that are read off or added up are
    independent of all others.

    Attributes:
        model: the model.
        engine: engine that encodes texts and decodes quantiles.
        common: the answerer with the encoder that all spaces share, if this one has the encoder of a single space;
            else None. Readouts need it, because they were fitted to states of the shared encoder.
        sums: row sums of the objectives that are added up, by objective id.
        preferred: (A,) flags of the readouts that were fitted to networks of the texts' space; None if it is not named.
    """

    model: RegressionLanguageModel
    engine: Engine
    common: Answerer | None
    sums: Mapping[int, CostSum]
    preferred: Tensor | None

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Levels) -> Tensor:
        """Compute (N, M, Q) quantiles, with the levels that belong to each objective's kind of prediction."""

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
        """Draw (N, M, S) joint samples.

        Args:
            encoded: N texts.
            objectives: (M,) ids in decoding order.
            levels: (N, M, S) uniform in (0, 1).
            known: (N, M) values that are given instead of drawn, NaN for the rest.
            temperature: below 1 sharpens the distributions, above 1 flattens them.
        """

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
        """Compute (N, M) natural logarithms of the probabilities of the code's numbers nearest to (N, M) values.

        Args:
            encoded: N texts.
            objectives: (M,) ids; in decoding order if ``joint``.
            values: (N, M) finite numbers.
            joint: condition each spelled number on the spelled ones before it; otherwise each is by itself.
        """

        def spelled(columns: Tensor) -> Tensor:
            return decoding.log_probabilities(self.model, encoded, objectives[columns], values[:, columns], joint)

        def read(columns: Tensor, readings: Readings) -> Tensor:
            low, high = self.model.code.bounds(values[:, columns].numpy())
            below, up_to = (readings.cumulative_probabilities(torch.from_numpy(end)) for end in (low, high))
            return (up_to - below).clamp(min=SMALLEST).log()

        return self._all(encoded, objectives, spelled, read)

    def cumulative_probabilities(self, encoded: Encoded, objectives: Tensor, values: Tensor) -> Tensor:
        """Compute the (N, M) probabilities P(objective <= value) of (N, M) finite values."""

        def spelled(columns: Tensor) -> Tensor:
            return decoding.cumulative_probabilities(self.model, encoded, objectives[columns], values[:, columns])

        def read(columns: Tensor, readings: Readings) -> Tensor:
            return readings.cumulative_probabilities(values[:, columns])

        return self._all(encoded, objectives, spelled, read)

    def reads(self, objectives: Tensor) -> bool:
        """Return whether all these objectives are read off the text."""
        readouts = self.model.readouts
        return readouts is not None and bool(readouts.hold(objectives).all())

    def adds_up(self, objectives: Tensor) -> bool:
        """Return whether all these objectives are predicted as sums."""
        return all(x in self.sums for x in objectives.tolist())

    def summed(self, texts: Sequence[str], objectives: Tensor, levels: Levels) -> tuple[NDArray[np.intp], Tensor]:
        """Compute quantiles of the texts whose rows all have a known cost in all M sums; these need no encoding.

        Returns:
            Indices of these texts among the N, and their quantiles, (texts, M, Q).
        """
        readings, known = read_sums([self.sums[x] for x in objectives.tolist()], texts)
        rows = known.all(dim=1)
        return np.flatnonzero(rows.numpy()), readings.quantiles(levels.of_sums)[rows]

    def summaries(self, encoded: Encoded) -> Tensor:
        """Return the (N, S) float64 summaries that readouts predict from, see ``Encoded.summaries``."""
        with torch.inference_mode():
            if self.common is not None:
                states = self.common.engine.encode(encoded.text_ids)
                return self.common.summaries(encoded._replace(states=states))
            return encoded.summaries(self.model.encoder.embedding)

    def _all(
        self, encoded: Encoded, objectives: Tensor, spelled: Spelled, read: Read, summed: Read | None = None
    ) -> Tensor:
        """Combine spelled, read and summed predictions to (N, M, ...), in the order of the objectives.

        If ``summed`` is None, ``read`` is used for sums too. Costs of texts that a sum does not cover are spelled.
        """
        readouts = self.model.readouts
        is_sum = torch.tensor([x in self.sums for x in objectives.tolist()], dtype=torch.bool)
        is_read = torch.zeros_like(is_sum) if readouts is None else readouts.hold(objectives).cpu()
        to_spell, to_read, to_add = (x.nonzero()[:, 0] for x in (~is_read & ~is_sum, is_read, is_sum))
        if len(to_spell) == len(objectives):
            return spelled(to_spell)
        answers: list[Tensor] = []
        if len(to_spell):
            answers.append(spelled(to_spell))
        if readouts is not None and len(to_read):
            with torch.inference_mode():
                summaries, ids = self.summaries(encoded), objectives[to_read]
                of, chosen = (places.cpu() for places in readouts.choice(summaries, ids, self.preferred))
                of_each = read(to_read[of], readouts(summaries, ids, encoded.texts).cpu())
                answers.append(of_each[torch.arange(len(chosen))[:, None], chosen])
        if len(to_add):
            sums = [self.sums[x] for x in objectives[to_add].tolist()]
            readings, known = read_sums(sums, encoded.texts)
            added = (summed or read)(to_add, readings)
            if not known.all():
                rest = spelled(to_add).cpu()
                added = torch.where(known.reshape(*known.shape, *[1] * (rest.ndim - 2)), added, rest)
            answers.append(added)
        return torch.cat(answers, dim=1)[:, torch.cat([to_spell, to_read, to_add]).argsort()]


def _in_slices(levels: Tensor, spell: Callable[[Tensor], Tensor]) -> Tensor:
    """Spell (N, K, Q) numbers at (N, K, Q) or (K, Q) levels, up to ``ROWS_PER_SLICE`` of each text at a time.

    Levels do not depend on each other, so the slices limit memory without changing results beyond rounding.
    """
    step = max(1, ROWS_PER_SLICE // levels.shape[-2])
    slices = [levels[..., start : start + step] for start in range(0, levels.shape[-1], step)]
    return torch.cat(list(map(spell, slices)), dim=-1)
