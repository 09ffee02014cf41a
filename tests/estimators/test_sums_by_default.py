"""Sums under masks behind scikit-learn's interface: what they bring, what implies rows, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, brier_score_loss, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import datacollab as dc
from datacollab.errors import AgreementError, AnchorError, FewEventsWarning, HeavyTailWarning
from datacollab.party import Microaggregation
from datacollab.sums import RidgeSums

PARTIES = np.array(["north", "south", "west", "east", "centre"])


class World:
    """Five parties' rows, public rows and new ones."""

    def __init__(self, X, y, n_own, n_public):
        order = np.random.default_rng(0).permutation(len(y))
        own, public, new = np.split(order, [n_own, n_own + n_public])
        self.X, self.y, self.groups = X[own], y[own], PARTIES[np.arange(n_own) % 5]
        self.anchor, self.anchor_target = X[public], y[public]
        self.new, self.answers = X[new], y[new]

    def fit(self, model, **options):
        return model.fit(self.X, self.y, groups=self.groups, **({"anchor": self.anchor} | options))


@pytest.fixture(scope="module")
def digits():
    return World(*dc.datasets.load("digits"), 200, 100)


@pytest.fixture(scope="module")
def fitted(digits):
    return digits.fit(dc.DataCollaborationClassifier(random_state=0))


@pytest.mark.slow
def test_parties_gain_what_the_rows_in_one_place_would_bring(digits, fitted):
    alone = [
        RandomForestClassifier(random_state=0).fit(digits.X[own], digits.y[own]).score(digits.new, digits.answers)
        for own in (digits.groups == party for party in PARTIES)
    ]
    central = RidgeClassifier().fit(digits.X, digits.y).score(digits.new, digits.answers)
    found = fitted.score(digits.new, digits.answers)
    assert found > max(alone) + 0.1
    assert found > central - 0.03


def test_the_model_is_ridge_regression_on_all_rows_but_for_the_noise(digits, fitted):
    v, model = fitted.transform(digits.X), fitted.sums_.model.fit
    pooled = fitted.sums_.plan.statistic.solve(fitted.sums_.plan.statistic.part(v, digits.y))
    assert model.n_rows == pytest.approx(200, abs=1)
    outputs = [each.predict(fitted.transform(digits.new)) for each in (model, pooled)]
    assert np.corrcoef(np.ravel(outputs[0]), np.ravel(outputs[1]))[0, 1] > 0.93


def test_probabilities_are_a_distribution_and_agree_with_the_classes(digits, fitted):
    said = fitted.predict_proba(digits.new)
    assert_allclose(said.sum(axis=1), 1)
    assert (said > 0).all()
    assert_array_equal(fitted.classes_[said.argmax(axis=1)], fitted.predict(digits.new))


@pytest.mark.slow
def test_an_experiment_can_be_repeated_and_secrets_are_new_otherwise(digits, fitted):
    again = digits.fit(clone(fitted))
    assert_array_equal(again.predict_proba(digits.new), fitted.predict_proba(digits.new))
    first, second = (digits.fit(dc.DataCollaborationClassifier()).predict_proba(digits.new) for _ in range(2))
    assert np.abs(first - second).max() > 1e-6


def test_labelled_public_rows_are_added(digits, fitted):
    more = digits.fit(clone(fitted), anchor_target=digits.anchor_target)
    assert more.sums_.model.fit.n_rows == pytest.approx(300, abs=1)
    assert more.score(digits.new, digits.answers) > fitted.score(digits.new, digits.answers)


def test_what_says_how_rows_are_shared_makes_them_be_shared(digits):
    h = LogisticRegression(max_iter=2000)
    for options in ({"obfuscator": PCA(8)}, {"integrator": dc.LTI(8)}, {"sharing": "rows"}):
        model = digits.fit(dc.DataCollaborationClassifier(**({"estimator": h, "integrator": dc.LTI(8)} | options)))
        assert set(model.models_) == set(PARTIES)
        assert not hasattr(model, "sums_")


