"""Defended parties in trials, and the audit as one of the attacks."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tiny import TINY, tiny
from trials import DIABETES, DIGITS, diabetes, distinct_digits, shrink_forests

from datacollab.anchor import find_private_rows
from datacollab_experiments.paper import Attacks, Experiment, draw_trial, make_tasks, read_results, run_experiments

PLAIN = replace(DIGITS, n_sources=None)
GROUPS = replace(PLAIN, defence="groups")
TABLE = replace(DIABETES, n_sources=None, n_per_party=30)
SCORES = {
    "linkage", "linkage_labels", "open_world_linkage", "reidentification", "reidentification_labels", "r2c",
    "membership_auc", "map_membership_auc", "zero_leak_reidentification",
}  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    return distinct_digits()


@pytest.fixture(scope="module")
def plain(digits):
    return draw_trial(PLAIN, digits, 1)


@pytest.fixture(scope="module")
def grouped(digits):
    return draw_trial(GROUPS, digits, 1)


def audit_scores(condition, seed=1, dataset="trials:distinct_digits", names=("audit",)):
    """Scores of the audit, after those of other attacks on the same trial."""
    attacks = Attacks(names=names, n_judge=300, n_per_target=4)
    condition = replace(condition, dataset=dataset)
    (task,) = make_tasks(
        [Experiment(name="e", preset="p", title="t", conditions=(condition,), seeds=(seed,), attacks=attacks)]
    )
    (outcome,) = [each for each in task.measure() if task.cells[each.cell].name == "audit"]
    assert outcome.error is None
    return outcome.scores


def rows_of(*tables):
    return {row.tobytes() for table in tables for row in np.ascontiguousarray(table)}


def test_defended_parties_fit_on_rows_that_are_nowhere_else(digits, grouped):
    fit_on = grouped.parties["party-0"].fit_on
    assert len(fit_on) == GROUPS.n_fit == 2 * 40
    own = [each.X for each in grouped.split.values()]
    elsewhere = rows_of(*own, grouped.X_test, grouped.anchor, digits.X[grouped.unused])
    assert len(elsewhere) == len(digits.X) - 80
    assert not rows_of(fit_on) & elsewhere
    assert GROUPS.n_rows == PLAIN.n_rows + 80


def test_defended_parties_share_means_of_five_rows_of_a_class_through_maps_of_their_own(plain, grouped):
    for share in grouped.shares:
        classes, sizes = np.unique(grouped.split[share.party].y, return_counts=True)
        assert set(share.target) == set(classes[sizes >= 5])
        assert len(share.target) == sizes[sizes >= 5].sum()
        for label in np.unique(share.target):
            _, copies = np.unique(share.representation[share.target == label], axis=0, return_counts=True)
            assert copies.min() >= 5
    first, second = (share.anchor_representation for share in grouped.shares[:2])
    assert np.abs(first - second).max() > 1
    assert all(len(share.representation) == 40 for share in plain.shares)


def test_numeric_targets_are_defended_in_intervals():
    """The targets of diabetes are whole numbers, most of which occur once."""
    trial = draw_trial(replace(TABLE, defence="groups"), diabetes(), 0)
    for share in trial.shares:
        assert len(share.target) == 30
        _, copies = np.unique(share.representation, axis=0, return_counts=True)
        assert copies.min() >= 5


@pytest.mark.nightly
def test_pca_is_linked_and_its_map_tells_who_is_a_member_and_a_defended_party_is_not():
    undefended, defended = audit_scores(PLAIN), audit_scores(GROUPS)
    assert audit_scores(GROUPS, names=("LR", "audit")) == defended, "it depends on nothing but the trial"
    assert set(undefended) == set(defended) == SCORES
    assert undefended["linkage"] == 1
    assert undefended["membership_auc"] > 0.95
    assert undefended["map_membership_auc"] > 0.65
    assert undefended["zero_leak_reidentification"] > 0.3
    assert defended["linkage"] < 0.4
    assert defended["open_world_linkage"] < 0.2 < undefended["open_world_linkage"]
    assert abs(defended["map_membership_auc"] - 0.5) < 0.12
    assert defended["r2c"] < undefended["r2c"] - 0.2
    for scores in (undefended, defended):
        assert scores["linkage"] >= scores["open_world_linkage"]
        assert scores["reidentification"] >= scores["zero_leak_reidentification"]
        assert all(math.isfinite(value) for value in scores.values())


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_each_seed_has_its_party_and_the_attackers_rows_are_nowhere_in_the_trial(digits, monkeypatch, seed):
    given = {}

    def audit(*args, **options):
        given.update(options, args=args)
        raise MemoryError("what it is given is seen")

    for name, value in {"audit": audit, "_N_PUBLIC": 300, "_N_CONTROL": 60}.items():
        monkeypatch.setattr(f"datacollab_experiments.paper._attack.{name}", value)
    trial = draw_trial(PLAIN, digits, seed)
    with pytest.raises(MemoryError):
        audit_scores(PLAIN, seed)
    party, X, anchor = given["args"]
    assert party.name == f"party-{seed % 3}"
    assert_array_equal(X, trial.split[party.name].X)
    assert_array_equal(anchor, trial.anchor)
    assert len(given["public"]) == 360
    assert rows_of(given["public"]) <= rows_of(digits.X[trial.unused])
    assert len(find_private_rows(given["public"], np.vstack([each.X for each in trial.split.values()]))) == 0


@pytest.mark.slow
def test_a_table_with_numeric_targets_is_audited():
    scores = audit_scores(TABLE, 0, "trials:diabetes")
    assert set(scores) == SCORES
    assert scores["linkage"] > 0.9 > scores["linkage_labels"]


AUDITED = TINY.replace('["pca", "kernel-pca"]', '["pca"]').replace("[3, 5]", "[5]").replace(
    'hyperparameters = ["paper", "recommended"]', 'defence = ["none", "groups"]'
).replace('"LR", "PINV"', '"LR", "audit"').replace("seeds = 2", "seeds = 1")  # fmt: skip


@pytest.mark.nightly
def test_an_experiment_has_rows_of_both(tmp_path, monkeypatch):
    shrink_forests(monkeypatch)
    experiment = tiny(tmp_path, AUDITED)
    assert run_experiments([experiment], tmp_path / "results.sqlite") == 0
    results = read_results(tmp_path)
    found = {(row.condition.defence, row.name): row for row in results.rows["tiny"]}
    for defence in ("none", "groups"):
        assert set(found[defence, "audit"].scores) == SCORES
        assert "reconstruction_accuracy" in found[defence, "LR"].scores
        assert results.images(found[defence, "audit"]) is None
    assert found["none", "Central"].cell == found["groups", "Central"].cell
    assert found["none", "KTI"].scores != found["groups", "KTI"].scores


@pytest.mark.slow
def test_the_audit_alone_needs_no_judge(tmp_path):
    """With judges and leaked targets that cannot be had."""
    text = AUDITED.replace('"LR", "audit"', '"audit"').replace("n_judge = 200", "n_judge = 99999")
    experiment = replace(tiny(tmp_path, text), methods={})
    assert run_experiments([experiment], tmp_path / "results.sqlite") == 0
