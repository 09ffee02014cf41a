from dataclasses import replace

import pytest

from audit_example import audit_result, finding


def said(level, *findings, **given):
    return audit_result(findings=findings, **given).sentences()[level]


def test_records_are_counted_in_natural_frequencies():
    text = said("T2", finding("linkage", 0.613, low=0.557, high=0.667))
    assert text == (
        "Of your 100 records, an attacker who holds the share, a public sample and all anchor rows would correctly "
        "point to 61 (95 % interval 56 to 67); knowing labels alone, 9."
    )


def test_the_strongest_attack_by_its_upper_end_speaks():
    weak, strong = finding("linkage", 0.5, high=0.52), finding("re-identification@1", 0.45, low=0.3, high=0.6)
    assert "point to 45 (95 % interval 30 to 60)" in said("T2", weak, strong)


def test_strangers_among_the_candidates_are_mentioned():
    pair = finding("linkage", 0.993), finding("open-world linkage", 0.237)
    assert said("T2", *pair).endswith("With 900 strangers among the candidates, to 24.")
    assert "strangers" not in said("T2", *pair, n_open_candidates=100)
    assert "The candidates are 1,000, strangers among them." in said("T2", pair[1])


def test_the_leak_is_named_unless_the_level_says_it():
    assert "(here: 30 anchor rows)" in said("T1", finding(level="T1", leak="30 anchor rows"))
    assert "here:" not in said("T2", finding())
    assert "here:" not in said("T0", finding(level="T0", leak="nothing"))


@pytest.mark.parametrize("given", [{"n_rows": 5000}, {"n_rows": 300, "n_attacked": 300}])
def test_larger_tables_are_counted_per_hundred(given):
    assert said("T2", finding("linkage", 0.5), **given).startswith("Of every 100 of your records,")


def test_a_table_of_forty_is_counted_in_forty():
    text = said("T2", finding("linkage", 0.5, low=0.4, high=0.6), n_rows=40, n_attacked=40, n_candidates=40)
    assert text.startswith("Of your 40 records,")
    assert "point to 20 (95 % interval 16 to 24); knowing labels alone, 4." in text


def test_an_attack_that_shows_nothing_is_called_inconclusive():
    text = said("T0", finding("linkage", 0.08, level="T0", leak="nothing"))
    assert text.endswith("Inconclusive: the attack was too weak to show anything.")
    assert "nconclusive" not in said("T0", finding("linkage", 0.1, level="T0", leak="nothing"))


def test_membership_is_told_where_nothing_points_to_a_record():
    auc = finding("membership AUC", 0.93, level="T2f", low=0.9, high=0.96)
    text = said("T2f", auc)
    assert text.startswith("Shown one of your records and one of a stranger, an attacker who holds")
    assert "tell which is yours 93 times out of 100 (95 % interval 90 to 96); by guessing, 50." in text
    rate = finding("membership TPR", 0.54, level="T2f", low=0.48, high=0.6)
    assert "would recognise 54 as belonging to your table (95 % interval 48 to 60)" in said("T2f", rate)


def test_stored_rows_need_no_attack():
    stored = finding("training rows in files", 1.0, level="T4", leak="nothing", low=None, high=None)
    assert "100 stand as plain numbers" in said("T4", stored)
    nothing = said("T4", replace(stored, value=0.0))
    assert nothing.startswith("None of your 100 records was found")
    assert nothing.endswith("a search can miss.")


def test_levels_without_findings_were_not_tested():
    assert set(audit_result(findings=()).sentences().values()) == {"Not tested."}
    assert said("T2", finding("linkage", float("nan"), low=None, high=None)) == "Not tested."
