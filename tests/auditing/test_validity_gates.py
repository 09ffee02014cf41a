"""What an audit must find, and must not, on representations of which the answer is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ortho_group
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import FunctionTransformer

import datacollab as dc
from datacollab.auditing import audit
from datacollab.privacy import Rate
from datacollab.share import Share

ATTACKS = ("linear regression", "kernel ridge", "membership", "subspace")


@pytest.fixture(scope="module")
def digits():
    """A party's 100 rows, 300 anchor rows, 900 public rows, 397 rows that nobody holds, and 100 of somebody else."""
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(0).permutation(len(y))
    return [(X[part], y[part]) for part in np.split(order, [100, 400, 1300, 1697])]


@pytest.fixture(scope="module")
def pca_share(digits):
    """A share without a party, its rows in the table's order."""
    (X, y), (anchor, anchor_target), *_ = digits
    f = dc.obfuscator("pca", n_components=8).fit(X)
    return Share(
        party="a",
        representation=f.transform(X),
        anchor_representation=f.transform(anchor),
        target=y,
        anchor_target=anchor_target,
    )


def audited(party, digits, *, X=None, levels=("T2",), attacks=ATTACKS, **options):
    (own, _), (anchor, anchor_target), (public, public_target), (control, control_target), _ = digits
    return audit(
        party,
        own if X is None else X,
        anchor,
        anchor_target=anchor_target,
        public=public,
        public_target=public_target,
        control=control,
        control_target=control_target,
        levels=levels,
        attacks=attacks,
        random_state=0,
        **options,
    )


def best(result, metric):
    return max((finding for finding in result.findings if finding.metric == metric), key=lambda one: one.value)


def changed(share, representation, anchor_representation=None, target=None):
    return Share(
        party=share.party,
        representation=representation,
        anchor_representation=share.anchor_representation if anchor_representation is None else anchor_representation,
        target=share.target if target is None else target,
        anchor_target=share.anchor_target,
    )


def test_rows_shared_as_they_are_are_all_found(digits):
    (X, y), *_ = digits
    party = dc.Party("a", FunctionTransformer()).fit(X, y)
    result = audited(party, digits)
    assert best(result, "re-identification@1").value == 1.0
    assert best(result, "linkage").value == 1.0
    assert best(result, "open-world linkage").value == 1.0
    assert best(result, "R2c").value > 0.99
    assert best(result, "membership AUC").value > 0.99
    assert {each.name: each.light for each in result.criteria()}["linkability"] == "red"


def test_a_representation_of_other_rows_tells_nothing(digits, pca_share):
    order = np.random.default_rng(1).permutation(len(pca_share.target))
    for target in (pca_share.target, pca_share.target[order]):
        share = changed(pca_share, pca_share.representation[order], target=target)
        result = audited(share, digits, attacks=("linear regression", "kernel ridge"))
        plain = [finding for finding in result.findings if "labels" not in finding.attack]
        for finding in plain:
            if finding.metric == "linkage":
                # Chance is one in a hundred, so more than six would be a one in a thousand event.
                assert finding.value <= Rate(6, 100).value


def test_members_of_nothing_are_not_told(digits, pca_share):
    """The rows under attack are not those behind the share, so that there are no members among them."""
    (X, _), (anchor, _), _, _, (others, _) = digits
    f = dc.obfuscator("pca", n_components=8).fit(others)
    share = changed(pca_share, f.transform(others), f.transform(anchor))
    result = audited(share, digits, X=X, levels=("T2", "T2f"), attacks=("membership", "subspace", "kernel ridge"))
    for finding in result.findings:
        if finding.metric == "membership AUC":
            assert abs(finding.value - 0.5) < 0.08


def test_rotation_and_the_order_of_rows_change_nothing(digits, pca_share):
    rotation = ortho_group.rvs(8, random_state=0)
    attacks = ("linear regression", "Gaussian prior")
    before = audited(pca_share, digits, attacks=attacks)
    rotated = changed(pca_share, pca_share.representation @ rotation, pca_share.anchor_representation @ rotation)
    (X, _), *_ = digits
    order = np.random.default_rng(2).permutation(len(X))
    moved = changed(rotated, rotated.representation[order], target=rotated.target[order])
    for after in (audited(rotated, digits, attacks=attacks), audited(moved, digits, X=X[order], attacks=attacks)):
        assert len(after.findings) == len(before.findings)
        for one, other in zip(before.findings, after.findings, strict=True):
            assert_allclose(one.value, other.value, atol=1e-6, err_msg=f"{one.attack}: {one.metric}")


