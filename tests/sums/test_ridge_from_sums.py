"""The common map and ridge regression from totals: against formulas written naively, and scikit-learn on all rows."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist, pdist
from scipy.special import ndtr, ndtri
from sklearn.linear_model import Ridge

import datacollab as dc
from datacollab.errors import AgreementError, AnchorError, NumericalError
from datacollab.linalg import gaussian_sigma
from datacollab.sums import MOST_COMPONENTS, CommonMap, MaskedSum, MaskKey, RidgeSums, standard_normal

ONE, OTHER = bytes(32), bytes([7]) * 32


@pytest.fixture(scope="module")
def digits():
    X, y = dc.datasets.load("digits")
    return X[:600], y[:600]


@pytest.fixture(scope="module")
def common(digits):
    return plain(digits[0][:200], ONE, n_components=64)


def plain(A, secret, **options):
    """The map of these rows alone, without any between them, in units of their deviations; constants stay."""
    deviation = A.std(axis=0)
    unit = np.where(deviation > 1e-12 * np.abs(A).max(axis=0), deviation, 1.0)
    common = CommonMap.from_anchor(A / unit, secret, **({"n_rows": 0, "as_they_are": True} | options))

    def transform(X):
        with np.errstate(over="ignore"):
            return common.transform(X / unit)

    return SimpleNamespace(**(vars(common) | {"transform": transform, "n_components": common.n_components}))


def naive_gram(A, X, n_components):
    """Inner products of rows in the common map, before they are shortened, when all anchor rows are landmarks."""
    mean, deviation = A.mean(axis=0), A.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, 1)
    _, s, Vt = np.linalg.svd((A - mean) / scale)
    kept = min(48, np.sum(s > 1e-8 * s[0]))
    clip = 4 * s[0] / np.sqrt(len(A))
    Z, Z_new = (np.clip((rows - mean) / scale, -clip, clip) @ Vt[:kept].T for rows in (A, X))
    gamma = 1 / np.median(pdist(Z, "sqeuclidean"))
    of_pairs = [[np.exp(-gamma * cdist(a, b, "sqeuclidean")) for b in (Z, Z_new)] for a in (Z, Z_new)]
    ell = np.median(np.linalg.norm(Z, axis=1))
    # All anchor rows are landmarks, so the Nyström kernel is the kernel on the anchor, and a projection off it.
    e, U = np.linalg.eigh(of_pairs[0][0])
    U, e = U[:, e > 1e-6 * e[-1]], e[e > 1e-6 * e[-1]]
    F, F_new = (np.hstack([z / ell, of_pairs[k][0] @ U / np.sqrt(e)]) / np.sqrt(2) for k, z in enumerate((Z, Z_new)))
    _, _, Wt = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)
    v, v_new = ((f - F.mean(axis=0)) @ Wt[:n_components].T for f in (F, F_new))
    v_new /= np.quantile(np.linalg.norm(v, axis=1), 0.9)
    v_new /= np.maximum(1, np.linalg.norm(v_new, axis=1))[:, None]
    return v_new @ v_new.T


def test_the_map_is_the_formula(digits, common):
    v = common.transform(digits[0][200:260])
    assert_allclose(v @ v.T, naive_gram(digits[0][:200], digits[0][200:260], 64), atol=1e-8)


def test_another_secret_turns_the_map_and_the_anchors_order_does_nothing(digits, common):
    """As long as all anchor rows are landmarks."""
    A, X = digits[0][:200], digits[0][200:260]
    v, turned = (plain(A, secret, n_components=64).transform(X) for secret in (ONE, OTHER))
    assert_allclose(turned @ turned.T, v @ v.T, atol=1e-8)
    assert np.abs(turned - v).max() > 0.1
    assert_allclose(common.transform(X), v, atol=0)


def test_rows_are_in_the_unit_ball_wherever_they_lie(digits, common):
    largest = np.where(np.arange(64) % 2, 1e308, -1e308)
    rows = np.vstack([digits[0][200:], 1e6 * np.eye(64), np.zeros((1, 64)), largest])
    assert np.linalg.norm(common.transform(rows), axis=1).max() <= 1 + 1e-12
    inside = np.linalg.norm(common.transform(digits[0][:200]), axis=1) < 1 - 1e-9
    assert 0.85 < inside.mean() < 0.95


def test_rows_between_others_follow_from_the_secret_and_bring_directions(digits):
    A = digits[0][:40]
    alone, more = plain(A, ONE), plain(A, ONE, n_rows=300)
    assert alone.n_components == 39
    assert more.n_components == MOST_COMPONENTS
    again, turned = (plain(A, secret, n_rows=300).transform(A) for secret in (ONE, OTHER))
    assert_allclose(again, more.transform(A), atol=0)
    assert np.abs(turned @ turned.T - again @ again.T).max() > 1e-3


def elsewhere(decompose, rng):
    """A decomposition by another machine: other signs, and other bases of vectors that belong to equal values."""

    def found(A, **options):
        parts = list(decompose(A + 1e-15 * rng.normal(size=A.shape), **options))
        signs = np.where(np.arange(min(A.shape)) % 2, 1, -1)
        for k, part in enumerate(parts):
            if part.ndim == 2:
                parts[k] = signs[:, None] * part if k == 2 else part * signs
        return parts

    return found


@pytest.mark.parametrize(
    ("table", "n_components"), [("digits", 4), ("digits", 64), ("digits", 256), ("balanced levels", 256)]
)
def test_another_machine_makes_the_same_map(table, n_components, digits, rng, monkeypatch):
    X = digits[0] if table == "digits" else np.vstack([np.eye(6)[np.arange(240) % 6], rng.dirichlet(np.ones(6), 60)])
    v = CommonMap.from_anchor(X[:200], ONE, n_components=n_components).transform(X[200:])
    monkeypatch.setattr(np.linalg, "svd", elsewhere(np.linalg.svd, rng))
    monkeypatch.setattr(scipy.linalg, "eigh", elsewhere(scipy.linalg.eigh, rng))
    assert_allclose(CommonMap.from_anchor(X[:200], ONE, n_components=n_components).transform(X[200:]), v, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-12, 1e9])
def test_units_do_not_matter(unit, rng):
    A, X = rng.normal(size=(100, 4)), rng.normal(size=(20, 4))
    units = np.array([unit, 1.0, 1.0, 1.0])
    v, in_units = (plain(A * by, ONE).transform(X * by) for by in (1.0, units))
    assert_allclose(in_units @ in_units.T, v @ v.T, atol=1e-6)


SPARSE = np.zeros((100, 3))
SPARSE[:20] = np.random.default_rng(0).normal(size=(20, 3))
SPARSE[20:40] = -SPARSE[:20]


@pytest.mark.parametrize(
    "anchor",
    [
        (np.arange(100) < 15)[:, None] * 1.0,
        np.vstack([np.ones((1, 2)), np.zeros((1999, 2))]),
        np.r_[1.0, -1.0, np.zeros(98)][:, None],
        SPARSE,
    ],
    ids=["rare", "one of 2,000", "symmetric", "mostly the mean"],
)
def test_most_rows_of_the_anchor_may_be_equal(anchor):
    common = plain(anchor, ONE)
    v, u = common.transform(anchor), anchor - anchor.mean(axis=0)
    assert np.linalg.norm(v[u.any(axis=1)], axis=1).max() > 0.9
    assert common.linear_scale > 1e-3
    assert common.gamma < 1e3
    assert len(np.unique(v.round(6), axis=0)) == len(np.unique(anchor, axis=0))


def test_anchors_of_which_no_map_can_be_made():
    for wrong in (np.ones((5, 3)), np.full((5, 3), np.nan), np.ones(5)):
        with pytest.raises(AnchorError, match="two different rows"):
            CommonMap.from_anchor(wrong, ONE)


@pytest.fixture(scope="module")
def mapped(digits, common):
    return common.transform(digits[0][200:]), digits[1][200:]


CLASSES = RidgeSums(64, classes=range(10), noise=1e-9)


def test_the_total_gives_ridge_regression_on_all_rows(mapped):
    v, y = mapped
    total = sum(CLASSES.part(v[k::5], y[k::5]) for k in range(5))
    found = CLASSES.solve(total, noise=0.0)
    expected = Ridge(found.alpha).fit(v, np.eye(10)[y] - 0.1)
    assert min(found.reliability) > 0.9
    assert_allclose(found.coefficients, expected.coef_.T * found.reliability, atol=1e-7)
    means = np.bincount(y) / len(y) - 0.1
    assert_allclose(found.intercept, means + (expected.intercept_ - means) * found.reliability, atol=1e-8)
    assert found.n_rows == pytest.approx(len(v))
    assert np.mean(CLASSES.decode(found.predict(v)) == y) > 0.95


@pytest.mark.parametrize("statistic", [RidgeSums(8, limits=(-1.0, 1.0)), RidgeSums(8, classes=range(3))])
def test_a_model_of_few_rows_is_a_draw_around_the_fit(statistic, rng):
    """Of 400 rows, two hundred models: their mean is the fit, and their covariance a quarter of the posterior's."""
    v = rng.normal(size=(400, 8)) / 6
    v /= np.maximum(1, np.linalg.norm(v, axis=1, keepdims=True))
    y = v[:, 0] + rng.normal(size=400) / 5
    y = y if statistic.limits else np.digitize(y, [-0.1, 0.1])
    total = statistic.part(v, y)
    # Totals that differ by a millionth have other draws around the same fit.
    models = [statistic.solve(total * (1 + 1e-6 * k), noise=1e-6) for k in range(300)]
    fit = statistic.solve(total, noise=0.0)
    assert fit.spread == 0
    centred = v - v.mean(axis=0)
    S = centred.T @ centred + models[0].alpha * np.eye(8)
    expected = Ridge(models[0].alpha).fit(v, statistic.encode(y)).coef_.reshape(statistic.n_outputs, 8).T
    kept = models[0].reliability or (1.0,)
    assert min(kept) > 0
    draws = np.array([model.coefficients / (model.reliability or 1.0) for model in models]) - expected
    # Along the eigenvectors of S + alpha I, times the roots of its eigenvalues, the draws are standard normal.
    root = scipy.linalg.sqrtm(S).real
    standard = np.einsum("ij,kjc->kic", root, draws) / np.sqrt(models[0].spread)
    assert np.abs(standard.mean(axis=0)).max() < 4.5 / np.sqrt(300)
    assert standard.var() == pytest.approx(1.0, abs=0.1)
    assert np.abs(np.corrcoef(standard[..., 0].T) - np.eye(8)).max() < 0.3
    assert_allclose(draws.sum(axis=2), 0, atol=1e-9) if statistic.classes else None
    # The residual variance of the rows, and at most a quarter of it.
    fitted = v @ expected
    left = statistic.encode(y) - statistic.encode(y).mean(axis=0) - fitted + fitted.mean(axis=0)
    freedom = 1 + np.trace(centred @ np.linalg.solve(S, centred.T))
    assert models[0].spread == pytest.approx(0.25 * np.mean(left**2) * 400 / (400 - freedom), rel=1e-3)


