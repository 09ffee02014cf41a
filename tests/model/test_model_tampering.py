"""A model whose maker is malicious is refused: never a crash, a hang, or a line of foreign code."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from model_examples import N_INTERMEDIATE, bundle_of, changed_arrays, fitted
from sklearn.linear_model import LogisticRegression

from datacollab.errors import ExchangeError
from datacollab.model import model_from, plain_facts
from refusals import each

NEW_ROWS = np.random.default_rng(1).normal(size=(5, N_INTERMEDIATE))


@cache
def plain_bundle():
    return bundle_of(fitted(LogisticRegression()))


def outcome(bundle):
    """Of loading it and predicting: "loaded", or the code of the refusal.  Everything else is let through."""
    try:
        model_from(bundle).predict(NEW_ROWS)
    except ExchangeError as error:
        return error.code
    return "loaded"


KERNEL = {"kind": "kernel", "metric": "eval", "parameters": {}, "precision": "auto", "transposed": []}


@pytest.mark.parametrize(
    "change",
    each(
        n_components=[5],
        n_intermediate=[None],
        task=["regression"],
        estimator=["RandomForestClassifier", None],
        classes=[["x", "y"]],
        party=[True, None],
        versions=[[], {"sklearn": "1.0\x1b[31m run this"}],
        integration_function=[None, {"kind": "function"}, KERNEL],
    ),
)
def test_a_manifest_that_contradicts_the_model_is_refused(change):
    bundle = plain_bundle()
    assert outcome(replace(bundle, facts=bundle.facts | change)) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [{"gamma": -1.0}, {"gamma": "x"}, {"gamma": None, "X": 1}, {"degree": 10**9}, {"gamma": True, "metric": 3}],
)
def test_impossible_parameters_of_a_kernel_are_refused(change):
    bundle = plain_bundle()
    about = bundle.facts["integration_function"] | {"parameters": change}
    assert outcome(replace(bundle, facts=bundle.facts | {"integration_function": about})) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays["coefficients"].__setitem__((0, 0), np.nan),
        lambda arrays: arrays["coefficients"].__setitem__((0, 0), -1e31),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"][:-1]),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"][:, :-1]),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"].astype(np.float32)),
        lambda arrays: arrays.update(anchor_representation=arrays["anchor_representation"].ravel()),
        lambda arrays: arrays.pop("coefficients"),
        lambda arrays: arrays.update(more=np.zeros(1)),
    ],
    ids=["NaN", "huge", "rows", "columns", "precision", "dimensions", "missing", "more"],
)
def test_arrays_of_the_map_that_do_not_fit_are_refused(change):
    assert outcome(changed_arrays(plain_bundle(), change, "g.safetensors")) == "MODEL_MALFORMED"


def test_members_beyond_the_known_are_refused():
    bundle = plain_bundle()
    assert outcome(replace(bundle, members=bundle.members | {"more.bin": b""})) == "MODEL_MALFORMED"
    assert outcome(replace(bundle, members={"g.safetensors": b""})) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    each(
        n_rows=[True, -1, 10**30, "300\x1b[2J"],
        n_parties=[2.0],
        method=[["KTIIntegrator"], "x" * 201, "a\nb"],
        parameters=[{"a": [1]}, {str(number): 1 for number in range(51)}],
        estimator=["RandomForestClassifier", "a b"],
        created=["yesterday", "2026-11-21T18:00:00"],
        row_lint=[{"found": 1, "overridden_by": None}, {"found": True, "overridden_by": "a\x1bb"}],
        task=["magic"],
        party=["x" * 201],
    ),
)
def test_facts_that_are_shown_are_of_their_types_and_short(change):
    bundle = plain_bundle()
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, facts=bundle.facts | change))
    assert caught.value.code == "MODEL_MALFORMED"
    (value,) = change.values()
    assert json.dumps(value).strip('"') not in str(caught.value)


def test_the_facts_of_a_project_are_taken():
    bundle = plain_bundle()
    of_project = {
        "n_rows": 300,
        "n_parties": 2,
        "method": "KTIIntegrator",
        "parameters": {"n_components": 3, "gamma": None, "metric": "rbf", "ridge": 1e-9},
        "row_lint": {"found": True, "overridden_by": "Dr. Müller"},
    }
    bundle = replace(bundle, facts=bundle.facts | of_project)
    assert plain_facts(bundle) == bundle.facts
    model_from(bundle)
