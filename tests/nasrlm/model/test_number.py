"""Numbers survive their spelling."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasrlm.model.number import NEGATIVE, NUM_SIGNS, POSITIVE, ZERO, NumberCode
from tests.nasrlm.scenes import CODE, all_spellings

codes = st.builds(NumberCode, st.integers(1, 15))
magnitudes = st.floats(1e-8, 9e15)
numbers = st.one_of(magnitudes, magnitudes.map(lambda x: -x), st.just(0.0))


@st.composite
def spelled(draw: st.DrawFn) -> tuple[NumberCode, list[int]]:
    """A code and a valid spelling in it."""
    code = draw(codes)
    sign = draw(st.sampled_from([NEGATIVE, POSITIVE]))
    exponent = draw(st.integers(0, code.num_exponents - 1))
    digits = [draw(st.integers(1, 9)), *[draw(st.integers(0, 9)) for _ in range(code.num_digits - 1)]]
    return code, [sign, NUM_SIGNS + exponent, *[code.first_digit_id + digit for digit in digits]]


@given(codes, numbers)
def test_numbers_round_to_the_nearest(code: NumberCode, value: float) -> None:
    rounded = code.decode(code.encode([value]))[0]
    nearest = float(f"{value:.{code.num_digits - 1}e}")
    assert abs(rounded - value) <= abs(nearest - value) + 4e-16 * abs(value)


@given(spelled())
def test_a_spelling_survives_a_round_trip(spelling: tuple[NumberCode, list[int]]) -> None:
    code, ids = spelling
    assert code.encode(code.decode(np.array([ids]))).tolist() == [ids]


@pytest.mark.parametrize("num_digits", range(1, 16))
def test_powers_of_ten_and_all_nines_survive_a_round_trip(num_digits: int) -> None:
    code = NumberCode(num_digits)
    for digits in ([1, *[0] * (num_digits - 1)], [9] * num_digits):
        ids = np.array(
            [
                [POSITIVE, NUM_SIGNS + exponent, *[code.first_digit_id + digit for digit in digits]]
                for exponent in range(code.num_exponents)
            ]
        )
        np.testing.assert_array_equal(code.encode(code.decode(ids)), ids)


@given(codes, numbers, numbers)
def test_spellings_sort_like_their_numbers(code: NumberCode, first: float, second: float) -> None:
    a, b = code.encode([abs(first), abs(second)]).tolist()
    assert (a <= b) == (code.decode(np.array([a]))[0] <= code.decode(np.array([b]))[0])
    a, b = code.encode([-abs(first), -abs(second)]).tolist()
    if a[0] == b[0] == NEGATIVE:
        assert (a <= b) == (code.decode(np.array([a]))[0] >= code.decode(np.array([b]))[0])


@given(codes, numbers)
def test_a_number_lies_between_the_ends_of_its_cell(code: NumberCode, value: float) -> None:
    ids = code.encode([value])
    low, high = code.cells(ids)
    assert low[0] * (1 - 1e-12) <= abs(value) <= high[0] * (1 + 1e-12)


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (9.9996, "+ E1 1 0 0 0"),
        (99.9951, "+ E2 1 0 0 0"),
        (9.9994, "+ E0 9 9 9 9"),
        (-0.00099996, "- E-3 1 0 0 0"),
        (0.0, "0 E-8 0 0 0 0"),
        (-0.0, "0 E-8 0 0 0 0"),
        (4.9e-9, "0 E-8 0 0 0 0"),
        (-5.1e-9, "- E-8 1 0 0 0"),
        (9.999e15, "+ E15 9 9 9 9"),
    ],
)
@pytest.mark.filterwarnings("ignore:NumberCode. 4.9e-09 is nearer")
def test_spellings_at_the_edges(value: float, tokens: str) -> None:
    code = NumberCode()
    assert " ".join(code.to_tokens(code.encode([value])[0])) == tokens


def test_what_is_nearer_to_zero_than_to_the_smallest_number_becomes_zero_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"NumberCode: 0\.46 is nearer to 0 than to 1e0 and becomes 0\. Lower min_"):
        ids = CODE.encode([0.46, 0.5, 0.54, -0.46, -0.97])
    assert CODE.decode(ids).tolist() == [0.0, 1.0, 1.0, 0.0, -1.0]


def test_the_largest_number_by_default_holds_any_count_or_byte() -> None:
    assert NumberCode().largest == 9.999e15


@pytest.mark.parametrize("num_digits", range(1, 16))
def test_the_ends_of_the_range_are_numbers_of_the_code(num_digits: int) -> None:
    code = NumberCode(num_digits, min_exponent=-3, max_exponent=4)
    ends = [code.largest, -code.largest, 1e-3]
    with warnings.catch_warnings(action="error"):
        assert code.decode(code.encode(ends)).tolist() == ends


def test_too_large_a_number_saturates_with_a_warning_that_names_it() -> None:
    with pytest.warns(UserWarning, match=r"NumberCode: -120\.0 is beyond ±99\.0 and saturates\. Raise max_exponent"):
        ids = CODE.encode([5.0, -120.0])
    assert CODE.decode(ids).tolist() == [5.0, -99.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match=f"expected finite numbers, got {value} at position 1"):
        CODE.encode([1.0, value])


@pytest.mark.parametrize("arguments", [(0,), (16,), (4, 3, 3), (4, -281), (4, -8, 281)])
def test_codes_that_cannot_be_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"NumberCode: expected 1 to 15 digits and min_exponent < max_exponent within ±280, got"
    ):
        NumberCode(*arguments)


def test_the_grammar_admits_exactly_the_spellings() -> None:
    grammar = CODE.grammar
    admitted = {
        (sign, *rest)
        for sign in range(NUM_SIGNS)
        for rest in itertools.product(*[grammar[sign, position].nonzero()[:, 0].tolist() for position in (1, 2, 3)])
    }
    assert admitted == {tuple(ids) for ids in all_spellings().tolist()}
    assert grammar[:, 0].nonzero()[:, 1].unique().tolist() == [NEGATIVE, ZERO, POSITIVE]


def test_every_number_has_one_spelling() -> None:
    values = CODE.decode(all_spellings().numpy())
    assert len(np.unique(values)) == len(values) == 361
    assert (np.diff(values) > 0).all()


@pytest.mark.filterwarnings("ignore:NumberCode")
@pytest.mark.parametrize("value", [0.0, 4e-9, 9.3e-9, 1e-8, -1e-8, 1.5e-8, 1.0, 9.9996])
def test_what_lies_within_bounds_rounds_to_the_same_number(value: float) -> None:
    code = NumberCode()
    (low,), (high,) = code.bounds(np.array([value]))
    number = code.decode(code.encode(np.array([value])))[0]
    width = high - low
    inside, outside = low + width * np.array([0.001, 0.999]), low + width * np.array([-0.001, 1.001])
    assert code.decode(code.encode(inside)).tolist() == [number, number]
    assert number not in code.decode(code.encode(outside))


def test_numbers_of_any_size_round_without_a_warning() -> None:
    code = NumberCode(num_digits=15, min_exponent=-280, max_exponent=280)
    values = np.array([1.5e-280, 2.5e-160, -3.5e160, 4.5e280])
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(code.decode(code.encode(values)), values, rtol=1e-15)
