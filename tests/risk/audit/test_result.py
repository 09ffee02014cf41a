import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from audit_example import audit_result, finding
from datacollab.risk.audit import AuditResult, Finding


def test_json_brings_back_the_same_result(tmp_path):
    result = audit_result(guarantee="epsilon 64, delta 1e-05; labels are released exactly.")
    text = result.to_json(tmp_path / "audit.json")
    assert (tmp_path / "audit.json").read_text(encoding="utf-8") == text
    assert AuditResult.from_json(text) == result
    assert AuditResult.from_json(tmp_path / "audit.json") == result
    assert AuditResult.from_json(audit_result(seeds=None).to_json()).seeds is None


def test_json_has_null_for_what_is_no_number():
    result = audit_result(findings=(finding("R2c", math.nan, low=None, high=None, per_seed=(math.nan, 0.5)),))
    told = json.loads(result.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert told["findings"][0]["value"] is None
    back = AuditResult.from_json(result.to_json()).findings[0]
    assert math.isnan(back.value)
    assert math.isnan(back.per_seed[0])
    assert back.per_seed[1] == 0.5


def test_numpy_numbers_are_written_as_numbers():
    one = finding("linkage", 0.5, n=np.int64(300), baseline=np.float64(0.09), per_seed=(np.float32(0.5),))
    told = json.loads(audit_result(findings=(one,)).to_json())["findings"][0]
    assert (told["n"], told["baseline"], told["per_seed"]) == (300, 0.09, [0.5])


@pytest.mark.parametrize("text", ["", "audit.json", "[]", "{}", '{"format": 99}', "null"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="JSON"):
        AuditResult.from_json(text)


def test_json_with_other_fields_is_refused():
    told = json.loads(audit_result().to_json())
    for changed, word in (
        ({key: value for key, value in told.items() if key != "findings"}, "findings"),
        (told | {"owner": "x"}, "owner"),
        (told | {"findings": [{"level": "T0", "value": 1.0}]}, "TypeError"),
        (told | {"findings": ["T0"]}, "AttributeError"),
    ):
        with pytest.raises(ValueError, match=word):
            AuditResult.from_json(json.dumps(changed))


def test_the_table_has_a_row_per_finding():
    result = audit_result()
    rows, table = result.rows(), result.table()
    assert len(rows) == len(table) == len(result.findings)
    assert list(table.columns) == list(rows[0])
    linkage = table[(table["metric"] == "linkage") & (table["level"] == "T2")].set_index("attack")
    assert linkage.loc["kernel ridge", "value"] == 0.96
    assert linkage.loc["kernel ridge", "label_only"] == 0.09
    assert linkage.loc["kernel ridge", "light"] == "red"
    assert set(table.loc[table["metric"].isin(["R2", "label match"]), "light"]) == {""}


def test_a_repr_is_a_line_with_the_lights():
    text = repr(audit_result())
    assert text == (
        "<AuditResult of party 'hospital-a': singling out: red, linkability: red, inference: red, membership: red>"
    )


def test_the_summary_says_the_essentials():
    result = audit_result(complete=False)
    summary = result.summary()
    for words in (
        "hospital-a",
        "time budget",
        "RED",
        "17, 3, 88",
        "Not tested: Attacks not known today",
        *result.sentences().values(),
    ):
        assert words in summary


def test_results_and_findings_are_frozen():
    with pytest.raises(FrozenInstanceError):
        audit_result().party = "other"
    with pytest.raises(FrozenInstanceError):
        finding().value = 0.0
    with pytest.raises(TypeError):
        Finding("T2", "nothing", "linkage", "kernel ridge", 0.5, n=3)
