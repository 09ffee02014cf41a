"""Codes of refusals: the documentation has all of them; `suite.py` checks that the tests raise each."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import datacollab_hub
from datacollab.errors import ExchangeError
from datacollab.plugins import all_codes

ROOT = Path(__file__).parents[1]
CODES = {name: code for name, code in all_codes().items() if name not in datacollab_hub.CODES}
PAGE = ROOT / "docs" / "error-codes.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_the_page_says_what_the_code_says():
    written = [(code, int(number), *texts) for code, number, *texts in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert written == [(name, code.exit_code, code.meaning, code.remedy) for name, code in CODES.items()]


def test_exit_codes_are_as_documented_and_apart():
    documented = re.findall(r"^\| (\d+) \| ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {str(code.exit_code) for code in CODES.values()} <= set(documented)
    assert len(set(documented)) == len(documented)


def test_an_unknown_code_is_a_defect():
    with pytest.raises(KeyError):
        ExchangeError("NO_SUCH_CODE", "Nothing.")


@pytest.mark.nightly
def test_a_whole_run_that_raises_no_code_fails_and_names_them(tmp_path):
    """`suite.py` records codes as they are raised; a run of named files or of chosen tests is not judged."""
    (tmp_path / "test_nothing.py").write_text(
        "from datacollab.errors import ExchangeError\n\ndef test_one():\n    ExchangeError('BUSY', 'x')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "suite", f"-c{ROOT / 'pyproject.toml'}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    done = [
        subprocess.run([*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        for options in ([f"-otestpaths={tmp_path}"], [str(tmp_path)])
    ]
    assert [each.returncode for each in done] == [1, 0], done[0].stdout
    never = done[0].stdout.splitlines()[-2]
    assert set(never.split(", ")) == {*CODES, *datacollab_hub.CODES} - {"BUSY"}