def test_noise_does_not_take_the_models_own_noise_away(mapped, rng):
    """Of few rows, the noise in the total makes residuals negative."""
    v, y = mapped
    sums = RidgeSums(64, limits=(0.0, 9.0), noise=0.1)
    few = sums.part(v[:60], y[:60])
    spreads = [sums.solve(few + rng.normal(size=few.shape) * sums.noise_of_each).spread for _ in range(20)]
    variance = float(np.var(sums.encode(y[:60])))
    assert min(spreads) > 0.25 * 0.25 * variance / 2


def test_a_total_has_one_model_and_many_rows_need_no_noise_of_their_own(mapped):
    v, y = mapped
    sums = RidgeSums(64, classes=range(10), noise=0.1)
    few = sums.part(v[:300], y[:300])
    assert_allclose(sums.solve(few).coefficients, sums.solve(sums.part(v[299::-1], y[299::-1])).coefficients, atol=1e-9)
    spreads = [sums.solve(k / 300 * few).spread for k in (300, 590, 601)]
    assert spreads[0] > 4 * spreads[1] > 0
    assert spreads[2] == 0


def test_numbers_are_scaled_to_their_declared_range(mapped):
    v, _ = mapped
    target = 30 + 20 * v[:, 0] - 5 * v[:, 1]
    sums = RidgeSums(64, limits=(0.0, 60.0), noise=1e-9)
    found = sums.solve(sums.part(v, target), noise=0.0)
    expected = Ridge(found.alpha).fit(v, target)
    assert_allclose(sums.decode(found.predict(v)), np.clip(expected.predict(v), 0, 60), atol=1e-6)
    assert np.abs(sums.decode(found.predict(v)) - target).max() < 0.5
    far = sums.encode([-1e9, 0.0, 30.0, 60.0, 1e9])
    assert_allclose(far[:, 0], [-1, -1, 0, 1, 1])