@pytest.mark.parametrize(
    "given", [{"obfuscator": PCA(8)}, {"integrator": "auto"}, {"estimator": RidgeClassifier()}, {"fit_on": "anchor"}]
)
def test_what_sums_have_no_use_for_is_refused(digits, given):
    with pytest.raises(ValueError, match=f"sharing='sums' has no use for {next(iter(given))}"):
        digits.fit(dc.DataCollaborationClassifier(sharing="sums", **given))


@pytest.mark.filterwarnings("ignore:The total says hardly more:datacollab.errors.FewEventsWarning")
@pytest.mark.parametrize("epsilon", [1.0, 8.0, 1e4])
def test_epsilon_takes_the_noise_that_its_proof_wants(digits, fitted, epsilon):
    """Recommended noise stays the least; what reaches the total is that noise."""
    model = digits.fit(clone(fitted).set_params(epsilon=epsilon))
    plan = model.sums_.plan
    statistic = RidgeSums(plan.n_components, classes=range(10))
    assert plan.statistic.noise == max(model.sums_.space.recommended.noise, statistic.noise_for(epsilon))
    assert (plan.statistic.noise > fitted.sums_.plan.statistic.noise) == (epsilon < 1e4)
    assert (model.score(digits.new, digits.answers) < fitted.score(digits.new, digits.answers)) == (epsilon < 1e4)
    # Its standard deviation is 4 s, times what colluding parties add.
    n_off = abs(model.sums_.model.fit.n_rows - 200)
    assert n_off < 4 * 4 * plan.statistic.noise * plan.agreed.excess
    assert (n_off > 1) == (epsilon < 1e4)


def test_epsilon_of_numbers_goes_by_their_own_sensitivity():
    X, y = dc.datasets.load("diabetes")
    plan = World(X, y, 200, 100).fit(dc.DataCollaborationRegressor(epsilon=4.0, random_state=0)).sums_.plan
    assert plan.statistic.noise == RidgeSums(plan.n_components, limits=plan.limits).noise_for(4.0)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.slow
def test_a_row_with_an_owner_is_predicted_by_both_models_together_and_others_by_the_common_one(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"ward": rng.choice(["a", "b"], 400), "age": rng.normal(50, 10, 400)})
    score = X["age"].to_numpy() + 8 * (X["ward"] == "a").to_numpy() + rng.normal(size=400)
    y = np.where(score > 55, "yes", "no") if kind == "classes" else score
    model = (dc.DataCollaborationClassifier if kind == "classes" else dc.DataCollaborationRegressor)(random_state=0)
    owner, new = PARTIES[np.arange(200) % 5], X[300:]
    model.fit(X[:200], y[:200], groups=owner, anchor=X[200:300], anchor_target=y[200:300])
    method = "predict_proba" if kind == "classes" else "predict"
    groups = np.array(["north", "south", "stranger", "west"])[np.arange(100) % 4]
    found, common = getattr(model, method)(new, groups=groups), getattr(model, method)(new)
    assert_allclose(common, getattr(model.sums_.model, method)(model.sums_.space.transform(new)))
    for place, name in enumerate(groups):
        row, home = new[place : place + 1], model.sums_.homes.get(name)
        own = common[[place]] if home is None else getattr(home, method)(row)
        assert_allclose(found[[place]], own)
    assert {(home.own.n_own, len(home.own.rows)) for home in model.sums_.homes.values()} == {(40, 140)}
    assert np.abs(found - common).max() > 0.01
    measure = accuracy_score if kind == "classes" else r2_score
    assert model.score(new, y[300:], groups=groups) == measure(y[300:], model.predict(new, groups=groups))
    by_column = clone(model).set_params(party_column="owner")
    by_column.fit(X[:200].assign(owner=owner), y[:200], anchor=X[200:300], anchor_target=y[200:300])
    assert_allclose(getattr(by_column, method)(new.assign(owner=groups)), found)
    with pytest.raises(ValueError, match="groups must have one party name per row"):
        model.predict(new, groups=groups[:3])


@pytest.mark.parametrize("given", [{"sharing": "rows"}, {"obfuscator": PCA(8)}, {"defences": [Microaggregation()]}])
def test_epsilon_and_rows_are_refused_together(digits, given):
    with pytest.raises(ValueError, match="epsilon is a bound for sums"):
        digits.fit(dc.DataCollaborationClassifier(epsilon=8.0, **given))


