"""Codes of refusals: the documentation has all of them; `suite.py` checks that the tests raise each."""

import re
from pathlib import Path

import pytest

from datacollab._codes import CODES, EXIT_CODES
from datacollab.errors import ExchangeError

PAGE = Path(__file__).parents[1] / "docs" / "error-codes.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_the_page_says_what_the_code_says():
    written = [(code, int(number), *texts) for code, number, *texts in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert written == [(name, code.exit_code, code.meaning, code.remedy) for name, code in CODES.items()]


def test_exit_codes_are_as_documented_and_apart():
    for kind, number in EXIT_CODES.items():
        assert re.search(rf"^\| {number} \| ", PAGE.read_text(encoding="utf-8"), re.MULTILINE), kind
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)


def test_an_unknown_code_is_a_defect():
    with pytest.raises(KeyError):
        ExchangeError("NO_SUCH_CODE", "Nothing.")
