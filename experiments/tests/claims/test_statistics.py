import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from datacollab_experiments.claims import (
    Interval,
    PublishedValue,
    by_seed,
    interval,
    standardise_difference,
)
from datacollab_experiments.claims._claim import Contrast, Contrasts, decide
from datacollab_experiments.claims._estimates import holm, p_above, partial_conjunction
from datacollab_experiments.paper import Condition, Row

PRINTED = PublishedValue(table="a table", dataset="mnist", name="KTI", measure="accuracy", mean=0.7, n_trials=30)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def row(seed, name="KTI", error=None, scores=None, seconds=None, condition=None):
    return Row(
        experiment="rq1", condition=condition or Condition(), kind="method", name=name, seed=seed, cell="",
        scores=scores or {}, seconds=seconds or {}, error=error,
    )  # fmt: skip


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20).filter(lambda values: np.std(values) > 1e-3))
def test_the_interval_is_students(values):
    found = interval(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert_allclose((found.mean - found.half_width, found.mean + found.half_width), (low, high), atol=1e-9)
    assert_allclose(found.standard_error, stats.sem(values), rtol=1e-9)
    assert found.n == len(values)


def test_few_values_have_no_width():
    assert interval([0.5]).mean == 0.5
    assert math.isnan(interval([0.5]).half_width)
    assert math.isnan(interval([0.5]).standard_error)
    assert math.isnan(interval([]).mean)
    assert interval([]).n == 0


def test_by_seed_leaves_failures_out():
    rows = [
        row(3, scores={"accuracy": 0.9}, seconds={"construct": 2.0}),
        row(0, scores={"accuracy": 0.8}),
        row(1, error="NumericalError: no"),
        row(2, error="NumericalError: late", scores={"accuracy": 0.1}),
    ]
    assert list(by_seed(rows, "accuracy").items()) == [(0, 0.8), (3, 0.9)]
    assert by_seed(rows, "construct") == {3: 2.0}
    assert by_seed(rows, "rmse") == by_seed([], "accuracy") == {}


@pytest.mark.parametrize(
    "other",
    [row(0, "LTI", scores={"accuracy": 0.1}), row(0, scores={"accuracy": 0.1}, condition=Condition(n_parties=2))],
)
def test_by_seed_refuses_to_overwrite(other):
    with pytest.raises(ValueError, match="seed 0 has a second row with 'accuracy'") as caught:
        by_seed([row(0, scores={"accuracy": 0.25}), other], "accuracy")
    assert "0.25" not in str(caught.value)


def test_the_pooled_difference_by_hand():
    """A half width of 2.045 standard errors is Student's over 30 trials; of 2.262 over 10."""
    ours = Interval(0.75, 2.262157 * 0.03, 10)
    published = replace(PRINTED, half_width=2.045230 * 0.04)
    assert_allclose(standardise_difference(ours, published), 0.05 / 0.05, rtol=1e-6)
    assert_allclose(standardise_difference(ours, replace(PRINTED, half_width=0.0)), 0.05 / 0.03, rtol=1e-6)


@pytest.mark.parametrize(
    ("ours", "half_width"),
    [(Interval(0.7, math.nan, 1), 0.01), (Interval(0.7, 0.01, 5), None), (Interval(0.8, 0.0, 5), 0.0)],
)
def test_without_standard_errors_there_is_no_pooled_difference(ours, half_width):
    assert math.isnan(standardise_difference(ours, replace(PRINTED, half_width=half_width)))


@given(
    st.lists(st.floats(-10, 10), min_size=3, max_size=15).filter(lambda values: np.std(values) > 1e-3),
    st.floats(-5, 5),
)
def test_p_above_is_the_one_sided_t_test(values, threshold):
    want = stats.ttest_1samp(values, threshold, alternative="greater").pvalue
    assert_allclose(p_above(values, threshold), want, rtol=1e-6, atol=1e-12)
    assert_allclose(p_above(values, threshold) + p_above([-value for value in values], -threshold), 1, rtol=1e-9)


@pytest.mark.parametrize(
    ("values", "threshold", "p"),
    [
        ([0.1, 0.1, 0.1], 0.0, 0.0),
        ([0.7 - 0.6, 0.8 - 0.7, 0.3 - 0.2], 0.0, 0.0),
        ([-0.1, -0.1, -0.1], 0.0, 1.0),
        ([0.1, 0.1], 0.0, 1.0),
        ([0.0, 0.0, 0.0], 0.0, 1.0),
        ([0.1 + 0.2 - 0.3 - 0.01, -0.01, -0.01], -0.01, 1.0),
        ([5.0], 0.0, 1.0),
        ([], 0.0, 1.0),
    ],
)
def test_values_that_do_not_vary_decide_by_their_side(values, threshold, p):
    assert p_above(values, threshold) == p


def test_holm_by_hand():
    """The textbook's four: 4 x .005, then 3 x .01, then 2 x .03, and the last not below it."""
    assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


@given(P_VALUES, st.floats(0.001, 0.5))
def test_holm_is_the_step_down_procedure(p_values, level):
    """Naively: go through the p-values by size, and stop at the first that is too large for what is left."""
    rejected = set()
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if not p_values[index] * (len(p_values) - rank) < level:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(p_values)) if p < level} == rejected


