"""Each party's own level: naive solutions, generalised linear models, and what goes to whom."""

from itertools import pairwise

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab.analyst._levels import SPREADS, _level, levels_of
from datacollab.share import Share

SIZES = [(20, 31, 44), (12, 30, 25, 40, 18), tuple(range(11, 21))]


def places_of(sizes):
    ends = np.cumsum(sizes)
    return {f"p{k}": slice(end - size, end) for k, (size, end) in enumerate(zip(sizes, ends, strict=True))}


def numbers(rng, sizes):
    target = rng.normal(size=sum(sizes)) + np.repeat(np.linspace(-2, 2, len(sizes)), sizes)
    return rng.normal(scale=0.1, size=len(target)), target, rng.uniform(0.5, 2, len(target))


def classes(rng, sizes, n_classes=3):
    """Probabilities, and classes of parties that differ in level; the first party has a single class."""
    said = rng.dirichlet(np.ones(n_classes), sum(sizes))
    odds = said * np.exp(np.repeat(rng.normal(size=(len(sizes), n_classes)), sizes, axis=0))
    drawn = [rng.choice(n_classes, p=p / p.sum()) for p in odds]
    drawn[: sizes[0]] = [0] * sizes[0]
    return said, np.eye(n_classes)[drawn], rng.uniform(0.5, 2, len(said))


@pytest.mark.parametrize("sizes", SIZES, ids=len)
def test_levels_of_numbers_are_those_of_a_penalised_regression_on_parties(rng, sizes):
    said, target, weights = numbers(rng, sizes)
    found = levels_of(said, target, weights, np.arange(len(said)), places_of(sizes))
    D = np.eye(len(sizes))[np.repeat(np.arange(len(sizes)), sizes)]
    unit = np.sqrt(np.average((target - said) ** 2, weights=weights))
    penalty = np.eye(len(sizes)) / found.spread**2
    expected = np.linalg.solve(D.T @ (weights[:, None] * D) + penalty, D.T @ (weights * (target - said))) / unit
    assert found.spread in SPREADS
    assert_allclose([*found.by_party.values()], expected, rtol=1e-10)
    assert_allclose([*found.sent.values()], unit * expected, atol=0.0251 * unit)


