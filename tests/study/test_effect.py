"""The effect of a treatment from cross-fitted sums, against the same computation on rows, DoubleML and statsmodels."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from doubleml import DoubleMLData, DoubleMLPLR
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import scale

from datacollab.errors import AgreementError, NumericalError
from datacollab.linalg import gaussian_sigma
from datacollab.study import MAPPED, CategoryColumn, Effect, LeastSquares, NumberColumn, StudyPlan, deal, effect_map
from datacollab.sums import CommonMap, MaskKey

TREATED = CategoryColumn("treated", (0, 1))
GAIN = NumberColumn("gain", -8, 12)
AGE = NumberColumn("age", 0, 120)
COURSE = CategoryColumn("course", ("mild", "severe", "fatal"))
SECRET = bytes(range(32))
PENALTIES = np.geomspace(1e-3, 1e3, 37)


def parts(table):
    """Three public tables, with a treatment that depends on columns and an effect of 2 on a number."""
    frame = {"diabetes": load_diabetes, "wine": load_wine, "cancer": load_breast_cancer}[table](as_frame=True).frame
    X = scale(frame.iloc[:, :6].to_numpy(dtype=float)).clip(-4, 4)
    random = np.random.default_rng(0)
    t = (random.random(len(X)) < expit(X[:, 0] - X[:, 1])).astype(int)
    return X, t, 2 * t + X[:, 0] + X[:, 2] ** 2 / 8 + random.normal(0, 1, len(X))


def dealt(X, t, y, n_parties):
    """Parties of unequal sizes, whose outcomes differ; the first one has treated nobody."""
    ends = (np.linspace(0.1, 1.0, n_parties + 1) ** 1.2 * len(X)).astype(int)
    common = CommonMap.from_anchor(X, bytes(32), n_components=12, n_rows=200)
    tables = []
    for place, (first, last) in enumerate(itertools.pairwise([0, *ends[1:]])):
        rows = slice(first, last)
        tables.append({MAPPED: common.transform(X[rows]), "treated": t[rows].copy(), "gain": y[rows] + place / 10})
        tables[-1] |= {"age": 60 + 10 * X[rows, 0], "course": np.array(COURSE.levels)[np.arange(last - first) % 3]}
    tables[0]["treated"][:] = 0
    return tables, common.n_components


def pooled(statistic, tables, **options):
    total = sum(statistic.part(table, SECRET) for table in tables)
    return statistic.result(total, n_parties=len(tables), **options)


def rows_together(tables):
    """Rows of the map, treatment and outcome less their means in the party's group, and groups."""
    found = []
    for table in tables:
        groups = deal(len(table["gain"]), 5, SECRET)
        u = np.column_stack([table[MAPPED], table["treated"], table["gain"]]).astype(float)
        for g in range(5):
            own = u[groups == g]
            found.append(np.column_stack([own - own.mean(axis=0), np.full(len(own), g)]))
    u = np.vstack(found)
    return u[:, :-3], u[:, -3], u[:, -2], u[:, -1].astype(int)


class Twice(RegressorMixin, BaseEstimator):
    """Ridge regression without an intercept, fitted once more to its residuals."""

    def __init__(self, penalty=1.0):
        self.penalty = penalty

    def fit(self, X, y):
        A, self.coef_ = X.T @ X + self.penalty * np.eye(X.shape[1]), np.zeros(X.shape[1])
        for _ in range(2):
            self.coef_ = self.coef_ + np.linalg.solve(A, X.T @ (y - X @ self.coef_))
        return self

    def predict(self, X):
        return X @ self.coef_


def residuals(v, y, groups, penalty):
    found = np.empty(len(y))
    for g in np.unique(groups):
        own = groups == g
        found[own] = y[own] - Twice(penalty).fit(v[~own], y[~own]).predict(v[own])
    return found


def extrapolated(estimate, groups):
    """An estimate less a bias inverse to the square of the number of groups: estimate = truth + bias / groups²."""
    without = np.mean([estimate(groups != g) for g in range(5)])
    return np.linalg.solve([[1, 1 / 5**2], [1, 1 / 4**2]], [estimate(groups >= 0), without])[0]


