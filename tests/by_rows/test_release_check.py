import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_example import KEYS, N_ANCHORS, diabetes, digits, rows_of, said_by
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin

import datacollab as dc
import datacollab.risk.audit
from audit_example import audit_result, finding
from datacollab.agreement import Anchor
from datacollab.anchor import EqualRows
from datacollab.by_rows.party import _rows_summary
from datacollab.by_rows.party._row_share import prepare_rows
from datacollab.by_rows.party._rows_summary import (
    ATTACKS,
    LEAST_ROWS,
    Attacks,
    RiskFigures,
    _worst,
    judge_row_wise,
    reasons_against,
    risk_figures,
)
from datacollab.errors import ObfuscationError, RepresentationError
from datacollab.folder.party import refuse
from datacollab.linalg import gaussian_sigma
from datacollab.party import OBFUSCATORS, Microaggregation, SharingPlan
from datacollab.risk.audit import audit
from datacollab.risk.audit._findings import AMBER_LIMIT, rating_of
from datacollab.steps.party import Policy, ReleaseSummary, figure_text, limit_text
from party_world import refused

NO_LIMITS = {"max_linkage": None, "max_reidentification": None, "max_membership": None}
LENIENT = Policy(min_rows=1, min_class_rows=1, audit="off", **NO_LIMITS)
FIGURES = RiskFigures(linkage=0.3, reidentification=0.1, membership=0.6, ratings={"linkability": "red"})


def prepared(parts, policy=LENIENT, **options):
    """Without a defence, unless one is named."""
    project, encoded, anchor = parts
    if not options.keys() & {"preset", "group_size", "noise", "epsilon"}:
        options["preset"] = "none"
    further = {name: options.pop(name) for name in ("audit", "time_budget", "progress") if name in options}
    largest = max(1, min(project.n_features, project.max_components, policy.max_components, encoded.n_rows - 2))
    plan = SharingPlan.of(is_regression=project.task.kind == "regression", largest=largest, **options)
    return prepare_rows(project, policy, "north", encoded, anchor, plan, Attacks(**further))


def summary_of(**changes):
    """A summary without any fault."""
    given = {
        "party": "north",
        "project": "example",
        "analyst": "747n-smvg-qers-oxfg",
        "n_rows": 40,
        "n_suppressed": 0,
        "n_components": 4,
        "n_anchors": N_ANCHORS,
        "dtype": "float64",
        "task": "classification",
        "class_counts": {"0": 20, "1": 20},
        "n_bytes": 1000,
        "row_order": "shuffled",
        "obfuscator": "pca",
        "fitted_on_private_rows": False,
        "kinds_of_defence": ("microaggregation",),
        "stands_for": "several rows",
        "defences": ("groups",),
        "risk": FIGURES,
        "in_anchor": EqualRows(n_equal=0, by_chance=0),
        "guarantee": None,
    }
    return ReleaseSummary(**given | changes)


@pytest.fixture(scope="module")
def example():
    return digits(60, classes=3)


def test_the_summary_says_what_the_share_holds(example):
    project, encoded, anchor = example
    made = prepared(example, n_components=4)
    share, summary = made.share, made.summary
    assert (summary.n_rows, summary.n_components) == share.representation.shape == (60, 4)
    assert summary.n_anchors == len(share.anchor_representation) == N_ANCHORS
    assert summary.class_counts == {str(label): int((encoded.target == label).sum()) for label in range(3)}
    assert summary.n_bytes == share.nbytes
    assert (summary.row_order, summary.obfuscator, summary.defences) == ("shuffled", "pca", ())
    assert summary.fitted_on_private_rows
    assert not made.reasons