@given(P_VALUES)
def test_the_partial_conjunction_is_the_worst_of_its_subsets(p_values):
    """Naively: u statements are true unless some n - u + 1 of them are all false, which Bonferroni tests."""
    n = len(p_values)
    for n_true in range(1, n + 1):
        size = n - n_true + 1
        worst = max(min(1.0, size * min(subset)) for subset in combinations(p_values, size))
        assert_allclose(partial_conjunction(p_values, n_true), worst, rtol=1e-12)
    assert partial_conjunction(p_values, n) == max(p_values)
    assert partial_conjunction(p_values, 1) == min(holm(p_values))


def with_p(p, label="a - b"):
    """A contrast over four seeds that is above 0 with just this one-sided p-value."""
    spread = np.array([1.0, -1.0, 1.0, -1.0])
    values = spread + stats.t.isf(p, 3) * stats.sem(spread)
    return Contrast(label, tuple(values), low=0.0)


def each(*p_values):
    return [Contrasts(f"condition {at}", (with_p(p),)) for at, p in enumerate(p_values)]


@pytest.mark.parametrize(
    ("quota", "p_values", "verdict"),
    [
        ("all", (0.04, 0.04, 0.04), "holds"),
        ("all", (0.001, 0.001, 0.06), "undecided"),
        # Reversed with p = .03 and .01: after Holm, only the latter is below .05.
        ("all", (0.001, 0.001, 0.97), "undecided"),
        ("all", (0.001, 0.001, 0.99), "does not hold"),
        # Two of three, at (3 - 2 + 1) p: .024 will do and .026 will not.
        ("most", (0.001, 0.024, 0.5), "holds"),
        ("most", (0.001, 0.026, 0.5), "undecided"),
        ("most", (0.001, 0.024, 0.999), "holds"),
        ("most", (0.5, 0.5, 0.9999), "undecided"),
        ("most", (0.5, 0.976, 0.999), "does not hold"),
        # Of two, most are both, and one that is reversed refutes it.
        ("most", (0.001, 0.5), "undecided"),
        ("most", (0.001, 0.98), "does not hold"),
        ("most", (0.04,), "holds"),
        ("all", (), "not run"),
    ],
)
def test_decisions_by_hand(quota, p_values, verdict):
    assert decide(each(*p_values), quota) == verdict


def test_contrasts_that_count_together():
    """One of four is not shown, so the comparison is not; one of four reversed counts after Bonferroni."""
    mixed = Contrasts("K=2", tuple(with_p(p) for p in (0.001, 0.001, 0.001, 0.3)))
    assert mixed.p_for == pytest.approx(0.3)
    reverse = Contrasts("K=2", tuple(with_p(p) for p in (0.001, 0.001, 0.001, 0.99)))
    assert reverse.p_against == pytest.approx(0.04)
