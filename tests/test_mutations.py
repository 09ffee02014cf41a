"""Changes of all that crosses: each is refused in words or taken, soon, and in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from datacollab._codes import CODES
from suite import N_CHANGES

SCRIPT = Path(__file__).with_name("mutations.py")
KINDS = ("anchors", "answers", "models", "projects", "shares", "sums", "tables")
MOST_SECONDS, MOST_MEGABYTES = 5, 1024


def check(kind, n_mutants, seed):
    """In a process of its own, so that a crash is seen and not suffered."""
    command = [sys.executable, "-X", "faulthandler", str(SCRIPT), kind, str(n_mutants), str(seed)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    assert sum(found["counts"].values()) == n_mutants
    assert set(found["counts"]) <= set(CODES) | {"taken"}
    assert found["counts"]["taken"] < 0.6 * n_mutants
    assert found["longest_s"] < MOST_SECONDS
    assert found["memory_mb"] < MOST_MEGABYTES


@pytest.mark.parametrize("kind", KINDS)
def test_changes(kind):
    check(kind, N_CHANGES, 0)
