"""Intervals that mean what they say, and a report in words."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, roc_auc_score

from datacollab.party._own_models import Opinions
from datacollab.party._personal_model import (
    accuracy_gain,
    accuracy_of,
    benefit_of,
    error_reduction,
    rmse_of,
)

FACTS = {
    "party": "a",
    "n_rows": 50,
    "own_models": ("random forest, own rows",),
    "own_weights": (1.0,),
    "weights": {"local": 0.4, "collaboration": 0.6},
}


def outcomes(won, lost, n):
    return np.arange(n) < won, (np.arange(n) >= won) & (np.arange(n) < won + lost)


def exact_coverage(n, p_won, p_lost):
    """Chance that the interval holds the true difference, summed over all outcomes worth the sum."""
    total = covered = 0.0
    for won in range(n + 1):
        for lost in range(n + 1 - won):
            logs = math.lgamma(n + 1) - sum(math.lgamma(k + 1) for k in (won, lost, n - won - lost))
            for count, p in ((won, p_won), (lost, p_lost), (n - won - lost, 1 - p_won - p_lost)):
                logs += count * math.log(p) if p > 0 else (0.0 if count == 0 else -math.inf)
            if logs < -14:
                continue
            gain = accuracy_gain(*outcomes(won, lost, n))
            total += math.exp(logs)
            covered += math.exp(logs) * (gain.low <= p_won - p_lost + 1e-12 and gain.high >= p_won - p_lost - 1e-12)
    return covered / total


@pytest.mark.parametrize("n", [25, 50, 100])
@pytest.mark.parametrize(
    ("p_won", "p_lost"), [(0, 0), (0.02, 0.02), (0.04, 0.0), (0.05, 0.02), (0.1, 0.1), (0.15, 0.02), (0.2, 0.05)]
)
def test_the_interval_of_a_gain_holds_the_truth(n, p_won, p_lost):
    assert exact_coverage(n, p_won, p_lost) >= 0.90


def test_the_interval_of_a_gain_is_that_of_the_formula():
    gain = accuracy_gain(*outcomes(8, 3, 40))
    middle, half = 5 / 42, 1.959964 * math.sqrt(12 - 25 / 42) / 42
    assert_allclose([gain.value, gain.low, gain.high], [5 / 40, middle - half, middle + half], rtol=1e-6)


def test_no_interval_is_of_no_width():
    same = np.ones(25, dtype=bool)
    gain = accuracy_gain(same, same)
    assert gain.value == 0
    # Three in n is what may be missed where nothing was seen, at the least.
    assert gain.high == -gain.low > 3 / 25
    assert accuracy_of(same).low < 0.9


@pytest.mark.parametrize("n", [25, 50, 100])
@pytest.mark.parametrize(("correlation", "ratio"), [(0.9, 1.0), (0.9, 0.95), (0.5, 0.8)])
def test_the_interval_of_an_error_reduction_holds_the_truth(n, correlation, ratio):
    random, covered = np.random.default_rng(n), 0
    for _ in range(300):
        before, other = random.standard_t(6, size=(2, n))
        after = ratio * (correlation * before + np.sqrt(1 - correlation**2) * other)
        gain = error_reduction(after**2, before**2)
        covered += gain.low <= 1 - ratio <= gain.high
    assert covered / 300 >= 0.90


def test_the_jackknife_is_that_of_the_definition(rng):
    before, after = rng.normal(size=(2, 12)) ** 2
    ratios = [np.log(np.delete(after, i).mean() / np.delete(before, i).mean()) / 2 for i in range(12)]
    deviation = np.sqrt(11 / 12 * np.sum((ratios - np.mean(ratios)) ** 2))
    ratio = np.log(after.mean() / before.mean()) / 2
    gain = error_reduction(after, before)
    assert_allclose(gain.value, 1 - np.sqrt(after.mean() / before.mean()))
    assert_allclose([gain.low, gain.high], [1 - np.exp(ratio + s * 2.200985 * deviation) for s in (1, -1)], rtol=1e-6)
    error = rmse_of(after)
    assert error.low < error.value < error.high
    assert_allclose(error.value, np.sqrt(after.mean()))


def shares(right, codes, sure=0.9):
    wrong = (1 - sure) * (1 - np.eye(2)[codes]) + sure * np.eye(2)[codes]
    flipped = wrong[:, ::-1]
    return np.log(np.where(right[:, None], wrong, flipped))


def class_benefit(n_alone, n_pooled, n=50, **facts):
    codes = np.arange(n) % 2
    alone, combined = (shares(np.arange(n) < count, codes) for count in (n_alone, n_pooled))
    opinions = Opinions(alone, combined, combined)
    found = benefit_of(opinions, codes, np.ones(n, dtype=bool), None, basis="left out", **FACTS | facts)
    return found, codes, alone


def test_scores_are_those_of_scikit_learn():
    benefit, codes, alone = class_benefit(30, 45)
    p = np.exp(alone)
    assert_allclose(benefit.local.loss, log_loss(codes, p))
    assert_allclose(benefit.local.auc, roc_auc_score(codes, p[:, 1]))
    assert benefit.local.score.value == 0.6
    assert_allclose(benefit.combined_gain.value, 0.3)


@pytest.mark.parametrize(
    ("n_alone", "n_pooled", "start"),
    [
        (30, 45, "Collaboration brought 30.0 points of accuracy (95 % interval 1"),
        (30, 31, "Collaboration brought 2.0 points of accuracy, or nothing (95 % interval -"),
        (30, 30, "Collaboration brought nothing beyond chance (95 % interval -"),
        (45, 30, "Collaboration cost 30.0 points of accuracy (95 % interval -"),
    ],
)
def test_the_sentence_says_what_it_brought(n_alone, n_pooled, start):
    benefit, _, _ = class_benefit(n_alone, n_pooled)
    assert benefit.sentence.startswith(start)
    assert "on 50 own rows, each judged by models that it was left out of." in benefit.sentence


def test_numbers_are_told_in_their_units(rng):
    target = rng.normal(size=60)
    noise = rng.normal(size=60)
    opinions = Opinions(target + noise, target + 0.5 * noise, target + 0.5 * noise)
    benefit = benefit_of(opinions, target, np.ones(60, dtype=bool), 10.0, basis="without the party", **FACTS)
    assert_allclose(benefit.local.score.value, 10 * np.sqrt(np.mean(noise**2)))
    assert_allclose(benefit.combined_gain.value, 0.5)
    assert benefit.sentence.startswith("Collaboration brought 50.0 % less error (95 % interval 50.0 to 50.0): RMSE ")
    assert "without any row of the party" in benefit.sentence


def test_without_honest_predictions_nothing_is_claimed():
    codes = np.arange(20) % 2
    said = shares(codes > 5, codes)
    benefit = benefit_of(Opinions(said, said, said), codes, np.zeros(20, dtype=bool), None, basis=None, **FACTS)
    assert benefit.sentence.startswith("It cannot be said what collaboration brought")
    assert benefit.combined is None
    assert json.loads(json.dumps(benefit.to_dict()))["n_judged"] == 0


def test_a_benefit_is_json_and_frozen():
    benefit, _, _ = class_benefit(30, 45)
    told = json.loads(json.dumps(benefit.to_dict()))
    assert told["sentence"] == benefit.sentence
    assert told["combined_gain"]["value"] == pytest.approx(0.3)
    with pytest.raises(AttributeError):
        benefit.n_rows = 3


def test_the_figure_shows_what_the_report_says():
    benefit, _, _ = class_benefit(30, 45)
    axes = benefit.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["local", "collaboration", "combined"]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"] == [0.6, 0.9, 0.9]
    assert axes.get_title(loc="left").startswith("Collaboration brought 30.0 points of accuracy")
    assert benefit.plot(ax=axes) is axes