def naive(tables):
    """Cross-fitting on rows, extrapolated, and a jackknife over groups."""
    v, t, y, groups = rows_together(tables)
    best = [min(PENALTIES, key=lambda penalty: (residuals(v, each, groups, penalty) ** 2).sum()) for each in (t, y)]

    def estimate(kept):
        left, rest = (residuals(v[kept], each[kept], groups[kept], own) for each, own in zip((t, y), best, strict=True))
        return left @ rest / (left @ left), left @ left

    left = estimate(groups >= 0)[1]
    without = np.array([estimate(groups != g)[0] for g in range(5)])
    theta = extrapolated(lambda kept: estimate(kept)[0], groups)
    return theta, np.sqrt(0.8 * ((without - without.mean()) ** 2).sum()), left / (t @ t)


@pytest.mark.parametrize("n_parties", [3, 5, 10])
@pytest.mark.parametrize("table", ["diabetes", "wine", "cancer"])
def test_the_effect_is_that_of_the_same_folds_on_all_rows_in_one_place(table, n_parties):
    tables, n_components = dealt(*parts(table), n_parties)
    found = pooled(Effect(TREATED, GAIN, n_components, [AGE]), tables, noise=0.0)
    effect, error, overlap = naive(tables)
    assert found.effect == pytest.approx(effect, rel=1e-8)
    assert found.error == pytest.approx(error, rel=1e-7)
    assert found.overlap == pytest.approx(overlap, rel=1e-8)
    half = stats.t.ppf(0.975, 4) * error
    assert (found.low, found.high) == pytest.approx((effect - half, effect + half), rel=1e-7)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(effect) / error, 4), rel=1e-5)
    assert found.noise == 0
    assert found.size == (sum(len(each["gain"]) for each in tables), 0.0)


def test_double_ml_finds_the_same_effect(monkeypatch):
    monkeypatch.setattr("datacollab.study._effect._PENALTIES", np.array([0.7]))
    tables, n_components = dealt(*parts("diabetes"), 5)
    v, t, y, groups = rows_together(tables)
    learner = Twice(0.7)

    def estimate(kept):
        data, own = DoubleMLData.from_arrays(v[kept], y[kept], t[kept]), groups[kept]
        folds = [(np.flatnonzero(own != g), np.flatnonzero(own == g)) for g in np.unique(own)]
        model = DoubleMLPLR(data, learner, learner, n_folds=len(folds), score="partialling out")
        return model.set_sample_splitting([folds]).fit().coef[0]

    # Treatment and outcome have one unit in sums, but for the declared range.
    found = pooled(Effect(TREATED, GAIN, n_components), tables, noise=0.0)
    assert found.effect == pytest.approx(extrapolated(estimate, groups), rel=1e-8)