def test_the_penalty_is_the_geometric_mean_of_evidence_and_cross_validation(mapped):
    v, y = mapped
    T = np.eye(10)[y] - 0.1
    centred, target = v - v.mean(axis=0), T - T.mean(axis=0)
    n = len(v)
    evidence, gcv = {}, {}
    for alpha in np.geomspace(1e-3, 30, 25):
        covariance = centred @ centred.T / alpha + np.eye(n)
        sign, logdet = np.linalg.slogdet(covariance)
        unexplained = np.sum(target * np.linalg.solve(covariance, target))
        evidence[alpha] = 10 * logdet + (n - 1) * 10 * np.log(unexplained / n / 10)
        H = centred @ np.linalg.solve(centred.T @ centred + alpha * np.eye(64), centred.T)
        freedom = 1.2 * (1 + np.trace(H))
        gcv[alpha] = np.sum((target - H @ target) ** 2) / (1 - freedom / n) ** 2
        assert sign == 1
    expected = np.sqrt(min(evidence, key=evidence.get) * min(gcv, key=gcv.get))
    assert CLASSES.solve(CLASSES.part(v, y)).alpha == pytest.approx(expected)


def test_no_penalty_below_what_the_noise_demands(mapped):
    v, y = mapped
    for noise in (0.03, 0.3):
        sums = RidgeSums(64, classes=range(10), noise=noise)
        assert sums.solve(sums.part(v, y)).alpha >= noise * np.sqrt(128) * (1 - 1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.3])
