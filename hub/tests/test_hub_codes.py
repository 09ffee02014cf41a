"""Codes of refusals of a hub: the page says what the program says; `suite.py` checks that the tests raise each."""

import re
from pathlib import Path

from datacollab_hub import CODES

PAGE = Path(__file__).parents[1] / "docs" / "error-codes.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_the_page_says_what_the_code_says():
    written = [(code, int(number), *texts) for code, number, *texts in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert written == [(name, code.exit_code, code.meaning, code.remedy) for name, code in CODES.items()]
