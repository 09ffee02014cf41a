"""Files of linear models with covariances: what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays, unpack
from datacollab.errors import ExchangeError
from datacollab.model import MODEL_KIND, LeastSquaresInference, LinearMap, LogisticInference, PartyModel, model_from


@pytest.fixture
def bundle(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    h = LogisticInference().fit(X, X[:, 0] + rng.logistic(size=60) > 0)
    model = PartyModel(party="a", integration_function=LinearMap("a", np.eye(3)), estimator=h)
    model.save(tmp_path / "a.dcmodel")
    return unpack(tmp_path / "a.dcmodel", kind=MODEL_KIND)


def changed(bundle, **arrays):
    members = dict(bundle.members)
    found = bytes_to_arrays(members["h.safetensors"], what="h")
    members["h.safetensors"] = arrays_to_bytes({**found, **arrays})
    return replace(bundle, members=members)


def test_what_was_written_is_read(bundle):
    assert isinstance(model_from(bundle).estimator, LogisticInference)


@pytest.mark.parametrize(
    ("covariance", "said"),
    [
        (-np.eye(3), "negative variances"),
        (np.eye(3) + np.eye(3, k=1), "a covariance that is none"),
        (1.5 * np.ones((3, 3)) - 2.4 * (np.ones((3, 3)) - np.eye(3)), "that is not positive"),
        (np.eye(2), "of another shape"),
        (np.full((3, 3), np.nan), "not finite"),
        (np.eye(3, dtype=np.float32), "of another shape or type"),
    ],
)
def test_a_covariance_that_is_none_is_refused(bundle, covariance, said):
    with pytest.raises(ExchangeError, match=said) as caught:
        model_from(changed(bundle, covariance=covariance))
    assert caught.value.code == "MODEL_MALFORMED"


def test_more_arrays_or_facts_are_refused(bundle):
    with pytest.raises(ExchangeError, match="does not have the arrays"):
        model_from(changed(bundle, more=np.zeros(3)))
    for head in ({"robust": 1}, {"more": None}, {"classes": ["a", "b", "c"], "classes_dtype": "str"}):
        facts = {**bundle.facts, "head": {**bundle.facts["head"], **head}}
        with pytest.raises(ExchangeError) as caught:
            model_from(replace(bundle, facts=facts))
        assert caught.value.code == "MODEL_MALFORMED"


def test_a_regression_keeps_its_kind_of_covariance(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    h = LeastSquaresInference(robust=True).fit(X, X[:, 0] ** 2)
    PartyModel(party=0, integration_function=LinearMap(0, np.eye(2)), estimator=h).save(tmp_path / "b.dcmodel")
    read = PartyModel.load(tmp_path / "b.dcmodel").estimator
    assert read.get_params() == {"robust": True}
    np.testing.assert_array_equal(read.covariance_, h.covariance_)
