"""A push or pull that is killed at any moment leaves nothing half done under its name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite import N_KILLS

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX has them")
def test_kills_leave_whole_files_or_none(mail):
    mail.put("share", "b", size=20_000_000)
    killing = [sys.executable, str(HERE.parent / "killing.py"), str(HERE / "carrying.py")]
    done = subprocess.run([*killing, str(mail.root), str(N_KILLS), "0"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    leftovers = [path.name for path in mail.root.glob("store/**/.*.part")]
    assert not leftovers
