import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import CoxPHFitter
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sksurv.linear_model import CoxPHSurvivalAnalysis
from survival_examples import made_up, naive_log_likelihood, whas500

from datacollab.errors import AgreementError, DataCollabWarning, NotConvergedError, NumericalError
from datacollab.survival import CoxRegression
from datacollab.targets import coarsen_times, survival_target, usual_time_step

TIES = ["efron", "breslow"]
lifelines = pytest.mark.filterwarnings("ignore:Starting with pandas")


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(TIES), st.booleans(), st.booleans())
def test_the_fit_is_at_the_maximum_of_the_formula(seed, ties, rounded, weighted):
    """Its gradient vanishes there, and its curvature is the inverse of the covariance."""
    X, y = made_up(60, 2, seed=seed, step=0.25 if rounded else 0.0)
    generator = np.random.default_rng(seed)
    given = {"strata": generator.integers(2, size=60), "weight": generator.uniform(0.5, 2, 60)} if weighted else {}
    sample_weight = given.get("weight")
    model = CoxRegression(ties=ties).fit(X, y, strata=given.get("strata"), sample_weight=sample_weight)

    def formula(beta):
        return naive_log_likelihood(beta, X, y, ties=ties, **given)

    assert model.log_likelihood_ == pytest.approx(formula(model.coef_), rel=1e-10)
    steps = 1e-4 * np.eye(2)
    gradient = [(formula(model.coef_ + e) - formula(model.coef_ - e)) / 2e-4 for e in steps]
    curvature = [
        [sum(s * t * formula(model.coef_ + s * e + t * f) for s in (1, -1) for t in (1, -1)) / 4e-8 for f in steps]
        for e in steps
    ]
    information = np.linalg.inv(model.covariance_)
    assert_allclose(gradient, 0, atol=1e-5 * np.abs(information).max())
    assert_allclose(-np.array(curvature), information, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("alpha", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("months", [False, True])
def test_coefficients_are_those_of_scikit_survival(ties, alpha, months):
    X, y = whas500()
    y = coarsen_times(y, 30.4375) if months else y
    X[:, 0] *= 3  # a penalty must not depend on how columns are scaled within
    theirs = CoxPHSurvivalAnalysis(alpha=alpha, ties=ties, tol=1e-14, n_iter=200).fit(X, y)
    ours = CoxRegression(alpha, ties=ties, min_events_per_step=1).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    # Their baseline is of the row of zeros, ours of the mean row.
    times = np.unique(y["time"][y["event"]])
    hazard = np.array([f(times) for f in theirs.predict_cumulative_hazard_function(X[:5])])
    assert_allclose(ours.predict_cumulative_hazard(X[:5], times), hazard, rtol=1e-7)


@lifelines
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("penalizer", "weighted"), [(0.0, False), (0.1, False), (0.0, True)])
def test_strata_errors_penalty_and_weights_are_those_of_lifelines(seed, penalizer, weighted):
    X, y = made_up(150, seed=seed, step=0.2)
    # Lifelines penalises standardised columns.
    X = X / X.std(axis=0, ddof=1)
    strata = np.random.default_rng(seed).integers(3, size=150)
    weight = np.random.default_rng(5).integers(1, 5, size=150) if weighted else np.ones(150)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(e=y["event"], t=y["time"], s=strata, w=weight)
    options = {"precision": 1e-12, "max_steps": 100}
    theirs = CoxPHFitter(penalizer=penalizer).fit(table, "t", "e", strata=["s"], weights_col="w", fit_options=options)
    ours = CoxRegression(penalizer * len(y)).fit(X, y, strata=strata, sample_weight=weight)
    assert_allclose(ours.coef_, theirs.params_, atol=1e-4)
    assert_allclose(ours.covariance_, theirs.variance_matrix_, atol=1e-4)
    assert ours.log_likelihood_ == pytest.approx(
        naive_log_likelihood(ours.coef_, X, y, ties="efron", strata=strata, weight=weight), rel=1e-10
    )


def test_a_penalty_on_standardized_columns_knows_no_units():
    X, y = made_up(100)
    units = np.array([1e-3, 1.0, 50.0])
    first = CoxRegression(3.0, standardize=True).fit(X, y)
    second = CoxRegression(3.0, standardize=True).fit(X * units, y)
    assert_allclose(first.predict(X), second.predict(X * units), atol=1e-9)
    spread = X.std(axis=0)
    plain = CoxRegression(3.0).fit(X / spread, y)
    assert_allclose(first.coef_ * spread, plain.coef_, atol=1e-9)
    assert_allclose(first.covariance_ * np.outer(spread, spread), plain.covariance_, rtol=1e-7)


def test_one_stratum_is_none_and_order_and_names_do_not_matter():
    X, y = made_up(90, step=0.2)
    none, one = CoxRegression().fit(X, y), CoxRegression().fit(X, y, strata=["all"] * 90)
    assert_array_equal(none.coef_, one.coef_)
    assert_array_equal(none.predict_survival(X, [0.5]), one.predict_survival(X, [0.5], "all"))
    strata = np.arange(90) % 3
    order = np.random.default_rng(0).permutation(90)
    first = CoxRegression().fit(X, y, strata=strata)
    second = CoxRegression().fit(X[order], y[order], strata=np.array(["x", "y", "z"])[strata[order]])
    assert_allclose(first.coef_, second.coef_, atol=1e-12)
    assert_allclose(first.predict_survival(X, [0.5], 1), second.predict_survival(X, [0.5], "y"), rtol=1e-10)


def test_expected_events_are_those_seen():
    """Σ Λ(t_i | x_i) = Σ δ_i in each stratum: what makes Breslow's estimate what it is."""
    X, y = made_up(120, step=0.2)
    strata = np.arange(120) % 2
    # Who left between two events was at risk at the first of them, and no later.
    for stratum in (0, 1):
        events = np.unique(y["time"][(strata == stratum) & y["event"]])
        left = (strata == stratum) & (y["time"] >= events[0])
        y["time"][left] = events[np.searchsorted(events, y["time"][left], side="right") - 1]
    assert set(np.unique(y["time"][~y["event"]])) <= set(np.unique(y["time"][y["event"]]))
    model = CoxRegression(min_events_per_step=1).fit(X, y, strata=strata)
    for stratum in (0, 1):
        own = strata == stratum
        expected = np.diagonal(model.predict_cumulative_hazard(X[own], y["time"][own], stratum))
        assert expected.sum() == pytest.approx(y["event"][own].sum(), rel=1e-10)


@pytest.mark.parametrize("least", [1, 5, 12])
def test_steps_of_the_baseline_hold_enough_events_and_keep_its_values(least):
    X, y = made_up(150, step=0.05)
    fine = CoxRegression(min_events_per_step=1).fit(X, y).baselines_[None]
    coarse = CoxRegression(min_events_per_step=least).fit(X, y).baselines_[None]
    assert_allclose(coarse.cumulative_hazard, fine(coarse.times), rtol=1e-12)
    assert coarse.times[-1] == fine.times[-1] == y["time"].max()
    ends = coarse.times[np.diff(coarse.cumulative_hazard, prepend=0) > 0]
    counts, _ = np.histogram(y["time"][y["event"]], bins=np.append(-np.inf, np.nextafter(ends, np.inf)))
    assert counts.min() >= least
    assert counts.sum() == y["event"].sum()


def test_one_baseline_alone():
    X, y = made_up(60)
    model = CoxRegression().fit(X, y, strata=np.arange(60) % 2)
    alone = model.for_party(1)
    assert list(alone.baselines_) == [1]
    assert list(model.baselines_) == [0, 1]
    assert_array_equal(alone.predict_survival(X, [0.3]), model.predict_survival(X, [0.3], 1))
    with pytest.raises(AgreementError, match="strata 0, 1; none was named"):
        model.predict_survival(X, [0.3])
    with pytest.raises(AgreementError, match="strata 1; got 0"):
        alone.predict_survival(X, [0.3], 0)
    with pytest.raises(AgreementError, match="got 7"):
        model.for_party(7)
    common = CoxRegression().fit(X, y)
    assert common.for_party(7) is common


@pytest.mark.parametrize("p", [1, 2])
def test_separation_is_refused_and_a_penalty_mends_it(p):
    X, y = made_up(40, p)
    X[:, 0] = -y["time"]
    y["event"][:] = True
    with pytest.raises(NumericalError, match="set alpha above 0|Set alpha above 0"):
        CoxRegression().fit(X, y)
    assert np.isfinite(CoxRegression(1.0).fit(X, y).coef_).all()


def test_a_column_that_others_say_is_refused():
    X, y = made_up()
    twice = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
    with pytest.raises(NumericalError, match="combination of others"):
        CoxRegression().fit(twice, y)
    constant = np.column_stack([X, np.full(len(X), 7.0)])
    with pytest.raises(NumericalError, match="constant"):
        CoxRegression().fit(constant, y)
    assert CoxRegression(1e-3).fit(constant, y).coef_[-1] == 0
    # A column that is constant within strata is known by the baselines alone.
    strata = np.arange(len(X)) % 2
    with pytest.raises(NumericalError, match="within strata"):
        CoxRegression().fit(np.column_stack([X, strata]), y, strata=strata)


def test_too_few_iterations_are_said():
    with pytest.raises(NotConvergedError, match="in 2 iterations"):
        CoxRegression(max_iter=2).fit(*made_up())


def test_what_is_no_survival_target_is_refused_without_showing_it():
    X, y = made_up(20)
    with pytest.raises(AgreementError, match="must be survival targets"):
        CoxRegression().fit(X, y["time"])
    with pytest.raises(AgreementError, match="No event was seen among 20 rows"):
        CoxRegression().fit(X, survival_target(np.zeros(20), y["time"]))
    with pytest.raises(AgreementError, match="got 19 for 20"):
        CoxRegression().fit(X, y[:19])
    with pytest.raises(AgreementError, match="Expected one stratum per row"):
        CoxRegression().fit(X, y, strata=[1, 2])
    with pytest.raises(ValueError, match="1 of 20 are not"):
        CoxRegression().fit(X, y, sample_weight=np.append(np.ones(19), -1))
    with pytest.raises(ValueError, match="alpha"):
        CoxRegression(-1.0).fit(X, y)


def test_nothing_is_said_beyond_the_observation():
    X, y = made_up(50)
    model = CoxRegression().fit(X, y)
    end = y["time"].max()
    assert model.predict_survival(X, [0.0, end]).shape == (50, 2)
    assert_array_equal(model.predict_survival(X, 0.0), 1.0)
    with pytest.raises(ValueError, match="1 of 2 times are beyond"):
        model.predict_survival(X, [end, np.nextafter(end, np.inf)])
    with pytest.raises(ValueError, match="finite numbers from 0 on"):
        model.predict_survival(X, [-1.0])


def test_it_is_an_estimator():
    X, y = made_up()
    model = clone(CoxRegression(2.0, ties="breslow"))
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert model.fit(X, y) is model
    assert model.predict(model.mean_[None])[0] == 0
    assert model.score(X, y) > 0.6
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :2])