@pytest.mark.parametrize("epsilon", [0, -1.0, "8"])
def test_an_epsilon_that_is_none_is_refused(digits, epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        digits.fit(dc.DataCollaborationClassifier(epsilon=epsilon))


def test_two_parties_and_no_anchor_are_refused(digits):
    two = np.where(digits.groups == "north", "north", "south")
    with pytest.raises(AgreementError, match="at least 3 parties; groups names 2"):
        dc.DataCollaborationClassifier().fit(digits.X, digits.y, groups=two, anchor=digits.anchor)
    with pytest.raises(AnchorError, match="needs an anchor"):
        digits.fit(dc.DataCollaborationClassifier(), anchor=None)


@pytest.mark.slow
def test_a_model_fitted_anew_the_other_way_keeps_nothing(digits):
    model = digits.fit(dc.DataCollaborationClassifier(random_state=0))
    digits.fit(model.set_params(integrator=dc.LTI(8), estimator=LogisticRegression(max_iter=2000)))
    assert not hasattr(model, "sums_")
    digits.fit(model.set_params(integrator=None, estimator=None))
    assert not hasattr(model, "models_")


def test_frames_with_categories_gaps_and_nullable_numbers():
    rng = np.random.default_rng(0)
    ward, age = rng.choice(["a", "b", "c"], 600), rng.normal(50, 10, 600)
    X = pd.DataFrame({"ward": ward, "age": pd.array(np.round(age), dtype="Int64"), "crp": rng.normal(size=600)})
    y = np.where((ward == "b") ^ (age > 50), "yes", "no")
    X.loc[rng.random(600) < 0.1, "crp"] = np.nan
    own, public, new = slice(0, 300), slice(300, 400), slice(400, None)
    model = dc.DataCollaborationClassifier(random_state=0)
    model.fit(X[own], y[own], groups=PARTIES[np.arange(300) % 5], anchor=X[public])
    assert model.score(X[new], y[new]) > 0.8
    assert model.transform(X[new]).shape[0] == 200


@pytest.mark.parametrize("given", [{"sharing": "rows"}, {"obfuscator": PCA(8)}, {"fit_on": "anchor"}])
def test_gaps_are_filled_before_maps_that_take_none(digits, given):
    X, new = digits.X.astype(float), digits.new.astype(float)
    X[0, 20], new[0, 21] = np.nan, np.nan
    model = dc.DataCollaborationClassifier(estimator=RidgeClassifier(), random_state=0, **given)
    model.fit(X, digits.y, groups=digits.groups, anchor=digits.anchor)
    for party in np.unique(digits.groups):
        assert model.predict(new[:3], groups=[party] * 3).shape == (3,)


@pytest.mark.parametrize("value", [0.0, 3.0, -1e18])
def test_a_constant_target_is_predicted(digits, value):
    model = dc.DataCollaborationRegressor(random_state=0)
    model.fit(digits.X, np.full(len(digits.y), value), groups=digits.groups, anchor=digits.anchor)
    assert_allclose(model.predict(digits.new), value, rtol=1e-12, atol=0.5)


def test_missing_targets_are_counted(digits):
    y = np.where(digits.y > 4, "high", "low").astype(object)
    y[[3, 5]] = None
    with pytest.raises(AgreementError, match="y is missing in 2 of 200 rows"):
        dc.DataCollaborationClassifier().fit(digits.X, y, groups=digits.groups, anchor=digits.anchor)


def records(column):
    return np.ascontiguousarray(column).view([("name", float)])


@pytest.mark.parametrize("sharing", ["sums", "rows"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (X * 1j, y),
        lambda X, y: (X, y + 0.123456j),
        lambda X, y: (X[:, 0], y),
        lambda X, y: (records(X[:, 0]), y),
    ],
    ids=["complex rows", "complex targets", "one column", "records"],
)
def test_no_error_quotes_a_row_or_a_target(digits, spoil, sharing):
    X, y = spoil(digits.X + 0.123456, digits.y)
    with pytest.raises(ValueError, match=r"Complex data|Expected 2D|array of records") as refused:
        dc.DataCollaborationClassifier(sharing=sharing).fit(X, y, groups=digits.groups, anchor=digits.anchor)
    assert "123456" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("column", ["c0", 0])
def test_new_rows_of_a_frame_need_no_column_of_owners(digits, column):
    """Their columns are judged alike with owners and without them."""
    names = [f"c{place}" if column == "c0" else place for place in range(65)]
    codes = np.arange(len(digits.X)) % 5
    rows = pd.DataFrame(np.column_stack([codes, digits.X]), columns=names)
    new = pd.DataFrame(np.column_stack([np.zeros(len(digits.new)), digits.new]), columns=names)
    anchor = pd.DataFrame(digits.anchor, columns=names[1:])
    model = dc.DataCollaborationClassifier(party_column=column, random_state=0).fit(rows, digits.y, anchor=anchor)
    bare = new.drop(columns=column)
    assert_array_equal(model.predict(bare), model.predict(new))
    assert_array_equal(model.predict_proba(bare), model.predict_proba(new))
    assert_array_equal(model.transform(bare), model.transform(new))
    words = "feature names should match" if column == "c0" else "features, but"
    further = pd.Series(1.0, new.index, name="c65" if column == "c0" else 65)
    for spoil in (lambda table: table.drop(columns=names[1]), lambda table: table.join(further)):
        for table in (new, bare):
            with pytest.raises(ValueError, match=words):
                model.predict(spoil(table))


def test_an_array_must_have_the_column_of_owners(digits):
    """Without it nobody can tell which column an array lacks, and would take others for these."""
    codes = np.arange(len(digits.X)) % 5
    model = dc.DataCollaborationClassifier(party_column=0, random_state=0)
    model.fit(np.column_stack([codes, digits.X]), digits.y, anchor=digits.anchor)
    for new in (digits.new, np.column_stack([np.zeros(len(digits.new)), digits.new[:, :-1]])):
        with pytest.raises(ValueError, match="X has 64 features, but DataCollaborationClassifier is expecting 65"):
            model.predict(new)


GROUPS = np.repeat(["a", "b", "c"], 100)


def normal_rows(seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(900, 6))


def play(y, X, **options):
    """R2 on other rows, and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = dc.DataCollaborationRegressor(random_state=0, **options)
        model.fit(X[200:500], y[200:500], groups=GROUPS, anchor=X[:200])
    return model.score(X[500:], y[500:]), [str(each.message) for each in said if each.category is HeavyTailWarning]


def tail(name, rng, f):
    noise = rng.normal(size=len(f))
    if name == "one":
        return np.where(np.arange(len(f)) == 200, 1000.0, f + 0.3 * noise)
    if name == "several":
        return np.where(np.isin(np.arange(len(f)), (200, 260, 330, 410)), -400.0 * (1 + rng.random(len(f))), f)
    return {
        "log-normal": np.exp(2 * f + 0.5 * noise),
        "Pareto": (rng.pareto(1.5, size=len(f)) + 1) * np.exp(f),
        "t": f + 1.5 * rng.standard_t(2, size=len(f)),
        "costs": np.where(rng.random(len(f)) < 1 / (1 + np.exp(2 - 2 * f)), np.exp(f + noise + 3), 0.0),
        "negative": -np.exp(2 * f + 0.5 * noise),
    }[name]


@pytest.mark.parametrize("name", ["one", "several", "log-normal", "Pareto", "t", "costs", "negative"])
def test_a_tail_gets_a_word_and_the_model_beats_the_mean(name):
    rng, X = normal_rows()
    found, said = play(tail(name, rng, (2 * X[:, 0] + X[:, 1]) / np.sqrt(5)), X)
    assert found > 0
    # Of two degrees of freedom, 300 normal_rows need not have a number that is far.
    assert len(said) == (name != "t")
    if not said:
        return
    assert ("scale='log'" in said[0]) == (name in ("log-normal", "Pareto", "costs"))
    assert "of 300 entries of y" in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_plain_numbers_get_no_word(seed):
    rng, X = normal_rows(seed)
    f = (2 * X[:, 0] + X[:, 1]) / np.sqrt(5)
    plain = {
        "normal": f + rng.normal(size=900),
        "bounded": 1 / (1 + np.exp(-2 * f)),
        "counts": rng.poisson(np.exp(0.6 * f + 1.5)),
    }
    for y in plain.values():
        found, said = play(np.asarray(y, dtype=float), X)
        assert not said
        assert found > 0.2


def test_a_scale_that_cannot_be_is_refused_in_words():
    _, X = normal_rows()
    fit = {"groups": GROUPS, "anchor": X[:200]}
    with pytest.raises(ValueError, match=r"scale='log' is for y of 0 or more, and \d+ of 300 entries are below"):
        dc.DataCollaborationRegressor(scale="log").fit(X[200:500], X[200:500, 0], **fit)
    with pytest.raises(ValueError, match="scale is for sums, and sharing has rows shared"):
        dc.DataCollaborationRegressor(scale="log", sharing="rows").fit(X[200:500], np.ones(300), **fit)
    with pytest.raises(ValueError, match="scale"):
        dc.DataCollaborationRegressor(scale="root").fit(X[200:500], np.ones(300), **fit)


def test_a_total_that_says_nothing_says_so():
    rng, X = normal_rows(3)
    y = rng.permutation(np.arange(300) < 6)
    with pytest.warns(FewEventsWarning, match="hardly more of 2 of 2 classes than their shares"):
        model = dc.DataCollaborationClassifier(random_state=0).fit(X[200:500], y, groups=GROUPS, anchor=X[:200])
    said = model.predict_proba(X[500:])
    assert said[:, 1].std() < 0.01
    assert said[:, 1].mean() == pytest.approx(0.02, abs=0.01)


N, N_PUBLIC, N_NEW = 900, 300, 2000
HOSPITALS = np.repeat(["a", "b", "c"], N // 3)
OWN, PUBLIC, NEW = np.split(np.arange(N + N_PUBLIC + N_NEW), [N, N + N_PUBLIC])


def patients(seed):
    rng, n = np.random.default_rng(seed), N + N_PUBLIC + N_NEW
    shares = 1 / (np.arange(40) + 3)
    age, crp = rng.normal(65, 12, n).round(), rng.lognormal(2, 0.8, n).round(1)
    code = rng.choice(40, n, p=shares / shares.sum())
    logit = -2.1 + 0.7 * (age - 65) / 12 + 0.5 * (np.log(crp + 0.1) - 2) + rng.normal(0, 0.7, 40)[code]
    table = pd.DataFrame({"age": age, "crp": crp, "code": [f"C{each:02}" for each in code]})
    table.loc[rng.random(n) < 0.08, "crp"] = np.nan
    return table, np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")


def scores(model, table, y):
    said = model.predict_proba(table)[:, list(model.classes_).index("yes")]
    return roc_auc_score(y == "yes", said), brier_score_loss(y == "yes", said), said.mean()


@pytest.mark.parametrize("recorded", ["everywhere", "not at c"])
@pytest.mark.slow
def test_it_is_ranked_and_its_probability_kept_as_by_all_rows_in_one_place(recorded):
    found, central, rates = [], [], []
    for seed in range(4):
        table, y = patients(seed)
        own = OWN if recorded == "everywhere" else OWN[(HOSPITALS != "c") | (y[OWN] == "no")]
        model = dc.DataCollaborationClassifier(random_state=0)
        model.fit(table.iloc[own], y[own], groups=HOSPITALS[own], anchor=table.iloc[PUBLIC])
        encode = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "crp"]),
            (OneHotEncoder(handle_unknown="ignore"), ["code"]),
        )
        pooled = make_pipeline(encode, LogisticRegression()).fit(table.iloc[own], y[own])
        for into, each in ((found, model), (central, pooled)):
            into.append(scores(each, table.iloc[NEW], y[NEW]))
        rates.append(np.mean(y[NEW] == "yes"))
    rate = np.mean(rates)
    assert 0.12 < rate < 0.17
    (auc, brier, mean), (best, _, mean_of_all) = np.mean(found, axis=0), np.mean(central, axis=0)
    assert auc > best - 0.015
    assert abs(mean - mean_of_all) < 0.02
    if recorded == "everywhere":
        assert brier < 0.95 * rate * (1 - rate)
        assert abs(mean - rate) < 0.02
