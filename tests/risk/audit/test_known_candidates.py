"""Attackers who hold the list of candidates: everybody in the table and strangers, with targets or without."""

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn.preprocessing import FunctionTransformer

import datacollab as dc
from audit_example import audited_rows, value_of
from datacollab.party import GaussianNoise, Microaggregation

FORWARD, EXACT_MAP, UNIT_SPREAD = "forward emulator", "exact map", "forward map, columns alike"
FORWARD_KNOWN = "forward map, candidates’ labels known"
MAPS = (FORWARD, EXACT_MAP, UNIT_SPREAD, FORWARD_KNOWN)


@pytest.fixture(scope="module")
def world():
    """Rows of eight columns, with three classes that have hardly anything to do with them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 8))
    return X, (X[:, 0] + 3 * rng.normal(size=700) > 0).astype(int) + (X[:, 1] > 1)


def audited(world, *defences, f=None, attacks=("forward emulator", "membership"), n_rows=60, targets=True, **options):
    X, y = world
    own, anchor, public, strangers = np.split(np.arange(700), [n_rows, n_rows + 150, n_rows + 350])
    f = dc.obfuscator("pca", n_components=6) if f is None else f
    party = dc.Party("a", f, fit_on=X[anchor], defences=defences, random_state=RandomState(0)).fit(X[own], y[own])
    known = [(X[rows], y[rows]) for rows in (anchor, public, strangers)]
    return audited_rows(party, X[own], *known, y=y[own] if targets else None, attacks=attacks, **options)


@pytest.mark.parametrize("attack", MAPS)
def test_without_a_defence_everybody_is_found(world, attack):
    result = audited(world)
    assert value_of(result, "linkage", attack) == 1.0
    assert value_of(result, "open-world linkage", attack) == 1.0
    assert value_of(result, "membership AUC", f"{attack}, distance") == 1.0


@pytest.mark.parametrize("attack", [FORWARD, UNIT_SPREAD, FORWARD_KNOWN])
def test_of_a_constant_representation_nothing_is_told_but_targets(world, attack):
    """Ties are guesses: what is linked is chance, or what the classes give."""
    result = audited(world, f=FunctionTransformer(lambda rows: np.ones((len(rows), 3)) + 1e-30 * rows[:, :3]))
    classes = len(np.unique(world[1][:60]))
    expected = classes / 60 if attack == FORWARD_KNOWN else 1 / 60
    assert value_of(result, "linkage", attack) == pytest.approx(expected, abs=0.04)
    assert value_of(result, "membership AUC", f"{attack}, distance") == pytest.approx(0.5, abs=0.1)


def test_known_classes_link_more_through_noise(world):
    result = audited(world, GaussianNoise(1.0))
    known = next(one for one in result.findings if (one.metric, one.attack) == ("linkage", FORWARD_KNOWN))
    assert known.value > value_of(result, "linkage", UNIT_SPREAD)
    assert known.baseline == pytest.approx(len(np.unique(world[1][:60])) / 60, abs=0.02)


@pytest.mark.nightly
def test_groups_are_sought_among_the_whole_table_however_few_rows_are_attacked(world):
    result = audited(world, Microaggregation(4), attacks=["demixing"], n_attacked=15)
    assert value_of(result, "membership AUC", "demixing") == 1.0
    assert value_of(result, "linkage", "demixing") == pytest.approx(0.25, abs=0.06)


def test_numbers_shared_as_they_are_are_said_to_tell_rows(world):
    X = world[0]
    numeric = X, X[:, 0] + 0.1 * X[:, 1]
    for defence, said in ((GaussianNoise(1.0), True), (Microaggregation(4, n_bins=5), False)):
        text = " ".join(audited(numeric, defence, attacks=()).assumptions)
        assert ("100 % of the rows leave with their record’s own target" in text) is said
    assert "own target" not in " ".join(audited(world, GaussianNoise(1.0), attacks=()).assumptions)


@pytest.mark.nightly
def test_targets_known_are_not_taken_from_what_a_defence_made_of_them(world):
    X = world[0]
    numeric = X, X[:, 0] + 0.1 * X[:, 1]
    attacks = {
        targets: {
            one.attack
            for one in audited(
                numeric, Microaggregation(13, n_bins=2), attacks=["demixing"], targets=targets, time_budget=8
            ).findings
        }
        for targets in (True, False)
    }
    assert "demixing, candidates’ labels known" not in attacks[False]
    assert "demixing" in attacks[True] & attacks[False]