def test_a_target_that_hardly_varies(noise, mapped, rng):
    """Its sum of squares is less than the noise in it, which may make it negative."""
    sums = RidgeSums(64, limits=(0, 1), noise=noise)
    part = sums.part(mapped[0], np.full(len(mapped[0]), 0.5))
    for _ in range(20):
        found = sums.solve(part + rng.normal(size=part.shape) * sums.noise_of_each)
        assert np.abs(found.coefficients).max() <= 10 * noise


def test_the_noise_is_alike_in_all_directions(rng):
    """A symmetric Gaussian matrix: its inner product with any matrix of Frobenius norm 1 has the same variance."""
    sums = RidgeSums(5, limits=(0, 1), noise=0.2)
    i, j = np.triu_indices(sums.size)
    draws = np.zeros((4000, sums.size, sums.size))
    draws[:, i, j] = draws[:, j, i] = rng.normal(size=(4000, sums.n_numbers)) * sums.noise_of_each
    for _ in range(5):
        direction = rng.normal(size=(sums.size,) * 2)
        direction += direction.T
        direction /= np.linalg.norm(direction)
        assert np.einsum("kij,ij->k", draws, direction).std() == pytest.approx(0.2, rel=0.06)


def matrix(sums, v, y):
    M = np.zeros((sums.size,) * 2)
    i, j = np.triu_indices(sums.size)
    M[i, j] = M[j, i] = sums.part(v, y)
    return M


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8), st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_no_row_put_in_anothers_place_moves_the_sums_farther_than_said(entries, classes):
    sums = RidgeSums(4, classes=range(3))
    rows = np.reshape(entries, (2, 4))
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    first, second = (matrix(sums, row[None], [label]) for row, label in zip(rows, classes, strict=True))
    assert np.linalg.norm(first - second) <= sums.sensitivity * (1 + 1e-12)


@pytest.mark.parametrize("classes", [[1, 1, 2], [1, 1.0, 2], [1, True, 0], [1, "1"]])
def test_a_class_named_twice_would_break_the_bound(classes):
    with pytest.raises(AgreementError, match="two of the classes are the same"):
        RidgeSums(4, classes=classes)


def test_the_bound_is_reached():
    sums = RidgeSums(4, limits=(-1, 1))
    first, second = (matrix(sums, row[None], [target]) for row, target in zip(np.eye(4)[:2], (-1, 1), strict=True))
    assert np.linalg.norm(first - second) == pytest.approx(sums.sensitivity)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_worst_pair_of_tables_cannot_be_told_apart_better_than_epsilon_says(epsilon):
    """2,500 totals of real messages; the attacker knows all rows but one and the noise of the party that colludes."""
    n_runs, delta, a = 1250, 1e-5, bytes(32)
    sums = RidgeSums(2, limits=(-1, 1))
    sums = replace(sums, noise=sums.noise_for(epsilon, delta))
    pair = [sums.part(row[None], [target]) for row, target in zip(np.eye(2), (-1, 1), strict=True)]
    weights = np.where(np.equal(*np.triu_indices(sums.size)), 1.0, 2.0) * (pair[1] - pair[0])

    def told(part):
        keys = {name: MaskKey.generate() for name in ("victim", "honest", "colluding")}
        agreed = MaskedSum({}, {n: k.public for n, k in keys.items()}, noise=sums.noise_of_each, n_colluding=1)
        parts = {"victim": part, "honest": 0 * part, "colluding": 0 * part}
        noise_keys = {"colluding": a}
        total = agreed.total([agreed.mask(n, parts[n], k, noise_key=noise_keys.get(n)) for n, k in keys.items()])
        return weights @ (total - standard_normal(a, len(part)) * sums.noise_of_each / math.sqrt(2))

    scores = [np.sort([told(part) for _ in range(n_runs)]) for part in pair]
    # Of every threshold: what is taken for the second table, when it is the first, and when it is the second.
    thresholds = np.quantile(np.concatenate(scores), np.linspace(0.02, 0.98, 49))
    false, true = (1 - np.searchsorted(each, thresholds) / n_runs for each in scores)
    slack = 4 * 0.5 / math.sqrt(n_runs)
    assert (true <= np.exp(epsilon) * (false + slack) + delta + slack).all()
    assert (1 - false <= np.exp(epsilon) * (1 - true + slack) + delta + slack).all()
    # The curve of the Gaussian mechanism is reached, so a smaller noise would be noticed.
    mu = 1 / gaussian_sigma(epsilon, delta)
    # Both sides are counted, and vary.
    np.testing.assert_allclose(true, ndtr(mu + ndtri(false.clip(1e-9, 1 - 1e-9))), atol=math.sqrt(2) * slack)


