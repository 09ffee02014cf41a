"""Anchor predictions: checked when they are made, the same after a file, refused where they are inconsistent."""

import stat
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from datacollab.bundle import Bundle, KeyPair, arrays_to_bytes
from datacollab.errors import ExchangeError, NumericalError
from datacollab.model import (
    PREDICTIONS_KIND,
    AnchorPredictions,
    LinearMap,
    PartyModel,
    anchor_predictions,
    predictions_contents,
    predictions_from,
)
from refusals import each

CLASSES = np.array(["no", "perhaps", "yes"])


def answers(values=((0.2, 0.3, 0.5), (1.0, 0.0, 0.0)), classes=CLASSES, party="north"):
    return AnchorPredictions(party=party, values=np.asarray(values), classes=classes)


def bundle_of(given):
    facts, members = predictions_contents(given)
    return Bundle(kind=PREDICTIONS_KIND, facts=facts, members=members, signer=None, digest="")


def refused(bundle, code="ANSWERS_MALFORMED"):
    with pytest.raises(ExchangeError, check=lambda error: error.code == code) as found:
        predictions_from(bundle)
    return str(found.value)


def test_they_cannot_be_changed_from_outside():
    values = np.array([1.0, 2.0])
    made = answers(values, None)
    values[0] = 7
    assert made.values.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        made.values[0] = 1
    assert made.predicted.tolist() == [1.0, 2.0]
    assert answers().predicted.tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("values", "classes", "words"),
    [
        ([[0.5, 0.5]], CLASSES, "shape"),
        ([0.5, 0.5], CLASSES, "shape"),
        ([[0.5, 0.5]], None, "shape"),
        (np.empty((0, 3)), CLASSES, "shape"),
        (0.5, None, "shape"),
        ([[0.5, 0.6, 0.5]], CLASSES, "add up"),
        ([[1.5, -0.5, 0.0]], CLASSES, "probabilities"),
        ([[0.2, np.nan, 0.8]], CLASSES, "finite"),
        ([np.inf], None, "finite"),
        ([1e31], None, "1e[+]30"),
        (["a"], None, "numbers"),
        ([[0.5, 0.5]], np.array(["a", "a"]), "once"),
        ([[0.5, 0.5]], np.array(["b", "a"]), "in order"),
    ],
)
def test_what_is_no_answer_is_refused(values, classes, words):
    with pytest.raises(ValueError, match=words) as found:
        answers(values, classes)
    assert "north" in str(found.value)


def model(estimator, X, y):
    return PartyModel(party="north", integration_function=LinearMap("north", np.eye(3)), estimator=estimator.fit(X, y))


def test_they_are_what_the_model_says(rng):
    X = rng.normal(size=(40, 3))
    classes = CLASSES[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    classifier, regressor = model(LogisticRegression(), X, classes), model(Ridge(), X, X[:, 0])
    assert_array_equal(anchor_predictions(classifier, X).values, classifier.predict_proba(X))
    assert_array_equal(anchor_predictions(classifier, X).predicted, classifier.predict(X))
    assert_array_equal(anchor_predictions(regressor, X).values, regressor.predict(X))
    assert anchor_predictions(regressor, X).classes is None
    without = model(LinearSVC(), X, classes)
    assert_array_equal(anchor_predictions(without, X).predicted, without.predict(X))
    assert set(anchor_predictions(without, X).values.ravel()) == {0.0, 1.0}


def test_other_models_give_none(rng):
    X = rng.normal(size=(40, 3))
    with pytest.raises(TypeError, match="KMeans"):
        anchor_predictions(model(KMeans(2, n_init=1), X, None), X)
    with pytest.raises(NumericalError, match="Ridge"):
        anchor_predictions(model(Ridge(), X, X[:, :2]), X)


PROBABILITIES = hnp.arrays(np.float64, (5, 3), elements=st.floats(0.01, 1)).map(
    lambda a: a / a.sum(axis=1, keepdims=True)
)


@given(PROBABILITIES, st.sampled_from([CLASSES, CLASSES.astype(object), np.arange(3), np.array([0.5, 1.5, 2.5])]))
def test_probabilities_are_the_same_after_a_bundle(values, classes):
    given_, back = answers(values, classes), predictions_from(bundle_of(answers(values, classes)))
    assert_array_equal(given_.values, back.values)
    assert_array_equal(given_.classes, back.classes)
    assert given_.classes.dtype == back.classes.dtype
    assert back.party == "north"


@given(hnp.arrays(np.float64, 6, elements=st.floats(-1e30, 1e30)), st.integers(0, 9))
def test_numbers_are_the_same_after_a_bundle(values, party):
    back = predictions_from(bundle_of(answers(values, None, party)))
    assert_array_equal(back.values, values)
    assert (back.classes, back.party) == (None, party)


@pytest.mark.slow
def test_a_file_is_signed_and_closed_to_others(tmp_path):
    key, path = KeyPair.generate(), tmp_path / "north.dcanswers"
    answers().save(path, key=key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert_array_equal(AnchorPredictions.load(path, signed_by=key.public).values, answers().values)
    with pytest.raises(ExchangeError, check=lambda error: error.code == "SIGNATURE_INVALID"):
        AnchorPredictions.load(path, signed_by=KeyPair.generate().public)
    changed = path.read_bytes()
    for place in range(0, len(changed), 7):
        path.write_bytes(changed[:place] + bytes([changed[place] ^ 1]) + changed[place + 1 :])
        with pytest.raises(ExchangeError):
            AnchorPredictions.load(path)


@pytest.mark.parametrize(
    "changes",
    each(
        party=[None, ["north"]],
        n_anchors=[3, True],
        task=["regression", "ranking"],
        classes=[None, ["no", "yes"], ["no", "yes", "yes"], ["yes", "no", "perhaps"], [1, 2, 3]],
        classes_dtype=["float64"],
        created=["yesterday"],
    ),
    ids=str,
)
def test_facts_that_contradict_the_arrays_are_refused(changes):
    bundle = bundle_of(answers())
    facts = {name: value for name, value in (bundle.facts | changes).items() if value is not None or name == "classes"}
    words = refused(replace(bundle, facts=facts))
    assert "Do not use them" in words


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"other": answers().values},
        {"values": answers().values, "more": np.zeros(2)},
        {"values": answers().values.astype(np.float32)},
        {"values": answers().values[:, :2]},
        {"values": answers().values * 2},
        {"values": np.full((2, 3), np.nan)},
    ],
)
def test_arrays_that_are_no_answers_are_refused(arrays):
    bundle = bundle_of(answers())
    refused(replace(bundle, members={"answers.safetensors": arrays_to_bytes(arrays)}))


def test_other_members_and_kinds_are_refused():
    bundle = bundle_of(answers())
    refused(replace(bundle, members=bundle.members | {"h.skops": b""}))
    refused(replace(bundle, members={"answers.safetensors": b"\x80\x04"}))
    refused(replace(bundle, kind="datacollab.model"), "WRONG_KIND")


def test_memory_that_is_not_there_is_a_refusal(monkeypatch):
    def too_much(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("datacollab.model._anchor_predictions.bytes_to_arrays", too_much)
    refused(bundle_of(answers()), "TOO_LARGE")
