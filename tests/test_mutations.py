"""Changes of all that crosses: each is refused in words or taken, soon, and in little memory."""

import json
import subprocess
import sys

import pytest

import mutations
from datacollab.plugins import all_codes
from suite import N_CHANGES

MOST_SECONDS, MOST_MEGABYTES = 5, 1024


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """What processes of their own wrote, so that a crash is seen and not suffered, and what they complained of."""
    folder = tmp_path_factory.mktemp("mutations")
    command = [sys.executable, "-X", "faulthandler", mutations.__file__, str(N_CHANGES), "0", str(folder)]
    return folder, subprocess.run(command, check=False, capture_output=True, text=True).stderr


@pytest.mark.parametrize("kind", mutations.KINDS)
@pytest.mark.slow
def test_changes(tried, kind):
    folder, complaints = tried
    assert (folder / f"{kind}.json").exists(), complaints[-3000:]
    found = json.loads((folder / f"{kind}.json").read_text())
    assert sum(found["counts"].values()) == N_CHANGES
    assert set(found["counts"]) <= set(all_codes()) | {"taken"}
    assert found["counts"]["taken"] < 0.6 * N_CHANGES
    assert found["longest_s"] < MOST_SECONDS
    assert found["memory_mb"] < MOST_MEGABYTES
