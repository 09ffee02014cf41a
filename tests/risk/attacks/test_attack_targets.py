"""Targets as columns and groups, and the rows that they give away by themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab.errors import AgreementError
from datacollab.risk.attacks import LinearRegressionAttack, class_means


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1, 2], r"target has shape \(2,\), but there are 3 rows"),
        ([1.0, np.nan, np.inf], "is missing or infinite in [12] of 3 rows"),
        (np.array(["secret", None, "secret"], dtype=object), "is missing or infinite in 1 of 3 rows"),
        (["secret", "b", "c"], "another kind than the leaked rows' target"),
        (np.array(["secret", 1, 2], dtype=object), "cannot be sorted|another kind"),
    ],
)
def test_bad_targets_are_refused_without_showing_them(bad, message, rng):
    Z, A = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    attack = LinearRegressionAttack().fit(Z, A, target=[1, 2, 1])
    with pytest.raises(AgreementError, match=message) as caught:
        attack.reconstruct(Z, target=bad)
    assert "secret" not in str(caught.value)


def test_class_means_of_classes(rng):
    public, target = rng.normal(size=(30, 3)), np.array(list("abc") * 10)
    means = class_means(public, target, ["c", "a", "unheard of"])
    expected = [public[target == "c"].mean(axis=0), public[target == "a"].mean(axis=0), public.mean(axis=0)]
    assert_allclose(means, expected)


def test_class_means_of_numbers_are_those_of_similar_targets(rng):
    target = rng.normal(size=1000)
    public = target[:, None] + rng.normal(size=(1000, 2))
    means = class_means(public, target, np.array([-9.0, 0.0, 9.0]))
    assert_allclose(means, [[-1.75] * 2, [0.0] * 2, [1.75] * 2], atol=0.35)


def test_class_means_of_bad_input_are_refused_without_showing_it():
    with pytest.raises(AgreementError, match=r"has shape \(1,\), but there are 2 rows") as caught:
        class_means([[1.0], [2.0]], ["secret"], ["secret"])
    assert "secret" not in str(caught.value)
