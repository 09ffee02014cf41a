"""Simulated parties: each way's score is that of a model fitted directly, and intervals cover what they should."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.errors import AgreementError
from datacollab.estimators import PartySimulation
from datacollab.sums import Recommended, RidgeSums

CONSTANT, LOCAL, AVERAGE, SUMS, COMBINED, CENTRAL = range(6)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(270, 5))
Y = (X[:, 0] - X[:, 1] + RANDOM.normal(size=270) > 0).astype(int)
DEALT, HELD_OUT, PUBLIC = np.arange(180), np.arange(180, 270), RANDOM.normal(size=(60, 5))
PARTIES = {party: DEALT[party::3] for party in range(3)}


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    """A map that is made quickly."""
    monkeypatch.setattr("datacollab.sums._common_map._MOST_LANDMARKS", 60)


@pytest.fixture
def dealt(monkeypatch):
    """Rows that are held out and dealt by no chance, so that a test knows whose they are."""
    monkeypatch.setattr("datacollab.estimators._simulation.train_test_split", lambda rows, **given: (DEALT, HELD_OUT))
    split = SimpleNamespace(indices=PARTIES)
    monkeypatch.setattr("datacollab.estimators._simulation.split_parties", lambda *given, **options: split)


def simulated(X=X, y=Y, **given):
    return dc.simulate_parties(X, y, **{"n_parties": 3, "n_draws": 2, "random_state": 0} | given)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [None, (PUBLIC[:, 0] > 0).astype(int)])
def test_every_way_scores_what_a_direct_fit_of_its_rows_does(dealt, labels):
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8))
    found = simulated(anchor=PUBLIC, anchor_target=labels, estimator=model)

    def fitted(rows):
        own = [(X[rows], Y[rows])] + ([] if labels is None else [(PUBLIC, labels)])
        return model.fit(*map(np.concatenate, zip(*own, strict=True))).predict_proba(X[HELD_OUT])[:, 1]

    local = [fitted(rows) for rows in PARTIES.values()]
    expected = {
        CONSTANT: 0.5,
        LOCAL: np.mean([roc_auc_score(Y[HELD_OUT], each) for each in local]),
        AVERAGE: roc_auc_score(Y[HELD_OUT], np.mean(local, axis=0)),
        CENTRAL: roc_auc_score(Y[HELD_OUT], fitted(DEALT)),
    }
    assert found.metrics == ("AUC", "log loss")
    assert found.settings == ((3, 60),)
    for way, value in expected.items():
        assert_allclose(found.scores[0, 0, way], value, rtol=1e-8)
    assert_allclose(found.scores[1, 0, CENTRAL], log_loss(Y[HELD_OUT], fitted(DEALT)), rtol=1e-3)
    usual = Y[DEALT] if labels is None else np.append(Y[DEALT], labels)
    assert_allclose(found.scores[1, 0, CONSTANT], log_loss(Y[HELD_OUT], np.full(90, usual.mean())), rtol=1e-12)
    columns = dc.CommonSpace(PUBLIC, bytes(32)).n_components  # The secret decides on one or two.
    assert found.n_numbers in [RidgeSums(columns + d, classes=(0, 1)).n_numbers for d in (-2, -1, 0, 1, 2)]


def test_numbers_have_the_error_of_a_direct_fit(dealt):
    y = X @ np.arange(5.0) + RANDOM.normal(size=270)
    found = simulated(y=y, anchor=PUBLIC, estimator=make_pipeline(StandardScaler(), Ridge()))
    model = make_pipeline(StandardScaler(), Ridge()).fit(X[DEALT], y[DEALT])
    assert found.metrics == ("RMSE",)
    central = np.sqrt(mean_squared_error(y[HELD_OUT], model.predict(X[HELD_OUT])))
    assert_allclose(found.scores[0, 0, CENTRAL], central, rtol=1e-8)
    assert_allclose(found.scores[0, 0, CONSTANT], np.sqrt(np.mean((y[HELD_OUT] - y[DEALT].mean()) ** 2)), rtol=1e-12)


@pytest.mark.parametrize("is_number", [False, True])
@pytest.mark.slow
def test_combined_is_the_mean_of_the_parties_own_combined_models(dealt, monkeypatch, is_number):
    """The homes that are scored, and a table whose columns are all alike, where there is nothing to combine."""
    homes = []
    played = dc.DataCollaborationClassifier().fit(X[DEALT], Y[DEALT], groups=DEALT % 3, anchor=PUBLIC).sums_

    class Kept(type(played)):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            homes.append(self.homes)

    monkeypatch.setattr("datacollab.estimators._simulation.PlayedSums", Kept)
    y = X[:, 0] + RANDOM.normal(size=270) if is_number else Y
    labels = PUBLIC[:, 0] if is_number else (PUBLIC[:, 0] > 0).astype(int)
    found = simulated(y=y, anchor=PUBLIC, anchor_target=labels)
    for draw, each in enumerate(homes):
        assert {(home.own.n_own, len(home.own.rows)) for home in each.values()} == {(60, 120)}
        if is_number:
            scores = [np.sqrt(mean_squared_error(y[HELD_OUT], home.predict(X[HELD_OUT]))) for home in each.values()]
        else:
            scores = [roc_auc_score(y[HELD_OUT], home.predict_proba(X[HELD_OUT])[:, 1]) for home in each.values()]
        assert_allclose(found.scores[0, 0, COMBINED, draw], np.mean(scores))


def test_sums_without_noise_are_ridge_regression_on_all_rows_in_one_place(dealt, monkeypatch):
    monkeypatch.setattr(dc.CommonSpace, "recommended", Recommended(n_components=128, noise=0.0, least_penalty=1.0))
    # No linear model does this, so one place takes the map's.
    found = simulated(y=X[:, 0] * X[:, 1], anchor=PUBLIC)
    assert_allclose(found.scores[0, 0, SUMS], found.scores[0, 0, CENTRAL], rtol=1e-6)
    assert (found.scores[0, 0, SUMS] < 0.9 * found.scores[0, 0, CONSTANT]).all()


@pytest.mark.nightly
def test_mixed_frames_with_gaps_are_dealt_to_few_and_many_parties():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(ward=np.where(X[:, 2] > 0.5, "day", "night"))
    frame.loc[::7, "a"] = np.nan
    steps = []
    found = simulated(frame, np.where(Y, "yes", "no"), n_parties=(5, 3, 30), progress=lambda *said: steps.append(said))
    assert found.settings == ((3, 30), (3, 51), (5, 30))
    assert steps[:2] == [(0, 6, "3 parties of 30 rows"), (1, 6, "3 parties of 51 rows")]
    assert len(steps) == 6
    assert (found.scores.mean(axis=-1)[0, :, CENTRAL] > 0.75).all()
    assert "30 parties: left out, with fewer than 20 rows each." in found.notes
    assert "simulated" in found.notes[-1]
    table = found.table()
    first = table[table["metric"] == "AUC"]
    assert list(table["rows_each"]) == [30, 51, 30] * 2
    assert_allclose(
        first["sums_less_local"], found.scores.mean(axis=-1)[0, :, SUMS] - found.scores.mean(axis=-1)[0, :, LOCAL]
    )
    assert_allclose(
        first["combined_less_local"],
        found.scores.mean(axis=-1)[0, :, COMBINED] - found.scores.mean(axis=-1)[0, :, LOCAL],
    )
    assert str(found) == found.summary()
    assert max(map(len, found.summary().split(found.sentence)[0].splitlines())) <= 80


@pytest.mark.slow
def test_a_seed_repeats_a_simulation_whose_parties_may_be_skewed():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    found, again = (simulated(y=y, n_parties=3, scheme="label-skew", random_state=3) for _ in range(2))
    assert found.metrics == ("log loss", "accuracy")
    assert_allclose(found.scores, again.scores)
    by_chance = simulated(y=y, n_parties=3, random_state=3)
    assert (found.scores.mean(axis=-1)[1, :, LOCAL] < by_chance.scores.mean(axis=-1)[1, :, LOCAL]).all()


def made(metric, local, sums, combined=None):
    scores = np.full((1, len(local), 6, len(local[0])), 0.5)
    scores[0, :, LOCAL], scores[0, :, SUMS] = local, sums
    scores[0, :, COMBINED] = local if combined is None else combined
    return PartySimulation(metrics=(metric,), settings=((3, 20),) * len(local), scores=scores, notes=(), n_numbers=10)


def test_the_interval_is_students_with_the_corrected_variance():
    less = np.array([0.01, 0.03, 0.05, 0.02, 0.04])
    mean, low, high = made("AUC", [[0.6] * 5], [0.6 + less]).difference()[0]
    # A third held out: held-out rows over the others are one half.
    half = stats.t.ppf(0.975, 4) * np.sqrt((1 / 5 + 1 / 2) * less.var(ddof=1))
    assert_allclose([mean, low, high], [0.03, 0.03 - half, 0.03 + half])


@pytest.mark.parametrize(
    ("metric", "better", "words"),
    [
        ("AUC", 1, "excludes 0 in 2 of 3 settings: sums are better in 2, worse in 0"),
        ("AUC", -1, "excludes 0 in 2 of 3 settings: sums are better in 0, worse in 2"),
        ("RMSE", -1, "excludes 0 in 2 of 3 settings: sums are better in 2, worse in 0"),
        ("RMSE", 0, "includes 0 in every setting"),
    ],
)
def test_the_sentence_says_where_the_interval_excludes_0(metric, better, words):
    local = np.tile([0.6, 0.61, 0.62], (3, 1))
    shift = better * np.array([[0.2], [0.1], [0.0]]) + np.array([-0.001, 0.0, 0.002])
    assert words in made(metric, local, local + shift).sentence
    both = made(metric, local, local, local + shift).sentence
    assert "sums under masks less one party alone, in " + metric + ", includes 0 in every setting." in both
    assert words.replace("sums are", "both together are") in both.partition("setting. ")[2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_parties": 2}, "at least 3 parties"),
        ({"n_draws": 1}, "at least 2 draws"),
        ({"n_parties": 9}, "9 parties would have 17 rows each, of 270; expected at least 20"),
        ({"task": "counts"}, "task 'auto'"),
        ({"y": np.where(np.arange(270) < 9, 2, Y)}, "3 classes, 1 with fewer than 10 rows"),
        ({"y": np.where(np.arange(270) < 9, np.nan, Y)}, "y is missing in 9 of 270 rows"),
    ],
)
def test_what_cannot_be_simulated_is_refused(given, words):
    with pytest.raises((ValueError, AgreementError), match=re.escape(words)):
        simulated(**given)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_labelled", "words"),
    [(1500, "from whose targets all learn"), (700, "and all learn from those among the 700 with targets")],
)
def test_of_many_rows_some_are_taken_and_the_notes_say_so(n_labelled, words):
    X = np.random.default_rng(0).normal(size=(3500, 3))
    labels = np.where(np.arange(1500) < n_labelled, X[:1500, 0] > 0, None)
    found = simulated(X, X[:, 0] > 0, anchor=X[:1500], anchor_target=labels)
    assert found.notes[0] == (
        "3000 of 3500 rows, taken by chance; each of 2 draws holds out a third, 1000 rows, and takes 1000 of 1500 "
        f"public rows, {words}."
    )


@pytest.mark.nightly
def test_targets_of_noise_are_said_to_differ_by_chance_alone():
    """The interval is meant to include 0 in 95 % of tables or more."""
    found = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        found.append(simulated(random.normal(size=(240, 4)), random.integers(0, 2, 240), n_draws=5, random_state=seed))
    assert abs(np.mean([each.scores[0, 0, SUMS].mean() for each in found]) - 0.5) < 0.03
    assert sum(low <= 0 <= high for each in found for _, low, high in each.difference()) >= 11
