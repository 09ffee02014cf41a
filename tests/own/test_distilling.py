"""A party that distils anchor predictions, refuses where that cannot be done, and forgets all else."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import datacollab as dc
from datacollab.errors import AgreementError, AnchorError, ForgottenError, UnknownPartyError
from datacollab.linalg import median_gamma
from datacollab.model import AnchorPredictions
from datacollab.party import AnchorRidge, GaussianMechanism, Microaggregation, local_party, party_state


@pytest.fixture
def wave(rng):
    X = rng.uniform(-2, 2, size=(60, 2))
    return X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_scikit_learn_contract():
    check_estimator(AnchorRidge())


@pytest.mark.parametrize("standardize", [False, True])
def test_what_it_says_of_its_score_is_what_refits_say(wave, standardize):
    X, T = wave
    X = X * [1.0, 5.0]
    ridge = AnchorRidge(standardize=standardize).fit(X, T)
    used = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    again = AnchorRidge(gamma=ridge.gamma_, alpha=ridge.alpha_, standardize=False)
    left_out = cross_val_predict(again, used, T, cv=LeaveOneOut())
    means = cross_val_predict(DummyRegressor(), used, T, cv=LeaveOneOut())
    expected = 1 - ((T - left_out) ** 2).sum() / ((T - means) ** 2).sum()
    assert_allclose(ridge.r2_, expected, rtol=1e-6)


def test_no_setting_of_the_grid_does_better(wave):
    X, T = wave
    best = AnchorRidge().fit(X, T)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for rows, standardize in ((X, False), (scaled, True)):
        for multiple in (0.25, 0.5, 1, 2, 4):
            for alpha in (1e-6, 1e-4, 1e-2, 1.0):
                gamma = multiple * median_gamma(rows)
                other = AnchorRidge(gamma=gamma, alpha=alpha, standardize=standardize).fit(X, T)
                assert other.r2_ <= best.r2_ + 1e-12


def test_units_do_not_matter_where_columns_are_standardised(wave):
    X, T = wave
    units, zero = np.array([1e-3, 1e4]), np.array([5.0, -3.0])
    first = AnchorRidge(standardize=True).fit(X, T)
    second = AnchorRidge(standardize=True).fit(X * units + zero, T)
    assert_allclose(first.predict(X), second.predict(X * units + zero), atol=1e-6)
    # Left to choose, it does not let a column of large numbers drown the other.
    assert AnchorRidge().fit(X * units, T).standardize_


@pytest.mark.slow
def test_of_many_rows_some_choose_and_all_are_learned_from(rng):
    X = rng.uniform(-3, 3, size=(1300, 1))
    ridge = AnchorRidge().fit(X, np.sin(X[:, 0]))
    assert ridge.coefficients_.shape == (1300, 1)
    assert ridge.score(X, np.sin(X[:, 0])) > 0.999


def test_equal_rows_have_no_width():
    with pytest.raises(ValueError, match="give gamma"):
        AnchorRidge().fit(np.ones((30, 2)), np.arange(30))


def digits(seed=0, n_parties=4, n_rows=60, n_anchors=300):
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = np.asarray(X, dtype=float)[order], np.asarray(y)[order]
    stop = n_parties * n_rows
    own = [slice(n_rows * k, n_rows * (k + 1)) for k in range(n_parties)]
    anchor, rest = slice(stop, stop + n_anchors), slice(stop + n_anchors, None)
    return X, y, own, anchor, rest


def collaboration_of(X, y, own, anchor, estimator=None):
    parties = [
        dc.Party(name, dc.obfuscator("pca", n_components=16), random_state=k).fit(X[rows], y[rows])
        for k, (name, rows) in enumerate(zip("abcdef", own, strict=False))
    ]
    analyst = dc.Analyst(dc.KTI(16), estimator or RandomForestClassifier(random_state=0))
    return parties, analyst.fit([party.share(anchor) for party in parties])


@pytest.fixture(scope="module")
def world():
    X, y, own, anchor, rest = digits()
    parties, collaboration = collaboration_of(X, y, own, X[anchor])
    return X, y, own, X[anchor], rest, parties, collaboration


def test_answers_are_what_the_partys_model_says_of_the_anchor(world):
    *_, anchor, _, parties, collaboration = world
    for party in parties:
        answers, model = collaboration.anchor_predictions(party.name), collaboration.party_model(party.name)
        h, g = collaboration.estimator_, collaboration.integrator_.integration_functions_[party.name]
        assert_array_equal(answers.values, h.predict_proba(g(party.obfuscate(anchor))))
        assert_array_equal(answers.predicted, party.predict(anchor, model))
        assert_array_equal(answers.classes, h.classes_)
    with pytest.raises(UnknownPartyError, match="'z' took no part"):
        collaboration.anchor_predictions("z")


def test_a_collaboration_without_shares_has_no_answers(world):
    *_, collaboration = world
    bare = dc.Collaboration(collaboration.integrator_, collaboration.estimator_, {})
    with pytest.raises(UnknownPartyError, match="not at hand"):
        bare.anchor_predictions("a")


def test_the_nearest_anchor_row_gives_back_its_answer(world):
    *_, anchor, _, parties, collaboration = world
    answers = collaboration.anchor_predictions("a")
    learned = parties[0].distil(anchor, answers, KNeighborsRegressor(1))
    assert_array_equal(learned.predict_proba(anchor), answers.values)
    assert_array_equal(learned.predict(anchor), answers.predicted)
    named = parties[0].distil(anchor, answers, KNeighborsClassifier(1))
    assert_array_equal(named.predict(anchor), answers.predicted)


def test_it_predicts_as_well_as_the_model_and_asks_for_no_map(world):
    X, y, own, anchor, rest, parties, collaboration = world
    party = copy.deepcopy(parties[0])
    by_model = np.mean(party.predict(X[rest], collaboration.party_model("a")) == y[rest])
    party.forget()
    learned = party.distil(anchor, collaboration.anchor_predictions("a"), rows=X[own[0]])
    assert np.mean(learned.predict(X[rest]) == y[rest]) > by_model - 0.03
    assert 0.8 < learned.r2 < 1
    assert 0.7 < learned.agreement < 1
    assert 0.8 < learned.remoteness < 1.3
    assert_allclose(learned.predict_proba(X[rest]).sum(axis=1), 1)
    assert "r2=0." in repr(learned)


def test_what_is_said_of_rows_left_out_is_what_folds_say(world):
    *_, anchor, _, parties, collaboration = world
    answers = collaboration.anchor_predictions("a")
    numbers = AnchorPredictions(party="a", values=answers.values[:, 3])
    left_out = cross_val_predict(Ridge(10.0), anchor, numbers.values, cv=KFold(5, shuffle=True, random_state=0))
    expected = 1 - ((numbers.values - left_out) ** 2).sum() / ((numbers.values - numbers.values.mean()) ** 2).sum()
    assert_allclose(parties[0].distil(anchor, numbers, Ridge(10.0)).r2, expected)


@pytest.mark.slow
def test_numbers_are_learned_as_numbers(rng):
    X = rng.uniform(-2, 2, size=(300, 3))
    values = np.sin(X[:, 0]) + X[:, 1]
    party, answers = dc.Party("a", None), AnchorPredictions(party="a", values=values[:200])
    for estimator in (None, RandomForestRegressor(50, random_state=0), make_pipeline(StandardScaler(), Ridge())):
        learned = party.distil(X[:200], answers, estimator)
        assert np.corrcoef(learned.predict(X[200:]), values[200:])[0, 1] > 0.9
        assert (learned.classes_, learned.agreement, learned.remoteness) == (None, None, None)
    with pytest.raises(AttributeError, match="no probabilities"):
        learned.predict_proba(X)
    with pytest.raises(TypeError, match="numbers"):
        party.distil(X[:200], answers, LogisticRegression())


def test_a_classifier_learns_the_probabilities_and_not_the_winners(rng):
    """Of answers that a logistic model gave, a logistic model finds that model again."""
    X = rng.normal(size=(400, 2))
    probability = 1 / (1 + np.exp(-(0.5 + X @ [1.0, -0.7])))
    answers = AnchorPredictions(party="a", values=np.column_stack([1 - probability, probability]), classes=[0, 1])
    plain = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000)
    learned = dc.Party("a", None).distil(X, answers, plain)
    assert_allclose(learned.estimator.coef_, [[1.0, -0.7]], atol=1e-3)
    assert_allclose(learned.estimator.intercept_, [0.5], atol=1e-3)
    assert_allclose(learned.predict_proba(X), answers.values, atol=1e-3)
    scaled = dc.Party("a", None).distil(X, answers, make_pipeline(StandardScaler(), plain))
    assert_allclose(scaled.predict_proba(X), answers.values, atol=1e-3)


def test_a_class_that_is_never_likely_keeps_its_column(rng):
    X = rng.normal(size=(100, 2))
    first = (X[:, 0] > 0).astype(float)
    values = np.column_stack([first, np.zeros(100), 1 - first])
    answers = AnchorPredictions(party="a", values=values, classes=["x", "y", "z"])
    learned = dc.Party("a", None).distil(X, answers, DecisionTreeClassifier())
    assert_array_equal(learned.predict_proba(X), answers.values)


def test_a_regressor_that_says_nothing_of_a_row_holds_all_classes_alike(rng):
    class Negative(LinearRegression):
        def predict(self, X):
            return super().predict(X) - 1e6 * (np.asarray(X)[:, :1] > 100)

    X = rng.normal(size=(100, 2))
    probability = 1 / (1 + np.exp(-3 * X[:, 0]))
    answers = AnchorPredictions(party="a", values=np.column_stack([probability, 1 - probability]), classes=["x", "y"])
    learned = dc.Party("a", None).distil(X, answers, Negative())
    assert_allclose(learned.predict_proba(np.array([[101.0, 0.0], [1e4, 0.0]])), 0.5)


@pytest.mark.parametrize(("kind", "seed"), [("real", 0), ("smote", 0), ("smote", 1), ("uniform", 0), ("uniform", 2)])
@pytest.mark.slow
def test_anchors_of_real_rows_and_interpolated_ones_are_learned_from_and_uniform_ones_are_not(kind, seed):
    X, y, own, place, rest = digits(seed)
    if kind == "real":
        anchor = X[place]
    elif kind == "smote":
        anchor, _ = dc.SMOTEAnchor(n_samples=300).sample(X[place][:100], y[place][:100], random_state=seed)
    else:
        anchor = np.random.default_rng(seed).uniform(X.min(axis=0), X.max(axis=0), size=(300, 64))
    parties, collaboration = collaboration_of(X, y, own, anchor)
    answers = collaboration.anchor_predictions("a")
    if kind == "uniform":
        with pytest.raises(AnchorError, match="times as far"):
            parties[0].distil(anchor, answers, rows=X[own[0]])
        with pytest.raises(AnchorError, match="of what the predictions vary by"):
            parties[0].distil(anchor, answers)
    else:
        learned = parties[0].distil(anchor, answers, rows=X[own[0]])
        assert np.mean(learned.predict(X[rest]) == y[rest]) > 0.85


def test_a_poor_estimator_says_nothing_against_the_anchor(world):
    *_, anchor, _, parties, collaboration = world
    learned = parties[0].distil(anchor, collaboration.anchor_predictions("a"), DecisionTreeRegressor(max_depth=1))
    assert learned.r2 < 0.3


def test_what_does_not_belong_together_is_refused(world):
    X, _, own, anchor, _, parties, collaboration = world
    answers, party = collaboration.anchor_predictions("a"), parties[0]
    refusals = [
        (AgreementError, "made for 'b'", (anchor, collaboration.anchor_predictions("b")), {}),
        (AgreementError, "300 anchor rows, and the anchor has 299", (anchor[1:], answers), {}),
        (TypeError, "got ndarray", (anchor, answers.values), {}),
        (TypeError, "PCA", (anchor, answers, dc.obfuscator("pca")), {}),
        (TypeError, "BaseEstimator", (anchor, answers, BaseEstimator()), {}),
        (AnchorError, "in another order", (anchor[::-1], answers), {}),
        (AnchorError, "finite numbers", (np.where(anchor > 0.9, np.nan, anchor), answers), {}),
        (AnchorError, "finite numbers", (anchor.astype(str).astype(object) + "x", answers), {}),
        (ValueError, "64 columns", (anchor, answers), {"rows": X[own[0]][:, :5]}),
        (ValueError, "at least 10", (anchor, answers), {"rows": X[:9]}),
    ]
    for kind, words, arguments, options in refusals:
        with pytest.raises(kind, match=words) as found:
            party.distil(*arguments, **options)
        assert "'a'" in str(found.value) or kind is TypeError
    few = AnchorPredictions(party="a", values=np.arange(10.0))
    with pytest.raises(AnchorError, match="fewer than 20"):
        party.distil(np.eye(10), few)
    with pytest.raises(AnchorError, match="nothing to learn"):
        party.distil(anchor, AnchorPredictions(party="a", values=np.ones(300)))


def naive_remoteness(own, anchor):
    """Without draws: as many rows of each."""
    distances = np.linalg.norm(own[:, None] - own[None], axis=2) + np.diag(np.full(len(own), np.inf))
    return np.linalg.norm(own[:, None] - anchor[None], axis=2).min(axis=1).mean() / distances.min(axis=1).mean()


def remoteness(own, anchor):
    answers = AnchorPredictions(party="a", values=anchor[:, 0])
    return dc.Party("a", None).distil(anchor, answers, Ridge(), rows=own).remoteness


def test_remoteness_is_a_ratio_of_mean_distances(rng):
    own, anchor = rng.normal(size=(40, 3)), rng.normal(0.5, 1.0, size=(40, 3))
    scale = np.vstack([own, anchor]).std(axis=0)
    assert_allclose(remoteness(own, anchor), naive_remoteness(own / scale, anchor / scale))
    assert_allclose(remoteness(own * [1, 10, 100] + 5, anchor * [1, 10, 100] + 5), remoteness(own, anchor))


@pytest.mark.parametrize("n_own", [30, 2000])
@pytest.mark.parametrize("n_anchors", [50, 600])
@pytest.mark.parametrize("n_features", [2, 30])
def test_remoteness_is_one_for_rows_of_one_kind_however_many(rng, n_own, n_anchors, n_features):
    own, anchor = rng.normal(size=(n_own, n_features)), rng.normal(size=(n_anchors, n_features))
    assert abs(remoteness(own, anchor) - 1) < 0.35


PARTIES = {
    "pca": lambda name, X: dc.Party(name, dc.obfuscator("pca", n_components=8)),
    "kernel pca": lambda name, X: dc.Party(name, dc.obfuscator("kernel-pca", n_components=8)),
    "rotated": lambda name, X: dc.Party(name, dc.obfuscator("pca", n_components=8), fit_on=X[100:300]),
    "noisy": lambda name, X: dc.Party(
        name, dc.obfuscator("pca"), fit_on=X[100:300], defences=[GaussianMechanism(64.0)]
    ),
    "grouped": lambda name, X: dc.Party(name, dc.obfuscator("pca"), fit_on=X[100:300], defences=[Microaggregation(3)]),
}


def secrets_of(party, X, y, order):
    """Every array that a party holds in it: map, rotation, order, targets, digests, published rows; and the table."""
    found = []

    def walk(value, depth=0):
        if isinstance(value, np.ndarray) and value.dtype != object and value.nbytes >= 32:
            found.append(value)
        elif isinstance(value, bytes) and len(value) >= 16:
            found.append(np.frombuffer(value, np.uint8))
        elif isinstance(value, dict | list | tuple | set | frozenset):
            for each in value.values() if isinstance(value, dict) else value:
                walk(each, depth + 1)
        elif hasattr(value, "__dict__") and depth < 8:
            walk(vars(value), depth + 1)

    walk(vars(party))
    return [*found, X, y.astype(np.int64), np.asarray(order)]


def held_in(array, data):
    """Whether any row of an array is in these bytes, laid out either way."""
    rows = [array] if array.ndim == 1 else [*array, *array.T]
    return any(len(row) and np.ascontiguousarray(row).tobytes() in data for row in rows if np.any(row != row.flat[0]))


@pytest.mark.parametrize("kind", PARTIES)
def test_nothing_secret_is_in_what_is_left(kind):
    X, y = dc.datasets.load("digits")
    X, y = np.asarray(X, dtype=float) + 0.123, np.asarray(y)
    party = PARTIES[kind]("north", X).fit(X[:100], y[:100])
    _, order = party.share_with_order(X[100:300], y[100:300])
    secrets = secrets_of(party, X[:100], y[:100], np.arange(7) if order is None else order)
    before = pickle.dumps(party)
    assert sum(held_in(secret, before) for secret in secrets) >= 4  # the search finds what is there
    told = party.forget()
    assert "has forgotten" in told
    after = pickle.dumps(party)
    assert not any(held_in(secret, after) for secret in secrets)
    assert len(after) < 500
    assert set(vars(party)) == {
        *("name", "obfuscator", "fit_on", "defences", "shuffle", "share_again", "time_step", "random_state"),
        *("_fitted_tables", "_forgotten"),
    }


def test_what_needs_the_map_is_refused_in_words(world):
    X, y, own, anchor, _, parties, collaboration = world
    party, model = copy.deepcopy(parties[1]), collaboration.party_model("b")
    state = party_state(party)
    party.forget()
    assert repr(party) == "Party('b', forgotten)"
    calls = [
        lambda: party.share(anchor),
        lambda: party.share_with_order(anchor),
        lambda: party.fit(X[own[1]], y[own[1]]),
        lambda: party.obfuscate(X),
        lambda: party.transform(X, model),
        lambda: party.predict(X, model),
        lambda: party.predict_proba(X, model),
        lambda: party.personalise(model, X[own[1]], y[own[1]]),
        lambda: party.was_fitted_on(X),
        lambda: party.guarantee(anchor),
        lambda: party_state(party),
    ]
    for call in calls:
        with pytest.raises(ForgottenError, match="Party 'b' has forgotten its map"):
            call()
    assert party.distil(anchor, collaboration.anchor_predictions("b")).predict(X[:3]).shape == (3,)
    assert party.forget().startswith("Party 'b' has forgotten")
    # Copies made before, and files, are another matter; the message says so.
    assert local_party(*state).predict(X[:3], model).shape == (3,)
    assert parties[1].predict(X[:3], model).shape == (3,)
