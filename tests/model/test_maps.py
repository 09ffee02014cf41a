from dataclasses import replace

import numpy as np
import pytest
from model_examples import MAPS, ROWS, bundle_of, fitted, targets
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
from datacollab.errors import RepresentationError
from datacollab.linalg import Kernel
from datacollab.model import KernelMap, LinearMap, model_from
from refusals import refused_with


def kernel_map(rng, n_anchors=1200, **options):
    A = rng.normal(size=(n_anchors, 3))
    kernel = Kernel(metric="rbf", parameters={"gamma": 0.2})
    return KernelMap("a", A, rng.uniform(size=(n_anchors, 2)), kernel, **options)


def test_kernel_map_is_the_expansion(rng):
    X = rng.normal(size=(50, 3))
    double, default = kernel_map(np.random.default_rng(1), precision="float64"), kernel_map(np.random.default_rng(1))
    wanted = double.kernel.between(X, double.anchor_representation) @ double.coefficients
    assert_allclose(double(X), wanted, rtol=1e-12)
    assert_allclose(default(X), wanted, rtol=2e-6)
    assert default(X).dtype == np.float64
    assert (default(X) != wanted).any()


@pytest.mark.parametrize(
    "g", [LinearMap("a", np.eye(3)), kernel_map(np.random.default_rng(0))], ids=["linear", "kernel"]
)
def test_wrong_columns_name_the_party(g):
    with pytest.raises(RepresentationError, match="Party 'a': the representation has 2 columns but 3 are expected"):
        g(np.zeros((4, 2)))


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
    """The bundle with other facts of its map; those that are None are left out."""
    there = bundle.facts["integration_function"] | facts
    kept = {name: value for name, value in there.items() if value is not None}
    return replace(bundle, facts=bundle.facts | {"integration_function": kept})


def test_an_affine_map_is_the_formula():
    assert_array_equal(G(ROWS), ROWS @ G.coefficients + G.intercept)
    assert_array_equal(LinearMap("north", G.coefficients)(ROWS), ROWS @ G.coefficients)


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
        lambda bundle: saying(bundle, intercept=None),
    ],
    ids=lambda wrong: None,
)
def test_an_affine_map_that_cannot_be_is_refused(bundle, wrong):
    with refused_with("MODEL_MALFORMED"):
        model_from(wrong(bundle))