def test_the_order_joins_share_and_table_and_the_policy_decides_on_it(example):
    _, encoded, _ = example
    made = prepared(example, n_components=4)
    assert sorted(made.order) == list(range(60))
    np.testing.assert_array_equal(made.share.target, encoded.target[made.order])
    np.testing.assert_allclose(made.share.representation, made.party.obfuscate(encoded.X[made.order]))
    kept = prepared(example, replace(LENIENT, shuffle=False), n_components=4)
    assert list(kept.order) == list(range(60))
    assert kept.summary.row_order == "kept"
    assert "IN THE ORDER OF THE TABLE" in kept.summary.to_text()


def test_means_of_groups_stand_for_several_rows_each(example):
    made = prepared(example, group_size=5, fit_on_anchor=True, n_components=4)
    rows, counts = np.unique(made.share.representation, axis=0, return_counts=True)
    assert counts.min() >= 5
    assert (made.summary.kinds_of_defence, made.summary.stands_for) == (("microaggregation",), "several rows")
    assert not made.summary.fitted_on_private_rows
    assert (made.own.order is None, made.own.n_shared) == (True, 60)


def test_with_an_epsilon_each_row_gets_noise_and_bounds_are_proven(example):
    """The bounds are those of two normal distributions that lie mu standard deviations apart."""
    made = prepared(example, epsilon=4.0, n_components=4)
    assert made.plan.options == "--obfuscator pca --components 4 --no-standardize --epsilon 4"
    assert made.plan.fit_on_anchor
    summary = made.summary
    assert not made.share.one_to_one
    np.testing.assert_array_equal(made.share.target, example[1].target[made.order])
    mu = 1 / gaussian_sigma(4.0, 1e-5)
    assert summary.proven["membership"] == pytest.approx(norm.cdf(mu / np.sqrt(2)))
    assert summary.proven["found"] == pytest.approx(norm.cdf(mu + norm.ppf(0.01)))
    assert (summary.stands_for, summary.kinds_of_defence) == ("one row", ("noise",))
    text = summary.to_text()
    assert "epsilon 4" in text
    assert max(map(len, text.splitlines())) <= 100


def test_with_an_epsilon_attacks_inform_and_refuse_nothing(example, monkeypatch):
    """Whether a draw leaves must not depend on what was drawn; so another draw is attacked."""
    attacked = []
    real = _rows_summary.risk_figures

    def watched(party, *given, **options):
        attacked.append(party)
        return real(party, *given, **options)

    monkeypatch.setattr("datacollab.by_rows.party._row_share.risk_figures", watched)
    strict = replace(LENIENT, audit="required", max_linkage=0.0, max_membership=0.5)
    made = prepared(example, strict, epsilon=64.0, n_components=4, time_budget=0.0)
    assert made.reasons == []
    assert attacked != [made.party]
    assert prepared(example, strict, noise=0.1, fit_on_anchor=True, n_components=4, time_budget=0.0).reasons
    assert attacked[1:]


def test_with_an_epsilon_rows_of_the_anchor_are_left_out_one_by_one(example):
    project, encoded, anchor = example
    copied = list(range(7, 31))
    parts = project, encoded, replace(anchor, rows=np.vstack([anchor.rows[len(copied) :], encoded.X[copied]]))
    assert [each.code for each in prepared(parts).reasons] == ["ANCHOR_HAS_PRIVATE_ROWS"]
    made = prepared(parts, epsilon=8.0, n_components=4)
    assert made.reasons == []
    assert made.summary.guarantee is not None
    assert sorted(made.order) == [row for row in range(60) if row not in copied]
    np.testing.assert_array_equal(made.share.target, encoded.target[made.order])
    assert (made.summary.n_rows, made.summary.n_suppressed) == (60 - len(copied), len(copied))
    assert len(made.own.X) == 60


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "attacked"), [("pca", "required"), ("kernel-pca", "off")])
def test_with_an_epsilon_a_huge_entry_changes_nothing_but_its_row(example, kind, attacked):
    project, encoded, anchor = example
    X = encoded.X.copy()
    X[3, 1] = 1e160
    parts = project, replace(encoded, X=X), anchor
    made = prepared(parts, replace(LENIENT, audit=attacked), epsilon=8.0, n_components=4, obfuscator=kind)
    assert made.reasons == []
    assert made.summary.guarantee is not None
    assert len(made.share.target) == 60
    assert np.abs(made.share.representation).max() < 1e3 * np.abs(made.share.anchor_representation).max()


