"""Every example runs as it stands, with warnings as errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


# Those that are played in processes of their own have tests of their own.
@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if not path.stem.startswith("play_")], ids=lambda path: path.stem
)
def test_example_runs(example, tmp_path):
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_examples_are_numbered_in_reading_order():
    numbers = [path.stem.split("_")[1] for path in EXAMPLES]
    assert len(numbers) >= 2
    assert all(len(number) == 3 and number.isdigit() for number in numbers)
    assert len(set(numbers)) == len(numbers)
