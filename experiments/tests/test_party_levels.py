"""Whether a head knows its party: the study on one small deal."""

import pandas as pd

from datacollab_experiments.readings.party_levels import METHODS, cells, dealt, report


def test_numbers_with_levels_of_their_own_are_predicted_better_at_these():
    found = pd.DataFrame([each for seed in range(3) for each in cells("diabetes", "levels", 5, seed)])
    losses = found.groupby("method")["loss"].mean()
    assert set(losses.index) == set(METHODS)
    assert losses["own level"] < losses["common"] - 0.02
    (line,) = report(found).splitlines()[2:]
    assert line.startswith("| levels | ridge, RMSE | ")


def test_rows_are_dealt_once():
    _, _, halves, public = dealt("diabetes", "label skew", 3, 0)
    rows = [*public, *(row for pair in halves for half in pair for row in half)]
    assert len(rows) == len(set(rows))
