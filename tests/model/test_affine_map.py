"""A linear map with an intercept: what it computes, and files that say something impossible of it."""

from dataclasses import replace

import numpy as np
import pytest
from model_examples import MAPS, ROWS, bundle_of, fitted, targets
from sklearn.linear_model import Ridge

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
from datacollab.errors import ExchangeError
from datacollab.model import LinearMap, model_from

G = MAPS["affine"]
MEMBER = "g.safetensors"


@pytest.fixture(scope="module")
def bundle():
    return bundle_of(fitted(Ridge(), g=G, y=targets(regression=True)))


def changed(bundle, **arrays):
    """The bundle with other arrays of its map; those that are None are left out."""
    there = bytes_to_arrays(bundle.members[MEMBER], what=MEMBER) | arrays
    kept = {name: array for name, array in there.items() if array is not None}
    return replace(bundle, members=bundle.members | {MEMBER: arrays_to_bytes(kept)})


def saying(bundle, **facts):
    return replace(bundle, facts=bundle.facts | {"integration_function": bundle.facts["integration_function"] | facts})


def test_is_the_formula():
    np.testing.assert_array_equal(G(ROWS), ROWS @ G.coefficients + G.intercept)
    np.testing.assert_array_equal(LinearMap("north", G.coefficients)(ROWS), ROWS @ G.coefficients)


def test_comes_back_bit_for_bit(bundle):
    g = model_from(bundle).integration_function
    np.testing.assert_array_equal(g(ROWS), G(ROWS))
    assert g.intercept.shape == (G.n_components,)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda bundle: changed(bundle, intercept=None),
        lambda bundle: changed(bundle, intercept=np.zeros((1, G.n_components + 1))),
        lambda bundle: changed(bundle, intercept=np.zeros((2, G.n_components))),
        lambda bundle: changed(bundle, intercept=np.zeros(G.n_components)),
        lambda bundle: changed(bundle, intercept=np.full((1, G.n_components), np.nan)),
        lambda bundle: changed(bundle, intercept=np.full((1, G.n_components), 1e31)),
        lambda bundle: changed(bundle, intercept=np.zeros((1, G.n_components), dtype=np.float32)),
        lambda bundle: changed(bundle, coefficients=None),
        lambda bundle: changed(bundle, more=np.zeros((1, 1))),
        lambda bundle: saying(bundle, intercept=False),
        lambda bundle: saying(bundle, intercept=1.0),
        lambda bundle: saying(bundle, transposed=["intercept"]),
    ],
    ids=lambda wrong: None,
)
def test_what_cannot_be_is_refused(bundle, wrong):
    with pytest.raises(ExchangeError) as caught:
        model_from(wrong(bundle))
    assert caught.value.code == "MODEL_MALFORMED"


def test_an_array_that_is_not_told_of_is_refused(bundle):
    facts = {name: value for name, value in bundle.facts["integration_function"].items() if name != "intercept"}
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, facts=bundle.facts | {"integration_function": facts}))
    assert caught.value.code == "MODEL_MALFORMED"
