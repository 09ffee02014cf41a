"""Codes of refusals: the documentation has all of them, and the tests produce each."""

import re
from pathlib import Path

import pytest

from datacollab._codes import CODES, EXIT_CODES
from datacollab.errors import ExchangeError

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_the_page_says_what_the_code_says():
    page = (ROOT / "docs" / "error-codes.md").read_text(encoding="utf-8")
    written = [(code, int(number), meaning, remedy) for code, number, meaning, remedy in ROW.findall(page)]
    assert written == [(name, code.exit_code, code.meaning, code.remedy) for name, code in CODES.items()]


@pytest.mark.parametrize("name", CODES)
def test_each_code_is_produced_by_a_test(name):
    """A test that passes and says ``== "X"`` or ``refused("X"`` has produced it."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    assert any(re.search(rf'(refus[a-z]*\(.*|== |code=)"{name}"|\("{name}",', text) for text in texts)


@pytest.mark.parametrize("name", CODES)
def test_each_code_is_used(name):
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]
    assert any(f'"{name}"' in text for text in texts if "CODES = {" not in text)


def test_exit_codes_are_as_documented_and_apart():
    page = (ROOT / "docs" / "error-codes.md").read_text(encoding="utf-8")
    for kind, number in EXIT_CODES.items():
        assert re.search(rf"^\| {number} \| ", page, re.MULTILINE), kind
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)


def test_an_unknown_code_is_a_defect():
    with pytest.raises(KeyError):
        ExchangeError("NO_SUCH_CODE", "Nothing.")
