import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab.errors import RepresentationError
from datacollab.linalg import Kernel
from datacollab.model import KernelMap, LinearMap


def kernel_map(rng, n_anchors=1200, **options):
    A = rng.normal(size=(n_anchors, 3))
    return KernelMap(
        "a", A, rng.uniform(size=(n_anchors, 2)), Kernel(metric="rbf", parameters={"gamma": 0.2}), **options
    )


def test_kernel_map_is_the_expansion(rng):
    X = rng.normal(size=(50, 3))
    double, default = kernel_map(np.random.default_rng(1), precision="float64"), kernel_map(np.random.default_rng(1))
    wanted = double.kernel.between(X, double.anchor_representation) @ double.coefficients
    assert_allclose(double(X), wanted, rtol=1e-12)
    assert_allclose(default(X), wanted, rtol=2e-6)
    assert default(X).dtype == np.float64
    assert (default(X) != wanted).any()


def test_kernel_map_with_landmarks_only(rng):
    """Fewer rows than anchors is nothing special."""
    g = kernel_map(rng, n_anchors=7)
    assert g(np.zeros((4, 3))).shape == (4, 2)


def test_what_is_prepared_for_speed_is_not_stored(rng):
    g = kernel_map(rng)
    before = len(pickle.dumps(g))
    expected = g(np.ones((2, 3)))
    assert len(pickle.dumps(g)) == before
    for again in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        assert_allclose(again(np.ones((2, 3))), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "g", [LinearMap("a", np.eye(3)), kernel_map(np.random.default_rng(0))], ids=["linear", "kernel"]
)
def test_wrong_columns_name_the_party(g):
    with pytest.raises(RepresentationError, match="Party 'a': the representation has 2 columns but 3 are expected"):
        g(np.zeros((4, 2)))
