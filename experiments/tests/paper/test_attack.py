from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from trials import DIGITS, distinct_digits

from datacollab.party import Party
from datacollab_experiments.paper import Attacks, draw_trial
from datacollab_experiments.paper._attack import make_target, score_attack

ATTACKS = Attacks(n_judge=400, n_per_target=5)
FURTHER = Attacks(n_judge=400, n_per_target=5, n_attacked=150)
CONDITION = replace(DIGITS, n_sources=None)


@pytest.fixture(scope="module")
def digits():
    return distinct_digits()


@pytest.fixture(scope="module")
def trial(digits):
    return draw_trial(CONDITION, digits, 2)


@pytest.fixture(scope="module")
def target(trial, digits):
    return make_target(trial, ATTACKS, digits, CONDITION)


def test_own_rows_are_attacked_as_many_of_each_target_that_did_not_leak(trial, target):
    assert_array_equal(np.bincount(target.targets, minlength=10), [0, 0, 0, 5, 5, 5, 5, 5, 5, 5])
    start = 0
    for name, own in trial.split.items():
        rows = target.originals[name]
        number = [int(np.flatnonzero((row == own.X).all(axis=1))[0]) for row in rows]
        assert len(set(number)) == len(rows)
        assert_array_equal(target.targets[start : start + len(rows)], own.y[number])
        start += len(rows)


def test_each_row_goes_through_its_own_partys_map(trial, target):
    for name, rows in target.originals.items():
        assert_allclose(target.representations[name], trial.parties[name].obfuscate(rows))


def test_the_judge_saw_no_row_of_the_trial(trial, digits, monkeypatch):
    seen = []
    fit = RandomForestClassifier.fit
    monkeypatch.setattr(RandomForestClassifier, "fit", lambda self, X, y: seen.append(X) or fit(self, X, y))
    make_target(trial, ATTACKS, digits, CONDITION)
    (judged,) = seen
    taken = [own.X for own in trial.split.values()] + [trial.X_test, trial.anchor]
    used = {row.tobytes() for table in taken for row in np.ascontiguousarray(table)}
    assert len(judged) == 400
    assert not used & {row.tobytes() for row in np.ascontiguousarray(judged)}


def naive_pinv(Z, A, z):
    F = np.linalg.pinv(A - A.mean(0)) @ (Z - Z.mean(0))
    return (z - Z.mean(0)) @ np.linalg.pinv(F) + A.mean(0)


def naive_lr(Z, A, z):
    W = np.linalg.pinv(Z - Z.mean(0)) @ (A - A.mean(0))
    return (z - Z.mean(0)) @ W + A.mean(0)


@pytest.mark.parametrize(("name", "naive"), [("PINV", naive_pinv), ("LR", naive_lr)])
def test_scores_are_what_the_formula_gives_by_hand(trial, target, name, naive):
    """Section "Reconstruction attack": every party is attacked with its own leaked pairs."""
    leaked, found = trial.anchor_target < 3, []
    for share in trial.shares:
        Z, A = share.anchor_representation[leaked], trial.anchor[leaked]
        found.append(naive(Z, A, trial.parties[share.party].obfuscate(target.originals[share.party])))
    judged = target.judge.predict(np.vstack(found))
    mean_judged = target.judge.predict(trial.anchor[leaked].mean(axis=0)[None])[0]
    score = score_attack(trial, target, name)
    assert score.scores == {
        "reconstruction_accuracy": np.mean(judged == target.targets),
        "most_common_share": np.bincount(judged).max() / len(judged),
        "mean_image_accuracy": np.mean(target.targets == mean_judged),
        "original_accuracy": np.mean(
            target.judge.predict(np.vstack(list(target.originals.values()))) == target.targets
        ),
    }
    assert score.images.shape == (2, 7, 64)
    originals, first = (
        np.vstack(list(target.originals.values())),
        [int(np.argmax(target.targets == t)) for t in range(3, 10)],
    )
    assert_array_equal(score.images[0], originals[first])
    assert_allclose(score.images[1], np.vstack(found)[first], atol=1e-8)


