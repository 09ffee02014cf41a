"""All roles in one process, and parameters within them as scikit-learn's searches reach them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import datacollab as dc
from datacollab import (
    KTI,
    LTI,
    Analyst,
    Central,
    DataCollaborationClassifier,
    DataCollaborationRegressor,
    Local,
    Party,
    PartyStratifiedKFold,
    TargetSimilarityGraph,
    obfuscator,
)
from datacollab.errors import AnchorError, UnknownPartyError
from datacollab.estimators import DataCollaborationClusterer


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))  # the bundled rows are sorted by writer
    X, y = X[order] / 16, y[order]
    groups = np.array(["north", "south", "west"])[np.arange(180) % 3]
    return {"X": X[:180], "y": y[:180], "groups": groups, "anchor": X[180:400], "anchor_target": y[180:400],
            "X_test": X[400:700], "y_test": y[400:700]}  # fmt: skip


def fit(model, digits, **changes):
    given = {**digits, **changes}
    return model.fit(
        given["X"], given["y"], groups=given["groups"], anchor=given["anchor"], anchor_target=given["anchor_target"]
    )


def lr():
    return LogisticRegression(C=10, max_iter=2000)


def test_gives_the_numbers_of_the_real_roles(digits):
    model = fit(DataCollaborationClassifier(PCA(8), LTI(8), lr(), random_state=0), digits)
    parties = {}
    for name in ("north", "south", "west"):
        own = digits["groups"] == name
        parties[name] = Party(name, PCA(8), random_state=0).fit(digits["X"][own], digits["y"][own])
    shares = [party.share(digits["anchor"]) for party in parties.values()]
    collaboration = Analyst(LTI(8), lr()).fit(shares)
    for name, party in parties.items():
        alone = party.predict(digits["X_test"], collaboration.party_model(name))
        assert_array_equal(model.predict(digits["X_test"], groups=[name] * 300), alone)
        transformed = party.transform(digits["X_test"], collaboration.party_model(name))
        assert_allclose(model.represent(digits["X_test"], groups=[name] * 300), transformed, atol=1e-8)


def test_rows_go_through_their_own_party_and_come_back_in_order(digits, rng):
    model = fit(DataCollaborationClassifier(PCA(8), KTI(8), lr()), digits)
    owners = rng.choice(["north", "south", "west"], size=300)
    mixed = model.predict_proba(digits["X_test"], groups=owners)
    for name in ("north", "south", "west"):
        alone = model.predict_proba(digits["X_test"], groups=[name] * 300)
        assert_allclose(mixed[owners == name], alone[owners == name], atol=1e-12)
    assert_array_equal(model.classes_[mixed.argmax(axis=1)], model.predict(digits["X_test"], groups=owners))


def test_same_invertible_linear_map_for_all_is_central_up_to_rotation(digits):
    """If every f_k is one invertible linear map, a rotation-invariant model sees what Central sees."""
    X = digits["X"] @ np.linalg.qr(np.random.default_rng(0).normal(size=(64, 12)))[0]
    anchor = np.random.default_rng(1).normal(size=(100, 12))
    digits = {**digits, "X": X, "anchor": anchor, "anchor_target": None}
    A = np.random.default_rng(2).normal(size=(12, 12))
    f = FunctionTransformer(lambda rows: rows @ A)
    model = fit(DataCollaborationClassifier(f, LTI(12), KNeighborsClassifier()), digits)
    g = model.collaboration_.integrator_.integration_functions_["north"]
    assert_allclose(model.represent(X, groups=digits["groups"]), X @ A @ g.coefficients, atol=1e-9)
    assert model.collaboration_.integrator_.objective_ == pytest.approx(0, abs=1e-12)
    Z = anchor @ A @ g.coefficients
    assert_allclose(Z.T @ Z, np.eye(12), atol=1e-9)
    whitening = np.linalg.inv(np.linalg.qr(anchor)[1])
    new = np.random.default_rng(3).normal(size=(200, 12))
    central = KNeighborsClassifier().fit(X @ whitening, digits["y"]).predict(new @ whitening)
    assert_array_equal(model.predict(new, groups=["south"] * 200), central)


def test_collaboration_beats_local_on_digits(digits):
    forest = RandomForestClassifier(40, random_state=0)
    owners = np.array(["north", "south", "west"])[np.arange(300) % 3]
    local = Local(forest).fit(digits["X"], digits["y"], groups=digits["groups"])
    central = Central(forest).fit(digits["X"], digits["y"])
    integrator = KTI(16, graph=TargetSimilarityGraph(), center=True)
    model = fit(DataCollaborationClassifier(PCA(16), integrator, forest, random_state=0), digits)
    scores = [m.score(digits["X_test"], digits["y_test"], groups=owners) for m in (local, model, central)]
    assert scores[0] + 0.05 < scores[1]
    assert scores[0] + 0.05 < scores[2]


@pytest.mark.parametrize("given", ["one", "mapping", "factory"])
def test_obfuscators_per_party(digits, given):
    widths = {"north": 8, "south": 10, "west": 12}
    f = {"one": PCA(8), "mapping": {p: PCA(w) for p, w in widths.items()}, "factory": lambda p: PCA(widths[p])}[given]
    model = fit(DataCollaborationClassifier(f, LTI(8), lr()), digits)
    got = {p: g.n_intermediate for p, g in model.collaboration_.integrator_.integration_functions_.items()}
    assert got == (dict.fromkeys(widths, 8) if given == "one" else widths)


def test_a_missing_obfuscator_is_named(digits):
    with pytest.raises(UnknownPartyError, match="no entry for party 'west'"):
        fit(DataCollaborationClassifier({"north": PCA(8), "south": PCA(8)}, LTI(8), lr()), digits)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_dataframes_with_a_party_column(digits, frame):
    names = [f"pixel{i}" for i in range(64)]
    table = frame({**dict(zip(names, digits["X"].T, strict=True)), "hospital": digits["groups"]})
    anchor = frame(dict(zip(names, digits["anchor"].T, strict=True)))
    model = DataCollaborationClassifier(PCA(8), LTI(8), lr(), party_column="hospital", random_state=0)
    model.fit(table, digits["y"], anchor=anchor)
    plain = fit(DataCollaborationClassifier(PCA(8), LTI(8), lr(), random_state=0), digits)
    assert_array_equal(model.predict(table), plain.predict(digits["X"], groups=digits["groups"]))
    assert list(model.feature_names_in_) == [*names, "hospital"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[[*names[::-1], "hospital"]])
    with pytest.raises(ValueError, match="party_column='ward' is none of the 65 columns"):
        model.set_params(party_column="ward").fit(table, digits["y"], anchor=anchor)


@pytest.mark.parametrize("model", [DataCollaborationClassifier(PCA(8), LTI(8), lr(), random_state=0), Local(lr())])
def test_cross_val_score_routes_owners_and_anchor(digits, model):
    names = ("groups",) if isinstance(model, Local) else ("groups", "anchor", "anchor_target")
    params = {name: digits[name] for name in names}
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(model, digits["X"], digits["y"], cv=PartyStratifiedKFold(3), params=params)
    assert scores.min() > 0.5


def test_a_party_with_one_class(digits):
    own = digits["groups"] != "west"
    keep = own | (digits["y"] == 3)
    part = {**digits, "X": digits["X"][keep], "y": digits["y"][keep], "groups": digits["groups"][keep]}
    model = fit(DataCollaborationClassifier(PCA(5), LTI(5), lr()), part)
    assert len(set(model.predict(digits["X_test"], groups=["west"] * 300))) > 3
    local = Local(lr()).fit(part["X"], part["y"], groups=part["groups"])
    assert set(local.predict(digits["X_test"], groups=["west"] * 300)) == {3}


def test_an_unseen_party_is_named(digits):
    model = fit(DataCollaborationClassifier(PCA(8), LTI(8), lr()), digits)
    for method in ("predict", "predict_proba", "represent"):
        with pytest.raises(UnknownPartyError, match=r"\['east'\] took no part in fit; known parties: \['north'"):
            getattr(model, method)(digits["X_test"], groups=["east"] * 300)
    local = Local(lr()).fit(digits["X"], digits["y"], groups=digits["groups"])
    with pytest.raises(UnknownPartyError, match="'east'"):
        local.predict(digits["X_test"], groups=["east"] * 300)


def test_what_is_missing_is_said(digits):
    model = DataCollaborationClassifier(PCA(8), LTI(8), lr())
    with pytest.raises(ValueError, match="Who owns each row"):
        model.fit(digits["X"], digits["y"], anchor=digits["anchor"])
    with pytest.raises(AnchorError, match="needs an anchor"):
        model.fit(digits["X"], digits["y"], groups=digits["groups"])
    with pytest.raises(ValueError, match="one party name per row"):
        fit(model, digits, groups=digits["groups"][1:])
    fit(model, digits)
    with pytest.raises(ValueError, match="Who owns each row"):
        model.predict(digits["X_test"])


def test_predict_proba_is_there_only_if_the_model_has_it(digits):
    from sklearn.svm import LinearSVC

    assert hasattr(DataCollaborationClassifier(), "predict_proba")
    assert not hasattr(DataCollaborationClassifier(estimator=LinearSVC()), "predict_proba")


def test_regression():
    X, y = load_diabetes(return_X_y=True)
    groups, test = np.arange(300) % 3, slice(300, 442)
    anchor = np.random.default_rng(0).normal(scale=X.std(), size=(200, 10))
    model = DataCollaborationRegressor(PCA(8), LTI(8), Ridge(1e-3))
    model.fit(X[:300], y[:300], groups=groups, anchor=anchor)
    assert is_regressor(model)
    owners = np.arange(142) % 3
    central = Central(Ridge(1e-3)).fit(X[:300], y[:300])
    assert model.score(X[test], y[test], groups=owners) > 0.8 * central.score(X[test], y[test])
    assert is_regressor(central)


@pytest.mark.parametrize("nobody", [None, np.nan, pd.NA], ids=str)
def test_rows_without_an_owner_are_counted(digits, nobody):
    names = pd.Series(digits["groups"], dtype=object)
    names[:2] = nobody
    with pytest.raises(ValueError, match="2 of 180 rows have no owner"):
        fit(DataCollaborationClassifier(PCA(8), LTI(8), lr()), digits, groups=names)


def test_owners_named_twice_must_agree(digits):
    table = pd.DataFrame(digits["X"]).rename(columns=str).assign(hospital=digits["groups"])
    anchor = pd.DataFrame(digits["anchor"]).rename(columns=str)
    model = DataCollaborationClassifier(PCA(8), LTI(8), lr(), party_column="hospital")
    model.fit(table, digits["y"], groups=digits["groups"], anchor=anchor)
    with pytest.raises(ValueError, match="groups and the column 'hospital' name different owners"):
        model.fit(table, digits["y"], groups=digits["groups"][::-1], anchor=anchor)


def test_a_pipeline_transforms_the_anchor_where_told_to(digits):
    """Unscaled rows: steps before the collaboration must reach the anchor too."""
    scaled = {**digits, "X": 50 * digits["X"] + 1000, "anchor": 50 * digits["anchor"] + 1000}
    new, owners = 50 * digits["X_test"] + 1000, ["north"] * 300
    model = DataCollaborationClassifier(obfuscator("pca", 10), KTI(10), RandomForestClassifier(random_state=0))
    with sklearn.config_context(enable_metadata_routing=True):
        steps = [("scale", StandardScaler()), ("collaborate", clone(model).set_params(random_state=0))]
        pipeline = Pipeline(steps, transform_input=["anchor"])
        pipeline.fit(scaled["X"], scaled["y"], groups=scaled["groups"], anchor=scaled["anchor"])
        assert pipeline.score(new, digits["y_test"], groups=owners) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("labels", [np.int64, np.float64, str], ids=["int", "float", "text"])
def test_anchor_targets_are_classes_whatever_their_type(digits, labels):
    graph = TargetSimilarityGraph(5)
    model = DataCollaborationClassifier(PCA(8), KTI(8, graph=graph), lr(), random_state=0)
    fit(model, digits, y=digits["y"].astype(labels), anchor_target=digits["anchor_target"].astype(labels))
    reference = fit(clone(model), digits)
    assert_allclose(
        model.represent(digits["X_test"], groups=["west"] * 300),
        reference.represent(digits["X_test"], groups=["west"] * 300),
        atol=1e-10,
    )


def test_anchor_targets_of_a_regression_are_numbers():
    rng = np.random.default_rng(0)
    X, anchor = rng.normal(size=(90, 5)), rng.normal(size=(80, 5))
    fitted = [
        DataCollaborationRegressor(
            PCA(3), KTI(3, graph=TargetSimilarityGraph(5, scale="std")), Ridge(), random_state=0
        ).fit(
            X, X[:, 0], groups=np.arange(90) % 2, anchor=anchor, anchor_target=np.round(9 * anchor[:, 0]).astype(dtype)
        )
        for dtype in (int, float)
    ]
    targets = [model.collaboration_.integrator_.target_ for model in fitted]
    assert_allclose(*targets, atol=1e-10)
    with pytest.raises(ValueError, match="y must be numeric for regression") as caught:
        fitted[0].fit(X, np.array(["151.0y"] * 90), groups=np.arange(90) % 2, anchor=anchor)
    assert "151" not in str(caught.value)


@given(
    seed=st.integers(0, 1000), n_splits=st.integers(2, 5), n_parties=st.integers(1, 4), shuffle=st.booleans(),
    n_classes=st.integers(1, 10),
)  # fmt: skip
def test_folds_are_a_partition_and_even(seed, n_splits, n_parties, shuffle, n_classes):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_parties), rng.integers(5, 20, size=n_parties)))
    y = rng.integers(n_classes, size=len(groups))
    folds = list(
        PartyStratifiedKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None).split(y, y, groups)
    )
    assert len(folds) == n_splits
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(y)))
        assert set(groups[train]) == set(groups)
    for party in range(n_parties):
        counts = [np.sum(groups[test] == party) for _, test in folds]
        assert max(counts) - min(counts) <= 1
        for label in range(n_classes):
            counts = [np.sum((groups[test] == party) & (y[test] == label)) for _, test in folds]
            assert max(counts) - min(counts) <= 1


def test_clear_errors():
    with pytest.raises(ValueError, match="needs groups"):
        next(PartyStratifiedKFold().split(np.zeros((4, 1))))
    with pytest.raises(ValueError, match=r"as many rows of every party; got \{'b': 1\}"):
        next(PartyStratifiedKFold(2).split(np.zeros(4), None, ["a", "a", "a", "b"]))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[4, 3\]"):
        next(PartyStratifiedKFold(2).split(np.zeros(4), None, ["a", "a", "b"]))
    with pytest.raises(ValueError, match="n_splits=1"):
        PartyStratifiedKFold(1)


def test_random_state_makes_runs_equal_and_parties_different(digits):
    f = obfuscator("random-projection", 16)
    models = [
        fit(DataCollaborationClassifier(f, LTI(8), RandomForestClassifier(20), random_state=seed), digits)
        for seed in (0, 0, 1)
    ]
    proba = [m.predict_proba(digits["X_test"], groups=["north"] * 300) for m in models]
    assert_allclose(proba[0], proba[1])
    assert not np.allclose(proba[0], proba[2])
    north, south = (models[0].parties_[name].obfuscate(digits["X_test"]) for name in ("north", "south"))
    assert not np.allclose(north, south)


SMALL_CLASSIFIER = DataCollaborationClassifier(PCA(8), LTI(5), LogisticRegression(max_iter=2000), random_state=0)
SMALL_REGRESSOR = DataCollaborationRegressor(PCA(8), LTI(5), Ridge(), random_state=0)


@pytest.fixture(scope="module")
def first_digits():
    X, y = load_digits(return_X_y=True)
    return {"X": X[:150] / 16, "y": y[:150], "groups": np.arange(150) % 3, "anchor": X[200:400] / 16}


@pytest.mark.parametrize(("container", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
@pytest.mark.parametrize("estimator", [SMALL_CLASSIFIER, SMALL_REGRESSOR])
def test_set_output(first_digits, estimator, container, kind):
    model = clone(estimator).set_output(transform=container).fit(**first_digits)
    told = model.transform(first_digits["X"], groups=first_digits["groups"])
    assert isinstance(told, kind)
    prefix = type(estimator).__name__.lower()
    assert list(told.columns) == [f"{prefix}{place}" for place in range(5)] == list(model.get_feature_names_out())
    assert_allclose(told.to_numpy(), model.represent(first_digits["X"], groups=first_digits["groups"]))
    assert isinstance(clone(model).fit_transform(**first_digits), kind)


def test_rows_keep_their_names(first_digits):
    table = pd.DataFrame(first_digits["X"], index=[f"patient {n}" for n in range(150)]).rename(columns=str)
    anchor = pd.DataFrame(first_digits["anchor"]).rename(columns=str)
    with sklearn.config_context(transform_output="pandas"):
        model = clone(SMALL_CLASSIFIER).fit(**first_digits | {"X": table, "anchor": anchor})
        told = model.transform(table.iloc[::-1], groups=first_digits["groups"][::-1])
    assert list(told.index) == list(table.index[::-1])
    plain = clone(SMALL_CLASSIFIER).fit(**first_digits)
    assert_allclose(told.to_numpy(), plain.represent(first_digits["X"], groups=first_digits["groups"])[::-1])


def test_as_a_step_of_a_pipeline_owners_travel_by_routing(first_digits):
    rest = {name: first_digits[name] for name in ("groups", "anchor")}
    with sklearn.config_context(enable_metadata_routing=True):
        steps = [("collaborate", clone(SMALL_CLASSIFIER)), ("model", LogisticRegression(max_iter=2000))]
        pipeline = Pipeline(steps).fit(first_digits["X"], first_digits["y"], **rest)
        told = pipeline.predict(first_digits["X"], groups=first_digits["groups"])
    assert np.mean(told == first_digits["y"]) > 0.6


PATHS = {
    "integrator__n_components": 3,
    "integrator__alpha": 0.7,
    "integrator__center": True,
    "integrator__kernel__length_scale": 2.5,
    "integrator__kernel__nu": 0.5,
    "integrator__graph__n_neighbors": 4,
    "integrator__graph__scale": 0.3,
    "integrator__graph_weight": 2.0,
    "integrator__party_weights": {"a": 2.0, "b": 1.0},
    "integrator__penalty_graph__n_neighbors": 6,
}


def integrator():
    return dc.KTI(4, kernel=Matern(), graph=dc.TargetSimilarityGraph(5), penalty_graph=dc.TargetDissimilarityGraph(5))


ESTIMATORS = {
    "classifier": dc.DataCollaborationClassifier,
    "regressor": dc.DataCollaborationRegressor,
    "survival": dc.DataCollaborationSurvival,
    "clusterer": DataCollaborationClusterer,
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_paths_are_listed_set_and_cloned(kind):
    model = ESTIMATORS[kind](integrator=integrator())
    assert set(PATHS) <= set(model.get_params(deep=True))
    model.set_params(**PATHS)
    copied = clone(model)
    assert copied.integrator is not model.integrator
    assert copied.integrator.graph is not model.integrator.graph
    for each in (model, copied):
        found = each.get_params(deep=True)
        assert {path: found[path] for path in PATHS} == PATHS
        assert each.integrator.graph.n_neighbors == 4
        assert each.integrator.kernel.length_scale == 2.5


@pytest.fixture(scope="module")
def with_two_owners():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(260, 5))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    return {"X": X[:160], "y": y[:160], "groups": np.array(["a", "b"])[np.arange(160) % 2]}, X[160:], y[160:]


@pytest.mark.slow
def test_a_search_over_neighbours_and_kernel_widths_runs(with_two_owners):
    rows, anchor, y_anchor = with_two_owners
    model = dc.DataCollaborationClassifier(
        dc.obfuscator("pca", 4),
        dc.KTI(3, kernel=Matern(), graph=dc.TargetSimilarityGraph(5)),
        make_pipeline(StandardScaler(), LogisticRegression()),
        random_state=0,
    )
    grid = {"integrator__graph__n_neighbors": [2, 20], "integrator__kernel__length_scale": [0.3, 3.0]}
    folds = list(StratifiedKFold(2).split(rows["X"], rows["y"]))
    search = GridSearchCV(model, grid, cv=folds, error_score="raise")
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(**rows, anchor=anchor, anchor_target=y_anchor)
    assert search.best_score_ > 0.8
    # By hand: what the search tried is what these parameters make.
    train, test = folds[0]
    for place, params in enumerate(search.cv_results_["params"]):
        by_hand = clone(model).set_params(**params)
        by_hand.fit(
            rows["X"][train], rows["y"][train], groups=rows["groups"][train], anchor=anchor, anchor_target=y_anchor
        )
        score = by_hand.score(rows["X"][test], rows["y"][test], groups=rows["groups"][test])
        assert search.cv_results_["split0_test_score"][place] == score
    maps = search.best_estimator_.collaboration_.integrator_
    assert maps.graph.n_neighbors == search.best_params_["integrator__graph__n_neighbors"]


def test_weights_and_kernels_of_parties_reach_the_fit(with_two_owners):
    rows, anchor, y_anchor = with_two_owners
    given = dc.KTI(3, kernel={"a": "rbf", "b": "linear"}, party_weights={"a": 1.0, "b": 0.0})
    model = dc.DataCollaborationClassifier(dc.obfuscator("pca", 4), given, LogisticRegression(), random_state=0)
    model.fit(**rows, anchor=anchor)
    fitted = model.collaboration_.integrator_
    shared = {party: fitted.integration_functions_[party].anchor_representation for party in "ab"}
    alone = dc.KTI(3).fit({"a": shared["a"], "again": shared["a"]})
    assert np.allclose(abs(fitted.target_.T @ alone.target_), np.eye(3), atol=1e-6)
    assert fitted.integration_functions_["b"].kernel.metric == "linear"


@pytest.mark.parametrize("gap", [np.nan, None], ids=str)
def test_partly_labelled_anchors_of_shared_rows_are_refused_in_words(with_two_owners, gap):
    rows, anchor, y_anchor = with_two_owners
    partly = np.where(np.arange(100) < 10, gap, y_anchor.astype(object))
    model = dc.DataCollaborationClassifier(integrator=dc.KTI(3, graph=dc.TargetSimilarityGraph(5)))
    with pytest.raises(ValueError, match=r"anchor_target .*KTI.fit takes partly labelled anchors"):
        model.fit(**rows, anchor=anchor, anchor_target=partly)
    several = np.column_stack([y_anchor, y_anchor])
    with pytest.raises(ValueError, match=r"shape \(\d+, 2\); .* KTI.fit itself takes several targets and gaps"):
        model.fit(**rows, anchor=anchor, anchor_target=several)
    with pytest.raises(ValueError, match=r"shape \(\d+, 2\); .* Rows without one get None or NaN"):
        dc.DataCollaborationClassifier().fit(**rows, anchor=anchor, anchor_target=several)
