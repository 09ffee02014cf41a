from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.preprocessing import StandardScaler
from trials import DIABETES, DIGITS, diabetes, distinct_digits

from datacollab.anchor import find_private_rows
from datacollab.datasets import load, split_parties
from datacollab_experiments.paper import Condition, draw_trial, method, score_method


@pytest.fixture(scope="module")
def digits():
    return distinct_digits()


def rows_of(*tables):
    return [row.tobytes() for table in tables for row in np.ascontiguousarray(table)]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("n_sources", [60, None])
def test_no_row_is_in_two_places(digits, seed, n_sources):
    condition = replace(DIGITS, n_sources=n_sources)
    trial = draw_trial(condition, digits, seed)
    anchor, parties = trial.anchor, [own.X for own in trial.split.values()]
    assert [len(X) for X in parties] == [40] * 3
    assert len(trial.X_test) == len(trial.y_test) == 150
    assert len(anchor) == 200

    taken = rows_of(*parties, trial.X_test)
    assert len(taken) == len(set(taken)) == 3 * 40 + 150
    assert find_private_rows(anchor, np.vstack([*parties, trial.X_test])).size == 0
    # Rows of the table that are in the anchor: the sources, or all of a real one.
    assert len(find_private_rows(anchor, digits.X)) == (n_sources or 200)
    assert len(set(rows_of(anchor))) == 200


@pytest.mark.parametrize("settings", [{}, {"split": "stratified"}, {"split": "label-skew", "concentration": 0.2}])
def test_rows_are_dealt_out_as_the_condition_says(digits, settings):
    condition = replace(DIGITS, **settings)
    trial = draw_trial(condition, digits, 3)
    scheme = settings.get("split", "iid")
    wanted = split_parties(
        digits.X, digits.y, 3, 40, scheme=scheme, concentration=settings.get("concentration", 1), random_state=3
    )
    for name, own in wanted.items():
        assert_array_equal(trial.split[name].X, own.X)
    places = [rows_of(own.X) for own in trial.split.values()]
    places += [rows_of(trial.X_test), rows_of(trial.X_public), rows_of(digits.X[trial.unused])]
    every = [row for place in places for row in place]
    assert len(every) == len(set(every)) == len(digits.X)


