"""Caches of texts and predictions, and the protocols of predictors. N texts, M objectives, Q quantiles, S samples."""

import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, Generic, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from converters.bulk import texts_of
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace

A = TypeVar("A", bound=Hashable)
P = TypeVar("P", bound="TextPredictor")

BAR_AFTER = 5.0  # seconds of writing texts; a batch takes minutes if networks are written in torch, else two seconds
UNCOMPRESSED = 2**26  # characters; enough for all of NAS-Bench-201, which an exhaustive search needs for every batch


class TextPredictor(Protocol):
    """The part of ``nasrlm.Predictor`` that a surrogate and the gate need."""

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction: ...


class SamplingPredictor(TextPredictor, Protocol):
    """The part of ``nasrlm.Predictor`` that a guided search needs."""

    @property
    def objectives(self) -> tuple[str, ...]: ...

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray: ...


@runtime_checkable
class JointPredictor(Protocol):
    """A predictor that can also sample dependent objectives jointly."""

    def joint_samples(
        self, texts: Sequence[str], objectives: Sequence[str], samples: int, *, seed: int
    ) -> FloatArray: ...


def of_space(predictor: P, space: SearchSpace[Any]) -> P:
    """Return what predicts networks of a space: a ``nasrlm.Predictor``'s ``of_space``; any other predictor itself."""
    return cast(P, predictor.of_space(space.address)) if hasattr(predictor, "of_space") else predictor


class TextMemory(Generic[A]):
    """A cache of the texts of architectures; a copy starts empty.

    Texts beyond ``UNCOMPRESSED`` are compressed (for DARTS from 10 KB to 1.6 KB), because a long search needs tens of
    thousands. Writing a text takes 2 to 9 ms, compressing it 0.1 ms, decompressing it 0.02 ms.

    Raises:
        ValueError: ``to_text`` is no function, or, when it is called, does not return a text.
    """

    def __init__(self, to_text: Callable[[A], str]) -> None:
        if not callable(to_text):
            raise ValueError(f"to_text: expected a function of an architecture, got {to_text!r:.60}.")
        self._to_text = to_text
        self._kept: dict[A, str | bytes] = {}
        self._architectures: dict[bytes, A] = {}  # by digests of their texts
        self._left = UNCOMPRESSED

    @classmethod
    def of(cls, to_text: Callable[[A], str]) -> Self:
        """Return a cache of ``to_text``, or ``to_text`` itself if it is one."""
        return to_text if isinstance(to_text, cls) else cls(to_text)

    def __call__(self, architecture: A) -> str:
        """Return the text of an architecture."""
        kept = self._kept.get(architecture)
        if kept is None:
            kept = self._to_text(architecture)
            self._keep(architecture, kept)
        return kept if isinstance(kept, str) else zlib.decompress(kept).decode()

    def write(self, architectures: Iterable[A], *, progress: bool = False) -> None:
        """Write the texts that are not in the cache yet, on several cores if that is faster.

        Raises:
            RuntimeError: a worker was killed, or could not start.
        """
        new = [architecture for architecture in dict.fromkeys(architectures) if architecture not in self._kept]
        texts = texts_of(self._to_text, new, progress=progress and bool(new))
        for architecture, text in zip(new, texts, strict=True):
            self._keep(architecture, text)

    def architecture_of(self, text: str) -> A:
        """Return the first architecture that was written as this text.

        Raises:
            KeyError: the text was not written here.
        """
        return self._architectures[digest_of(text)]

    def _keep(self, architecture: A, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f"to_text: expected a function that returns a text, got {text!r:.60} from it.")
        self._left -= len(text)
        self._architectures.setdefault(digest_of(text), architecture)
        self._kept[architecture] = text if self._left >= 0 else zlib.compress(text.encode())

    def __reduce__(self) -> tuple[type[Self], tuple[Callable[[A], str]]]:
        return type(self), (self._to_text,)


class PredictorMemory:
    """A cache of predictions: each objective of a text is predicted once for given quantiles. A copy starts empty."""

    def __init__(self, predictor: TextPredictor) -> None:
        self.predictor = predictor
        self._answers: dict[tuple[float, ...], _Answers] = {}  # by quantiles

    def __reduce__(self) -> tuple[type[Self], tuple[TextPredictor]]:
        return type(self), (self.predictor,)

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        """Return (N, M, Q) quantiles in own units, with one call for all texts that lack the same objectives."""
        names, levels = tuple(objectives), tuple(quantiles)
        answers = self._answers.setdefault(levels, _Answers(len(levels)))
        rows, columns = answers.places(texts, names)
        asked, first = np.unique(rows, return_index=True)
        unknown = ~answers.known[np.ix_(asked, columns)]
        for pattern in np.unique(unknown[unknown.any(axis=1)], axis=0):
            new = (unknown == pattern).all(axis=1)
            missing = [name for name, is_missing in zip(names, pattern, strict=True) if is_missing]
            predicted = self.predictor.predict([texts[index] for index in first[new]], missing, levels)
            answers.keep(asked[new], columns[pattern], predicted.values)
        return Prediction(names, levels, answers.values[np.ix_(rows, columns)])


class _Answers:
    """A growing array of predictions for up to R texts and C objectives.

    Attributes:
        values: (R, C, Q) predictions.
        known: (R, C) flags of the predictions that were made.
    """

    def __init__(self, num_quantiles: int) -> None:
        self.values: FloatArray = np.empty((0, 0, num_quantiles))
        self.known = np.zeros((0, 0), dtype=bool)
        self._rows: dict[bytes, int] = {}  # by digest
        self._columns: dict[str, int] = {}

    def places(self, texts: Sequence[str], objectives: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return (N,) rows of texts and (M,) columns of objectives, after adding those not seen before."""
        rows = [self._rows.setdefault(digest_of(text), len(self._rows)) for text in texts]
        columns = [self._columns.setdefault(name, len(self._columns)) for name in objectives]
        lacking = (self._lacking(0, len(self._rows)), self._lacking(1, len(self._columns)))
        if any(lacking):
            room = [(0, count) for count in lacking]
            self.values = np.pad(self.values, [*room, (0, 0)])
            self.known = np.pad(self.known, room)
        return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)

    def keep(self, rows: NDArray[np.intp], columns: NDArray[np.intp], values: FloatArray) -> None:
        """Store (n, m, Q) predictions."""
        self.values[np.ix_(rows, columns)] = values
        self.known[np.ix_(rows, columns)] = True

    def _lacking(self, axis: int, wanted: int) -> int:
        """Return by how much an axis has to grow; it at least doubles, so that growing stays cheap."""
        size = self.known.shape[axis]
        return max(wanted, 2 * size) - size if wanted > size else 0


def digest_of(text: str) -> bytes:
    """Return a short key for a text; texts of large networks have 10 KB each."""
    return blake2b(text.encode(), digest_size=16).digest()
