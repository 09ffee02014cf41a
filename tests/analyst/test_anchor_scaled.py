"""Distances in the common space: what they have to be, and what must not change them."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group
from sklearn.decomposition import PCA

from datacollab import KTI, KTICV, LTI, ODC
from datacollab.analyst import AnchorScaled, BaseIntegrator
from datacollab.errors import AgreementError, RepresentationError
from datacollab.model import KernelMap, LinearMap, map_from, map_to
from datacollab.testing import check_integrator

SCALES = np.array([10.0, 3.0, 1.0, 0.1])


def raw(seed, n_rows=60):
    return np.random.default_rng(seed).normal(size=(n_rows, 4)) * SCALES + 100.0


def parties(seed):
    """PCA without reduction, of each party's own rows: isometries with centres and axes of their own."""
    rng = np.random.default_rng([seed, 1])
    return {
        name: PCA(random_state=0).fit(rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4)) + rng.normal(size=4))
        for name in ("north", "south", "west")
    }


def isometric(seed):
    """The anchor, and what parties make of it."""
    A = raw(seed)
    return A, {name: f.transform(A) for name, f in parties(seed).items()}


@pytest.mark.parametrize("seed", range(5))
def test_isometries_give_raw_distances(seed):
    A, X = raw(seed), raw(seed + 100)
    maps = parties(seed)
    integrator = AnchorScaled().fit({name: f.transform(A) for name, f in maps.items()})
    assert integrator.kept_variance_ == pytest.approx(1.0, abs=1e-9)
    for name, f in maps.items():
        rows = integrator.transform({name: f.transform(X)})[name]
        np.testing.assert_allclose(pdist(rows), pdist(X), rtol=1e-8)


@pytest.mark.parametrize(
    "integrator",
    [LTI(4, fit_intercept=True), LTI(3), ODC(), KTI(4, center=True), KTI(3), KTI(4, kernel="linear", alpha=1e-6)],
    ids=str,
)
def test_turning_a_partys_representation_changes_no_distance(integrator):
    A, anchors = isometric(1)
    turned = anchors | {"south": anchors["south"] @ ortho_group.rvs(4, random_state=0)}
    before = AnchorScaled(integrator).fit(anchors)
    after = AnchorScaled(integrator).fit(turned)
    for name in anchors:
        np.testing.assert_allclose(
            pdist(after.transform({name: turned[name]})[name]),
            pdist(before.transform({name: anchors[name]})[name]),
            rtol=1e-6,
        )
    assert after.kept_variance_ == pytest.approx(before.kept_variance_)


def test_by_default_the_lowest_rank_says_how_many_components():
    A, anchors = isometric(6)
    anchors["south"] = np.hstack([anchors["south"][:, :2], np.full((60, 1), 7.0)])
    integrator = AnchorScaled().fit(anchors)
    assert integrator.integrator_.n_components == 2
    assert integrator.scaling_.shape == (2, 2)
    assert 0.9 < integrator.kept_variance_ < 1


@pytest.mark.parametrize("inner", [LTI(3, fit_intercept=True), LTI(3), KTI(3)], ids=str)
def test_its_maps_can_be_sent(inner):
    A, anchors = isometric(7)
    g = AnchorScaled(inner).fit(anchors).integration_functions_["south"]
    assert isinstance(g, KernelMap if isinstance(inner, KTI) else LinearMap)
    np.testing.assert_array_equal(map_from("south", *map_to(g))(anchors["south"]), g(anchors["south"]))


@pytest.mark.parametrize(
    "inner", [None, LTI(4), KTI(4, center=True), ODC(), KTICV(4, alphas=(0.1, 1.0), gamma_factors=(1.0,))], ids=str
)
def test_the_contract_of_integrators(inner):
    check_integrator(AnchorScaled(inner))


class Odd(BaseIntegrator):
    def fit(self, anchors, y=None):
        checked = self._start_fit(anchors)
        self.integration_functions_ = {party: OddMap(party, A.shape[1]) for party, A in checked.items()}
        return self


class OddMap:
    n_components = 1

    def __init__(self, party, n_intermediate):
        self.party, self.n_intermediate = party, n_intermediate

    def __call__(self, X):
        return np.asarray(X)[:, :1] ** 2


def test_maps_of_other_kinds_are_refused():
    with pytest.raises(TypeError, match="party 'a' is a OddMap"):
        AnchorScaled(Odd()).fit({"a": raw(0), "b": raw(1)})


def test_bad_anchors_are_refused_by_name():
    with pytest.raises(RepresentationError, match="'b'"):
        AnchorScaled().fit({"a": raw(0), "b": np.ones((60, 2))})
    with pytest.raises(AgreementError, match="differ"):
        AnchorScaled().fit({"a": raw(0), "b": raw(1)[:30]})
    with pytest.raises(ValueError, match="integrator"):
        AnchorScaled("LTI").fit({"a": raw(0), "b": raw(1)})
