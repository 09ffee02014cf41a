import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from datacollab.risk.attacks import interval_of_clusters, wilson_interval

RATES = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(rate=RATES)
def test_wilson_is_scipys(rate):
    expected = stats.binomtest(*rate).proportion_ci(0.95, method="wilson")
    assert_allclose(wilson_interval(*rate), expected, atol=1e-12)


@given(rate=RATES)
def test_a_rate_lies_in_its_interval_and_its_complement_mirrors_it(rate):
    hits, n = rate
    (low, high), missed = wilson_interval(hits, n), wilson_interval(n - hits, n)
    assert 0 <= low <= hits / n <= high <= 1
    assert_allclose(missed, [1 - high, 1 - low], atol=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(1, 0), (0, 0), (3, 2), (-1, 2)])
def test_no_rate(hits, n):
    with pytest.raises(ValueError, match="no rate"):
        wilson_interval(hits, n)


def test_values_in_groups_count_as_groups(rng):
    """Where all of a group are alike the interval is about that of the groups' number; alone each counts."""
    hits = rng.random(200) < 0.3
    assert interval_of_clusters(hits, range(200)) == wilson_interval(int(hits.sum()), 200)
    low, high = interval_of_clusters(np.repeat(hits, 5), np.repeat(np.arange(200), 5))
    assert_allclose([low, high], wilson_interval(int(hits.sum()), 200), atol=0.01)
    assert interval_of_clusters([0.2] * 5, [0] * 5) == (0.0, 1.0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        interval_of_clusters([1.5], [0])


def test_interval_of_values_in_groups_covers(rng):
    covered = []
    for _ in range(400):
        rates = rng.beta(2, 3, size=20)
        values = (rng.random((20, 5)) < rates[:, None]).ravel()
        low, high = interval_of_clusters(values, np.repeat(np.arange(20), 5))
        covered.append(low <= 0.4 <= high)
    assert np.mean(covered) >= 0.92
