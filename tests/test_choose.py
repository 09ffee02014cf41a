"""Choosing a way of sharing under limits."""

import numpy as np
import pytest

import datacollab as dc
from datacollab.choice import Option, RiskLimits, choose, options_for
from datacollab.party import Microaggregation


@pytest.fixture(scope="module")
def digits():
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(0).permutation(len(y))
    own, anchor, public = np.split(order[:720], [120, 320])
    return {"own": (X[own], y[own]), "anchor": (X[anchor], y[anchor]), "public": (X[public], y[public])}


def chosen(digits, options, **limits):
    (X, y), (anchor, anchor_target), (public, public_target) = digits.values()
    return choose(
        X,
        y,
        anchor,
        anchor_target=anchor_target,
        public=public,
        public_target=public_target,
        options=options,
        limits=RiskLimits(**limits),
        random_state=0,
    )


@pytest.fixture(scope="module")
def choice(digits):
    options = options_for(("pca",), (16,))
    return chosen(digits, [options[0], options[1], options[3]], linkage=0.4, reidentification=None, membership=None)


@pytest.mark.slow
def test_the_most_useful_option_within_the_limits_is_taken(choice):
    plain, elsewhere, grouped = choice.assessments
    assert plain.risk.linkage == elsewhere.risk.linkage == 1.0
    assert grouped.risk.linkage < 0.4
    assert (plain.allowed, elsewhere.allowed, grouped.allowed) == (False, False, True)
    assert choice.best is grouped
    assert min(plain.utility, elsewhere.utility) > grouped.utility > 0.4


@pytest.mark.nightly
def test_no_option_is_taken_where_none_is_within_the_limits(digits):
    options = [options_for(("pca",), (16,), on_public=False)[0]]
    choice = chosen(digits, options, linkage=0.5)
    assert choice.best is None


@pytest.mark.slow
def test_an_unmeasured_risk_is_not_within_a_limit(digits):
    (X, y), (anchor, _), _ = digits.values()
    options = [options_for(("pca",), (4,), on_public=False)[0]]
    choice = choose(X, y, anchor, options=options, limits=RiskLimits(linkage=None, membership=1.0), random_state=0)
    assert choice.assessments[0].risk.membership is None
    assert choice.best is None


def test_options_that_fail_are_named(digits):
    option = Option(
        name="too few",
        obfuscator=dc.obfuscator("pca", n_components=4),
        n_components=4,
        defences=(Microaggregation(50),),
    )
    choice = chosen(digits, [option])
    assert not choice.assessments
    assert "k=50" in choice.failed["too few"]


@pytest.mark.slow
def test_regression_and_no_public_rows():
    X, y = dc.datasets.load("diabetes")
    options = options_for(("pca",), (4,), on_public=False)[:1]
    choice = choose(X[:120], y[:120], X[120:300], options=options, random_state=0)
    assert choice.utility_name == "R2 on own rows"
    assert -1 < choice.assessments[0].utility < 1
    assert list(choice.table())[:3] == ["option", "columns", "R2 on own rows"]