def test_groups_are_taken_where_nothing_is_named():
    groups = SharingPlan.of(preset="groups", largest=8)
    assert SharingPlan.of(largest=8).options == groups.options
    assert (groups.defences[0].k, groups.defences[1].scale, groups.fit_on_anchor) == (5, 0.3, True)
    assert SharingPlan.of(noise=0.5, largest=8).kinds_of_defence == ("noise",)
    assert SharingPlan.of(preset="none", largest=8).defences == ()
    for wrong in ({"preset": "groups", "noise": 0.5}, {"preset": "none", "group_size": 3}):
        with pytest.raises(ValueError, match="preset"):
            SharingPlan.of(largest=8, **wrong)


@pytest.mark.parametrize("other", [{"preset": "groups"}, {"preset": "none"}, {"group_size": 5}, {"noise": 0.3}])
def test_an_epsilon_takes_no_other_defence(other):
    with pytest.raises(ValueError, match="An epsilon is a defence of its own"):
        SharingPlan.of(largest=8, epsilon=4.0, **other)


@pytest.mark.parametrize(
    "options", [{}, {"epsilon": 2.5}, {"preset": "none"}, {"group_size": 3}, {"noise": 0.5, "fit_on_anchor": True}]
)
def test_the_options_that_are_named_mean_the_same_way(options):
    plan = SharingPlan.of(largest=8, **options)
    again = SharingPlan.of(largest=8, **said_by(plan.options))
    assert (again.options, again.fit_on_anchor) == (plan.options, plan.fit_on_anchor)


def test_a_proven_bound_below_the_measured_figure_counts(example):
    policy = replace(LENIENT, audit="required", max_membership=0.75)
    measured = summary_of(risk=replace(FIGURES, membership=0.8), proven={"membership": 0.74, "found": 0.09})
    assert measured.figure("membership") == 0.74
    assert not reasons_against(measured, policy, example[0])
    assert [each.code for each in reasons_against(replace(measured, proven={}), policy, example[0])] == [
        "RISK_TOO_HIGH"
    ]
    assert replace(measured, risk=None, limits={"membership": 0.75}).above_limits == ()
    text = replace(measured, limits={"membership": 0.75}).to_text()
    assert "proven for any attack: at most 0.74" in text
    assert "ABOVE" not in text


def test_rows_that_are_kept_back_are_counted():
    project, encoded, anchor = digits(60, classes=3)
    few = np.concatenate([np.flatnonzero(encoded.target == 0)[:3], np.flatnonzero(encoded.target > 0)])
    parts = project, rows_of(encoded, few), anchor
    summary = prepared(parts, group_size=5, n_components=4).summary
    assert summary.n_suppressed == 3
    assert summary.class_counts["0"] == 0
    assert "3 more are kept back" in summary.to_text()
    wants_five = replace(LENIENT, min_class_rows=5)
    refuse(reasons_against(summary, wants_five, project))
    with refused("CLASS_TOO_SMALL"):
        refuse(reasons_against(prepared(parts, n_components=4).summary, wants_five, project))


def test_rows_of_one_class_tell_everybodys_target():
    project, encoded, anchor = digits(60, classes=3)
    one = np.flatnonzero(encoded.target == 1)
    few = replace(
        encoded, X=encoded.X[one], target=encoded.target[one], labelled=encoded.labelled[one], n_rows=len(one)
    )
    parts = project, few, anchor
    reasons = reasons_against(prepared(parts, n_components=4).summary, LENIENT, project)
    told = [str(reason) for reason in reasons if reason.code == "CLASS_TOO_SMALL"]
    assert len(told) == 1
    assert f"all {len(one)} rows that leave are of one class" in told[0]
    assert "share sums instead" in told[0]


