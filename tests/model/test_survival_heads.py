"""Survival models that cross as numbers predict what they did, and what is wrong with them is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from model_examples import MAPS, ROWS, bundle_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from test_predictor_tampering import mutant, read_head, written

import datacollab as dc
from datacollab.bundle import bytes_to_arrays
from datacollab.errors import AgreementError, ExchangeError
from datacollab.model import SENDABLE, PartyModel, ReceivedSurvival, head_to, model_contents, model_from, task_of
from datacollab.survival import Baseline, CoxRegression, SurvivalForest
from datacollab.targets import survival_target
from refusals import refused_with

generator = np.random.default_rng(0)
G = MAPS["affine"]
X = G(ROWS)
Y = survival_target(generator.random(60) < 0.8, generator.exponential(np.exp(-ROWS[:, 0])))
STRATA = np.array(["north", "south"])[np.arange(60) % 2]
NEW = 2 * generator.normal(size=(50, 3))
FITTED = {
    "cox": lambda strata: CoxRegression(0.5).fit(X, Y, strata=strata),
    "forest": lambda strata: SurvivalForest(20, random_state=0).fit(X, Y, strata=strata),
}


def model_of(name, strata=STRATA):
    return PartyModel(party="north", integration_function=G, estimator=FITTED[name](strata))


@pytest.mark.parametrize("strata", [None, STRATA], ids=["common", "own"])
@pytest.mark.parametrize("name", FITTED)
def test_what_comes_back_predicts_as_what_was_trained(name, strata, tmp_path):
    model = model_of(name, strata)
    model.save(tmp_path / "model.dcmodel")
    read = PartyModel.load(tmp_path / "model.dcmodel")
    assert isinstance(read.estimator, ReceivedSurvival)
    assert read.estimator.baseline_of == ("common" if strata is None else "own")
    assert_allclose(read.predict(NEW), model.predict(NEW), rtol=1e-12, atol=1e-12)
    stratum = None if strata is None else "north"
    times = model.estimator.baselines_[stratum].times
    times = np.concatenate([[0.0], times, (times[1:] + times[:-1]) / 2])
    before = model.estimator.predict_survival(G(NEW), times, stratum)
    assert_allclose(read.predict_survival(NEW, times), before, rtol=1e-12, atol=1e-12)
    hazard = model.estimator.predict_cumulative_hazard(G(NEW), times, stratum)
    found = read.estimator.predict_cumulative_hazard(read.transform(NEW), times)
    assert_allclose(found, hazard, rtol=1e-12)
    with pytest.raises(ValueError, match="beyond the end"):
        read.predict_survival(NEW, times.max() + 1)
    # What was received can be sent on.
    read.save(tmp_path / "again.dcmodel")
    assert (tmp_path / "again.dcmodel").exists()


def test_a_cox_regression_keeps_what_inference_needs():
    model = FITTED["cox"](STRATA)
    read = model_from(bundle_of(model_of("cox"))).estimator
    assert_array_equal(read.coef_, model.coef_)
    assert_array_equal(read.covariance_, model.covariance_)
    assert_array_equal(read.mean_, model.mean_)
    assert read.score(X, Y) == model.score(X, Y)
    forest = model_from(bundle_of(model_of("forest"))).estimator
    for name in ("coef_", "covariance_", "mean_"):
        assert not hasattr(forest, name)
    with pytest.raises(NotImplementedError):
        forest.fit(X, Y)


def test_the_party_gets_no_baseline_but_its_own():
    model = model_of("cox")
    facts, members = model_contents(model)
    assert facts["task"] == task_of(model.estimator) == "survival"
    assert facts["classes"] is None
    arrays = bytes_to_arrays(members["h.safetensors"], what="h")
    own, other = model.estimator.baselines_["north"], model.estimator.baselines_["south"]
    assert_array_equal(arrays["survival.cumulative_hazard"], own.cumulative_hazard)
    for value in (*other.cumulative_hazard, *other.times):
        assert not any((array == value).any() for array in arrays.values() if value)
    assert "south" not in json.dumps(facts)


def test_strata_that_are_no_parties_are_refused():
    model = model_of("cox", np.array(["old", "young"])[np.arange(60) % 2])
    with refused_with("MODEL_UNSUPPORTED", match="'old', 'young'.*parties as strata"):
        model_contents(model)
    # One stratum of another party is another party's baseline.
    alone = PartyModel(party="north", integration_function=G, estimator=model_of("cox").estimator.for_party("south"))
    with pytest.raises(ExchangeError, match="strata 'south'"):
        model_contents(alone)
    with pytest.raises(ExchangeError, match="has baselines of 2 strata"):
        head_to(model.estimator, "h")


def test_what_no_steps_describe_is_refused():
    class Odd(CoxRegression):
        def predict(self, X):
            return -super().predict(X)

    with pytest.raises(ExchangeError, match="Train one of CoxRegression, SurvivalForest"):
        head_to(Odd(0.5).fit(X, Y), "h")
    with pytest.raises(ExchangeError, match="is not fitted"):
        head_to(CoxRegression(), "h")
    with pytest.raises(ExchangeError, match="is not fitted"):
        model_contents(PartyModel(party="north", integration_function=G, estimator=CoxRegression()))
    assert {"CoxRegression", "SurvivalForest"} <= set(SENDABLE)


def test_nothing_is_left_out_of_a_survival_model():
    model = model_of("cox")
    with pytest.raises(ExchangeError, match="rows left out, which none has"):
        model_contents(replace(model, left_out=np.zeros(60)))
    for without in (Ridge().fit(X, ROWS[:, 0]), FITTED["cox"](None)):
        with pytest.raises(ExchangeError, match="for another task"):
            model_contents(replace(model, without_party=without))


CHANGES = {
    "no baseline": (lambda a, f: a.pop("survival.times"), "no times"),
    "no hazard": (lambda a, f: a.pop("survival.cumulative_hazard"), "no cumulative_hazard"),
    "empty": (lambda a, f: a.update({"survival.times": np.empty(0)}), "times of another shape"),
    "single precision": (
        lambda a, f: a.update({"survival.times": a["survival.times"].astype(np.float32)}),
        "another shape or type",
    ),
    "a table": (lambda a, f: a.update({"survival.times": a["survival.times"][None]}), "times of another shape"),
    "one time too few": (lambda a, f: a.update({"survival.times": a["survival.times"][1:]}), "another shape"),
    "time 0": (lambda a, f: a["survival.times"].__setitem__(0, 0.0), "does not ascend"),
    "negative hazard": (lambda a, f: a["survival.cumulative_hazard"].__setitem__(0, -0.1), "not from 0 to"),
    "equal times": (lambda a, f: a["survival.times"].__setitem__(1, a["survival.times"][0]), "does not ascend"),
    "falling hazard": (lambda a, f: a["survival.cumulative_hazard"].__setitem__(-1, 0.0), "does not ascend"),
    "NaN": (lambda a, f: a["survival.times"].__setitem__(1, np.nan), "not finite"),
    "infinite": (lambda a, f: a["survival.cumulative_hazard"].__setitem__(-1, np.inf), "not finite"),
    "too large": (lambda a, f: a["survival.cumulative_hazard"].__setitem__(-1, 1e200), "not from 0 to"),
    "one array more": (lambda a, f: a.update({"survival.more": np.ones(2)}), "none of its steps"),
    "whose": (lambda a, f: f.update(survival={"baseline": "south"}), "none of .*own"),
    "more about it": (lambda a, f: f["survival"].update(more=1), "whose hazard"),
    "nothing about it": (lambda a, f: f.update(survival=None), "does not say what it is"),
    "a list about it": (lambda a, f: f.update(survival=["own"]), "does not say what it is"),
    "a list of whose": (lambda a, f: f.update(survival={"baseline": []}), "none of .*own"),
    "classes": (lambda a, f: f.update(classes=[0, 1], classes_dtype="int64"), "none of its steps"),
    "a type of classes": (lambda a, f: f.update(classes_dtype="int64"), "type of classes"),
    "more facts": (lambda a, f: f.update(decides=1), "says more"),
    "no name": (lambda a, f: f.update(name="no name"), "name that is one"),
}
COX_CHANGES = {
    "shape": (lambda a, f: a.update({"survival.covariance": np.eye(3)}), "another shape"),
    "asymmetric": (lambda a, f: a["survival.covariance"].__setitem__((0, 1), 0.0), "that is none"),
    "negative variance": (lambda a, f: a["survival.covariance"].__setitem__((0, 0), -1.0), "negative variances"),
    "beyond one": (
        lambda a, f: a.update({"survival.covariance": np.eye(4) + 2 - 2 * np.eye(4)}),
        "that is none|negative variances",
    ),
    "not positive": (
        lambda a, f: a.update({"survival.covariance": np.eye(4) * 1.9 - 0.9 * np.ones((4, 4))}),
        "not positive",
    ),
    "another intercept": (lambda a, f: a["1.intercept"].__setitem__(0, 1.0), "other coefficients"),
    "another spread": (lambda a, f: a["0.spread"].__setitem__(0, 2.0), "other coefficients"),
    "two outputs": (
        lambda a, f: a.update({"1.coefficients": np.ones((4, 2)), "1.intercept": np.zeros(2)}),
        "predicts 2 numbers",
    ),
    "another step": (lambda a, f: f["steps"].append({"kind": "elementwise", "function": "exp"}), "no linear model"),
}


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        *((name, *each) for name in FITTED for each in CHANGES.values()),
        *(("cox", *each) for each in COX_CHANGES.values()),
    ],
)
def test_what_contradicts_itself_is_refused(name, change, match):
    facts, arrays = written(FITTED[name](None))
    arrays = {key: array.copy() for key, array in arrays.items()}
    read_head(facts, arrays, 4)
    change(arrays, facts)
    with pytest.raises(ExchangeError, match=match) as caught:
        read_head(facts, arrays, 4)
    assert caught.value.code == "MODEL_MALFORMED"


def test_a_covariance_beside_trees_is_refused():
    facts, arrays = written(FITTED["forest"](None))
    with pytest.raises(ExchangeError, match="no linear model"):
        read_head(facts, arrays | {"survival.covariance": np.eye(4)}, 4)


def test_what_is_too_large_is_refused():
    facts, arrays = written(FITTED["cox"](None))
    times = np.arange(1.0, 100_002.0)
    many = arrays | {"survival.times": times, "survival.cumulative_hazard": times}
    with refused_with("TOO_LARGE", match="100001 steps"):
        read_head(facts, many, 4)
    with pytest.raises(ExchangeError, match="1001 columns") as caught:
        read_head(facts, arrays, 1001)
    assert caught.value.code == "TOO_LARGE"


@pytest.mark.nightly
@pytest.mark.parametrize("name", FITTED)
def test_changes_by_chance_are_refused_or_answer_with_probabilities(name):
    facts, arrays = written(FITTED[name](None))
    chance, seen = np.random.default_rng(1), set()
    for _ in range(1000):
        _, changed = mutant(facts, arrays, chance)
        try:
            model = read_head(facts, changed, 4)
        except ExchangeError as error:
            seen.add(error.code)
            continue
        seen.add("answers")
        times = np.append(0.0, model.baseline.times)
        with np.errstate(all="ignore"):
            survival = model.predict_survival(X[:5], times)
        assert survival.shape == (5, len(times))
        assert ((survival >= 0) & (survival <= 1)).all()
    assert seen <= {"answers", "MODEL_MALFORMED", "TOO_LARGE"}
    assert {"answers", "MODEL_MALFORMED"} <= seen


def test_a_task_that_is_not_its_own_is_refused():
    bundle = bundle_of(model_of("cox"))
    with pytest.raises(ExchangeError, match="'task'"):
        model_from(replace(bundle, facts=bundle.facts | {"task": "regression"}))
    other = bundle_of(PartyModel(party="north", integration_function=G, estimator=Ridge().fit(X, ROWS[:, 0])))
    with pytest.raises(ExchangeError, match="'task'"):
        model_from(replace(other, facts=other.facts | {"task": "survival"}))
    # Without its baseline it is a regression, and says so.
    head = {key: value for key, value in bundle.facts["head"].items() if key != "survival"}
    with pytest.raises(ExchangeError, match="none of its steps"):
        model_from(replace(bundle, facts=bundle.facts | {"head": head}))


def test_a_hazard_of_which_nobody_survives_is_no_error():
    facts, arrays = written(FITTED["cox"](None))
    arrays = arrays | {"1.coefficients": 1e90 * arrays["1.coefficients"]}
    model = read_head(facts, arrays, 4)
    survival = model.predict_survival(X, np.append(0.0, model.baseline.times))
    assert_array_equal(survival[:, 0], 1.0)
    assert np.isin(survival, (0.0, 1.0)).all()


def test_at_the_party_raw_rows_go_in(tmp_path):
    party = dc.Party("north", PCA(3)).fit(ROWS, ROWS[:, 0])
    model = model_of("cox")
    model.save(tmp_path / "model.dcmodel")
    read = PartyModel.load(tmp_path / "model.dcmodel")
    times = [0.0, 0.1, 0.3]
    expected = model.estimator.predict_survival(G(party.obfuscate(NEW)), times, "north")
    assert_allclose(party.predict_survival(NEW, read, times), expected, rtol=1e-12)
    other = PartyModel(party="south", integration_function=G, estimator=read.estimator)
    with pytest.raises(AgreementError, match="made for 'south'"):
        party.predict_survival(NEW, other, times)
    plain = PartyModel(party="north", integration_function=G, estimator=Ridge().fit(X, ROWS[:, 0]))
    with pytest.raises(AttributeError):
        party.predict_survival(NEW, plain, times)


def test_a_model_in_memory_needs_its_own_baseline():
    with pytest.raises(AgreementError, match="none was named"):
        model_of("cox").predict_survival(NEW, [0.1])
    alone = replace(model_of("cox"), estimator=FITTED["cox"](STRATA).for_party("north"))
    assert alone.predict_survival(NEW, [0.1]).shape == (50, 1)


def test_its_text_shows_no_numbers():
    text = repr(read_head(*written(FITTED["forest"](None)), 4))
    assert "Baseline(n_steps=" in text
    assert repr(Baseline(np.array([1.0]), np.array([0.5]))) == "Baseline(n_steps=1)"
