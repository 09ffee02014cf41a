"""What the analyst is told of a model where one of two classes is rare."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.svm import LinearSVC

import datacollab as dc
from datacollab.agreement import Task
from datacollab.party import GaussianNoise
from datacollab.steps.analyst import Integration

NOBODY = LogisticRegression(C=1e-9)
"""Says the prevalence, or nearly, of every row."""


@pytest.fixture
def rare(place):
    """Every tenth row is a "yes"; two parties."""
    there = place(task=Task(kind="classification", target="eight", classes=("no", "yes")))
    target = np.where(there.digits[1] == 8, "yes", "no")

    def send(**options):
        there.folder.add([there.send(name, target=target, **options) for name in ("north", "south")])
        return there.folder

    return send


@pytest.mark.slow
@pytest.mark.parametrize("positive", ["high", "low"])
def test_the_analyst_sees_the_class_that_the_project_seeks(place, positive):
    there = place(task=Task(kind="classification", target="eight", classes=("high", "low"), positive=positive))
    target = np.where(there.digits[1] == 8, "low", "high")
    there.folder.add([there.send(name, target=target) for name in ("north", "south")])
    found = np.concatenate([each.share.target for each in there.folder.shares()]) == positive
    for model, options in ((None, {"budget": 0}), (LogisticRegression(C=1e6, max_iter=2000), {"n_folds": 4})):
        ranking = there.folder.integrate(dc.LTI(8), *filter(None, [model]), **options).score.ranking
        assert ranking["positive"] == positive
        assert_allclose([ranking["prevalence"], ranking["expected"]], found.mean(), atol=0.06)


def targets_of(folder):
    return np.concatenate([each.share.target for each in folder.shares()]) == "yes"


def test_of_rows_left_out_one_by_one_the_analyst_sees_how_they_are_ranked(rare):
    folder = rare()
    score = folder.integrate(dc.LTI(8), budget=0).score
    shares = [each.share for each in folder.shares()]
    left_out = dc.Analyst(dc.LTI(8), task="classification", budget=0).fit(shares).left_out_
    said, target = np.concatenate([left_out[share.party][:, 1] for share in shares]), targets_of(folder)
    ranking = score.ranking
    assert (score.n_folds, ranking["positive"]) == (None, "yes")
    assert (score.name, score.value, score.baseline) == ("AUC", ranking["auc"], 0.5)
    assert [score.low, score.high] == ranking["auc_interval"]
    assert score.sentence().startswith("AUC of the model on rows left out: 0.")
    assert_allclose(ranking["auc"], roc_auc_score(target, said))
    assert_allclose(ranking["average_precision"], average_precision_score(target, said))
    assert_allclose([ranking["prevalence"], ranking["expected"]], [target.mean(), said.mean()])
    assert ranking["average_precision"] > 2 * ranking["prevalence"]
    assert ranking["threshold"]["n_found"] >= 0.8 * target.sum()


@pytest.mark.parametrize("defences", [(), [GaussianNoise(0.3)]], ids=["own rows", "noise"])
def test_of_a_named_model_folds_say_it(rare, defences):
    folder = rare(defences=defences)
    score = folder.integrate(dc.LTI(8), LogisticRegression(C=1e6, max_iter=2000), n_folds=4).score
    target = targets_of(folder)
    assert (score.name, score.n_folds) == ("AUC", 4)
    assert_allclose(score.ranking["prevalence"], target.mean())
    assert score.ranking["auc"] > (0.5 if defences else 0.7)
    assert score.ranking["auc_interval"][0] < score.ranking["auc"] <= score.ranking["auc_interval"][1]
    assert score.never_called == ()


def test_that_nobody_is_called_is_told_and_kept(rare):
    folder = rare()
    result = folder.integrate(dc.LTI(8), NOBODY)
    assert result.score.never_called == ("yes",)
    assert (result.score.name, result.score.baseline) == ("AUC", 0.5)
    assert_allclose(result.score.ranking["expected"], targets_of(folder).mean(), atol=0.01)
    again = Integration.from_facts(json.loads(json.dumps(result.facts())))
    assert again.score == result.score


def test_without_probabilities_there_is_no_ranking(rare):
    score = rare().integrate(dc.LTI(8), LinearSVC()).score
    assert (score.ranking, score.name) == (None, "accuracy")


def test_a_class_among_many_that_is_never_called_is_named(place):
    there = place()
    target = np.where(there.digits[1] == 8, 8, 1)
    there.folder.add([there.send(name, target=target) for name in ("north", "south")])
    score = there.folder.integrate(dc.LTI(8), NOBODY).score
    assert (score.ranking, score.never_called) == (None, (8,))
    assert (score.name, score.value) == ("log loss", pytest.approx(score.baseline, abs=0.01))
