"""Whether an audit finds what is there, and whether its intervals cover."""

import zlib

import numpy as np
import pytest
from numpy.random import RandomState
from numpy.testing import assert_allclose
from scipy import stats
from scipy.stats import ortho_group
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import FunctionTransformer

import datacollab as dc
from audit_example import audited_rows
from datacollab.party import GaussianNoise, Microaggregation
from datacollab.risk.audit import audit

ATTACKS = ("linear regression", "kernel ridge", "membership", "subspace")


@pytest.fixture(scope="module")
def digits():
    """A party's 100 rows, 300 anchor rows, 900 public rows, 397 rows that nobody holds, and 100 of somebody else."""
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(0).permutation(len(y))
    return [(X[part], y[part]) for part in np.split(order, [100, 400, 1300, 1697])]


@pytest.fixture(scope="module")
def pca(digits):
    """A map that nobody fits again."""
    return dc.obfuscator("pca", n_components=8).fit(digits[0][0]).transform


@pytest.fixture(scope="module")
def pca_party(digits, pca):
    return dc.Party("a", FunctionTransformer(pca)).fit(*digits[0])


def audited(party, digits, *, X=None, levels=("T2",), attacks=ATTACKS, **options):
    (own, _), anchor, public, control, _ = digits
    known = own if X is None else X
    return audited_rows(party, known, anchor, public, control, levels=levels, attacks=attacks, **options)


def best(result, metric):
    return max((finding for finding in result.findings if finding.metric == metric), key=lambda one: one.value)


@pytest.mark.slow
def test_rows_shared_as_they_are_are_all_found(digits):
    (X, y), *_ = digits
    party = dc.Party("a", FunctionTransformer()).fit(X, y)
    result = audited(party, digits)
    assert best(result, "re-identification@1").value == 1.0
    assert best(result, "linkage").value == 1.0
    assert best(result, "open-world linkage").value == 1.0
    assert best(result, "R2c").value > 0.99
    assert best(result, "membership AUC").value > 0.99
    assert {each.name: each.rating for each in result.all_criteria()}["linkability"] == "red"


