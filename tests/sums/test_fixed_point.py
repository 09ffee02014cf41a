"""Fixed-point numbers against Python's integers, which have no width."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.sums import FixedPoint

KINDS = [FixedPoint(64, 32), FixedPoint(64, 1), FixedPoint(128, 64), FixedPoint(128, 100)]


def as_integers(numbers, words):
    return [sum(int(word) << 64 * place for place, word in enumerate(row)) for row in words]


def as_words(numbers, integers):
    rows = [[integer >> 64 * place & 2**64 - 1 for place in range(numbers.n_words)] for integer in integers]
    return np.array(rows, dtype=np.uint64)


def values(numbers):
    return st.lists(
        st.floats(-numbers.largest, numbers.largest, exclude_min=True, exclude_max=True), min_size=1, max_size=5
    )


@pytest.mark.parametrize("numbers", KINDS, ids=repr)
@given(data=st.data())
def test_a_number_is_the_nearest_integer_of_its_unit(numbers, data):
    drawn = data.draw(values(numbers))
    try:
        words = numbers.encode(drawn)
    except ValueError:
        assert max(map(abs, drawn)) >= numbers.largest
        return
    for value, integer in zip(drawn, as_integers(numbers, words), strict=True):
        signed = integer - (integer >> numbers.bits - 1 << numbers.bits)
        assert abs(Fraction(value) * 2**numbers.fraction_bits - signed) <= Fraction(1, 2)
    back = numbers.decode(words)
    np.testing.assert_allclose(back, drawn, rtol=3e-16, atol=0.5 * 2.0**-numbers.fraction_bits)


@pytest.mark.parametrize("numbers", KINDS, ids=repr)
@given(data=st.data())
def test_sums_are_those_of_integers_modulo_the_ring(numbers, data):
    ring = 2**numbers.bits
    a, b = (data.draw(st.lists(st.integers(0, ring - 1), min_size=3, max_size=3)) for _ in range(2))
    total = numbers.add(as_words(numbers, a), as_words(numbers, b))
    assert as_integers(numbers, total) == [(x + y) % ring for x, y in zip(a, b, strict=True)]
    assert as_integers(numbers, numbers.negate(as_words(numbers, a))) == [-x % ring for x in a]


@pytest.mark.parametrize("numbers", KINDS, ids=repr)
@pytest.mark.parametrize("sign", [-1, 1])
def test_what_has_no_place_is_refused(numbers, sign):
    for value in (sign * numbers.largest, sign * np.inf, np.nan):
        with pytest.raises(ValueError, match="below"):
            numbers.encode([0.0, value])
    assert numbers.decode(numbers.encode([sign * numbers.largest / 2])) == sign * numbers.largest / 2


@pytest.mark.parametrize("wrong", [(32, 16), (64, 0), (64, 63), (128, 127)])
def test_widths_that_are_none(wrong):
    with pytest.raises(ValueError, match="bits"):
        FixedPoint(*wrong)
