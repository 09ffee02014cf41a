import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.choice import RiskLimits
from datacollab.errors import ExchangeError
from datacollab.steps.party import Policy, default_policy_text, load_policy


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "policy.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refusal(path):
    with pytest.raises(ExchangeError) as caught:
        load_policy(path)
    return caught.value


def code_of(path):
    """The code of a refusal, if it is refused."""
    try:
        load_policy(path)
    except ExchangeError as error:
        return error.code
    return None


def test_the_default_text_says_the_defaults_and_limits_the_risks(write):
    policy = load_policy(write(default_policy_text()))
    assert policy == Policy()
    assert policy.audit == "required"
    assert policy.risk_limits.keys() == asdict(RiskLimits()).keys()


def test_every_entry_of_the_default_text_is_explained():
    lines = default_policy_text().splitlines()
    entries = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert {lines[number].partition(" = ")[0] for number in entries} == set(asdict(Policy()))
    assert all(lines[number - 1].startswith("# ") for number in entries)
    assert max(map(len, lines)) <= 120


def test_the_default_text_for_sums_says_what_counts(write):
    assert load_policy(write(default_policy_text(None))) == Policy()
    assert tomllib.loads(default_policy_text(None)).keys() < asdict(Policy()).keys()


def test_what_is_left_out_has_its_default(write):
    assert load_policy(write("")) == Policy()
    assert load_policy(write("max_linkage = 1")).risk_limits == Policy().risk_limits | {"linkage": 1}
    assert Policy(max_linkage=None).risk_limits.keys() == {"reidentification", "membership"}


def test_a_comment_changes_no_digest_and_an_entry_does(write):
    plain = load_policy(write("min_rows = 30")).digest
    assert load_policy(write("# why\nmin_rows=30\n")).digest == plain
    assert load_policy(write("min_rows = 31")).digest != plain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("min_row = 3", ("'min_row'", "min_rows")),
        ("min_rows = 0", ("min_rows is 0", "from 1")),
        ("min_rows = true", ("min_rows is true", "whole number")),
        ("min_rows = 3.0", ("min_rows is 3.0",)),
        ("min_class_rows = 'five'", ("min_class_rows is a text",)),
        ("max_components = []", ("max_components is a list",)),
        ("obfuscators = []", ("obfuscators is a list", '"kernel-pca"')),
        ("obfuscators = ['pca', 'pca']", ("obfuscators is a list",)),
        ("obfuscators = 'pca'", ("obfuscators is a text", "a list with some of")),
        ("obfuscators = ['pca', 'tsne']", ("obfuscators",)),
        ("defence = 'noise'", ("defence is a text", '"microaggregation"')),
        ("shuffle = 1", ("shuffle is 1", "true or false")),
        ("max_rows_in_anchor = -1", ("max_rows_in_anchor is -1", "from 0")),
        ("max_anchor_density = 0.5", ("max_anchor_density is 0.5", "from 1 on")),
        ("max_anchor_density = inf", ("max_anchor_density is inf",)),
        ("max_linkage = 25", ("max_linkage is 25", "from 0 to 1")),
        ("max_linkage = nan", ("max_linkage is nan",)),
        ("max_membership = 0.4", ("from 0.5 to 1",)),
        ("audit = true", ("audit is true", '"required", "warn", "off"')),
        ("approvers = [1]", ("approvers is a list", "names")),
        ("[limits]\nlinkage = 1", ("'limits'",)),
        ("min_rows = 2026-01-01", ("min_rows is a date",)),
        ("min_rows = ", ("not TOML",)),
        (b"min_rows = 3 # \xff", ("UTF-8",)),
    ],
)
def test_what_is_impossible_is_named(write, text, words):
    error = refusal(write(text))
    assert error.code == "POLICY_INVALID"
    for word in ("policy.toml", *words):
        assert word in str(error)


def test_a_policy_that_is_not_there(tmp_path):
    error = refusal(tmp_path / "policy.toml")
    assert error.code == "FOLDER_MISSING"
    assert "party join" in str(error)


@given(st.text() | st.binary())
def test_any_text_is_a_policy_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    assert code_of(path) in (None, "POLICY_INVALID")


@given(
    st.sampled_from(sorted(asdict(Policy()))),
    st.one_of(st.booleans(), st.integers(), st.floats(), st.sampled_from(["none", "off", "x"]), st.just([])),
)
def test_any_value_of_an_entry_is_taken_as_it_is_or_refused(tmp_path_factory, name, value):
    path = tmp_path_factory.getbasetemp() / "entry.toml"
    written = str(value).lower() if isinstance(value, bool | float) else repr(value)
    path.write_text(f"{name} = {written}", encoding="utf-8")
    code = code_of(path)
    assert code in (None, "POLICY_INVALID")
    if code is None:
        taken = getattr(load_policy(path), name)
        assert taken == (tuple(value) if isinstance(value, list) else value)
        assert type(taken) is (tuple if isinstance(value, list) else type(value))


def test_approvers_are_whoever_the_policy_names():
    Policy().check_approver("anyone")
    policy = Policy(approvers=("Ada", "Grace"))
    policy.check_approver("Grace")
    with pytest.raises(ExchangeError) as caught:
        policy.check_approver("Mallory")
    assert caught.value.code == "NOT_APPROVED"
    assert "Ada, Grace" in str(caught.value)


def test_the_page_documents_every_entry_and_its_default():
    page = (Path(__file__).parents[2] / "docs" / "release.md").read_text(encoding="utf-8")
    written = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", page, flags=re.MULTILINE))
    entries = tomllib.loads(default_policy_text())
    assert list(written) == list(entries)
    assert written.pop("obfuscators") == "all four"
    for name, default in written.items():
        text = default.strip("`")
        assert tomllib.loads(f"x = {text}")["x"] == entries[name]