def test_a_stratum_without_events_gets_the_baseline_of_all_and_is_named():
    X, y = made_up(100)
    strata = np.where(np.arange(100) < 20, "calm", "other")
    y["event"][strata == "calm"] = False
    with pytest.warns(DataCollabWarning, match="'calm' .rows: 20"):
        model = CoxRegression().fit(X, y, strata)
    assert_allclose(model.coef_, CoxRegression().fit(X[20:], y[20:]).coef_, atol=1e-9)
    assert model.predict_survival(X[:1], [0.5], "calm")[0, 0] < 1
    rows = (X - model.mean_) @ model.coef_
    naive = sum(1 / np.exp(rows[y["time"] >= t]).sum() for t in y["time"][y["event"] & (y["time"] <= 9)])
    assert model.baselines_["calm"].cumulative_hazard[-1] == pytest.approx(naive)


def test_the_usual_step_leaves_early_hazards_as_they_are():
    """Steps of a sixtieth of the longest time tie the early events, and draw the coefficient by .07 to zero."""
    generator, found = np.random.default_rng(0), {"usual": [], "sixtieth": []}
    for _ in range(20):
        X = generator.normal(size=(300, 1))
        time = 20 * (generator.exponential(size=300) * np.exp(-X[:, 0])) ** (1 / 0.3)
        end = generator.uniform(30, 60, size=300)
        y = survival_target(time <= end, np.maximum(np.minimum(time, end), 1e-9))
        for name, step in {"usual": usual_time_step(y["time"], y["event"]), "sixtieth": 1.0}.items():
            found[name].append(CoxRegression().fit(X, coarsen_times(y, step)).coef_[0])
    assert abs(np.mean(found["usual"]) - 1) < 0.06 < 1 - np.mean(found["sixtieth"])
