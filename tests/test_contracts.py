"""One contract per kind of object, run over everything the package exports."""

import inspect

import numpy as np
import pytest

import datacollab.analyst
from datacollab import KTI, KTICV, LTI, ODC, GeometricGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.analyst import METHODS, AnchorScaled, BaseIntegrator
from datacollab.testing import check_integrator

NAMED = [getattr(datacollab.analyst, name) for name in datacollab.analyst.__all__]
INTEGRATORS = [each for each in NAMED if inspect.isclass(each) and issubclass(each, BaseIntegrator)]
INTEGRATORS += [method.integrator for method in METHODS.values() if method.integrator not in INTEGRATORS]
EXPORTED = [integrator for integrator in INTEGRATORS if not inspect.isabstract(integrator)]

VARIANTS = [
    KTI(4, center=True),
    KTI(4, kernel="laplacian", gamma="scale"),
    KTI(4, graph=GeometricGraph(5)),
    KTI(4, graph=TargetSimilarityGraph(5), penalty_graph=TargetDissimilarityGraph(5), center=True),
    ODC(reference="mean"),
]


def small(integrator_class):
    if integrator_class is AnchorScaled:
        return AnchorScaled(LTI(n_components=4))
    takes = "n_components" in inspect.signature(integrator_class).parameters
    integrator = integrator_class(n_components=4) if takes else integrator_class()
    return integrator.set_params(alphas=(0.1, 1.0), gamma_factors=(1.0,)) if integrator_class is KTICV else integrator


@pytest.mark.parametrize("integrator_class", EXPORTED, ids=lambda c: c.__name__)
def test_every_exported_integrator_keeps_the_contract(integrator_class):
    check_integrator(small(integrator_class))


@pytest.mark.parametrize("integrator", VARIANTS, ids=str)
def test_variants_keep_the_contract(integrator):
    check_integrator(integrator)


def test_all_methods_are_covered():
    assert {c.__name__ for c in EXPORTED} >= {"MPP", "GEP", "ODC", "LTI", "KTI", "KTICV", "AnchorScaled"}


class Mutating(LTI):
    def fit(self, anchors, y=None):
        next(iter(anchors.values()))[0, 0] = 0
        return super().fit(anchors, y)


class Forgetful(LTI):
    def fit(self, anchors, y=None):
        self.n_components = min(self.n_components, 3)
        return super().fit(anchors, y)


class Random(LTI):
    def fit(self, anchors, y=None):
        super().fit(anchors, y)
        noise = np.random.default_rng()
        for g in self.integration_functions_.values():
            g.coefficients[:] += noise.normal(size=g.coefficients.shape)
        return self


class BatchDependent(LTI):
    def transform(self, representations):
        return {party: rows - rows.mean(axis=0) for party, rows in super().transform(representations).items()}


class Positional(LTI):
    def fit(self, anchors, y=None):
        return super().fit(list(anchors.values()) if isinstance(anchors, dict) else anchors, y)


class Permissive(LTI):
    def fit(self, anchors, y=None):
        if isinstance(anchors, dict):
            anchors = {party: np.nan_to_num(A) for party, A in anchors.items()}
        return super().fit(anchors, y)


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (Mutating, "changes its input"),
        (Forgetful, "changes the parameters"),
        (Random, "a second fit"),
        (BatchDependent, "a row alone"),
        (Positional, "keyed by party"),
        (Permissive, "NaN must be a ValueError"),
    ],
)
def test_the_contract_can_fail(broken, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_integrator(broken(4))