def test_whole_numbers_of_a_regression_are_no_classes():
    made = prepared(diabetes(40), group_size=5, n_components=3)
    assert made.summary.class_counts is None
    assert made.summary.n_suppressed == 0
    assert "40 numbers" in made.summary.to_text()


def test_text_and_json_say_the_same_and_nothing_of_the_data(example):
    project, encoded, anchor = example
    rng = np.random.default_rng(0)
    secret = rng.uniform(-1, 1, size=encoded.X.shape)
    made = prepared((project, replace(encoded, X=secret), anchor), n_components=4, noise=0.5)
    summary = replace(made.summary, risk=FIGURES, limits={"linkage": 0.25})
    text, told = summary.to_text(), json.dumps(summary.to_dict(), allow_nan=False)
    assert json.loads(told)["risk"]["linkage"] == 0.3
    for matrix in (secret, made.share.representation):
        assert not any(f"{number:.6g}" in text + told for number in matrix.ravel())
    for words in (
        "60",
        "0.5 standard deviations",
        "30 %   limit 25 %    ABOVE",
        "not leave",
        "0: ",
        f"{N_ANCHORS} rows",
        "the name of the approver",
        "the time, versions",
        "log's last entry",
    ):
        assert words in text
    lines = text.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("code", "changes", "rules", "words"),
    [
        ("TOO_FEW_ROWS", {"n_rows": 29}, {"min_rows": 30}, ("29 rows", "policy demands 30")),
        ("TOO_FEW_ROWS", {"n_rows": 19}, {}, ("19 rows", "project demands 20")),
        (
            "CLASS_TOO_SMALL",
            {"class_counts": {"a": 4, "b": 2, "c": 30}},
            {"min_class_rows": 5},
            ("2 of its 3", "smallest has 2"),
        ),
        ("DIM_TOO_LARGE", {"n_components": 8}, {"max_components": 7}, ("8 columns", "policy allows 7")),
        ("DIM_TOO_LARGE", {"n_components": 11}, {}, ("11 columns", "project allows 10")),
        ("OBFUSCATOR_NOT_ALLOWED", {"obfuscator": "umap"}, {"obfuscators": ("pca", "kernel-pca")}, ("pca or kernel",)),
        ("DEFENCE_NEEDED", {"kinds_of_defence": (), "defences": ()}, {"defence": "any"}, ("a defence",)),
        ("DEFENCE_NEEDED", {"kinds_of_defence": ("noise",)}, {"defence": "microaggregation"}, ("mean of a group",)),
        (
            "ANCHOR_HAS_PRIVATE_ROWS",
            {"in_anchor": EqualRows(n_equal=7, by_chance=4)},
            {},
            ("7 different rows", "explains 4", "max_rows_in_anchor = 3"),
        ),
        (
            "ANCHOR_HAS_PRIVATE_ROWS",
            {"in_anchor": EqualRows(n_equal=7, by_chance=4)},
            {"max_rows_in_anchor": 2},
            ("policy allows 2 more",),
        ),
        ("RISK_TOO_HIGH", {}, {"audit": "required", "max_linkage": 0.25}, ("linkage", "30 %", "25 %", "larger groups")),
        ("RISK_TOO_HIGH", {}, {"audit": "required", "max_membership": 0.55}, ("membership", "0.60", "0.55")),
        ("RISK_UNKNOWN", {"risk": None}, {"audit": "required"}, ("--no-audit",)),
        (
            "RISK_UNKNOWN",
            {"risk": replace(FIGURES, membership=None, notes=("Too small.",))},
            {"audit": "required", "max_membership": 0.9},
            ("membership", "Too small."),
        ),
        ("RISK_UNKNOWN", {"risk": replace(FIGURES, complete=False)}, {"audit": "required"}, ("--time-budget",)),
    ],
)
def test_each_reason_is_named_with_what_was_found_and_wanted(example, code, changes, rules, words):
    project, policy = example[0], Policy(**{"min_rows": 20, "min_class_rows": 1, "audit": "warn"} | NO_LIMITS | rules)
    summary = summary_of(**changes)
    assert [reason.code for reason in reasons_against(summary, policy, project)] == [code]
    with refused(code) as caught:
        refuse(reasons_against(summary, policy, project))
    assert caught.value.exit_code == 12
    for word in ("'north'", *words):
        assert word in str(caught.value)


