import json
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from trials import DIABETES, DIGITS, comparison, diabetes, distinct_digits, shrink_forests

from datacollab_experiments.paper import compare_methods, draw_trial, score_method, verdicts


def test_the_interval_is_students(rng):
    values = rng.normal(size=7)
    mean, half_width = comparison({"LTI": values}).interval("LTI")
    low, high = stats.t.interval(0.95, 6, loc=values.mean(), scale=stats.sem(values))
    assert_allclose((mean - half_width, mean + half_width), (low, high), rtol=1e-12)


def test_one_seed_has_no_interval():
    single = comparison({"Local": [0.5], "LTI": [0.7]})
    assert single.interval("LTI")[0] == 0.7
    assert math.isnan(single.interval("LTI")[1])
    assert single.gain("LTI", "Local")[0] == pytest.approx(0.2)
    assert math.isnan(single.gain("LTI", "Local")[1])


@pytest.mark.parametrize(("task", "sign"), [("classification", 1), ("regression", -1)])
def test_the_gain_is_paired_and_positive_where_better(task, sign, rng):
    """What the trials have in common, here a large difficulty, cancels."""
    difficulty = 100 * rng.normal(size=6)
    improvement = 1 + 0.1 * rng.normal(size=6)
    both = comparison({"Local": difficulty, "LTI": difficulty + sign * improvement}, task)
    mean, half_width = both.gain("LTI", "Local")
    assert_allclose(mean, improvement.mean(), rtol=1e-9)
    assert_allclose(half_width, stats.t.ppf(0.975, 5) * stats.sem(improvement), rtol=1e-9)
    assert half_width < 1 < both.interval("LTI")[1]
    assert_allclose(both.gain("Local", "LTI"), (-mean, half_width), rtol=1e-9)


def test_values_stand_in_the_order_of_the_seeds():
    both = comparison({"LTI": [0.1, 0.2, 0.3]})
    shuffled = replace(both, scores=both.scores[::-1], seeds=(2, 0, 1))
    assert_array_equal(shuffled.values("LTI"), [0.3, 0.1, 0.2])


@pytest.mark.parametrize(("task", "measure"), [("classification", "accuracy"), ("regression", "RMSE")])
def test_a_comparison_is_plain_json(task, measure):
    both = comparison({"Local": [0.5, 0.7], "LTI": [0.8, 0.8]}, task)
    told = json.loads(json.dumps(both.as_dict(), allow_nan=False))
    assert told["task"] == task
    assert told["seeds"] == [0, 1]
    assert told["condition"]["n_parties"] == 3
    local, lti = told["results"]
    assert (local["method"], local["values"], local["seconds"]) == ("Local", [0.5, 0.7], 1.5)
    assert local[measure.lower()] == pytest.approx(0.6)
    assert local["ci95"] == pytest.approx(stats.t.ppf(0.975, 1) * 0.1)
    assert lti["ci95"] == 0.0
    single = json.dumps(comparison({"LTI": [0.5]}, task).as_dict(), allow_nan=False)
    assert json.loads(single)["results"][0]["ci95"] is None


@pytest.fixture
def small_forests(monkeypatch):
    shrink_forests(monkeypatch)


@pytest.mark.slow
@pytest.mark.usefixtures("small_forests")
@pytest.mark.parametrize(("condition", "make_data"), [(DIGITS, distinct_digits), (DIABETES, diabetes)])
def test_every_method_is_scored_on_every_trial(condition, make_data):
    data, methods, steps = make_data(), ("Local", "LTI"), []
    both = compare_methods(condition, data, methods, (4, 2), steps.append)
    assert (both.methods, both.seeds, both.task) == (methods, (4, 2), data.task)
    assert len(both.scores) == 4
    assert len(steps) == 2 * (1 + 2)
    again = score_method(draw_trial(condition, data, 2), "LTI", condition, data.task)
    assert both.values("LTI")[1] == again.value


@pytest.mark.parametrize(
    ("methods", "seeds", "message"),
    [
        (["LTI", "PCA"], [0], "Unknown method 'PCA'"),
        (["LTI", "LTI"], [0], "LTI came more often"),
        (["LTI"], [], "At least one seed"),
        (["LTI"], [1, 1], "each once"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(methods, seeds, message):
    steps = []
    with pytest.raises(ValueError, match=message):
        compare_methods(DIGITS, distinct_digits(), methods, seeds, steps.append)
    assert not steps


LOCAL = [0.50, 0.52, 0.48, 0.50]
BETTER = [0.60, 0.62, 0.59, 0.60]
WORSE = [0.40, 0.43, 0.37, 0.40]
ALIKE = [0.55, 0.45, 0.52, 0.51]


def test_verdicts_say_better_worse_and_not_told_apart():
    told = verdicts(comparison({"Local": LOCAL, "KTI": BETTER, "LTI": BETTER, "MPP": WORSE, "GEP": ALIKE}))
    assert told == [
        "KTI and LTI: better than Local, beyond chance at the 95 % level.",
        "MPP: worse than Local, beyond chance at the 95 % level.",
        "GEP: not told apart from Local by these trials.",
        "Highest mean: KTI, accuracy 0.603.",
    ]


def test_verdicts_for_errors_are_the_other_way_round():
    told = verdicts(comparison({"Local": LOCAL, "KTI": BETTER, "MPP": WORSE, "Central": [0.3] * 4}, "regression"))
    assert told == [
        "MPP: better than Local, beyond chance at the 95 % level.",
        "KTI: worse than Local, beyond chance at the 95 % level.",
        "Lowest mean: MPP, RMSE 0.400; Central, which no party may build, has 0.300.",
    ]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("seed", range(20))
def test_verdicts_never_claim_beyond_the_intervals(task, seed):
    rng = np.random.default_rng(seed)
    local = rng.uniform(size=4)
    both = comparison({"Local": local, "LTI": local + rng.normal(0.1, 0.1, size=4)}, task)
    mean, half_width = both.gain("LTI", "Local")
    claim = "better" if mean - half_width > 0 else "worse" if mean + half_width < 0 else "not told apart"
    assert verdicts(both)[0].startswith(f"LTI: {claim}")
