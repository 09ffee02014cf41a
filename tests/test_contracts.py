"""One contract per kind of object, run over everything the package exports; and the checks of that."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import OneHotEncoder

import datacollab.analyst
from datacollab import KTI, KTICV, LTI, ODC, GeometricGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.analyst import METHODS, AnchorScaled, BaseIntegrator
from datacollab.testing import check_integrator, check_obfuscator, is_row_wise

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


X = np.random.default_rng(0).normal(size=(40, 5))


class Broken(TransformerMixin, BaseEstimator):
    """Give columns of the rows, in a way that breaks one clause of the contract."""

    def __init__(self, fault):
        self.fault = fault

    def fit(self, X, y=None):
        self.training_rows_ = {row.tobytes() for row in X}
        self.calls_ = 0
        if self.fault == "fit changes":
            X += 1
        return self

    def transform(self, X):
        self.calls_ += 1
        rows = X[:, :2].copy()
        match self.fault:
            case "batch mean":
                return rows - rows.mean(axis=0)
            case "batch mean of new rows":
                new = np.array([row.tobytes() not in self.training_rows_ for row in X])
                rows[new] -= rows[new].mean(axis=0) if new.any() else 0
                return rows
            case "position":
                return rows + np.arange(len(rows))[:, np.newaxis] / len(rows)
            case "transform changes":
                X *= 2
            case "chance":
                return rows + self.calls_
            case "missing":
                rows[0, 0] = np.nan
            case "flat":
                return rows[:, 0]
            case "integers":
                return rows.astype(int)
            case "columns":
                return np.ones((len(X), 2 + len(X) % 2))
        return rows


FAULTS = {
    "batch mean": "not row-wise: new rows, one by one",
    "batch mean of new rows": "not row-wise: new rows, one by one",
    "position": "not row-wise",
    "fit changes": "fit changes its input",
    "transform changes": "transform changes its input",
    "chance": "different results when called twice",
    "missing": "NaN or infinity",
    "flat": "expected a row for each row",
    "integers": "floating-point type",
    "columns": "have shape",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault):
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_obfuscator(Broken(fault), X.copy())


def test_a_sound_transformer_passes_and_is_left_unfitted():
    check_obfuscator(Broken("none"), X.copy())
    pca = PCA(2)
    check_obfuscator(pca, X)
    with pytest.raises(NotFittedError):
        pca.transform(X)


def test_frames_with_words_and_gaps_are_compared_by_what_they_hold():
    """Each time that a frame is read, its texts lie elsewhere."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(word=np.where(X[:, 0] > 0, "high", None))
    numbers = make_column_transformer((PCA(2), list("abcde")), (OneHotEncoder(), ["word"]), sparse_threshold=0)
    check_obfuscator(numbers, frame)

    class Writes(PCA):
        def fit(self, rows, y=None):
            super().fit(rows[list("abcde")])
            rows["word"] = "low"
            return self

        def transform(self, rows):
            return super().transform(rows[list("abcde")])

    with pytest.raises(AssertionError, match="fit changes its input"):
        check_obfuscator(Writes(2), frame)


def test_row_wise_is_judged_on_the_rows_given():
    fitted = Broken("batch mean of new rows").fit(X[:30])
    assert is_row_wise(fitted, X[:30])
    assert not is_row_wise(fitted, X[30:])
    assert is_row_wise(fitted, X[30:], rtol=10.0)