@pytest.mark.parametrize("sizes", SIZES, ids=len)
def test_levels_of_classes_are_those_of_a_general_optimiser(rng, sizes):
    said, known, weights = classes(rng, sizes)
    found = levels_of(said, known, weights, np.arange(len(said)), places_of(sizes))
    assert found.spread in SPREADS
    for party, own in places_of(sizes).items():

        def height(d, own=own):
            odds = np.log(said[own]) + d
            likelihood = weights[own] @ (np.sum(known[own] * odds, axis=1) - np.logaddexp.reduce(odds, axis=1))
            return d @ d / (2 * found.spread**2) - likelihood

        expected = minimize(height, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
        assert_allclose(found.by_party[party], expected, atol=1e-5)


def test_without_a_penalty_a_level_is_the_intercept_of_a_logistic_regression(rng):
    said, known, weights = classes(rng, (2, 150), n_classes=2)
    said, known, weights = said[2:], known[2:], weights[2:]
    odds = np.log(said[:, 1] / said[:, 0])
    model = sm.GLM(known[:, 1], np.ones(150), family=sm.families.Binomial(), offset=odds, freq_weights=weights)
    level = _level(said, known, weights, 1e6, 1.0)
    assert_allclose(level[1] - level[0], model.fit(tol=1e-12).params[0], atol=1e-8)


@pytest.mark.parametrize("spread", SPREADS)
def test_a_class_that_h_took_for_impossible_ends_the_search_for_a_level(spread):
    said, known = np.tile([1 - 1e-12, 1e-12], (500, 1)), np.tile([0.0, 1.0], (500, 1))
    level = _level(said, known, np.ones(500), spread, 1.0)
    moved = said * np.exp(level)
    slope = (known - moved / moved.sum(axis=1, keepdims=True)).sum(axis=0) - level / spread**2
    assert_allclose(slope, 0, atol=1e-6)


@pytest.mark.parametrize("kind", [numbers, classes])
def test_rows_are_left_out_of_their_level_too(rng, kind):
    sizes = (20, 31, 44)
    said, target, weights = kind(rng, sizes)
    groups = np.arange(95) // 2  # pairs are left out together
    found = levels_of(said, target, weights, groups, places_of(sizes))
    own, row = places_of(sizes)["p2"], 70
    folds = np.unique(groups[own], return_inverse=True)[1] % 5
    there = np.flatnonzero(folds != folds[row - own.start]) + own.start
    assert not np.isin(groups[there], groups[row]).any()
    level = _level(said[there], target[there], weights[there], found.spread, found.unit)
    expected = said[row] * np.exp(level) if kind is classes else said[row] + found.unit * level
    assert_allclose(found.left_out[row], expected / (expected.sum() if kind is classes else 1), rtol=1e-12)


def test_parties_that_differ_in_nothing_have_no_level(rng):
    said = rng.normal(size=90)
    target = said + np.tile([-1.0, 1.0, -1.0, 1.0, 0.0], 18)
    found = levels_of(said, target, np.ones(90), np.arange(90), places_of((30, 30, 30)))
    assert found.spread == 0
    assert found.by_party == {}
    assert found.left_out is said


def world(rng, task, levels=(-3.0, 0.0, 3.0), n_rows=40):
    """Shares of parties whose rows differ in level alone, each turned in its own way."""
    n = n_rows * len(levels)
    X, anchor = rng.normal(size=(n, 3)), rng.normal(size=(50, 3))
    score = X @ [1.0, -1.0, 0.5] + np.repeat(levels, n_rows)
    y = np.where(score + rng.logistic(size=n) > 0, "ill", "well") if task == "classes" else score + rng.normal(size=n)
    shares = []
    for k in range(len(levels)):
        own, Q = slice(n_rows * k, n_rows * (k + 1)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        shares.append(Share(party=f"p{k}", representation=X[own] @ Q, anchor_representation=anchor @ Q, target=y[own]))
    return shares


HEADS = {"classes": LogisticRegression(), "numbers": LinearRegression()}


@pytest.mark.parametrize("task", HEADS)
def test_a_party_gets_its_own_level_and_no_other(rng, task):
    shares = world(rng, task)
    analyst, plain = (
        dc.Analyst(dc.LTI(3, fit_intercept=True), HEADS[task], left_out=True, strata=strata)
        for strata in ("party", None)
    )
    collaboration, common = analyst.fit(shares), plain.fit(shares)
    assert not common.levels_
    assert common.party_model("p0").estimator is common.estimator_
    for share in shares:
        model, level = collaboration.party_model(share.party), collaboration.levels_[share.party]
        read, before = dc.PartyModel.from_bytes(model.to_bytes()), common.party_model(share.party)
        if task == "numbers":
            expected = before.predict(share.representation) + level
            assert_allclose(read.predict(share.representation), expected, rtol=1e-9)
            if share.party != "p1":  # whose level is that of all
                errors = [np.mean((each.left_out - share.target) ** 2) for each in (model, before)]
                assert errors[0] < 2 < errors[1]
        else:
            odds = before.predict_proba(share.representation) * np.exp(level)
            expected = odds / odds.sum(axis=1, keepdims=True)
            assert_allclose(read.predict_proba(share.representation), expected, rtol=1e-9)
            assert_array_equal(read.predict(share.representation), read.estimator.classes_[expected.argmax(axis=1)])
    found = [np.ravel(level) for level in collaboration.levels_.values()]
    assert all(np.abs(a - b).max() > 0.3 for a, b in pairwise(found))


def test_means_of_rows_have_no_level(rng):
    shares = [
        Share(
            party=each.party,
            representation=np.repeat(each.representation[::4], 4, axis=0),
            anchor_representation=each.anchor_representation,
            target=each.target,
        )
        for each in world(rng, "numbers")
    ]
    assert not dc.Analyst(dc.LTI(3), HEADS["numbers"], left_out=True).fit(shares).levels_
