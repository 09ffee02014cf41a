"""Fixed-point numbers against Python's integers, which have no width."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.sums import FixedPoint

KINDS = [FixedPoint(32), FixedPoint(1), FixedPoint(60)]


@pytest.mark.parametrize("numbers", KINDS, ids=repr)
@given(data=st.data())
def test_a_number_is_the_nearest_integer_of_its_unit(numbers, data):
    bounds = {"min_value": -numbers.largest, "max_value": numbers.largest, "exclude_min": True, "exclude_max": True}
    drawn = data.draw(st.lists(st.floats(**bounds), min_size=1, max_size=5))
    words = numbers.encode(drawn)
    for value, (word,) in zip(drawn, words, strict=True):
        signed = int(word) - (int(word) >> 63 << 64)
        assert abs(Fraction(value) * 2**numbers.fraction_bits - signed) <= Fraction(1, 2)
    np.testing.assert_allclose(numbers.decode(words), drawn, rtol=3e-16, atol=0.5 * 2.0**-numbers.fraction_bits)


@given(data=st.data())
def test_integers_add_up_modulo_two_to_the_64(data):
    a, b = (data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3)) for _ in range(2))
    first, second = (np.array(each, dtype=np.uint64) for each in (a, b))
    assert [int(word) for word in first + second] == [(x + y) % 2**64 for x, y in zip(a, b, strict=True)]
    assert [int(word) for word in first - second] == [(x - y) % 2**64 for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("numbers", KINDS, ids=repr)
@pytest.mark.parametrize("sign", [-1, 1])
def test_what_has_no_place_is_refused(numbers, sign):
    for value in (sign * numbers.largest, sign * np.inf, np.nan):
        with pytest.raises(ValueError, match="below"):
            numbers.encode([0.0, value])
    assert numbers.decode(numbers.encode([sign * numbers.largest / 2])) == sign * numbers.largest / 2


@pytest.mark.parametrize("wrong", [0, 63])
def test_widths_that_are_none(wrong):
    with pytest.raises(ValueError, match="bits"):
        FixedPoint(wrong)