def test_what_is_within_all_limits_is_not_refused(example):
    policy = Policy(
        min_rows=40,
        min_class_rows=20,
        max_components=4,
        obfuscators=("pca",),
        defence="microaggregation",
        max_linkage=0.3,
        max_reidentification=0.1,
        max_membership=0.6,
        audit="required",
    )
    refuse(reasons_against(summary_of(), policy, example[0]))
    by_chance = replace(policy, max_rows_in_anchor=3)
    refuse(reasons_against(summary_of(in_anchor=EqualRows(n_equal=7, by_chance=4)), by_chance, example[0]))


def test_risk_is_only_shown_where_the_policy_warns(example):
    policy = Policy(max_linkage=0.1, max_reidentification=None, max_membership=0.5, audit="warn")
    summary = summary_of(limits=policy.risk_limits, risk=replace(FIGURES, membership=None))
    assert not reasons_against(summary, policy, example[0])
    text = summary.to_text()
    assert "limit 10 %" in text
    assert "not measured" in text
    assert text.count("ABOVE") == 1
    assert summary.above_limits == ("linkage", "membership")
    assert summary_of().above_limits == ()


def test_the_default_limits_let_nothing_leave_that_the_audit_rates_red(example):
    """The limits are where red begins; and a criterion that another measure makes red is refused by them as well."""
    limits = Policy().risk_limits
    assert limits == {"linkage": AMBER_LIMIT, "reidentification": AMBER_LIMIT, "membership": 0.5 + AMBER_LIMIT}
    at_limit = (finding("open-world re-identification", 0.1, low=0.1, high=limits["reidentification"]),)
    at_limit += (finding("membership AUC", 0.6, low=0.6, high=limits["membership"], baseline=None, chance=0.5),)
    assert [rating_of(each) for each in at_limit] == ["amber", "amber"]
    figures = RiskFigures(linkage=0.1, reidentification=0.1, membership=0.6, ratings={"membership": "red"})
    summary = summary_of(risk=figures, limits=limits)
    assert summary.above_limits == ("membership",)
    assert "0.60   limit 0.7     RED" in summary.to_text()
    found = reasons_against(summary, Policy(min_class_rows=1), example[0])
    raised = replace(summary, limits=limits | {"membership": 0.75})
    assert raised.above_limits == ()
    assert replace(summary, guarantee="It is private.").above_limits == ()
    assert [reason.code for reason in found] == ["RISK_TOO_HIGH"]
    assert "red by another measure" in str(found[0])


def test_every_reason_is_told_not_only_the_first(example):
    policy = Policy(
        min_rows=100, min_class_rows=30, max_components=3, obfuscators=("umap",), defence="any", audit="required"
    )
    project, encoded, anchor = example
    parts = project, encoded, replace(anchor, rows=np.vstack([anchor.rows[20:], encoded.X[:20]]))
    made = prepared(parts, policy, n_components=5, obfuscator="pca", audit=False)
    assert [reason.code for reason in made.reasons] == [
        "TOO_FEW_ROWS",
        "CLASS_TOO_SMALL",
        "DIM_TOO_LARGE",
        "OBFUSCATOR_NOT_ALLOWED",
        "DEFENCE_NEEDED",
        "ANCHOR_HAS_PRIVATE_ROWS",
        "RISK_UNKNOWN",
    ]
    assert made.summary.in_anchor.n_equal == 20


