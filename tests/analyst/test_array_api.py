"""KTI on arrays of other libraries: the same solution as NumPy's, in the arrays' own library and on their device."""

import importlib

import numpy as np
import pytest
from bent_views import nonlinear_views
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles

from datacollab import KTI, GeometricGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.errors import MissingExtraError, NotEnoughMemoryError, NumericalError, RepresentationError
from datacollab.linalg import array_library, array_namespace, to_numpy


def strict():
    """A library with nothing but the standard, on a device that NumPy cannot read."""
    xp = pytest.importorskip("array_api_strict")
    return lambda values: xp.asarray(np.array(values), device=xp.Device("device1"))


def torch_on(device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no graphics processor for torch")
    return lambda values: torch.asarray(np.array(values), device=device)


def cupy():
    xp = pytest.importorskip("cupy")
    if not xp.is_available():
        pytest.skip("no graphics processor for CuPy")
    return xp.asarray


MAKERS = {
    "array-api-strict": strict,
    "torch": lambda: torch_on("cpu"),
    "torch-cuda": lambda: torch_on("cuda"),
    "cupy": cupy,
}


@pytest.fixture(params=MAKERS)
def make(request):
    """Turns NumPy values into an array of a library."""
    return MAKERS[request.param]()


def moved(make, arrays):
    return {party: make(A) for party, A in arrays.items()}


CASES = {
    "few rows": (300, {}),
    "streamed": (500, {"solver": "exact"}),
    "center": (300, {"center": True}),
    "graph": (300, {"graph": TargetSimilarityGraph(), "graph_weight": 0.7}),
    "graph, center": (300, {"graph": GeometricGraph(), "center": True}),
    "linear": (200, {"kernel": "linear"}),
    "poly": (200, {"kernel": "poly", "degree": 2, "coef0": 2}),
    "cosine": (200, {"kernel": "cosine"}),
    "laplacian": (300, {"kernel": "laplacian"}),
    "small penalty": (300, {"alpha": 1e-5}),
    "width by rule": (200, {"gamma": {"a": "scale", "b": 0.3, "c": lambda A: 1 / np.median(A**2)}}),
    "no more rows than components": (6, {"n_components": 6}),
    "centred, few rows": (12, {"n_components": 10, "center": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_equals_numpy(make, case):
    n_anchors, parameters = CASES[case]
    views, latent = nonlinear_views(n_anchors)
    y = (latent[:, 0] > 0).astype(int)
    integrator = KTI(**{"n_components": 4, **parameters})
    expected = KTI(**integrator.get_params(deep=False)).fit(views, y)
    fitted = integrator.fit(moved(make, views), make(y))

    assert fitted.solver_ == "exact"
    assert fitted.objective_ == pytest.approx(expected.objective_, rel=1e-10)
    assert fitted.gammas_ == pytest.approx(expected.gammas_)
    assert_allclose(to_numpy(fitted.eigenvalues_), expected.eigenvalues_, rtol=1e-8)
    Z = to_numpy(fitted.target_)
    assert subspace_angles(Z, expected.target_).max() < 1e-6
    assert_allclose(Z, expected.target_, atol=1e-6)
    if integrator.center:
        assert_allclose(Z.sum(axis=0), 0, atol=1e-10)
    new = {party: A[:40] for party, A in views.items()}
    for party, rows in fitted.transform(moved(make, new)).items():
        assert_allclose(to_numpy(rows), expected.transform(new)[party], atol=1e-6)


@pytest.mark.parametrize("center", [False, True], ids=["", "center"])
@pytest.mark.slow
def test_landmarks_equal_numpys(make, center):
    """Landmarks are chosen with NumPy, so that both solve the same restricted problem."""
    views, latent = nonlinear_views(2200)
    parameters = {"solver": "nystroem", "tol": 0.3, "graph": TargetSimilarityGraph() if center else None}
    expected = KTI(4, center=center, **parameters).fit(views, latent[:, 0] > 0)
    fitted = KTI(4, center=center, **parameters).fit(moved(make, views), latent[:, 0] > 0)
    assert (fitted.solver_, fitted.n_landmarks_) == ("nystroem", expected.n_landmarks_)
    for party, g in fitted.integration_functions_.items():
        landmarks = expected.integration_functions_[party].anchor_representation
        assert np.array_equal(to_numpy(g.anchor_representation), landmarks)
    # Both stop as soon as the angle is small enough for the objective.
    assert fitted.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    assert subspace_angles(to_numpy(fitted.target_), expected.target_).max() < 1e-2


def test_single_precision_is_near(make):
    views, _ = nonlinear_views(600)
    expected = KTI(4).fit(views)
    fitted = KTI(4, precision="float32").fit(moved(make, views))
    assert fitted.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    assert 0 < subspace_angles(to_numpy(fitted.target_), expected.target_).max() < 1e-3


def test_kinds_of_arrays_stay(make, views):
    """Library and device everywhere, float64 in what is fitted, the rows' own precision in what is mapped."""
    anchors = moved(make, views)
    fitted = KTI(3).fit(anchors)
    xp = array_namespace(anchors["a"])
    maps = fitted.integration_functions_
    for array in (fitted.target_, fitted.eigenvalues_, maps["b"].coefficients, maps["b"].anchor_representation):
        assert array_library(array) == array_library(anchors["a"])
        assert array.device == anchors["a"].device
        assert array.dtype == xp.float64
    assert all(isinstance(gamma, float) for gamma in fitted.gammas_.values())
    for dtype, wanted in ((xp.float32, xp.float32), (xp.float64, xp.float64), (xp.int64, xp.float64)):
        rows = xp.astype(anchors["c"], dtype)
        for mapped in (fitted.transform({"c": rows})["c"], maps["c"](rows)):
            assert mapped.dtype == wanted
            assert mapped.device == rows.device


def test_map_goes_back_to_numpy(make, views, monkeypatch):
    """For parties without the graphics processor; rows come in several blocks."""
    fitted = KTI(3).fit(moved(make, views))
    monkeypatch.setattr("datacollab.linalg._kernels._DEVICE_ENTRIES", 64 * 200)
    for party, g in fitted.integration_functions_.items():
        at_home = g.to_numpy()
        assert isinstance(at_home.coefficients, np.ndarray)
        assert_allclose(at_home(views[party]), to_numpy(g(make(views[party]))), atol=1e-11)
        assert np.array_equal(at_home.to_numpy().coefficients, at_home.coefficients)


def test_clear_errors(make, views, anchor_classes):
    anchors = moved(make, views)
    library = array_library(anchors["a"])
    with pytest.raises(RepresentationError, match=r"Party 'b'.*is a NumPy array; expected a \w+ array on "):
        KTI(3).fit({**anchors, "b": views["b"]})
    with pytest.raises(RepresentationError, match=r"Party 'a'.*is a NumPy array"):
        KTI(3).fit({**anchors, "a": views["a"].tolist()})
    with pytest.raises(ValueError, match=rf"kernel='sigmoid'.*for {library} arrays kernel must be one of"):
        KTI(3, kernel="sigmoid").fit(anchors)
    with pytest.raises(ValueError, match=r"penalty_graph=.*NumPy arrays only.*must be None"):
        KTI(3, penalty_graph=TargetDissimilarityGraph()).fit(anchors, anchor_classes)
    with pytest.raises(NumericalError, match=r"Party 'a'.*not positive definite"):
        KTI(3, kernel="poly", coef0=-5, gamma=0.1, alpha=1e-9).fit(anchors)
    with pytest.raises(NotEnoughMemoryError, match=r"3 parties with 200 anchor rows"):
        KTI(3, solver="exact", memory_limit=1e4).fit(anchors)

    spoilt = views["c"].copy()
    spoilt[[3, 7], 1] = np.nan
    with pytest.raises(RepresentationError, match=r"Party 'c'.*NaN or infinity in 2 of 200 rows"):
        KTI(3).fit({**anchors, "c": make(spoilt)})
    with pytest.raises(RepresentationError, match=r"Party 'c'.*all 200 rows .* are equal"):
        KTI(3).fit({**anchors, "c": make(np.ones((200, 2)))})
    with pytest.raises(RepresentationError, match=r"Party 'c'.*two-dimensional"):
        KTI(3).fit({**anchors, "c": make(np.ones(200))})
    with pytest.raises(RepresentationError, match=r"Party 'c'.*real numbers"):
        KTI(3).fit({**anchors, "c": make(views["c"] + 1j)})

    fitted = KTI(3).fit(anchors)
    with pytest.raises(RepresentationError, match=r"Party 'a'.*is a NumPy array; expected"):
        fitted.transform(views)
    with pytest.raises(RepresentationError, match=r"Party 'b'.*8 columns but 5"):
        fitted.transform({"b": anchors["a"]})


def test_devices_do_not_mix(views):
    xp = pytest.importorskip("array_api_strict")
    first, second = (xp.asarray(views["a"], device=xp.Device(name)) for name in ("device1", "device2"))
    with pytest.raises(RepresentationError, match=r"Party 'b'.*'device2'\); expected .*'device1'\)"):
        KTI(3).fit({"a": first, "b": second})


def test_gradients_are_left_out(views):
    torch = pytest.importorskip("torch")
    anchors = {party: torch.asarray(A.copy()).requires_grad_() for party, A in views.items()}
    fitted = KTI(3).fit(anchors)
    assert not fitted.target_.requires_grad
    assert_allclose(to_numpy(fitted.target_), KTI(3).fit(views).target_, atol=1e-6)


def test_old_scikit_learn_needs_the_extra(views, monkeypatch):
    xp = pytest.importorskip("array_api_strict")
    available = importlib.import_module

    def missing(name, *arguments):
        if "array_api_compat" in name:
            raise ImportError(name)
        return available(name, *arguments)

    monkeypatch.setattr("datacollab._validation.importlib.import_module", missing)
    with pytest.raises(MissingExtraError, match=r"'array_api_compat'.*datacollab\[gpu\]"):
        KTI(3).fit({party: xp.asarray(A) for party, A in views.items()})
    KTI(3).fit(views)