def test_an_intercept_of_ones_own_rows_keeps_the_prevalence_where_institutions_differ():
    """No column tells why the outcome is rare in one institution and frequent in another."""
    random, statistic = np.random.default_rng(5), RidgeSums(4, classes=("no", "yes"), noise=0.0)
    rates, parts, rows = (0.05, 0.14, 0.4), [], []
    for rate in rates:
        v = random.normal(size=(400, 4)) / 8
        rows.append((v, np.where(random.random(400) < rate + v[:, 0], "yes", "no")))
        parts.append(statistic.part(*rows[-1]))
    fit = statistic.solve(np.sum(parts, axis=0))
    for (v, y), part in zip(rows, parts, strict=True):
        n, mean_v, mean_t = statistic.means(part)
        assert_allclose([n, *mean_v, *mean_t], [400, *v.mean(axis=0), *statistic.encode(y).mean(axis=0)])
        common, own = (each.predict(v)[:, 1].mean() + 0.5 for each in (fit, fit.move_intercept(n, mean_v, mean_t)))
        share = (y == "yes").mean()
        assert_allclose(own - share, 30 / 430 * (common - share), atol=1e-12)
    assert abs(common - share) > 0.15


def test_totals_without_sense_are_refused(mapped):
    v, y = mapped
    part = CLASSES.part(v, y)
    with pytest.raises(NumericalError, match="rows"):
        CLASSES.solve(CLASSES.part(v[:5], y[:5]))
    with pytest.raises(NumericalError, match="least eigenvalue"):
        CLASSES.solve(part - 0.5 * CLASSES.part(np.abs(v), y))
    with pytest.raises(NumericalError, match="rows"):
        CLASSES.solve(np.full_like(part, np.nan))
    # The noise of the count is four times s: it may be as large as the count, and no larger.
    CLASSES.solve(part, noise=len(v) / 4 * 0.99)
    with pytest.raises(NumericalError, match="too much for a model"):
        CLASSES.solve(part, noise=len(v) / 4 * 1.01)


def test_targets_and_rows_that_are_none(mapped):
    v, y = mapped
    with pytest.raises(AgreementError, match="none of the classes"):
        CLASSES.part(v, np.where(y == 3, 11, y))
    with pytest.raises(AgreementError, match="missing"):
        RidgeSums(64, limits=(0, 1)).part(v, np.where(y == 3, np.nan, 0.5))
    with pytest.raises(AgreementError, match=r"a target is no number\. Correct"):
        RidgeSums(64, limits=(0, 1)).part(v, np.where(y == 3, "Smith", "0.5"))
    with pytest.raises(AgreementError, match=f"{len(v)} rows and 3 targets"):
        CLASSES.part(v, y[:3])
    with pytest.raises(AgreementError, match=r"one target per row.*\(2, 2\)"):
        CLASSES.part(v, np.zeros((2, 2)))
    for wrong in (v[:, :5], 2 * v / np.linalg.norm(v, axis=1)[:, None], v * np.nan):
        with pytest.raises(AgreementError, match="common map"):
            CLASSES.part(wrong, y)
    for options in ({}, {"classes": [1], "limits": (0, 1)}, {"classes": ["a"]}, {"limits": (1, 1)}):
        with pytest.raises(AgreementError, match="RidgeSums"):
            RidgeSums(64, **options)
