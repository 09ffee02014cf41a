import math

import numpy as np
import pytest
from scipy import stats

from datacollab_experiments.claims._claim_tests import Contrast, Contrasts, decide, describe


def with_p(p, label="a - b"):
    """A contrast over four seeds that is above 0 with just this one-sided p-value."""
    spread = np.array([1.0, -1.0, 1.0, -1.0])
    values = spread + stats.t.isf(p, 3) * stats.sem(spread)
    return Contrast(label, tuple(values), low=0.0)


def each(*p_values):
    return [Contrasts(f"condition {at}", (with_p(p),)) for at, p in enumerate(p_values)]


def test_a_contrast_knows_its_p_values():
    assert with_p(0.03).p_for == pytest.approx(0.03)
    assert with_p(0.03).p_against == pytest.approx(0.97)


def test_two_bounds_are_two_one_sided_tests():
    values = tuple(np.random.default_rng(0).normal(0.02, 0.03, size=8))
    between = Contrast("a - b", values, low=-0.01, high=0.05)
    low = stats.ttest_1samp(values, -0.01, alternative="greater").pvalue
    high = stats.ttest_1samp(values, 0.05, alternative="less").pvalue
    assert between.p_for == pytest.approx(max(low, high))
    assert between.p_against == pytest.approx(min(1, 2 * min(1 - low, 1 - high)))


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


def test_the_text_counts_after_holm_and_names_some():
    assert describe(each(0.01, 0.5, 0.97)).startswith("1 of 3 comparisons shown, 0 reversed. Lowest: a - b = ")
    text = describe(each(0.01, 0.999, 0.999, 0.9999, 0.9999))
    assert "4 reversed (condition 1; condition 2; condition 3; ...)" in text


def test_the_text_has_means_and_intervals():
    values = (0.01, 0.02, 0.03)
    width = stats.t.ppf(0.975, 2) * stats.sem(values)
    assert describe([Contrasts("", (Contrast("a - b", values),))]) == f"a - b = 0.020 ± {width:.3f}."
    text = describe([Contrasts("", (Contrast("a - b", values), Contrast("a - c", (-1.0, 1.0, -0.0001))))])
    assert (
        text
        == f"Lowest: a - c = 0.000 ± {stats.t.ppf(0.975, 2) / math.sqrt(3):.3f}. Highest: a - b = 0.020 ± {width:.3f}."
    )
    assert describe([]) == "No result to compare."
