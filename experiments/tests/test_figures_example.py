"""The example runs, with forests of fewer trees, draws, and finds what it says."""

import re
import runpy
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.ensemble import RandomForestClassifier

EXAMPLE = Path(__file__).parents[1] / "examples" / "figures_of_the_paper.py"


@pytest.mark.nightly
def test_the_papers_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    quick = partial(RandomForestClassifier, 20)
    monkeypatch.setattr("datacollab_experiments.paper._trial.RandomForestClassifier", quick)
    plt.switch_backend("agg")
    with plt.rc_context():
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    plt.close("all")
    said = capsys.readouterr().out
    assert "rows that failed: 0\n" in said
    means = {
        name: np.array(numbers.split(), dtype=float)
        for name, numbers in re.findall(r"^(\S+) +((?:\d\.\d+ *){3})$", said, re.MULTILINE)
    }
    assert (means["KTI"] < means["Central"]).all()
    assert (means["Local"] < means["Local+Public"]).all()
    picture = imread(tmp_path / "figures_of_the_paper.png")
    assert 300 < picture.shape[1] <= 1000
    assert picture.std() > 0.01