@pytest.mark.parametrize("n_sources", [60, None])
def test_anchors_and_their_sources_are_balanced(digits, n_sources):
    trial = draw_trial(replace(DIGITS, n_sources=n_sources), digits, 0)
    anchor, target = trial.anchor, trial.anchor_target
    assert_array_equal(np.bincount(target), np.full(10, 20))
    assert_array_equal(np.bincount(target[find_private_rows(anchor, digits.X)]), np.full(10, (n_sources or 200) // 10))
    for share in trial.shares:
        assert_array_equal(share.anchor_target, target)


@pytest.fixture
def asked_for(monkeypatch):
    """Options of every obfuscator that a trial makes; PCA takes its place."""
    asked = []
    monkeypatch.setattr(
        "datacollab_experiments.paper._trial.obfuscator",
        lambda kind, n_components, **options: asked.append(options) or PCA(n_components),
    )
    return asked


def test_the_metric_goes_by_the_partys_number(digits, asked_for):
    """The paper: k mod 3 = 0, 1, 2 have correlation, cosine, euclidean; k starts at 1."""
    draw_trial(replace(DIGITS, n_parties=6, obfuscator="umap", out_of_sample="umap"), digits, 0)
    assert [options["metric"] for options in asked_for] == 2 * ["cosine", "euclidean", "correlation"]
    assert {options["out_of_sample"] for options in asked_for} == {"umap"}


@pytest.mark.parametrize(
    ("kind", "name", "standardized"),
    [
        ("pca", "digits", False),
        ("pca", "mnist", False),
        ("pca", "ujiindoorloc", True),
        ("kernel-pca", "digits", True),
        ("umap", "digits", True),
    ],
)
def test_tables_are_standardised_and_images_under_pca_are_not(digits, asked_for, kind, name, standardized):
    draw_trial(replace(DIGITS, obfuscator=kind), type(digits)(**{**digits, "name": name}), 0)
    assert {options["standardize"] for options in asked_for} == {standardized}


@pytest.mark.parametrize(("width", "factor"), [("median", 1.0), ("median-squared", 0.5**0.5)])
def test_the_two_readings_of_the_median_heuristic(digits, asked_for, width, factor):
    """gamma is 1 / (2 m²) of the median distance m, or 1 / m² as for the median of squares."""
    draw_trial(replace(DIGITS, obfuscator="kernel-pca", kernel_width=width), digits, 0)
    assert {options["bandwidth_factor"] for options in asked_for} == {factor}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LTI", "KTI+TSL+Center"])
@pytest.mark.parametrize(("condition", "make_data"), [(DIGITS, distinct_digits), (DIABETES, diabetes)])
def test_a_score_is_what_the_pieces_give_by_hand(condition, make_data, name):
    data = make_data()
    trial = draw_trial(condition, data, 3)
    integrator = method(name, condition).fit(
        {share.party: share.anchor_representation for share in trial.shares}, trial.shares[0].anchor_target
    )
    forest = RandomForestClassifier if data.task == "classification" else RandomForestRegressor
    X = np.vstack([integrator.integration_functions_[s.party](s.representation) for s in trial.shares])
    scaler = StandardScaler().fit(X)
    model = forest(random_state=3).fit(scaler.transform(X), np.concatenate([s.target for s in trial.shares]))
    by_party = []
    for party, rows in trial.test_representations.items():
        predicted = model.predict(scaler.transform(integrator.integration_functions_[party](rows)))
        if data.task == "classification":
            by_party.append(np.mean(predicted == trial.y_test))
        else:
            by_party.append(np.sqrt(np.mean((predicted - trial.y_test) ** 2)))
    score = score_method(trial, name, condition, data.task)
    assert_allclose(score.value, np.mean(by_party), rtol=1e-12)
    assert (score.method, score.seed) == (name, 3)
    assert score.seconds > 0


@pytest.mark.parametrize("n_sources", [60, None])
@pytest.mark.nightly
def test_local_with_public_rows_is_plain_scikit_learn(digits, n_sources):
    """Each party's rows and the real rows behind the anchor, with their targets."""
    condition = replace(DIGITS, n_sources=n_sources)
    trial = draw_trial(condition, digits, 4)
    anchor = trial.anchor
    real = find_private_rows(anchor, digits.X)
    assert_array_equal(np.sort(rows_of(anchor[real])), np.sort(rows_of(trial.X_public)))
    forest = RandomForestClassifier(random_state=4)
    alone = [
        forest.fit(np.vstack([own.X, trial.X_public]), np.concatenate([own.y, trial.y_public])).score(
            trial.X_test, trial.y_test
        )
        for own in trial.split.values()
    ]
    score = score_method(trial, "Local+Public", condition, "classification").value
    assert_allclose(score, np.mean(alone), rtol=1e-12)


@pytest.mark.slow
def test_baselines_are_plain_scikit_learn(digits):
    trial = draw_trial(DIGITS, digits, 4)
    forest = RandomForestClassifier(random_state=4)
    pooled = forest.fit(np.vstack([own.X for own in trial.split.values()]),
                        np.concatenate([own.y for own in trial.split.values()]))  # fmt: skip
    central = score_method(trial, "Central", DIGITS, "classification").value
    assert central == pooled.score(trial.X_test, trial.y_test)
    alone = [forest.fit(own.X, own.y).score(trial.X_test, trial.y_test) for own in trial.split.values()]
    assert_allclose(score_method(trial, "Local", DIGITS, "classification").value, np.mean(alone), rtol=1e-12)


def test_a_condition_that_needs_more_rows_than_there_are_is_an_error_that_adds_them_up(digits):
    n_rows = len(digits.X)
    exact = replace(DIGITS, n_test=n_rows - 3 * 40 - 60)
    with pytest.raises(ValueError, match=f"need {n_rows + 1} rows, but digits has {n_rows}"):
        draw_trial(replace(exact, n_test=exact.n_test + 1), digits, 0)
    with pytest.raises(ValueError, match="2000 real anchors need"):
        draw_trial(replace(DIGITS, n_sources=None, n_anchors=2000), digits, 0)


@pytest.mark.nightly
def test_kti_with_graph_and_centring_on_mnist(real_data_dir):
    condition = Condition(dataset="mnist", obfuscator="pca", n_components=64, n_sources=None)
    trial = draw_trial(condition, load("mnist", data_dir=real_data_dir, download=False), 0)
    accuracy = {
        name: score_method(trial, name, condition, "classification").value for name in ("Local", "KTI+TSL+Center")
    }
    assert accuracy["KTI+TSL+Center"] >= 0.88
    assert accuracy["KTI+TSL+Center"] > accuracy["Local"]
