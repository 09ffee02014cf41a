"""Targets of several values each, such as event and time, are refused in words where they have no meaning."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import datacollab as dc
from datacollab.errors import AgreementError, AnchorError, DataCollabError, ShareError
from datacollab.risk.attacks import KernelRidgeAttack

RANDOM = np.random.default_rng(0)
X, ANCHOR = RANDOM.normal(size=(120, 5)), RANDOM.normal(size=(60, 5))
CLASSES = np.arange(120) % 3
TIMES = RANDOM.exponential(10.0, size=120)
SURVIVAL = np.array([(time < 5, time) for time in TIMES], dtype=[("event", bool), ("time", float)])
PAIRS = pd.Series([(bool(event), float(time)) for event, time in SURVIVAL])


def party():
    return dc.Party("a", dc.obfuscator("pca", 3))


def share(**targets):
    return dc.Share(party="a", representation=X, anchor_representation=ANCHOR, **({"target": CLASSES} | targets))


def attack(target):
    return KernelRidgeAttack().fit(X, X, target=target)


def personalised(public_target):
    """A party that combines what came back with public rows of these targets."""
    own = {name: dc.Party(name, dc.obfuscator("pca", 3)).fit(X[k::2], CLASSES[k::2]) for k, name in enumerate("ab")}
    common = dc.Analyst(dc.LTI(3), LogisticRegression()).fit([each.share(ANCHOR) for each in own.values()])
    model = common.party_model("a")
    return own["a"].personalise(model, X[::2], CLASSES[::2], public=ANCHOR, public_target=public_target)


VIEWS = {"a": ANCHOR, "b": ANCHOR[:, :3]}
ENTRIES = {
    "similarity": (AgreementError, lambda y: dc.KTI(2, graph=dc.TargetSimilarityGraph()).fit(VIEWS, y[:60])),
    "dissimilarity": (
        AgreementError,
        lambda y: dc.KTI(2, penalty_graph=dc.TargetDissimilarityGraph()).fit(VIEWS, y[:60]),
    ),
    "KTICV": (AgreementError, lambda y: dc.KTICV(2).fit(VIEWS, y[:60])),
    "classifier": (AgreementError, lambda y: dc.DataCollaborationClassifier().fit(X, y, groups=CLASSES, anchor=ANCHOR)),
    "regressor": (AgreementError, lambda y: dc.DataCollaborationRegressor().fit(X, y, groups=CLASSES, anchor=ANCHOR)),
    "regressor's anchor": (
        AgreementError,
        lambda y: dc.DataCollaborationRegressor().fit(X, TIMES, groups=CLASSES, anchor=ANCHOR, anchor_target=y[:60]),
    ),
    "Local": (AgreementError, lambda y: dc.Local(Ridge()).fit(X, y, groups=CLASSES)),
    "Central": (AgreementError, lambda y: dc.Central(Ridge()).fit(X, y, groups=CLASSES)),
    "SMOTEAnchor": (AnchorError, lambda y: dc.SMOTEAnchor(50).sample(X, y, random_state=0)),
    "SampleAnchor": (AnchorError, lambda y: dc.SampleAnchor(50).sample(X, y, random_state=0)),
    "choose": (AgreementError, lambda y: dc.choose(X, y, ANCHOR)),
    "audit's public": (
        AgreementError,
        lambda y: dc.audit(party().fit(X, CLASSES), X, ANCHOR, public=RANDOM.normal(size=(120, 5)), public_target=y),
    ),
    "audit's own": (AgreementError, lambda y: dc.audit(party().fit(X, CLASSES), X, ANCHOR, y=y)),
    "personalise": (AgreementError, lambda y: personalised(y[:60])),
    "attack": (AgreementError, attack),
}


# These take the fields of `datacollab.targets`, and refuse all else.
NAMED = {
    "Party.fit": (AgreementError, lambda y: party().fit(X, y)),
    "Party.share": (ShareError, lambda y: party().fit(X, CLASSES).share(ANCHOR, y[:60])),
    "Share.target": (ShareError, lambda y: share(target=y)),
    "Share.anchor_target": (ShareError, lambda y: share(anchor_target=y[:60])),
}


@pytest.mark.parametrize("entry", NAMED)
def test_tuples_are_refused_where_fields_are_taken(entry):
    error, enter = NAMED[entry]
    with pytest.raises(error, match="several values per row"):
        enter(PAIRS)


@pytest.mark.parametrize("entry", NAMED)
def test_fields_of_no_kind_are_refused(entry):
    error, enter = NAMED[entry]
    with pytest.raises(error, match="fields status, days, which are of no kind"):
        enter(SURVIVAL.astype([("status", bool), ("days", float)]))


def test_an_anchor_of_another_kind_is_refused():
    with pytest.raises(ShareError, match="of kind single, but the anchor's of kind survival"):
        party().fit(X, CLASSES).share(ANCHOR, SURVIVAL[:60])


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("target", [SURVIVAL, PAIRS], ids=["fields", "tuples"])
def test_targets_of_several_values_are_refused(entry, target):
    error, enter = ENTRIES[entry]
    with pytest.raises(error) as refused:
        enter(target)
    assert isinstance(refused.value, DataCollabError)
    if entry != "audit's own":  # whose sentence is that they are not those of the party
        assert "several values per row" in str(refused.value)
        assert "Give one number or class per row." in str(refused.value)
        assert ("event, time" in str(refused.value)) == (target is SURVIVAL)


def test_no_entry_is_quoted():
    with pytest.raises(AgreementError) as refused:
        party().fit(X, PAIRS)
    assert not any(f"{time:.3f}"[:5] in str(refused.value) for time in TIMES)


def test_objects_that_are_one_value_each_are_taken():
    words = pd.Series(["low", "high"] * 60, dtype=object)
    assert set(party().fit(X, words).share(ANCHOR).target) == {"low", "high"}