class _Unrelated(TransformerMixin, BaseEstimator):
    """Numbers that depend on the row and tell nothing of it."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        seeds = [zlib.crc32(np.ascontiguousarray(row).tobytes()) for row in np.asarray(X)]
        return np.array([np.random.default_rng(seed).normal(size=8) for seed in seeds])


@pytest.mark.slow
def test_a_representation_that_is_unrelated_tells_nothing(digits):
    (X, y), *_ = digits
    party = dc.Party("a", _Unrelated()).fit(X, y)
    result = audited(party, digits, attacks=("linear regression", "kernel ridge", "forward emulator", "membership"))
    for finding in result.findings:
        if finding.metric == "linkage" and "labels" not in finding.attack:
            # Chance is one in a hundred, so more than six would be a one in a thousand event.
            assert finding.value <= 0.06
        if finding.metric == "membership AUC":
            assert abs(finding.value - 0.5) < 0.08


def test_rows_in_another_order_are_refused(digits, pca_party):
    """Every attack on them would fail, and the page would be green."""
    (X, _), (anchor, _), *_ = digits
    order = np.random.default_rng(2).permutation(len(X))
    with pytest.raises(dc.errors.AgreementError, match="was not fitted on these 100 rows"):
        audit(pca_party, X[order], anchor)


@pytest.mark.slow
def test_the_forward_emulator_finds_what_reconstructions_cannot(rng):
    """Two random directions of forty tell little about a row, and yet which one it is."""
    rows = rng.normal(size=(1200, 40))
    f = dc.obfuscator("random-projection", n_components=2)
    party = dc.Party("a", f, random_state=RandomState(0)).fit(rows[:200], np.zeros(200, dtype=int))
    found = audit(party, rows[:200], rows[200:500], control=rows[500:], levels=["T2"], random_state=0).findings
    rate = {one.attack: one.value for one in found if one.metric == "open-world re-identification"}
    assert rate["linear regression"] < 0.3
    assert rate["forward emulator"] > 0.9


def test_strangers_are_neither_members_nor_known(digits):
    (X, y), anchor, (public, public_target), *_ = digits
    f = dc.obfuscator("pca", n_components=8)
    party = dc.Party("a", f, fit_on=public[:300], random_state=RandomState(0)).fit(X, y)
    mixed = np.vstack([public[250:500], X[:10], anchor[0][:10]])
    known = np.vstack([public[500:], X[:5]]), np.concatenate([public_target[500:], y[:5]])
    result = audited_rows(party, X, anchor, known, (mixed, None), attacks=["linear regression"])
    assert result.n_open_candidates == 100 + 200
    said = " ".join(result.assumptions)
    assert "5 public rows" in said
    assert "70 rows that nobody should hold" in said


def test_labels_alone_count_for_all_they_tell(rng):
    """Rows that are a function of a numeric target leak through it, and not through a share of noise."""
    y = rng.uniform(size=900)
    X = np.sin(np.outer(y, rng.normal(size=12) * 8)) + 0.03 * rng.normal(size=(900, 12))
    party = dc.Party("a", _Unrelated()).fit(X[:100], y[:100])
    anchor, public = (X[100:400], y[100:400]), (X[400:], y[400:])
    result = audited_rows(party, X[:100], anchor, public, (None, None), attacks=["kernel ridge"])
    assert {one.name: one.rating for one in result.all_criteria()}["inference"] != "red"


@pytest.mark.slow
def test_a_single_column_that_is_disclosed_is_not_green(rng):
    rows = rng.normal(size=(700, 40))
    f = FunctionTransformer(lambda table: 3 * np.asarray(table)[:, :1])
    party = dc.Party("a", f).fit(rows[:100], np.zeros(100, dtype=int))
    for attributes, rating in (({"hiv": 0}, "red"), (None, "not tested")):
        result = audit(
            party, rows[:100], rows[100:400], public=rows[400:], attributes=attributes, levels=["T2"], random_state=0
        )
        assert result.criterion("inference").rating == rating


@pytest.mark.slow
def test_rotation_and_the_order_of_rows_change_nothing(digits, pca, pca_party):
    (X, y), *_ = digits
    rotation = ortho_group.rvs(8, random_state=0)
    order = np.random.default_rng(2).permutation(len(X))
    attacks = ("linear regression", "emulator")
    before = audited(pca_party, digits, attacks=attacks)
    for rows in (np.arange(len(X)), order):
        party = dc.Party("a", FunctionTransformer(lambda X: pca(X) @ rotation)).fit(X[rows], y[rows])
        after = audited(party, digits, X=X[rows], attacks=attacks)
        assert len(after.findings) == len(before.findings)
        for one, other in zip(before.findings, after.findings, strict=True):
            assert_allclose(one.value, other.value, atol=1e-6, err_msg=f"{one.attack}: {one.metric}")


@pytest.mark.slow
def test_the_map_itself_tells_members_unless_it_was_fitted_elsewhere(digits):
    (X, y), _, (public, _), *_ = digits
    X, y, f = X[:60], y[:60], dc.obfuscator("pca", n_components=16)

    def auc(party):
        return best(audited(party.fit(X, y), digits, X=X, levels=("T2f",)), "membership AUC").value

    assert auc(dc.Party("a", f)) >= 0.85
    # One map keeps directions that happen to suit the members, another does not: the mean of eight.
    elsewhere = [auc(dc.Party("a", f, fit_on=public[:60], random_state=RandomState(seed))) for seed in range(8)]
    assert abs(np.mean(elsewhere) - 0.5) <= 0.08


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


def test_what_was_not_tested_is_said(digits, pca_party):
    (X, _), (anchor, _), *_ = digits
    result = audit(pca_party, X, anchor, levels=("T0", "T2"), attacks=("linear regression",), random_state=0)
    said = " ".join(result.not_tested)
    assert "T0" in said
    assert "T4" in said
    assert "Membership" in said
    hurried = audited(pca_party, digits, time_budget=0.0)
    assert not hurried.complete
    assert "time was up" in " ".join(hurried.not_tested)


def test_an_attacker_in_collusion_inverts_collaboration_representations(digits, pca_party):
    result = audited(pca_party, digits, levels=("T3",), attacks=None)
    assert best(result, "linkage").value > 0.9


@pytest.mark.parametrize("attribute", ["ward", 64, -1, [0, 64], 1.5, []])
def test_an_attribute_that_is_no_column_is_refused_by_its_name(digits, pca_party, attribute):
    (X, _), (anchor, _), *_ = digits
    with pytest.raises(dc.errors.AgreementError, match=r"attributes\['ward'\].*a column's number from 0 to 63"):
        audit(pca_party, X, anchor, attributes={"ward": attribute})


def test_a_level_is_said_to_be_unasked_only_where_none_of_its_attacks_was_asked_for(digits, pca_party):
    (X, _), (anchor, _), *_ = digits

    def untested(attack):
        said = audit(pca_party, X, anchor, levels=["T0", "T1"], attacks=[attack], random_state=0).not_tested
        return {sentence[:2]: sentence.partition("): ")[2] for sentence in said if sentence[:2] in ("T0", "T1")}

    unasked = "none of its attacks was asked for."
    assert untested("linear regression") == {"T0": unasked}
    assert untested("Procrustes") == {"T0": "needs public rows that are not the anchor’s.", "T1": unasked}
    # Nobody was kept apart, so there is nothing that membership could be told from.
    assert untested("membership") == {"T0": unasked, "T1": "needs rows of the same kind that nobody holds."}


def test_errors_show_no_entry(digits, pca_party):
    (X, y), (anchor, _), *_ = digits
    with pytest.raises(dc.errors.AgreementError, match="was not fitted on these 99 rows"):
        audit(pca_party, X[:99], anchor)
    with pytest.raises(dc.errors.AgreementError, match="64 columns but public has 63"):
        audit(pca_party, X, anchor, public=anchor[:, :63])
    with pytest.raises(dc.errors.AgreementError, match="Unknown threat level 'T9'"):
        audit(pca_party, X, anchor, levels=["T9"])
    with pytest.raises(
        dc.errors.AgreementError, match="Unknown attack 'linear regresion'; choose from Procrustes, linear"
    ):
        audit(pca_party, X, anchor, attacks=["linear regression", "linear regresion"])
    with pytest.raises(dc.errors.AgreementError, match="one text"):
        audit(pca_party, X, anchor, attacks="Procrustes")
    with pytest.raises(dc.errors.AgreementError, match="y differs"):
        audit(pca_party, X, anchor, y=y[::-1])


EXACT_MAP = "exact map"
REPETITIONS, LONG_RUN = 40, 80
METRICS = {"linkage": EXACT_MAP, "membership AUC": f"{EXACT_MAP}, distance", "open-world linkage": EXACT_MAP}


def found(anchor, seed, defence, n_rows=60):
    """One table's figures, by metric."""
    rng = np.random.default_rng(seed)
    X, strangers = rng.normal(size=(n_rows, 6)), rng.normal(size=(120, 6))
    f = dc.obfuscator("pca", n_components=4)
    party = dc.Party("a", f, fit_on=anchor, defences=[defence], random_state=RandomState(seed))
    result = audit(
        party.fit(X, np.zeros(n_rows, dtype=int)),
        X,
        anchor,
        control=strangers,
        levels=["T2"],
        attacks=["forward emulator", "membership"],
        random_state=seed,
    )
    return {
        metric: next(one for one in result.findings if (one.metric, one.attack) == (metric, attack))
        for metric, attack in METRICS.items()
    }


@pytest.mark.nightly
@pytest.mark.parametrize("defence", [GaussianNoise(0.5), Microaggregation(3)], ids=["noise", "groups of 3"])
def test_intervals_cover_the_long_run(defence):
    """The rate is known from many other tables, none of them among those whose intervals are counted."""
    anchor = np.random.default_rng(99).normal(size=(100, 6))
    truth = [found(anchor, 10_000 + seed, defence) for seed in range(LONG_RUN)]
    tables = [found(anchor, seed, defence) for seed in range(REPETITIONS)]
    # So few would be covered once in a thousand times if each were with a chance of .95.
    least = stats.binom.ppf(0.001, REPETITIONS, 0.95)
    for metric in METRICS:
        rate = np.mean([each[metric].value for each in truth])
        covered = sum(each[metric].low <= rate <= each[metric].high for each in tables)
        above = sum(rate <= each[metric].high for each in tables)
        assert covered >= least, (metric, covered, rate)
        assert above >= stats.binom.ppf(0.001, REPETITIONS, 0.975), (metric, above, rate)
