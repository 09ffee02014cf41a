"""Ranks, own columns, ties and witnesses of the common map."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.stats import norm, rankdata
from sklearn.linear_model import Ridge

from datacollab.errors import AgreementError
from datacollab.party import CommonSpace
from datacollab.sums import CommonMap, MaskKey, RidgeSums, SumsPlan

SECRET = bytes(range(32))
NAMES = ("north", "south", "west")


def inner(common, X):
    """Inner products of mapped rows, which no rotation changes."""
    v = common.transform(X)
    return v @ v.T


@given(arrays(np.int64, st.integers(3, 40), elements=st.integers(-50, 50)))
def test_numbers_become_normal_scores_of_their_middle_ranks(column):
    if len(np.unique(column)) < 3:
        column = np.r_[column, 60, 61]
    scale = 100.0  # So wide that no climb is bounded.
    ((values, scores),) = CommonMap.from_anchor(scale * column[:, None], SECRET).scores
    expected = norm.ppf((rankdata(column) - 0.5) / len(column))
    found = np.interp(scale * column, values, scores)
    assert_allclose(found - found[0], expected - expected[0], atol=1e-9)


@given(st.floats(1e-9, 10), st.integers(0, 1000))
def test_no_anchor_magnifies_a_number_more_than_ten_times(width, seed):
    """However closely its rows lie: a crafted anchor cannot tell apart what is one person's."""
    generator = np.random.default_rng(seed)
    anchor = np.where(generator.random((60, 1)) < 0.5, 1.0, width) * generator.normal(size=(60, 1))
    ((values, scores),) = CommonMap.from_anchor(anchor, SECRET).scores
    assert (np.diff(scores) > 0).all()
    assert (np.diff(scores) <= 10 * np.diff(values) * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("spread", [1, 6], ids=["usual", "many values in one cell"])
def test_numbers_and_their_normal_scores_weigh_half_each(rng, spread):
    """The map is that of columns which have both, taken as they are."""
    A, X = (np.column_stack([np.exp(spread * rng.normal(size=(n, 3))), rng.integers(2, size=n)]) for n in (200, 30))
    common = CommonMap.from_anchor(A, SECRET)
    both_A, both_X = (
        np.column_stack(
            [rows[:, :3] / 2**0.5, rows[:, 3]] + [np.interp(rows[:, k], *common.scores[k]) / 2**0.5 for k in range(3)]
        )
        for rows in (A, X)
    )
    same = CommonMap.from_anchor(both_A, SECRET, as_they_are=True)
    assert_allclose(common.transform(X), same.transform(both_X), atol=1e-9)


def test_two_values_stay_as_they_are(rng):
    A = np.column_stack([rng.integers(2, size=100), rng.normal(size=100)]).astype(float)
    common = CommonMap.from_anchor(A, SECRET)
    assert common.scores[0] is None
    assert common.scores[1] is not None
    assert CommonMap.from_anchor(A, SECRET, as_they_are=True).scores == [None, None]


@pytest.fixture(scope="module")
def wide():
    """Independent columns, five of which matter: no anchor says how they vary together."""
    generator = np.random.default_rng(3)
    X = generator.normal(size=(700, 90))
    return X, X[:, :5].sum(axis=1) + generator.normal(size=700)


def test_columns_that_principal_components_miss_are_turned_themselves(wide):
    """Then the map is their normal scores, but for a rotation, a length, and rows that are too long."""
    X, _ = wide
    A, rows = X[:150], X[150:250]
    common = CommonMap.from_anchor(A, SECRET)
    assert common.n_components == 90
    scored = [np.interp(rows[:, k], *known) for k, known in enumerate(common.scores)]
    of_anchor = [np.interp(A[:, k], *known) for k, known in enumerate(common.scores)]
    centred = np.transpose(scored) - np.mean(of_anchor, axis=1)
    longest = np.quantile(np.linalg.norm(np.transpose(of_anchor) - np.mean(of_anchor, axis=1), axis=1), 0.9)
    v = centred / np.maximum(longest, np.linalg.norm(centred, axis=1))[:, None]
    assert_allclose(inner(common, rows), v @ v.T, atol=1e-9)
    assert np.abs(common.transform(rows) - v).max() > 0.1


def test_a_wide_table_is_ridge_regression_on_its_own_columns(wide):
    X, y = wide
    common = CommonMap.from_anchor(X[:150], SECRET)
    v = common.transform(X)
    statistic = RidgeSums(common.n_components, limits=(float(y.min()), float(y.max())), noise=0.0)
    model = statistic.solve(statistic.part(v[:500], y[:500]), noise=0.0, least_penalty=1.0)
    naive = Ridge(alpha=model.alpha).fit(v[:500], y[:500])
    assert_allclose(statistic.decode(model.predict(v[500:])), naive.predict(v[500:]), atol=1e-6)
    kernel = CommonMap.from_anchor(X[:150], SECRET, n_columns=0).transform(X)
    other = RidgeSums(kernel.shape[1], limits=statistic.limits, noise=0.0)
    of_kernel = other.solve(other.part(kernel[:500], y[:500]), noise=0.0, least_penalty=1.0)
    error, worse = (
        np.mean((made.decode(fit.predict(rows[500:])) - y[500:]) ** 2)
        for made, fit, rows in ((statistic, model, v), (other, of_kernel, kernel))
    )
    assert error < 0.7 * worse


def test_more_columns_than_are_turned_are_projected(wide):
    X, _ = wide
    common = CommonMap.from_anchor(X[:150], SECRET, n_columns=20)
    assert common.n_components == 20
    assert_allclose(common.directions.T @ common.directions, np.eye(20), atol=1e-12)


def test_columns_that_vary_together_and_narrow_tables_have_a_kernel(rng):
    factors = rng.normal(size=(150, 6))
    together = factors @ rng.normal(size=(6, 90)) + 0.3 * rng.normal(size=(150, 90))
    for A in (together, rng.normal(size=(150, 20))):
        assert len(CommonMap.from_anchor(A, SECRET).landmarks)
    assert not len(CommonMap.from_anchor(rng.normal(size=(12, 20)), SECRET).landmarks)


@given(st.integers(40, 70), st.integers(0, 3), st.integers(0, 100))
@pytest.mark.nightly
def test_tied_directions_are_kept_together(n_levels, n_numbers, seed):
    """Equally frequent categories: rounding turns their directions, and would decide which of them a cut keeps."""
    generator = np.random.default_rng(seed)
    n = 20 * n_levels
    numbers = np.repeat(generator.normal(size=(20, n_numbers)), n_levels, axis=0)
    A = np.hstack([np.eye(n_levels)[np.arange(n) % n_levels], numbers])
    noises = (0.0, generator.normal(size=A.shape))
    maps = [CommonMap.from_anchor(A + 1e-14 * noise, SECRET, n_rows=0, as_they_are=True) for noise in noises]
    assert maps[0].n_components == maps[1].n_components
    assert_allclose(inner(maps[1], A[:80]), inner(maps[0], A[:80]), atol=1e-9)


@pytest.fixture(scope="module")
def anchor():
    return np.random.default_rng(1).normal(size=(120, 4))


def messages_of(maps, plan, keys, generator):
    """One message of each party, with the witness of its own map."""
    made = []
    for name, common in zip(NAMES, maps, strict=True):
        v, y = common.transform(generator.normal(size=(40, 4))), generator.normal(size=40).clip(-3, 3)
        made.append(plan.message(name, v, y, keys[name], witness=common.witness(plan.agreed.context)))
    return made


def planned(n_components):
    keys = {name: MaskKey.generate() for name in NAMES}
    roster = {name: key.public for name, key in keys.items()}
    return SumsPlan(roster, n_components=n_components, limits=(-3.0, 3.0)), keys


@pytest.mark.parametrize(("apart", "named"), [(0.0, None), (1e-12, None), (1e-8, "south")])
def test_a_map_that_differs_is_named_and_one_that_was_rounded_is_not(anchor, apart, named, rng):
    common = CommonMap.from_anchor(anchor, SECRET, n_components=16)
    other = CommonMap.from_anchor(anchor + apart * rng.normal(size=anchor.shape), SECRET, n_components=16)
    plan, keys = planned(16)
    messages = messages_of([common, other, common], plan, keys, rng)
    if named is None:
        assert plan.solve(messages).fit.n_rows > 0
        return
    with pytest.raises(AgreementError, match=r"common maps of \['south'\]"):
        plan.solve(messages)


def test_a_message_without_a_witness_is_none_of_the_others(anchor, rng):
    common = CommonMap.from_anchor(anchor, SECRET, n_components=16)
    plan, keys = planned(16)
    messages = messages_of([common] * 3, plan, keys, rng)
    messages[0] = replace(messages[0], witness=messages[0].witness[:0])
    with pytest.raises(AgreementError, match="north"):
        plan.solve(messages)


def test_a_witness_says_nothing_without_the_secret(anchor):
    """Its pad is another for each sum and each secret; differences alone say whether maps are equal."""
    space, again, other = (CommonSpace(anchor, secret, n_components=16) for secret in (SECRET, SECRET, bytes(32)))
    one, two = bytes(32), bytes([1]) * 32
    assert np.array_equal(space.witness(one), again.witness(one))
    words = np.concatenate([space.witness(one), space.witness(two), other.witness(one)])
    assert len(np.unique(words >> np.uint64(40))) == len(words)
