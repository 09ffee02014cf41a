"""Parameters within an integration method, as scikit-learn's searches reach them."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.estimators import DataCollaborationClusterer

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
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(260, 5))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    return {"X": X[:160], "y": y[:160], "groups": np.array(["a", "b"])[np.arange(160) % 2]}, X[160:], y[160:]


@pytest.mark.slow
def test_a_search_over_neighbours_and_kernel_widths_runs(table):
    rows, anchor, y_anchor = table
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


def test_weights_and_kernels_of_parties_reach_the_fit(table):
    rows, anchor, y_anchor = table
    given = dc.KTI(3, kernel={"a": "rbf", "b": "linear"}, party_weights={"a": 1.0, "b": 0.0})
    model = dc.DataCollaborationClassifier(dc.obfuscator("pca", 4), given, LogisticRegression(), random_state=0)
    model.fit(**rows, anchor=anchor)
    fitted = model.collaboration_.integrator_
    shared = {party: fitted.integration_functions_[party].anchor_representation for party in "ab"}
    alone = dc.KTI(3).fit({"a": shared["a"], "again": shared["a"]})
    assert np.allclose(abs(fitted.target_.T @ alone.target_), np.eye(3), atol=1e-6)
    assert fitted.integration_functions_["b"].kernel.metric == "linear"


@pytest.mark.parametrize("gap", [np.nan, None], ids=str)
def test_partly_labelled_anchors_of_shared_rows_are_refused_in_words(table, gap):
    rows, anchor, y_anchor = table
    partly = np.where(np.arange(100) < 10, gap, y_anchor.astype(object))
    model = dc.DataCollaborationClassifier(integrator=dc.KTI(3, graph=dc.TargetSimilarityGraph(5)))
    with pytest.raises(ValueError, match=r"anchor_target .*KTI.fit takes partly labelled anchors"):
        model.fit(**rows, anchor=anchor, anchor_target=partly)
    several = np.column_stack([y_anchor, y_anchor])
    with pytest.raises(ValueError, match=r"shape \(\d+, 2\); .* KTI.fit itself takes several targets and gaps"):
        model.fit(**rows, anchor=anchor, anchor_target=several)
    with pytest.raises(ValueError, match=r"shape \(\d+, 2\); .* Rows without one get None or NaN"):
        dc.DataCollaborationClassifier().fit(**rows, anchor=anchor, anchor_target=several)
