"""Anchors that were made for single people are told from public rows of the same kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from datacollab.anchor import anchor_fit
from datacollab.exchange.party_folder import Policy

MOST_DENSE = Policy().max_anchor_density


@pytest.fixture(scope="module", params=[load_digits, load_breast_cancer, load_diabetes])
def table(request):
    X, _ = request.param(return_X_y=True)
    return np.random.default_rng(0).permutation(X)


def test_public_rows_of_the_same_kind_fit(table):
    """Of parties of 20 rows and of 200, and anchors of 100 rows and of many."""
    for n_own in (20, 200):
        for start in range(0, 200, 40):
            own, public = table[start : start + n_own], np.delete(table, np.s_[start : start + n_own], axis=0)
            for anchor in (public[:100], public):
                fit = anchor_fit(anchor, own)
                assert not fit.is_crowded
                assert not fit.is_narrow


@pytest.mark.parametrize("width", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("n_people", [1, 20])
def test_rows_planted_around_people_do_not(table, width, n_people, rng):
    own, honest = table[:60], table[60:160]
    noise = width * own.std(axis=0) * rng.normal(size=(200, table.shape[1]))
    planted = own[rng.integers(n_people, size=200)] + noise
    assert anchor_fit(planted, own).is_crowded
    # Nor if they are hidden among honest rows.
    assert anchor_fit(np.vstack([honest, planted]), own).is_crowded


def test_so_do_shapes_that_single_a_person_out(rng):
    """A cloud of one standard deviation, half of one of .5, and the person's direction stretched: nine in ten."""
    noticed = np.zeros(3)
    for _ in range(30):
        own, honest = rng.normal(size=(150, 10)), rng.normal(size=(300, 10))
        person = own[0]
        direction = person / np.linalg.norm(person)
        along = np.outer(honest @ direction, direction)
        half = honest.copy()
        half[::2] = person + 0.5 * honest[::2]
        crafted = (half, person + 0.9 * honest, 0.6 * (honest - along) + 2 * along)
        noticed += [anchor_fit(rows, own).density > MOST_DENSE for rows in crafted]
        assert anchor_fit(honest, own).density < 1
    assert (noticed >= [30, 24, 24]).all()


def test_the_anchors_order_and_constant_columns_hide_nothing(rng):
    """Every other row of 4,000 is honest; and one column of the own rows is constant but for rounding."""
    own, honest = rng.normal(size=(150, 10)), rng.normal(size=(4000, 10))
    honest[1::2] = own[0] + 0.5 * honest[1::2]
    assert anchor_fit(honest, own).density == pytest.approx(anchor_fit(rng.permutation(honest), own).density)
    assert anchor_fit(honest, own).density > MOST_DENSE
    own[:, 3] = 0.1
    planted = own[0] + 0.01 * rng.normal(size=(300, 10))
    assert anchor_fit(planted, own).is_crowded


def test_another_mix_of_people_is_no_reason_to_refuse(rng):
    """One in ten at the party, half of the anchor; or an anchor that is uniform in the ranges."""
    shift = np.repeat([3.0, 0.0], 5)
    own = rng.normal(size=(500, 10)) + shift * (rng.random(500) < 0.1)[:, None]
    others = rng.normal(size=(500, 10)) + shift * (rng.random(500) < 0.5)[:, None]
    for anchor in (others, rng.uniform(own.min(axis=0), own.max(axis=0), size=(500, 10))):
        fit = anchor_fit(anchor, own)
        assert not fit.is_crowded
        assert not fit.is_narrow


def test_density_is_the_ratio_of_counts_within_a_ball(rng):
    own, anchor = rng.normal(size=(60, 2)), 0.4 * rng.normal(size=(80, 2))
    units = own.std(axis=0)
    ratios = []
    for i, row in enumerate(own):
        among = np.sort([np.linalg.norm((row - other) / units) for j, other in enumerate(own) if j != i])
        inside = sum(np.linalg.norm((row - other) / units) <= among[2] * (1 + 1e-9) for other in anchor)
        # Clopper and Pearson's ends: where 3 of 59, and that many of 80, are as unlikely as one in a thousand.
        most = brentq(lambda p: binom.cdf(3, 59, p) - 1e-3, 1e-9, 1 - 1e-9)
        least = brentq(lambda p, k=inside: binom.sf(k - 1, 80, p) - 1e-3, 1e-9, 1 - 1e-9) if inside else 0.0
        ratios.append(least / most)
    assert anchor_fit(anchor, own).density == pytest.approx(max(ratios), rel=1e-6)


def test_a_narrow_anchor_sees_little_of_the_table(table, rng):
    own = table[:60]
    assert anchor_fit(own.mean(axis=0) + 0.5 * own.std(axis=0) * rng.normal(size=(200, own.shape[1])), own).is_narrow


def test_counts_are_those_of_all_distances(rng):
    own, anchor = rng.normal(size=(30, 3)), rng.normal(size=(200, 3))
    anchor[:15] = own[0] + 1e-3 * rng.normal(size=(15, 3))
    units = own.std(axis=0)
    among, between = cdist(own / units, own / units), cdist(own / units, anchor / units)
    radius = 0.2 * np.where(np.eye(30, dtype=bool), np.inf, among).min(axis=1)
    near = between < radius[:, None]
    fit = anchor_fit(anchor, own)
    assert fit.n_crowded == (near.sum(axis=1) >= 10).sum() == 1
    nearest = between.argmin(axis=0)
    assert fit.n_near == near[nearest, np.arange(200)].sum()
    assert fit.spread == pytest.approx(np.median(anchor.std(axis=0) / units))


@given(st.floats(1e-6, 1e6), st.integers(0, 2))
def test_units_do_not_matter(unit, column):
    rng = np.random.default_rng(7)
    own, anchor = rng.normal(size=(30, 3)), rng.normal(size=(60, 3))
    scale = np.ones(3)
    scale[column] = unit
    first, second = anchor_fit(anchor, own), anchor_fit(anchor * scale, own * scale)
    assert (first.n_near, first.n_crowded) == (second.n_near, second.n_crowded)
    assert second.spread == pytest.approx(first.spread)


def test_rows_that_are_all_equal_say_nothing():
    fit = anchor_fit(np.eye(3), np.ones((30, 3)))
    assert (fit.is_crowded, fit.is_narrow) == (False, False)
