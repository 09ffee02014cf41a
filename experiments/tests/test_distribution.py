"""The distribution of experiments: never published, and nothing of the package needs it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import datacollab

FOLDER = Path(__file__).parents[1]
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_no_index_would_take_it():
    assert "Private :: Do Not Upload" in PROJECT["classifiers"]


def test_the_package_imports_nothing_of_it():
    for path in Path(datacollab.__file__).parent.rglob("*.py"):
        assert not re.search(r"^\s*(from|import) datacollab_experiments", path.read_text(encoding="utf-8"), re.M), path


def test_the_program_loads_nothing_heavy_for_its_commands():
    code = "import sys, datacollab_experiments; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
