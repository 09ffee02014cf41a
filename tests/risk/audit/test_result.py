"""The result of an audit: JSON, tables, sentences, and the criteria that judge it."""

import json
import math
import re
from dataclasses import FrozenInstanceError, asdict, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_example import audit_result, finding
from datacollab.risk.audit import Finding


def test_json_has_every_field(tmp_path):
    result = audit_result(guarantee="epsilon 64, delta 1e-05; labels are released exactly.")
    text = result.to_json(tmp_path / "audit.json")
    assert (tmp_path / "audit.json").read_text(encoding="utf-8") == text
    told = json.loads(text)
    assert told.pop("format") == 1
    assert told == json.loads(json.dumps(asdict(result)))
    assert list(told) == [each.name for each in fields(result)]


def test_json_has_null_for_what_is_no_number():
    result = audit_result(findings=(finding("R2c", math.nan, low=None, high=None, per_seed=(math.nan, 0.5)),))
    told = json.loads(result.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert told["findings"][0]["value"] is None
    assert told["findings"][0]["per_seed"] == [None, 0.5]


def test_numpy_numbers_are_written_as_numbers():
    one = finding("linkage", 0.5, n=np.int64(300), baseline=np.float64(0.09), per_seed=(np.float32(0.5),))
    told = json.loads(audit_result(findings=(one,)).to_json())["findings"][0]
    assert (told["n"], told["baseline"], told["per_seed"]) == (300, 0.09, [0.5])


def test_the_table_has_a_row_per_finding():
    result = audit_result()
    table = result.table()
    assert len(table) == len(result.findings)
    linkage = table[(table["metric"] == "linkage") & (table["level"] == "T2")].set_index("attack")
    assert linkage.loc["kernel ridge", "value"] == 0.96
    assert linkage.loc["kernel ridge", "label_only"] == 0.09
    assert linkage.loc["kernel ridge", "light"] == "red"
    assert set(table.loc[table["metric"].isin(["R2", "label match"]), "light"]) == {""}


def test_results_and_findings_are_frozen():
    with pytest.raises(FrozenInstanceError):
        audit_result().party = "other"
    with pytest.raises(FrozenInstanceError):
        finding().value = 0.0
    with pytest.raises(TypeError):
        Finding("T2", "nothing", "linkage", "kernel ridge", 0.5, n=3)


UPPER = finding("linkage", 0.5, high=0.52), finding("re-identification@1", 0.45, low=0.3, high=0.6)
STRANGERS = finding("linkage", 0.993), finding("open-world linkage", 0.237)
OF_FORTY = finding("linkage", 0.5, low=0.4, high=0.6)
STORED = finding("training rows in files", 1.0, level="T4", leak="nothing", low=None, high=None)
SAID = [
    (
        [finding("linkage", 0.613, low=0.557, high=0.667)],
        {},
        "^Of your 100 records, an attacker who holds the share, a public sample and all anchor rows would correctly "
        r"point to 61 \(95 % interval 56 to 67\); knowing labels alone, 9\.$",
    ),
    # The strongest attack by its upper end speaks.
    (UPPER, {}, r"point to 45 \(95 % interval 30 to 60\)"),
    (STRANGERS, {}, r"With 900 strangers among the candidates, to 24\.$"),
    (STRANGERS, {"n_open_candidates": 100}, "^(?!.*strangers)"),
    (STRANGERS[1:], {}, r"The candidates are 1,000, strangers among them\."),
    # The leak is named unless the level says it.
    ([finding(level="T1", leak="30 anchor rows")], {}, r"\(here: 30 anchor rows\)"),
    ([finding()], {}, "^(?!.*here:)"),
    ([finding(level="T0", leak="nothing")], {}, "^(?!.*here:)"),
    ([finding("linkage", 0.5)], {"n_rows": 5000}, "^Of every 100 of your records,"),
    ([finding("linkage", 0.5)], {"n_rows": 300, "n_attacked": 300}, "^Of every 100 of your records,"),
    (
        [OF_FORTY],
        {"n_rows": 40, "n_attacked": 40, "n_candidates": 40},
        r"^Of your 40 records,.* point to 20 \(95 % interval 16 to 24\); knowing labels alone, 4\.",
    ),
    (
        [finding("linkage", 0.08, level="T0", leak="nothing")],
        {},
        r"Inconclusive: the attack was too weak to show anything\.$",
    ),
    ([finding("linkage", 0.1, level="T0", leak="nothing")], {}, "^(?!.*nconclusive)"),
    # Membership is told where nothing points to a record.
    (
        [finding("membership AUC", 0.93, level="T2f", low=0.9, high=0.96)],
        {},
        "^Shown one of your records and one of a stranger, an attacker who holds.*tell which is yours 93 times out of "
        r"100 \(95 % interval 90 to 96\); by guessing, 50\.",
    ),
    (
        [finding("membership TPR", 0.54, level="T2f", low=0.48, high=0.6)],
        {},
        r"would recognise 54 as belonging to your table \(95 % interval 48 to 60\)",
    ),
    ([STORED], {}, "100 stand as plain numbers"),
    ([replace(STORED, value=0.0)], {}, r"^None of your 100 records was found.*a search can miss\.$"),
    ([finding("linkage", float("nan"), low=None, high=None)], {}, r"^Not tested\.$"),
]


@pytest.mark.parametrize(("findings", "given", "words"), SAID)
def test_a_level_is_told_in_natural_frequencies(findings, given, words):
    assert re.search(words, audit_result(findings=tuple(findings), **given).sentences()[findings[0].level])


def test_levels_without_findings_were_not_tested():
    assert set(audit_result(findings=()).sentences().values()) == {"Not tested."}


STRONGEST = ("red", "amber", "green", "inconclusive")
CRITERIA = ("singling out", "linkability", "inference", "membership")


def criterion_of(findings, name):
    return audit_result(findings=tuple(findings)).criterion(name)


def rating_of(one):
    return audit_result(findings=(one,)).table()["light"][0]


def of_excess(excess, metric="linkage", baseline=0.09):
    return finding(metric, baseline + 0.01, low=None, high=baseline + excess, baseline=baseline)


@pytest.mark.parametrize(
    ("excess", "rating"), [(0.02, "green"), (0.05, "green"), (0.0501, "amber"), (0.2, "amber"), (0.2001, "red")]
)
@pytest.mark.parametrize("metric", ["linkage", "re-identification@1", "attribute ink", "membership AUC"])
def test_the_rating_goes_by_the_upper_end_above_the_labels(metric, excess, rating):
    assert rating_of(of_excess(excess, metric)) == rating


@pytest.mark.parametrize(("upper", "rating"), [(0.09, "green"), (0.0901, "amber"), (0.2, "amber"), (0.21, "red")])
@pytest.mark.parametrize("metric", ["open-world linkage", "open-world re-identification"])
def test_among_strangers_the_share_itself_counts_too(metric, upper, rating):
    """Even where labels alone give nearly as much."""
    one = finding(metric, upper - 0.005, low=None, high=upper, baseline=upper - 0.01)
    assert rating_of(one) == rating
    assert rating_of(replace(one, metric="linkage")) == "green"


def test_an_attack_no_better_than_labels_alone_is_inconclusive():
    for metric in ("linkage", "re-identification@1", "attribute ink"):
        assert rating_of(finding(metric, 0.09, low=0.0, high=0.9, baseline=0.09)) == "inconclusive"
        assert rating_of(finding(metric, 0.04, low=0.0, high=0.9, baseline=0.09)) == "inconclusive"
        assert rating_of(finding(metric, 0.091, low=0.0, high=0.9, baseline=0.09)) == "red"


def test_without_a_baseline_guessing_is_what_is_compared_with():
    one = finding("membership AUC", 0.52, baseline=None, chance=0.5, low=0.49, high=0.55)
    assert rating_of(one) == "green"
    assert rating_of(replace(one, chance=None)) == "red"
    assert rating_of(replace(one, value=0.5)) == "inconclusive"


def test_one_stored_row_is_red():
    stored = finding("training rows in files", 0.01, level="T4", low=None, high=None)
    assert rating_of(stored) == "red"
    assert rating_of(replace(stored, value=0.0)) == "inconclusive"


def test_what_was_not_measured_counts_for_nothing():
    unmeasured = finding("linkage", float("nan"), low=None, high=None)
    assert rating_of(unmeasured) == "not tested"
    assert criterion_of([unmeasured], "linkability").rating == "not tested"
    assert criterion_of([], "inference").finding is None


def test_reported_measures_count_for_no_criterion():
    reported = [finding(metric, 1.0) for metric in ("R2", "label match", "re-identification@5", "another")]
    for name in CRITERIA:
        assert criterion_of(reported, name).rating == "not tested"


def test_all_columns_together_may_show_a_leak_and_never_that_there_is_none():
    ratings = [
        criterion_of([finding("R2c", value, baseline=0.0)], "inference").rating for value in (0.5, 0.1, 0.01, -1)
    ]
    assert ratings == ["red", "amber", "not tested", "not tested"]


def test_a_named_attribute_decides_before_all_columns_together():
    found = [finding("R2c", 0.9, baseline=0.0), finding("attribute smoker", 0.8, low=0.7, high=0.85, baseline=0.73)]
    assert criterion_of(found, "inference").finding.metric == "attribute smoker"
    assert criterion_of(found, "inference").rating == "amber"


def test_a_narrow_interval_does_not_make_up_for_a_wide_one():
    narrow = finding("linkage", 0.102, low=0.07, high=0.14, baseline=0.1, attack="one")
    wide = finding("linkage", 0.1, low=0.02, high=0.3, baseline=0.1, attack="another")
    assert criterion_of([narrow], "linkability").rating == "green"
    for order in ([narrow, wide], [wide, narrow]):
        assert criterion_of(order, "linkability").rating == "inconclusive"


FINDINGS = st.lists(
    st.builds(
        lambda value, width, attack: finding(
            "linkage", value, low=value - width, high=value + width, baseline=0.09, attack=attack
        ),
        st.floats(0, 1),
        st.floats(0, 0.2),
        st.sampled_from(["kernel ridge", "emulator"]),
    ),
    min_size=1,
    max_size=8,
)


@given(FINDINGS)
def test_the_strongest_attack_at_its_upper_end_decides(findings):
    """Among the attacks that show anything, the maximum over upper ends; and the rating is the worst of all."""
    judged = criterion_of(findings, "linkability")
    assert judged.rating == min(map(rating_of, findings), key=STRONGEST.index)
    telling = [one for one in findings if one.value > 0.09]
    if telling:
        assert judged.finding.upper == max(one.upper for one in telling)
    else:
        assert judged.rating == "inconclusive"
        assert "nconclusive" in judged.reason


@given(FINDINGS)
def test_more_attacks_never_improve_a_rating(findings):
    few, all_of_them = (criterion_of(some, "linkability").rating for some in (findings[:1], findings))
    assert STRONGEST.index(all_of_them) <= STRONGEST.index(few)


def test_a_measure_that_shows_nothing_is_no_reason_for_green():
    """Where the closed world shows nothing, a little success among strangers is not green for the whole."""
    closed = finding("linkage", 0.08)
    among_strangers = finding("open-world linkage", 0.02, low=0.01, high=0.05)
    assert criterion_of([among_strangers], "linkability").rating == "green"
    assert criterion_of([closed, among_strangers], "linkability").rating == "inconclusive"
    assert criterion_of([closed, among_strangers, finding("linkage", 0.1, high=0.12)], "linkability").rating == "green"


def test_green_says_what_it_lacks():
    closed = finding("linkage", 0.1, low=0.08, high=0.12)
    assert criterion_of([closed], "linkability").reason.endswith("Not measured among strangers.")
    among_strangers = finding("open-world linkage", 0.02, low=0.01, high=0.05)
    assert "Not measured" not in criterion_of([closed, among_strangers], "linkability").reason
    assert "Not measured" not in criterion_of([finding("attribute ink", 0.31, high=0.32)], "inference").reason


def test_a_search_that_found_nothing_decides_nothing():
    search = finding("training rows in files", 0.0, level="T4", low=None, high=None)
    assert criterion_of([search], "singling out").rating == "inconclusive"
    attack = finding("re-identification@1", 0.09, low=0.08, high=0.1)
    assert criterion_of([search, attack], "singling out").rating == "green"
    found = criterion_of([replace(search, value=0.02), attack], "singling out")
    assert (found.rating, found.finding.level) == ("red", "T4")


def test_the_example_is_judged_as_one_reads_it():
    result = audit_result()
    singling_out, linkability, inference, membership = result.all_criteria()
    assert [one.name for one in result.all_criteria()] == list(CRITERIA)
    assert [one.rating for one in result.all_criteria()] == ["red"] * 4
    assert linkability.finding == result.headline("linkability")
    assert linkability.finding.value == 0.993
    assert linkability.reason == (
        "T2, an attacker with the share, all anchor rows and a list of candidates: 99 % (at most 100 % by the attacks "
        "tried) of shared rows joined to the right record. Labels alone: 9.0 %."
    )
    # Not the attribute known best, but the one known best beyond the labels.
    assert inference.finding.metric == "attribute slant"
