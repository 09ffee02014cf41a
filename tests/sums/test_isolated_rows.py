"""Rows that stand alone are shortened: attacks on them, a naive oracle, and what holds for all rows."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from datacollab.sums import CommonMap, IsolatedRows, MaskedSum, MaskKey, RidgeSums, SumsPlan, recommended

N_PARTIES = 3
NOISE = 0.1


def world(value, total, seed):
    """Rows of three parties in the common map; the first one has a value that nobody else has, but three of the anchor.

    Columns are eight numbers and two categories of four levels.
    """
    random = np.random.default_rng(seed)

    def people(n):
        levels = [np.eye(4)[random.choice(4, n, p=[0.6, 0.25, 0.15, 0.0])] for _ in range(2)]
        rows = np.hstack([random.normal(size=(n, 8)), *levels])
        # Nobody has the third level of both.
        rows[(rows[:, 10] == 1) & (rows[:, 14] == 1), 12:] = 1, 0, 0, 0
        return rows

    X, anchor = people(total), people(300)
    unit = np.r_[np.full(8, 2.0), np.ones(8)]
    for rows in (X[:1], anchor[: 15 if value == "pair" else 3]):
        if value == "category":
            rows[:, 8:12] = 0, 0, 0, 1
        elif value == "number":
            rows[:, 0] = 8.0
        else:
            rows[:, 8:] = 0, 0, 1, 0, 0, 0, 1, 0
    return CommonMap.from_anchor(anchor / unit, bytes(32)).transform(X / unit)


def shortened(v, n_parties=N_PARTIES, noise=NOISE):
    alone = IsolatedRows(RidgeSums(v.shape[1], classes=("no", "yes"), noise=noise), n_parties)
    alone.part(v, np.resize(["no", "yes"], len(v)))
    return alone.shorten(v)


def how_often_read(v):
    """How often analyst and one party read each person's class, who know all rows of the others and the noise.

    Classes are random.  The best linear reading of one of them has a normal error, of the noise and of other classes.
    """
    F = np.column_stack([v, np.full(len(v), 0.5)])
    q = np.einsum("ij,ji->i", F, np.linalg.solve(F.T @ F + 8 * NOISE**2 * np.eye(F.shape[1]), F.T))
    return ndtr(np.sqrt(q / (1 - q)))


@pytest.mark.parametrize("total", [300, 1500])
@pytest.mark.parametrize("value", ["category", "number", "pair"])
@pytest.mark.slow
def test_who_has_a_value_alone_is_read_as_others_are(value, total):
    before, after, others = [], [], []
    n = total // N_PARTIES
    for seed in range(3):
        v = world(value, total, seed)
        own = [v[:n], v[n : 2 * n]]
        before.append(how_often_read(np.vstack(own))[0])
        found = how_often_read(np.vstack([shortened(rows) for rows in own]))
        after.append(found[0])
        others.append(found.mean())
    assert np.mean(after) < np.mean(others) + 0.05
    if value != "pair":
        # Of a pair, the map tells little; of all others, rows as they are tell much.
        assert np.mean(before) > np.mean(others) + 0.12


def naively_shortened(v, n_parties, noise):
    """Leave out each row in turn, and solve for the shortening."""
    n, D = v.shape
    tau = 8 * noise**2
    rows = v - v.mean(axis=0)
    full = (n_parties - 1) * rows.T @ rows + tau * np.eye(D)
    factor = n / (n - 1)
    mean_q = np.mean([factor**2 * d @ np.linalg.solve(full, d) for d in rows])
    usual = mean_q / (1 - (n_parties - 1) / factor * mean_q)
    found = v.copy()
    for place in range(n):
        others = np.delete(v, place, axis=0)
        centred = others - others.mean(axis=0)
        M = (n_parties - 1) * centred.T @ centred + tau * np.eye(D)
        d = v[place] - others.mean(axis=0)
        if ndtr(np.sqrt(d @ np.linalg.solve(M, d))) <= ndtr(np.sqrt(usual)) + 0.05:
            continue

        def left(log_mu, M=M, d=d):
            return np.linalg.solve(M + np.exp(log_mu) * np.eye(D), M @ d)

        def beyond(log_mu, M=M, left=left):
            return left(log_mu) @ np.linalg.solve(M, left(log_mu)) - usual

        found[place] = others.mean(axis=0) + left(scipy.optimize.brentq(beyond, -30, 30, xtol=1e-13))
    return found / np.maximum(1.0, np.linalg.norm(found, axis=1, keepdims=True))


@st.composite
def rows(draw):
    """Rows of length 1 at most, of which some stand alone."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, D = draw(st.integers(5, 30)), draw(st.integers(1, 6))
    v = random.normal(size=(n, D)) * random.uniform(0, 0.6, D) + draw(st.sampled_from([0.0, 0.3]))
    if draw(st.booleans()):
        v[0] += random.normal(size=D)
    return v / np.maximum(1.0, np.linalg.norm(v, axis=1, keepdims=True))


@given(rows(), st.integers(3, 6), st.sampled_from([0.04, 0.1, 1.0]))
def test_equals_leaving_out_each_row_in_turn(v, n_parties, noise):
    assert_allclose(shortened(v, n_parties, noise), naively_shortened(v, n_parties, noise), atol=1e-7)


