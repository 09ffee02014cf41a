import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from datacollab.risk.attacks import one_run_epsilon

COUNTS = st.integers(1, 60).flatmap(
    lambda m: st.integers(1, m).flatmap(lambda r: st.tuples(st.integers(0, r), st.just(r), st.just(m)))
)


def naive_p_value(epsilon, v, r, m, delta):
    """The theorem, term by term."""
    B = stats.binom(r, math.exp(epsilon) / (math.exp(epsilon) + 1))
    tail = sum(B.pmf(k) for k in range(v, r + 1))
    steepest = max((sum(B.pmf(k) for k in range(v - i, v)) / i for i in range(1, v + 1)), default=0.0)
    return min(1.0, tail + 2 * m * delta * steepest)


@pytest.mark.parametrize(
    ("correct", "guesses", "epsilon"),
    [(1000, 1000, 5.782), (900, 1000, 2.021), (600, 1000, 0.297), (500, 1000, 0.0), (100, 100, 3.465)],
)
def test_reference_values(correct, guesses, epsilon):
    assert round(one_run_epsilon(correct, guesses, 1000, 1e-5), 3) == epsilon


def test_the_term_with_delta_counts():
    """Several public copies of the formula lack it."""
    without = one_run_epsilon(1000, 1000, 1000, 0.0)
    assert without == pytest.approx(-math.log(0.05 ** (-1 / 1000) - 1), abs=1e-6)  # q^1000 = 0.05
    assert without > 5.80
    assert one_run_epsilon(1000, 1000, 100_000, 1e-5) < 4


@given(counts=COUNTS, delta=st.sampled_from([0.0, 1e-6, 1e-3]))
def test_the_bound_is_where_the_theorem_stops_to_refute(counts, delta):
    epsilon = one_run_epsilon(*counts, delta)
    if epsilon > 0:
        assert naive_p_value(epsilon, *counts, delta) == pytest.approx(0.05, abs=1e-6)
    else:
        assert naive_p_value(0.0, *counts, delta) >= 0.05 - 1e-9


@given(counts=COUNTS)
def test_more_right_guesses_show_no_less(counts):
    v, r, m = counts
    bounds = [one_run_epsilon(right, r, m, 1e-5) for right in range(max(0, v - 1), v + 1)]
    assert bounds == sorted(bounds)


def test_more_confidence_shows_less():
    bounds = [one_run_epsilon(90, 100, 100, 1e-5, confidence) for confidence in (0.5, 0.9, 0.99)]
    assert bounds == sorted(bounds, reverse=True)


def test_guessing_blindly_shows_nothing_nineteen_times_in_twenty(rng):
    shown = [one_run_epsilon(int(right), 100, 100, 1e-5) > 0 for right in rng.binomial(100, 0.5, size=400)]
    assert np.mean(shown) < 0.08


@pytest.mark.parametrize(
    "arguments", [(3, 2, 5, 0.0), (1, 6, 5, 0.0), (-1, 2, 5, 0.0), (1, 2, 5, -0.1), (1, 2, 5, 0.0, 1.0)]
)
def test_numbers_that_do_not_fit(arguments):
    with pytest.raises(ValueError, match="fit together|must lie"):
        one_run_epsilon(*arguments)
