"""Numbers as tokens: sign, exponent, mantissa digits, most significant first.

In that order, token sequences sort like their numbers (descending for negative ones), which makes quantiles exact: see
``decoding``. Every number has exactly one spelling.

T tokens of a number, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from nasrlm.callers import warn_caller

NEGATIVE, ZERO, POSITIVE = 0, 1, 2
NUM_SIGNS = 3
FIRST_DIGIT = 2  # its position; before it are sign and exponent
MAX_EXPONENT = 280  # float64 ends at 308, and numbers are scaled by powers of ten up to their number of digits


@dataclass(frozen=True)
class NumberCode:
    """A decimal floating-point code with ``num_digits`` digits and exponents ``min_exponent..max_exponent``.

    Order of ids: the three signs, the exponents ascending, the digits 0 to 9. Zero is written as the sign 0, the
    lowest exponent, and zeros.

    Example:
        >>> code = NumberCode(num_digits=3)
        >>> code.to_tokens(code.encode([93.52])[0])
        ['+', 'E1', '9', '3', '5']
        >>> code.decode(code.encode([93.55, -0.004, 0.0])).tolist()
        [93.6, -0.004, 0.0]
    """

    num_digits: int = 4
    min_exponent: int = -8
    max_exponent: int = 15

    def __post_init__(self) -> None:
        if not 1 <= self.num_digits <= 15 or not -MAX_EXPONENT <= self.min_exponent < self.max_exponent <= MAX_EXPONENT:
            raise ValueError(
                f"NumberCode: expected 1 to 15 digits and min_exponent < max_exponent within ±{MAX_EXPONENT}, "
                f"got {self}. float64 holds no more."
            )

    @property
    def length(self) -> int:
        """T, the number of tokens of a number."""
        return FIRST_DIGIT + self.num_digits

    @property
    def vocabulary_size(self) -> int:
        """V, the number of ids."""
        return NUM_SIGNS + self.num_exponents + 10

    @property
    def num_exponents(self) -> int:
        """Number of exponents."""
        return self.max_exponent - self.min_exponent + 1

    @property
    def first_digit_id(self) -> int:
        """The id of the digit 0."""
        return NUM_SIGNS + self.num_exponents

    @property
    def largest(self) -> float:
        """The largest number of the code."""
        mantissa, exponent = 10.0**self.num_digits - 1, self.max_exponent - self.num_digits + 1
        return float(_scaled(np.array(mantissa), np.array(exponent)))

    def encode(self, values: NDArray[np.float64] | list[float]) -> NDArray[np.int64]:
        """Round values to the nearest numbers of the code.

        Args:
            values: (N,) finite numbers. Those beyond the largest number saturate, and those below half the smallest
                become 0, with a warning that names one.

        Returns:
            (N, T) ids.

        Raises:
            ValueError: NaN or infinite values.
        """
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            position = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(
                f"NumberCode.encode: expected finite numbers, got {values[position]} at position {position}."
            )
        saturated = np.abs(values) > self.largest
        if saturated.any():
            warn_caller(
                f"NumberCode: {values[saturated][0]} is beyond ±{self.largest} and saturates. "
                "Raise max_exponent, or use another unit."
            )
        magnitude = np.minimum(np.abs(values), self.largest)
        exponent, mantissa = self._round(magnitude)
        zero = mantissa == 0
        vanished = zero & (values != 0)
        if vanished.any():
            warn_caller(
                f"NumberCode: {values[vanished][0]} is nearer to 0 than to 1e{self.min_exponent} and becomes 0. "
                "Lower min_exponent, or use another unit."
            )
        ids = np.empty((len(values), self.length), dtype=np.int64)
        ids[:, 0] = np.where(zero, ZERO, np.where(values < 0, NEGATIVE, POSITIVE))
        ids[:, 1] = NUM_SIGNS + np.where(zero, 0, exponent - self.min_exponent)
        for position in range(self.num_digits):
            power = 10 ** (self.num_digits - 1 - position)
            ids[:, FIRST_DIGIT + position] = self.first_digit_id + mantissa // power % 10
        return ids

    def decode(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the (...) numbers of (..., T) ids."""
        sign, exponent, mantissa = self.parts(ids)
        return sign * _scaled(mantissa.astype(np.float64), exponent - self.num_digits + 1)

    def parts(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return sign (-1, 0, 1), exponent and integer mantissa of (..., T) ids."""
        powers = 10 ** np.arange(self.num_digits - 1, -1, -1, dtype=np.int64)
        mantissa = ((ids[..., FIRST_DIGIT:] - self.first_digit_id) * powers).sum(axis=-1)
        return ids[..., 0] - ZERO, ids[..., 1] - NUM_SIGNS + self.min_exponent, mantissa

    def cells(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and largest magnitude that round to each number of (..., T) ids."""
        _, exponent, mantissa = self.parts(ids)
        step = _scaled(np.ones(exponent.shape), exponent - self.num_digits + 1)
        is_power = (mantissa == 10 ** (self.num_digits - 1)) & (exponent > self.min_exponent)
        below = np.where(is_power, step / 10, step)  # numbers below a power of ten are ten times as dense
        return mantissa * step - below / 2, mantissa * step + step / 2

    def bounds(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and largest value that round to the same number as each of (...) finite values."""
        ids = self.encode(values.ravel()).reshape(*values.shape, self.length)
        sign, exponent, mantissa = self.parts(ids)
        low, high = self.cells(ids)
        smallest = 10.0**self.min_exponent  # values up to half of it round to 0; ``cells`` of 0 reach less far
        is_smallest = (mantissa == 10 ** (self.num_digits - 1)) & (exponent == self.min_exponent)
        low = np.where(is_smallest, smallest / 2, low)
        high = np.where(mantissa == 0, smallest / 2, high)
        return np.where(sign > 0, low, -high), np.where(sign < 0, -low, high)

    def to_tokens(self, ids: NDArray[np.int64]) -> list[str]:
        """Return the tokens of one number in readable form."""
        exponents = [f"E{exponent}" for exponent in range(self.min_exponent, self.max_exponent + 1)]
        names = ["-", "0", "+", *exponents, *map(str, range(10))]
        return [names[token] for token in ids]

    @cached_property
    def grammar(self) -> torch.Tensor:
        """(3, T, V) bool: the ids allowed at each position after each sign; position 0 is the same for all signs."""
        allowed = torch.zeros(NUM_SIGNS, self.length, self.vocabulary_size, dtype=torch.bool)
        allowed[:, 0, :NUM_SIGNS] = True
        for sign in (NEGATIVE, POSITIVE):
            allowed[sign, 1, NUM_SIGNS : self.first_digit_id] = True
            allowed[sign, FIRST_DIGIT, self.first_digit_id + 1 :] = True
            allowed[sign, FIRST_DIGIT + 1 :, self.first_digit_id :] = True
        allowed[ZERO, 1, NUM_SIGNS] = True
        allowed[ZERO, FIRST_DIGIT:, self.first_digit_id] = True
        return allowed

    def _round(self, magnitude: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        with np.errstate(divide="ignore"):
            exponent = np.floor(np.log10(magnitude))
        exponent = np.clip(exponent, self.min_exponent, self.max_exponent).astype(np.int64)
        smallest = 10 ** (self.num_digits - 1)
        low = (_scaled(magnitude, self.num_digits - 1 - exponent) < smallest) & (exponent > self.min_exponent)
        exponent = np.where(low, exponent - 1, exponent)  # log10 may land on the wrong side of a power of ten
        mantissa = np.rint(_scaled(magnitude, self.num_digits - 1 - exponent)).astype(np.int64)
        carry = (mantissa >= 10**self.num_digits) & (exponent < self.max_exponent)
        exponent = np.where(carry, exponent + 1, exponent)
        mantissa = np.where(carry, smallest, mantissa)
        # Below the smallest normal number there is only zero.
        nearer_to_zero = magnitude < _scaled(np.array(0.5), np.array(self.min_exponent))
        return exponent, np.where(nearer_to_zero, 0, np.maximum(mantissa, smallest))


def _scaled(values: NDArray[np.float64], exponent: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ``values * 10**exponent``; divides for negative exponents, as only powers of ten above 1 are exact."""
    up, down = (10.0 ** np.maximum(x, 0) for x in (exponent, -exponent))
    return values * up / down  # one of the two is 1