def test_too_few_rows_are_an_error_that_says_so(trial, digits):
    with pytest.raises(ValueError, match=r"n_judge=5000 rows, but digits has \d+ that are nowhere in the trial"):
        make_target(trial, Attacks(), digits, CONDITION)
    with pytest.raises(ValueError, match=r"n_per_target=50 rows .* among the parties' 120 rows"):
        make_target(trial, replace(ATTACKS, n_per_target=50), digits, CONDITION)


@pytest.fixture(scope="module")
def further(trial, digits):
    return make_target(trial, FURTHER, digits, CONDITION)


def numbers(rows, table):
    return [int(np.flatnonzero((row == table).all(axis=1))[0]) for row in rows]


def test_a_further_party_has_rows_of_its_own(trial, digits, further, monkeypatch):
    assert list(further.originals) == ["attacked"]
    assert_array_equal(np.bincount(further.targets, minlength=10), [0, 0, 0, 5, 5, 5, 5, 5, 5, 5])
    attacked = numbers(further.originals["attacked"], digits.X)
    assert len(set(attacked)) == 35
    assert_array_equal(digits.y[attacked], further.targets)
    assert set(attacked) <= set(trial.unused)

    fitted, judged = [], []
    fit, judge_fit = Party.fit, RandomForestClassifier.fit
    monkeypatch.setattr(Party, "fit", lambda self, X, y: fitted.append((X, y)) or fit(self, X, y))
    monkeypatch.setattr(RandomForestClassifier, "fit", lambda self, X, y: judged.append(X) or judge_fit(self, X, y))
    make_target(trial, FURTHER, digits, CONDITION)
    ((X, y),) = fitted
    own = numbers(X, digits.X)
    assert len(set(own)) == FURTHER.n_attacked
    assert_array_equal(digits.y[own], y)
    assert set(attacked) <= set(own) <= set(trial.unused)
    assert not set(own) & set(numbers(judged[0], digits.X))
    assert np.unique(y).size == 10, "the other rows are of any target"


def test_a_further_party_obfuscates_as_any_and_is_attacked_by_its_own_pairs(trial, digits, further):
    """PCA of its rows by hand, up to the signs of the columns, which no attack of these depends on."""
    leaked = trial.anchor[trial.anchor_target < 3]
    found = {}
    for name, naive in (("PINV", naive_pinv), ("LR", naive_lr)):
        z, Z = further.representations["attacked"], further.leaked_representations["attacked"]
        assert Z.shape == (len(leaked), CONDITION.n_components)
        reconstructed = naive(Z, leaked, z)
        found[name] = np.mean(further.judge.predict(reconstructed) == further.targets)
        scores = score_attack(trial, further, name).scores
        assert scores["reconstruction_accuracy"] == pytest.approx(found[name])
    assert np.mean(further.judge.predict(further.originals["attacked"]) == further.targets) > 0.8


def test_a_further_party_that_cannot_be_is_an_error_that_says_so(trial, digits):
    with pytest.raises(ValueError, match=r"n_attacked=30 rows cannot have n_per_target=5 of every target, 35 in all"):
        make_target(trial, replace(FURTHER, n_attacked=30), digits, CONDITION)
    with pytest.raises(ValueError, match=r"n_judge=400 rows and a further party n_attacked=5000, but digits has"):
        make_target(trial, replace(FURTHER, n_attacked=5000), digits, CONDITION)
    with pytest.raises(ValueError, match="without a defence"):
        make_target(trial, FURTHER, digits, replace(CONDITION, defence="groups"))


def test_what_is_attacked_of_a_defended_party_is_what_it_shares(digits):
    condition = replace(CONDITION, defence="groups")
    grouped = draw_trial(condition, digits, 1)
    target = make_target(grouped, Attacks(n_judge=300, n_per_target=4), digits, condition)
    assert sum(map(len, target.representations.values())) == len(target.targets) <= 28
    for name, rows in target.representations.items():
        (shared,) = [share.representation for share in grouped.shares if share.party == name]
        assert {row.tobytes() for row in np.round(rows, 8)} <= {row.tobytes() for row in np.round(shared, 8)}
