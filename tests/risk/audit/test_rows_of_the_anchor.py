"""Audits of parties whose shared rows stand for none of their own, or for a class as a whole."""

import numpy as np
import pytest

import datacollab as dc
from datacollab.errors import AgreementError
from datacollab.party import ClassShift, LabelledAnchors
from datacollab.risk.audit import audit
from datacollab.risk.audit._scenario import make_scenario


@pytest.fixture(scope="module")
def rows():
    X, y = dc.datasets.load("digits")
    return X[:100], y[:100], X[100:500], y[100:500], X[500:], y[500:]


def scenario(party, rows, anchor_target):
    X, y, anchor, _, public, target = rows
    return make_scenario(
        party, X, anchor, y=y, anchor_target=anchor_target, public=public, public_target=target, control=None,
        control_target=None, n_attacked=100, random=np.random.RandomState(0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("defence", "n_pairs"), [(ClassShift(), 100), (LabelledAnchors(60), 60), (LabelledAnchors(), 100)]
)
def test_linkage_is_that_of_chance(rows, defence, n_pairs):
    X, y, anchor, b, public, target = rows
    party = dc.Party("a", dc.obfuscator("pca", n_components=8), fit_on=anchor, defences=[defence]).fit(X, y)
    result = audit(
        party, X, anchor, y=y, anchor_target=b, public=public, public_target=target, levels=("T2", "T2f"),
        attacks=("linear regression", "membership", "subspace"), random_state=0,
    )  # fmt: skip
    assert result.n_attacked == n_pairs
    linked = [each for each in result.findings if each.metric == "linkage"]
    assert linked
    assert all(each.value < 0.3 for each in linked)
    assert [each for each in result.findings if each.metric == "membership AUC"]


def test_pairs_are_said_to_be_of_chance(rows):
    X, y, anchor, *_ = rows
    party = dc.Party("a", dc.obfuscator("pca", n_components=8), fit_on=anchor, defences=[LabelledAnchors(60)]).fit(X, y)
    made = scenario(party, rows, None)
    assert any("No shared row stands for one of yours" in remark for remark in made.remarks)
    assert "40 rows were left out by lot, as the share has fewer." in made.remarks
    assert len(set(made.index)) == len(made.Z) == 60
    assert len(made.shared) == 60
    shared = {(*row, label) for row, label in zip(made.shared, made.shared_target, strict=True)}
    assert {(*row, label) for row, label in zip(made.Z, made.target, strict=True)} == shared


def test_targets_are_those_of_the_rows_not_of_the_share(rows):
    X, y, anchor, *_ = rows
    party = dc.Party("a", dc.obfuscator("pca", n_components=8), fit_on=anchor, defences=[LabelledAnchors()]).fit(X, y)
    assert party.was_fitted_on(X, y)
    assert not party.was_fitted_on(X, y[::-1])
    with pytest.raises(AgreementError, match="y differs from the targets"):
        audit(party, X, anchor, y=y[::-1], levels=("T2",), attacks=("linear regression",))
