"""What the audit says of shares behind defences: the attacks made for them, and what is proven."""

import numpy as np
import pytest
from numpy.random import RandomState

import datacollab as dc
from audit_example import audited_rows, value_of
from datacollab.errors import AgreementError
from datacollab.party import GaussianMechanism, GaussianNoise, Microaggregation
from datacollab.risk.audit import audit

ATTACKS = ("forward emulator", "membership", "demixing", "shadow shares")


@pytest.fixture(scope="module")
def digits():
    """A party's 60 rows, 300 anchor rows, 800 public rows, and 300 rows that nobody holds."""
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(0).permutation(len(y))
    return [(X[part], y[part]) for part in np.split(order[:1460], [60, 360, 1160])]


def audited(digits, *defences, attacks=ATTACKS, seed=0, **options):
    (X, y), anchor, public, control = digits
    f = dc.obfuscator("pca", n_components=12)
    # What comes from a known number is not proven to be secret.
    random = None if seed is None else RandomState(seed)
    party = dc.Party("a", f, fit_on=public[0][:200], defences=defences, random_state=random).fit(X, y)
    return audited_rows(party, X, anchor, public, control, y=y, attacks=attacks, **options)


@pytest.fixture(scope="module")
def grouped(digits):
    return audited(digits, Microaggregation(3, small_classes="group"), attacks=("membership", "demixing"))


def test_groups_are_taken_apart_and_their_members_found(grouped):
    assert value_of(grouped, "membership AUC", "demixing") > 0.95
    assert value_of(grouped, "membership TPR", "demixing") > 0.8
    assert grouped.headline("membership").value >= value_of(grouped, "membership AUC", "demixing")
    assert "groups of equal rows were taken apart" in " ".join(grouped.assumptions)


def test_rows_of_one_mean_are_not_linked_beyond_their_number(grouped):
    """Three rows share a mean, so a third is the most that the class and the group give."""
    assert value_of(grouped, "open-world linkage", "demixing") == pytest.approx(1 / 3, abs=0.08)


class _OwnTargets(Microaggregation):
    """Means of groups with the target of each row, rather than the group's mean target."""

    def _defend(self, representation, target, *rest):
        published = super()._defend(representation, target, *rest)
        return published._replace(target=target[published.own_rows])


@pytest.mark.slow
def test_numeric_targets_tell_rows_of_a_group_apart():
    """Means of groups with each row's own target: once a group is solved, the targets say who is who."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 10))
    y = rows @ rng.normal(size=10)
    linked = {}
    for defence in (_OwnTargets(4, n_bins=5), Microaggregation(4, n_bins=5)):
        f = dc.obfuscator("pca", n_components=8)
        party = dc.Party("a", f, fit_on=rows[600:], defences=[defence], random_state=RandomState(0))
        anchor, public = ((rows[part], y[part]) for part in (slice(60, 260), slice(260, 500)))
        party = party.fit(rows[:60], y[:60])
        result = audited_rows(party, rows[:60], anchor, public, (rows[500:600], None), y=y[:60], attacks=["demixing"])
        linked[type(defence)] = value_of(result, "linkage", "demixing")
    assert linked[_OwnTargets] > 0.5
    assert linked[Microaggregation] == pytest.approx(0.25, abs=0.02)


@pytest.mark.slow
def test_what_is_proven_stands_beside_what_was_tried(digits):
    result = audited(digits, GaussianMechanism(4.0), attacks=("shadow shares", "demixing"), seed=None)
    assert result.proven["membership AUC"] == pytest.approx(0.74, abs=0.01)
    assert "(4, 1e-05)-differentially private" in result.guarantee
    found = value_of(result, "membership AUC", "shadow shares")
    assert found <= result.proven["membership AUC"] + 0.08
    assert not [one for one in result.findings if one.attack == "demixing"]
    page = result.to_html()
    assert "Proven, for any attack on the share: AUC 74" in page.replace("\u00a0", " ")
    sheet, _, appendix = page.partition("Technical appendix")
    assert "“At most” is over the attacks tried" in sheet
    assert "but for what is called proven" in sheet
    assert "shadow shares" in appendix
    assert result.worst_records == ()


def test_records_are_listed_where_attacks_point_to_more_than_chance_does(digits):
    """With much noise, chance alone would pick records; without any defence most are found."""
    hidden, plain = (audited(digits, *given, attacks=("linear regression",)) for given in ((GaussianNoise(20.0),), ()))
    table = hidden.table()
    assert set(table.loc[table["metric"] == "linkage", "light"]) <= {"green", "inconclusive"}
    assert (len(hidden.worst_records), len(plain.worst_records)) == (0, 10)
    assert "none is pointed to more often than by chance" in hidden.summary()


def test_targets_are_those_of_the_rows_not_of_the_share(digits):
    (X, y), (anchor, _), *_ = digits
    party = dc.Party(
        "a", dc.obfuscator("pca", n_components=8), fit_on=anchor, defences=[Microaggregation(3, small_classes="group")]
    ).fit(X, y)
    assert party.was_fitted_on(X, y)
    assert not party.was_fitted_on(X, y[::-1])
    with pytest.raises(AgreementError, match="y differs from the targets"):
        audit(party, X, anchor, y=y[::-1], levels=("T2",), attacks=("linear regression",))