def test_equal_rows_are_linked_by_chance_alone(digits, pca_share):
    share = changed(pca_share, np.broadcast_to(pca_share.representation.mean(axis=0), (100, 8)))
    result = audited(share, digits, attacks=("linear regression", "kernel ridge"))
    for finding in result.findings:
        if finding.metric == "linkage" and "labels" not in finding.attack:
            assert finding.value <= Rate(6, 100).value


def test_the_map_itself_tells_members_unless_it_was_fitted_elsewhere(digits):
    (X, y), _, (public, _), *_ = digits
    X, y, f = X[:60], y[:60], dc.obfuscator("pca", n_components=16)
    parties = dc.Party("a", f).fit(X, y), dc.Party("a", f, fit_on=public[:60]).fit(X, y)
    values = [best(audited(party, digits, X=X, levels=("T2f",)), "membership AUC").value for party in parties]
    assert values[0] >= 0.85
    assert abs(values[1] - 0.5) <= 0.08


def test_microaggregation_lowers_linkage_to_what_labels_give(digits):
    (X, y), _, (public, _), *_ = digits
    plain = dc.Party("a", dc.obfuscator("pca", n_components=16)).fit(X, y)
    private = dc.Party.private("a", public).fit(X, y)
    before, after = (best(audited(party, digits), "linkage") for party in (plain, private))
    assert before.value > 0.9
    assert after.value < 0.3


class _Stubborn(TransformerMixin, BaseEstimator):
    """Keeps the rows it was fitted on, and maps to their mean."""

    def fit(self, X, y=None):
        self.rows_ = X
        return self

    def transform(self, X):
        return X[:, :2]


def test_stored_rows_are_found_in_files(digits):
    (X, y), *_ = digits
    party = dc.Party("a", dc.obfuscator("pca", n_components=4)).fit(X, y)
    files = {"f": _Stubborn().fit(X), "g": dc.obfuscator("pca", n_components=4).fit(X)}
    result = audited(party, digits, levels=("T4",), attacks=None, artefacts=files)
    assert [finding.value for finding in result.findings] == [1.0, 0.0]


def test_what_was_not_tested_is_said(digits, pca_share):
    (X, _), (anchor, _), *_ = digits
    result = audit(pca_share, X, anchor, levels=("T0", "T2"), attacks=("linear regression",), random_state=0)
    said = " ".join(result.not_tested)
    assert "T0" in said
    assert "T4" in said
    assert "Membership" in said
    hurried = audited(pca_share, digits, time_budget=0.0)
    assert not hurried.complete
    assert "time was up" in " ".join(hurried.not_tested)


def test_an_attacker_in_collusion_inverts_collaboration_representations(digits, pca_share):
    result = audited(pca_share, digits, levels=("T3",), attacks=None)
    assert best(result, "linkage").value > 0.9


def test_errors_show_no_entry(digits, pca_share):
    (X, y), (anchor, _), *_ = digits
    with pytest.raises(dc.errors.AgreementError, match=r"X has 99 rows .* 100"):
        audit(pca_share, X[:99], anchor)
    with pytest.raises(dc.errors.AgreementError, match="64 columns but anchor has 63"):
        audit(pca_share, X, anchor[:, :63])
    with pytest.raises(dc.errors.AgreementError, match="Unknown threat level 'T9'"):
        audit(pca_share, X, anchor, levels=["T9"])
    with pytest.raises(dc.errors.AgreementError, match="y differs"):
        audit(pca_share, X, anchor, y=y[::-1])


def test_the_slow_attack_is_made_where_it_is_named(digits, pca_share):
    named = audited(pca_share, digits, attacks=("multilayer perceptron",))
    assert best(named, "re-identification@1").attack.startswith("multilayer perceptron")
    assert best(named, "linkage").value > 0.3