@given(rows(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(v, random):
    order = list(range(len(v)))
    random.shuffle(order)
    assert_allclose(shortened(v[order]), shortened(v)[order], atol=1e-9)


@given(rows(), st.floats(0.1, 0.9))
def test_rows_and_noise_in_another_unit_are_shortened_alike(v, unit):
    assert_allclose(shortened(unit * v, noise=unit * NOISE), unit * shortened(v), atol=1e-9)


@given(rows())
def test_the_sums_are_those_of_shortened_rows_and_usual_ones_stay_bit_for_bit(v):
    statistic = RidgeSums(v.shape[1], limits=(-1, 1), noise=NOISE)
    y = np.linspace(-1, 1, len(v))
    alone = IsolatedRows(statistic, N_PARTIES)
    part = alone.part(v, y)
    assert_array_equal(part, statistic.part(v, y))
    correction, n_found = alone.correction()
    found = alone.shorten(v)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-12
    is_usual = (found == v).all(axis=1)
    assert n_found == len(v) - is_usual.sum()
    assert n_found < len(v)
    if not n_found:
        assert not correction.any()
    assert_allclose(part + correction, statistic.part(found, y), atol=1e-10)
    assert_array_equal(shortened(v), found)


def test_a_direction_of_its_own_vanishes_and_what_others_share_stays(rng):
    v = np.zeros((200, 3))
    v[:, :2] = rng.uniform(-0.5, 0.5, size=(200, 2))
    v[7] = 0.4, 0.0, 0.8
    found = shortened(v)
    assert_array_equal(np.flatnonzero((found != v).any(axis=1)), [7])
    assert found[7, 0] > 0.35
    assert abs(found[7, 2]) < 0.1


def test_with_the_noise_of_a_guarantee_nobody_stands_alone():
    v = world("category", 300, 0)[:100]
    noise = RidgeSums(v.shape[1], classes=(0, 1)).noise_for(1.0)
    assert_array_equal(shortened(v, noise=noise), v)
    assert (shortened(v) != v).any()


@pytest.mark.parametrize("v", [np.zeros((0, 2)), np.full((1, 2), 0.5), np.full((9, 2), 0.5)])
def test_no_row_one_row_and_equal_rows_stay(v):
    alone = IsolatedRows(RidgeSums(2, limits=(0, 1)), N_PARTIES)
    part = alone.part(v, np.zeros(len(v)))
    correction, n_found = alone.correction()
    assert n_found == 0
    assert not correction.any()
    assert np.isfinite(part).all()


def test_without_noise_rows_stay():
    v = world("category", 300, 0)[:100]
    alone = IsolatedRows(RidgeSums(v.shape[1], limits=(0, 1), noise=0.0), N_PARTIES)
    alone.part(v, np.zeros(100))
    assert alone.correction()[1] == 0


@pytest.mark.parametrize("size", [7, 60])
def test_rows_in_batches_of_which_few_are_kept_give_the_same(monkeypatch, size, rng):
    """A table larger than memory: usual rows are dropped once there are many, and nothing changes."""
    v = np.zeros((4000, 3))
    v[:, :2] = rng.uniform(-0.5, 0.5, size=(4000, 2))
    v[[5, 3000]] = [(0.4, 0.0, 0.8), (0.0, 0.1, -0.9)]
    y = rng.integers(2, size=4000)
    statistic = RidgeSums(3, classes=(0, 1))
    whole = IsolatedRows(statistic, N_PARTIES)
    whole.part(v, y)
    monkeypatch.setattr("datacollab.sums._isolated_rows._MOST_KEPT", 300)
    batches = IsolatedRows(statistic, N_PARTIES)
    most = 0
    for start in range(0, 4000, size):
        batches.part(v[start : start + size], y[start : start + size])
        most = max(most, sum(rows.size for rows, _ in batches._kept))
    assert most < 1000 < v.size
    for found, expected in zip(batches.correction(), whole.correction(), strict=True):
        assert_allclose(found, expected, atol=1e-9)
    assert whole.correction()[1] == 2


def test_a_message_adds_shortened_own_rows_and_public_ones_as_they_are(monkeypatch):
    v = world("category", 300, 0)
    own, public = v[:100], v[100:140]
    y = np.resize(["no", "yes"], 100)
    keys = {name: MaskKey.generate() for name in ("north", "south", "west")}
    roster = {name: key.public for name, key in keys.items()}
    plan = SumsPlan(roster, n_components=v.shape[1], classes=("no", "yes"), noise=recommended().noise)
    monkeypatch.setattr(MaskedSum, "mask", lambda self, party, part, key, **_: part)
    found = plan.message("north", own, y, keys["north"], public=(public, y[:40]))
    expected = plan.statistic.part(shortened(own), y) + plan.statistic.part(public, y[:40])
    assert_allclose(found, expected, atol=1e-10)
    as_they_are = plan.statistic.part(np.vstack([own, public]), [*y, *y[:40]])
    assert abs(found - as_they_are).max() > 0.02
