import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite import N_KILLS

TESTS = Path(__file__).parents[2]


@pytest.mark.nightly
def test_an_export_killed_at_any_moment_leaves_whole_files(both):
    command = [TESTS / "killing.py", Path(__file__).with_name("exporting.py"), both.folder.path, N_KILLS, 0]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= N_KILLS / 2  # most were killed before they were done