@given(
    n_rows=st.integers(0, 60),
    least=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    n_components=st.integers(1, 10),
    most=st.tuples(st.integers(1, 10), st.integers(1, 10)),
    counts=st.lists(st.integers(0, 20), min_size=2, max_size=4),
    least_of_class=st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
def test_the_stricter_of_policy_and_project_holds(n_rows, least, n_components, most, counts, least_of_class):
    project = digits(20, classes=2, min_rows=least[1], max_components=most[1], min_class_rows=least_of_class[1])[0]
    policy = Policy(min_rows=least[0], max_components=most[0], min_class_rows=least_of_class[0], audit="off")
    named = {str(place): count for place, count in enumerate(counts)}
    summary = summary_of(n_rows=n_rows, n_components=n_components, class_counts=named)
    wanted = {
        "TOO_FEW_ROWS": n_rows < max(least),
        "CLASS_TOO_SMALL": sum(map(bool, counts)) == 1 or any(0 < count < max(least_of_class) for count in counts),
        "DIM_TOO_LARGE": n_components > min(most),
    }
    found = {reason.code for reason in reasons_against(summary, policy, project)}
    assert found == {code for code, is_wanted in wanted.items() if is_wanted}


def test_a_failure_is_told_by_the_reason_behind_it(example):
    project, encoded, anchor = example
    tiny = project, rows_of(encoded, slice(3)), anchor
    with refused("TOO_FEW_ROWS"):
        prepared(tiny, Policy(), group_size=5)
    empty = project, rows_of(encoded, slice(0)), anchor
    with refused("TOO_FEW_ROWS"):
        prepared(empty, Policy())
    with pytest.raises(ObfuscationError):
        prepared((digits(60, min_rows=1)[0], *tiny[1:]), LENIENT, n_components=10)


def test_options_that_make_no_sense(example):
    for options in ({"preset": "public"}, {"obfuscator": "tsne"}):
        with pytest.raises(ValueError, match="preset|obfuscator"):
            prepared(example, **options)
    with pytest.raises(ValueError, match="0 components"):
        prepared(example, n_components=0)


def test_the_usual_number_of_columns_keeps_to_every_limit(example):
    assert prepared(example).plan.n_components == 10
    assert prepared(example, replace(LENIENT, max_components=6)).plan.n_components == 6
    assert prepared(digits(7, classes=2)).plan.n_components == 5


class OfTheBatch(TransformerMixin, BaseEstimator):
    """Scales by the largest entry of whatever comes together."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X / np.abs(X).max()


def test_obfuscators_that_look_at_the_whole_batch_are_refused(example):
    _, encoded, anchor = example
    party = dc.Party("north", OfTheBatch()).fit(encoded.X, encoded.target)
    with refused("OBFUSCATOR_NOT_ROWWISE") as caught:
        refuse(list(judge_row_wise(party, anchor.rows)))
    assert "'north'" in str(caught.value)


@pytest.mark.nightly
def test_the_transform_of_umap_learn_is_refused(example):
    _, encoded, anchor = example
    party = dc.Party("north", dc.obfuscator("umap", 3, out_of_sample="umap")).fit(encoded.X, encoded.target)
    with refused("OBFUSCATOR_NOT_ROWWISE"):
        refuse(list(judge_row_wise(party, anchor.rows)))


@pytest.mark.parametrize("on_anchor", [False, True])
@pytest.mark.parametrize(
    "kind", [kind if kind != "umap" else pytest.param(kind, marks=pytest.mark.nightly) for kind in OBFUSCATORS]
)
def test_the_usual_obfuscators_map_each_row_by_itself(example, kind, on_anchor):
    _, encoded, anchor = example
    plan = SharingPlan(obfuscator=kind, n_components=3, standardize=True, fit_on_anchor=on_anchor)
    party = plan.party("north", anchor.rows)
    party.fit(encoded.X, encoded.target)
    assert list(judge_row_wise(party, encoded.X if on_anchor else anchor.rows)) == []


@pytest.mark.nightly
def test_the_figures_are_those_of_an_audit():
    _, encoded, anchor = digits(60, classes=3)
    party = dc.Party("north", dc.obfuscator("pca", 3), defences=[Microaggregation(4)], shuffle=False)
    party.fit(encoded.X, encoded.target)
    figures = risk_figures(party, encoded.X, anchor.rows, y=encoded.target, anchor_target=anchor.target, random_state=0)
    same = audit(
        party,
        encoded.X,
        anchor.rows,
        anchor_target=anchor.target,
        levels=["T2"],
        attacks=ATTACKS,
        random_state=np.random.RandomState(0),
    )
    assert figures.linkage == max(one.upper for one in same.findings if one.metric == "linkage")
    assert 0 < figures.linkage < 1
    assert 0.5 < figures.membership <= 1
    assert 0 < figures.reidentification <= 1
    assert (figures.n_attacked, figures.complete, figures.notes) == (60, True, ())
    assert 0 < figures.targets_alone["linkage"] < figures.linkage
    assert set(figures.ratings) == {"singling out", "linkability", "inference", "membership"}


def test_lights_are_of_the_figures_that_stand_beside_them(monkeypatch):
    """Each rehearsal by itself would be red, amber and amber."""
    told = iter([0.76, 0.6, 0.62])

    def rehearsed(*_):
        upper = next(told)
        return audit_result(findings=(finding("membership AUC", upper - 0.02, low=upper - 0.1, high=upper),))

    monkeypatch.setattr(_rows_summary, "_rehearse", rehearsed)
    monkeypatch.setattr(datacollab.risk.audit, "audit", lambda *_, **__: audit_result(findings=()))
    _, encoded, anchor = digits(60, classes=3)
    party = dc.Party("north", dc.obfuscator("pca", 3)).fit(encoded.X, encoded.target)
    figures = risk_figures(party, encoded.X, anchor.rows, y=encoded.target)
    assert figures.membership == pytest.approx(0.66)
    assert figures.ratings["membership"] == "amber"


@pytest.mark.nightly
def test_undefended_rows_are_at_the_highest_risk_and_groups_hide_whose_row_is_whose():
    """Not who is in the table: a mean of ten candidates is found among them, too."""
    parts = digits(90, classes=3)
    policy = replace(LENIENT, audit="required")
    plain, grouped = (
        prepared(parts, policy, n_components=8, **options).summary.risk
        for options in ({}, {"fit_on_anchor": True, "group_size": 10})
    )
    assert plain.linkage == plain.reidentification == 1.0
    assert grouped.linkage < 0.7
    assert grouped.reidentification < 0.7
    assert plain.membership == 1.0
    assert 0.9 < grouped.membership <= 1.0


def test_the_stand_in_is_attacked_with_rows_it_does_not_hold(monkeypatch):
    _, encoded, anchor = digits(70, classes=3)
    party = dc.Party("north", dc.obfuscator("pca", 3)).fit(encoded.X, encoded.target)
    calls = []

    def watched(party, X, anchor_rows, **options):
        calls.append((party, X, options))
        return audit(party, X, anchor_rows, **options)

    monkeypatch.setattr(datacollab.risk.audit, "audit", watched)
    risk_figures(party, encoded.X, anchor.rows, y=encoded.target, time_budget=0.0)
    (first, X, _), *rehearsals = calls
    assert first is party
    assert X is encoded.X
    assert len(rehearsals) == 3
    for second, held, options in rehearsals:
        assert second is not party
        parts = [held, options["public"], options["control"]]
        assert [len(part) for part in parts] == [42, 14, 14]
        everything = np.vstack(parts)
        np.testing.assert_array_equal(np.unique(everything, axis=0), np.unique(encoded.X, axis=0))
        assert second.was_fitted_on(held)
    assert len({held.tobytes() for _, held, _ in rehearsals}) == 3


@pytest.mark.slow
def test_small_parties_are_told_what_is_not_measured():
    figures = prepared(digits(20, classes=2), replace(LENIENT, audit="warn"), n_components=3).summary.risk
    assert figures.linkage == 1.0
    assert figures.reidentification is None
    assert figures.membership is None
    assert str(LEAST_ROWS) in figures.notes[0]
    limits = replace(LENIENT, audit="required", max_membership=0.9)
    made = prepared(digits(20, classes=2), limits, n_components=3)
    assert [reason.code for reason in made.reasons] == ["RISK_UNKNOWN"]


def test_an_audit_that_ran_out_of_time_is_no_audit(example):
    policy = replace(LENIENT, audit="required")
    made = prepared(example, policy, n_components=3, time_budget=0.0)
    assert not made.summary.risk.complete
    assert made.summary.risk.linkage is None
    assert [reason.code for reason in made.reasons] == ["RISK_UNKNOWN"]
    assert "before all attacks were made" in made.summary.to_text()


def test_an_audit_of_few_different_rows_asks_the_party_for_nothing_that_it_cannot_give(example, monkeypatch):
    def failing(*given, **options):
        raise RepresentationError("There are 2 public rows; give at least 5.")

    monkeypatch.setattr(datacollab.risk.audit, "audit", failing)
    made = prepared(example, replace(LENIENT, audit="required"), n_components=3)
    assert made.summary.risk.notes[0] == "The share could not be attacked: too few of the rows differ from each other."


def test_an_audit_that_fails_says_so_and_quotes_nothing(example, monkeypatch):
    def failing(*given, **options):
        raise ValueError("Xaver Huber is ill")

    monkeypatch.setattr(datacollab.risk.audit, "audit", failing)
    made = prepared(example, replace(LENIENT, audit="required", max_linkage=1.0), n_components=3)
    assert made.summary.risk.notes[0] == "The share could not be attacked (ValueError)."
    assert made.summary.risk.linkage is None
    assert [reason.code for reason in made.reasons] == ["RISK_UNKNOWN"]
    assert "Xaver" not in str(made.reasons[0]) + made.summary.to_text()


def test_no_attack_is_made_where_the_policy_wants_none(example, monkeypatch):
    monkeypatch.setattr(datacollab.risk.audit, "audit", None)
    assert prepared(example, replace(LENIENT, audit="off"), n_components=3).summary.risk is None
    assert prepared(example, replace(LENIENT, audit="warn"), n_components=3, audit=False).summary.risk is None


@given(value=st.floats(0, 1), limit=st.integers(0, 100))
def test_a_figure_above_a_limit_never_looks_equal_to_it(value, limit):
    found, allowed = figure_text("linkage", value), limit_text("linkage", limit / 100)
    if value > limit / 100 + 1e-9:
        assert int(found.removesuffix(" %")) > float(allowed.removesuffix(" %"))


def test_keys_do_not_show(example):
    assert KEYS["north"].text not in prepared(example, n_components=3).summary.to_text()
    assert Anchor(rows=np.zeros((1, 1))).secret.hex() not in prepared(example, n_components=3).summary.to_text()


def test_the_worst_attack_is_the_one_with_the_highest_mean_upper_end():
    """One lucky draw of strangers is not the figure; what was not measured counts for nothing."""

    def found(attack, upper, metric="membership AUC", is_measured=True):
        return SimpleNamespace(
            metric=metric, level="T2", leak="all", attack=attack, upper=upper, is_measured=is_measured
        )

    first = SimpleNamespace(findings=[found("a", 0.9), found("b", 0.7), found("c", 0.99, is_measured=False)])
    second = SimpleNamespace(findings=[found("a", 0.5), found("b", 0.76), found("b", 1.0, metric="linkage")])
    assert _worst([first, second], "membership AUC") == pytest.approx(0.73)
    assert _worst([first], "membership AUC") == pytest.approx(0.9)
    assert _worst([], "membership AUC") is None