@pytest.mark.parametrize("by", [AGE, CategoryColumn("sex", ("f", "m"))])
@pytest.mark.parametrize("n_parties", [3, 5, 10])
def test_how_the_effect_differs_is_the_interaction_of_least_squares_within_parties_and_groups(by, n_parties):
    """With an empty map; standard errors are those of leaving out each group of rows."""
    tables, n_components = dealt(*parts("diabetes"), n_parties)
    u, groups = [], []
    for table in tables:
        n = len(table["gain"])
        table |= {MAPPED: np.zeros((n, n_components)), "sex": np.array(["f", "m"])[np.arange(n) % 3 // 2]}
        s = (table["age"] - 60) / 120 if by is AGE else (table["sex"] == "m") - 0.5
        own = np.column_stack([table["treated"], (table["treated"] - 0.5) * s, table["gain"]])
        own_groups = deal(n, 5, SECRET)
        u.append(own - np.array([own[own_groups == g].mean(axis=0) for g in range(5)])[own_groups])
        groups.append(own_groups)
    u, groups = np.vstack(u), np.concatenate(groups)
    found = pooled(Effect(TREATED, GAIN, n_components, by=by), tables, noise=0.0)
    other = found.difference
    assert other.value == pytest.approx(sm.OLS(u[:, 2], u[:, :2]).fit().params[1], rel=1e-8)
    expected = extrapolated(lambda own: sm.OLS(u[own, 2], u[own, :1]).fit().params[0], groups)
    assert found.effect == pytest.approx(expected, rel=1e-8)
    kept = [u[groups != g] for g in range(5)]
    without = np.array([sm.OLS(own[:, 2], own[:, :2]).fit().params[1] for own in kept])
    assert other.error == pytest.approx(np.sqrt(0.8 * ((without - without.mean()) ** 2).sum()), rel=1e-7)
    assert other.p_value == pytest.approx(2 * stats.t.sf(abs(other.value) / other.error, 4), rel=1e-6)
    assert (other.low, other.high) == pytest.approx(stats.t(4, other.value, other.error).interval(0.95), rel=1e-6)


def test_how_the_effect_differs_is_that_of_residuals_on_all_rows_in_one_place(monkeypatch):
    monkeypatch.setattr("datacollab.study._effect._PENALTIES", np.array([0.7]))
    tables, n_components = dealt(*parts("diabetes"), 5)
    v, t, y, groups = rows_together(tables)
    # Treatment and age are centred by party and group, as all columns are.
    product = rows_together(
        [table | {"gain": (table["treated"] - 0.5) * (table["age"] - 60) / 120} for table in tables]
    )
    a, b, c = (residuals(v, each, groups, 0.7) for each in (t, product[2], y))
    statistic = Effect(TREATED, GAIN, n_components, [AGE], by=AGE)
    found = pooled(statistic, tables, noise=0.0)
    assert found.difference.value == pytest.approx(sm.OLS(c, np.column_stack([a, b])).fit().params[1], rel=1e-8)
    assert "age 120 less 0" in found.table().rows[1][0]
    assert "along one column" in found.table().note
    alone = pooled(replace(statistic, by=None), tables, noise=0.0)
    assert (alone.effect, alone.error) == pytest.approx((found.effect, found.error))
    assert alone.difference is None
    assert alone.balance["age"] == pytest.approx(found.balance["age"])
    assert "not tested" in alone.table().note


def test_a_column_that_hardly_varies_has_no_difference():
    tables, n_components = dealt(*parts("diabetes"), 3)
    for table in tables:
        table["age"][:] = 60
    assert pooled(Effect(TREATED, GAIN, n_components, by=AGE), tables, noise=0.0).difference is None


def test_balance_is_that_of_arms_within_parties():
    tables, n_components = dealt(*parts("diabetes"), 5)
    found = pooled(Effect(TREATED, GAIN, n_components, [AGE, COURSE]), tables, noise=0.0)
    assert [*found.balance] == ["age", "course=mild", "course=severe", "course=fatal"]
    own = [pd.DataFrame({name: table[name] for name in ("age", "treated")}) for table in tables]
    centred = pd.concat([frame - frame.mean() for frame in own])
    deviation = np.sqrt((centred["age"] ** 2).sum() / (len(centred) - 5))
    difference = (centred["age"] @ centred["treated"]) / (centred["treated"] @ centred["treated"])
    before, after = found.balance["age"]
    assert before == pytest.approx(difference / deviation, rel=1e-8)
    assert before > 0.4
    assert abs(after) < 0.2
    assert "left empty" not in found.table().note
    empty = replace(found, balance=found.balance | {"age": (np.nan, np.nan)})
    assert "it is left empty where noise could be most of a column's variance" in empty.table().note


def arms(random, n, shift):
    """Rows of a hospital whose treatment rate and outcomes rise together."""
    x = random.normal(size=(n, 3)).clip(-4, 4)
    t = (random.random(n) < expit(shift + 0.5 * x[:, 0])).astype(int)
    return x, t, 2 * t + 1.5 * shift + x[:, 0] + 0.5 * x[:, 1] + random.normal(size=n)


@pytest.mark.slow
def test_parties_whose_rates_and_outcomes_rise_together_do_not_bias_the_effect():
    """120 studies of six hospitals with 100 rows each; see docs/study.md for more of them, and larger ones."""
    random = np.random.default_rng(1)
    common = CommonMap.from_anchor(random.normal(size=(200, 3)), bytes(32), n_components=6, n_rows=200)
    statistic, held, effects, errors = Effect(TREATED, GAIN, 6, noise=0.05), [], [], []
    for _ in range(120):
        total = np.zeros(len(statistic.spread))
        for shift in np.linspace(-1, 1, 6):
            x, t, y = arms(random, 100, shift)
            total += statistic.part({MAPPED: common.transform(x), "treated": t, "gain": y}, random.bytes(32))
        noisy = total + 1.4 * statistic.spread * random.normal(size=len(total))
        found = statistic.result(noisy, n_parties=6, noise=1.4)
        held.append(found.low <= 2 <= found.high)
        effects.append(found.effect)
        errors.append(found.noise / found.error)
    assert np.mean(effects) == pytest.approx(2, abs=0.04)
    assert 0.91 <= np.mean(held) <= 0.99
    assert np.median(errors) > 0.3, "noise is no small part of the errors here"


def test_directions_of_the_map_for_effects_differ_less_in_spread():
    """Over the rows that the map was made of, before rows are shortened."""
    anchor = np.random.default_rng(3).normal(size=(1000, 3))
    spread = []
    for common in (
        CommonMap.from_anchor(anchor, SECRET, n_components=12, as_they_are=True),
        effect_map(anchor, SECRET, most=12),
    ):
        spread.append(np.linalg.svd(replace(common, length=1e6).transform(anchor), compute_uv=False))
    usual, flatter = (each / each[0] for each in spread)
    assert_allclose(flatter, usual**0.5, rtol=1e-6)
    assert effect_map(anchor, SECRET).n_components == 20


STATISTICS = [
    Effect(TREATED, GAIN, 3),
    Effect(TREATED, GAIN, 3, [AGE, COURSE]),
    Effect(TREATED, GAIN, 3, cluster="ward"),
    Effect(TREATED, GAIN, 3, by=AGE),
]
ROWS = st.fixed_dictionaries(
    {
        MAPPED: st.sampled_from([(0, 0, 1), (0, 0, -1), (1, 0, 0), (0.6, 0, 0.8), (0.0, 0.0, 0.0)]),
        "treated": st.sampled_from([0, 1]),
        "gain": st.sampled_from([-8.0, 12.0, 50.0]),
        "age": st.sampled_from([0.0, 120.0, np.nan]),
        "course": st.sampled_from(COURSE.levels),
        "ward": st.sampled_from(["a", "b", "c"]),
    }
)


def as_table(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("statistic", STATISTICS)
@given(rows=st.lists(ROWS, min_size=1, max_size=12), other=ROWS)
def test_no_row_moves_the_numbers_farther_than_said(statistic, rows, other):
    first, second = (statistic.part(as_table(each), SECRET) for each in (rows, [other, *rows[1:]]))
    assert np.linalg.norm((first - second) / statistic.spread) <= statistic.loss * (1 + 1e-12)


@given(st.integers(0, 2**32 - 1))
def test_no_three_points_of_a_ball_move_moments_farther_than_said(seed):
    """Most of it far out, where the bound is about reached."""
    points = np.random.default_rng(seed).normal(size=(2000, 3, 2))
    m, x, y = np.moveaxis(points / np.linalg.norm(points, axis=2, keepdims=True), 1, 0)
    a, b = x - m, y - m
    square = (a * a).sum(1) ** 2 + (b * b).sum(1) ** 2 - 2 * (a * b).sum(1) ** 2
    assert square.max() <= 16


@pytest.mark.parametrize(("statistic", "least"), [*zip(STATISTICS, (0.97, 0.85, 0.97, 0.97), strict=True)])
def test_the_bound_is_about_reached(statistic, least):
    """By a row that goes from one end to the other in all columns, among many at the first end."""
    one = {MAPPED: (0, 0, 1), "treated": 0, "gain": -8.0, "age": 0.0, "course": "mild", "ward": "a"}
    other = {MAPPED: (0, 0, -1), "treated": 1, "gain": 12.0, "age": 120.0, "course": "fatal", "ward": "b"}
    if statistic.by:
        one |= {"age": 120.0}  # Or the product with treatment stays as it is.
    rest, rows = [one] * 600, (one, other)
    if statistic.cluster:
        rest, rows = [one] * 300 + [other] * 300, (other | {"ward": "a"}, one | {"ward": "b"})
    first, second = (statistic.part(as_table([row, *rest]), SECRET) for row in rows)
    assert np.linalg.norm((first - second) / statistic.spread) >= least * statistic.loss


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_row_is_hidden_as_well_as_by_this_noise_in_sums_for_a_model(statistic):
    roster = {str(place): MaskKey(bytes([place]) * 32).public for place in (1, 2, 3)}
    assert StudyPlan(roster, [statistic]).noise_of_sums == pytest.approx(0.1)
    raised = StudyPlan(roster, [statistic], epsilon=2.0)
    assert 1 / raised.loss == pytest.approx(gaussian_sigma(2.0, 1e-5))
    others = [Effect(TREATED, GAIN, 4), Effect(TREATED, AGE, 3), LeastSquares(GAIN, [AGE])]
    contexts = {StudyPlan(roster, [each]).agreed.context for each in (*STATISTICS, *others)}
    assert len(contexts) == 7


def table_of(n=200, seed=0):
    random = np.random.default_rng(seed)
    v = random.normal(size=(n, 3)) / 10
    return {MAPPED: v, "treated": random.integers(0, 2, n), "gain": random.normal(size=n)}


def test_little_overlap_is_said():
    statistic, tables = Effect(TREATED, GAIN, 3), [table_of(400, seed) for seed in range(3)]
    assert not pooled(statistic, tables, noise=0.0).cautions
    for table in tables:
        table["treated"] = (table[MAPPED][:, 0] * 20 > 0).astype(int)
        table[MAPPED][:, 0] = table["treated"] / 3 + np.random.default_rng(1).normal(size=400) / 50
    found = pooled(statistic, tables, noise=0.0)
    assert found.overlap < 0.1
    assert "few rows" in found.cautions[0]
    assert "weighted by overlap" in found.table().rows[0][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"treated": np.zeros(200, dtype=int)}, "hardly vary"),
        ({MAPPED: np.tile([[0.5, 0, 0], [-0.5, 0, 0]], (100, 1)), "treated": [0, 1] * 100}, "nearly follow"),
    ],
)
def test_an_effect_that_noise_could_decide_is_refused(change, message):
    with pytest.raises(NumericalError, match=message):
        pooled(Effect(TREATED, GAIN, 3), [table_of() | change] * 3)


def test_few_rows_are_refused():
    with pytest.raises(NumericalError, match="expected 100"):
        pooled(Effect(TREATED, GAIN, 3), [table_of(25)] * 3)


@pytest.mark.parametrize(
    "change",
    [
        {MAPPED: np.ones((200, 3))},
        {MAPPED: np.zeros((200, 2))},
        {MAPPED: np.zeros(200)},
        {"treated": [None] * 200},
        {"treated": ["secret"] * 200},
        {"gain": [np.nan] * 200},
    ],
)
def test_tables_that_do_not_fit_are_refused_and_not_quoted(change):
    with pytest.raises(AgreementError) as caught:
        Effect(TREATED, GAIN, 3).part(table_of() | change)
    assert "secret" not in str(caught.value)


def test_what_is_needed_is_asked_for():
    table = table_of()
    del table[MAPPED]
    with pytest.raises(AgreementError, match="rows in the common map"):
        Effect(TREATED, GAIN, 3).part(table)
    with pytest.raises(AgreementError, match="two levels"):
        Effect(COURSE, GAIN, 3)
    with pytest.raises(AgreementError, match="column by of two levels, got 3"):
        Effect(TREATED, GAIN, 3, by=COURSE)
