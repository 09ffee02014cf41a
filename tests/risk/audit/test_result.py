"""The result of an audit: JSON, tables, sentences and figures."""

import json
import math
import re
from dataclasses import FrozenInstanceError, asdict, fields, replace

import numpy as np
import pytest

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
