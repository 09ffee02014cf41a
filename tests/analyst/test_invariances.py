"""What must not change the answer, and what bad input must say; for every integration method."""

import numpy as np
import pytest
from bent_views import nonlinear_views
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from datacollab import GEP, KTI, LTI, MPP, ODC, GeometricGraph, TargetSimilarityGraph
from datacollab.errors import AgreementError, RepresentationError, SinglePartyWarning, UnknownPartyError

METHODS = {
    "MPP": MPP(4),
    "GEP": GEP(4),
    "ODC": ODC(reference="mean"),
    "LTI": LTI(4),
    "KTI": KTI(4),
    "KTI+Center": KTI(4, center=True),
    "KTI+GL": KTI(4, graph=GeometricGraph(5)),
    "KTI+TSL+Center": KTI(4, graph=TargetSimilarityGraph(5), center=True),
}


@pytest.fixture(params=METHODS)
def method(request):
    return clone(METHODS[request.param])


def equal_width_views(n_anchors=80, seed=0):
    views, latent = nonlinear_views(n_anchors, seed=seed, widths=(6, 6, 6))
    return views, np.digitize(latent[:, 0], [0.0])


def random_rotation(seed, d=6):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


@given(name=st.sampled_from(sorted(METHODS)), seed=st.integers(0, 1000))
def test_rotating_a_partys_private_space_changes_nothing(name, seed):
    """Under RBF kernels and all linear methods but ODC with the rotated party as (part of) its reference."""
    method = clone(METHODS[name])
    if name == "ODC":
        method.set_params(reference="a")
    views, y = equal_width_views(seed=seed % 5)
    rotation = random_rotation(seed)
    before = method.fit(views, y).transform(views)
    turned = {**views, "b": views["b"] @ rotation}
    after = clone(method).fit(turned, y).transform(turned)
    for party in views:
        assert_allclose(after[party], before[party], atol=1e-7)


def test_order_of_parties_does_not_matter(method):
    views, y = equal_width_views()
    before = method.fit(views, y).transform(views)
    after = clone(method).fit(dict(reversed(views.items())), y).transform(views)
    for party in views:
        assert_allclose(after[party], before[party], atol=1e-8)


def test_order_of_anchor_rows_does_not_matter(method, rng):
    views, y = equal_width_views()
    order = rng.permutation(80)
    before = method.fit(views, y).transform(views)
    after = clone(method).fit({party: A[order] for party, A in views.items()}, y[order]).transform(views)
    for party in views:
        assert_allclose(after[party], before[party], atol=1e-7)


def test_dtype_and_memory_order_do_not_matter(method):
    views, y = equal_width_views()
    views = {party: A.astype(np.float32).astype(np.float64) for party, A in views.items()}
    before = method.fit(views, y).transform(views)
    for convert in (lambda A: A.astype(np.float32), np.asfortranarray, np.ndarray.tolist):
        after = clone(method).fit({party: convert(A) for party, A in views.items()}, y).transform(views)
        for party in views:
            assert_allclose(after[party], before[party], atol=1e-8)


@pytest.mark.parametrize("name", ["MPP", "GEP", "LTI", "KTI", "KTI+TSL+Center"])
def test_redundant_columns_change_nothing_essential(name):
    """A column repeated, a column of zeros: the column space, and so the linear methods' answer, is the same."""
    views, y = equal_width_views()
    redundant = {**views, "b": np.column_stack([views["b"], views["b"][:, 0], np.zeros(80)])}
    fitted = clone(METHODS[name]).fit(redundant, y)
    aligned = fitted.transform(redundant)
    assert all(np.isfinite(rows).all() for rows in aligned.values())
    if name in ("GEP", "LTI"):
        expected = clone(METHODS[name]).fit(views, y).transform(views)
        for party in views:
            assert_allclose(aligned[party], expected[party], atol=1e-8)


def test_one_party_is_a_warning(method):
    views, y = equal_width_views()
    with pytest.warns(SinglePartyWarning, match="Only party 'a' takes part"):
        method.fit({"a": views["a"]}, y)


BAD = {
    "rows": (lambda A: A[:-1], AgreementError, r"numbers of anchor rows differ: \{'a': 80, 'b': 79, 'c': 80\}"),
    "nan": (lambda A: np.where(A[3, 2] == A, np.nan, A), RepresentationError, "'b'.*NaN or infinity in 1 of 80 rows"),
    "inf": (lambda A: np.where(A[3, 2] == A, np.inf, A), RepresentationError, "'b'.*NaN or infinity in 1 of 80 rows"),
    "constant": (lambda A: np.ones_like(A), RepresentationError, "'b'.*all 80 rows.*are equal"),
    "empty": (lambda A: A[:, :0], RepresentationError, r"'b'.*empty \(shape \(80, 0\)\)"),
    "one dimension": (lambda A: A[:, 0], RepresentationError, r"'b'.*two-dimensional.*shape \(80,\)"),
    "text": (lambda A: np.full(A.shape, "secret"), RepresentationError, "'b'.*must be an array of real numbers"),
    "complex": (lambda A: A + 1j, RepresentationError, "'b'.*must be an array of real numbers"),
}


def test_bad_input_names_the_party_and_shows_no_data(method):
    views, y = equal_width_views()
    for spoil, error, message in BAD.values():
        bad = {**views, "b": spoil(views["b"])}
        with pytest.raises(error, match=message) as caught:
            clone(method).fit(bad, y)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_other_misuse(method):
    views, y = equal_width_views()
    with pytest.raises(NotFittedError):
        method.transform(views)
    with pytest.raises(AgreementError, match="No party"):
        method.fit({})
    with pytest.raises(TypeError, match="mapping"):
        method.fit(np.ones((3, 3)))
    method.fit(views, y)
    with pytest.raises(UnknownPartyError, match=r"\['d'\]; known parties: \['a', 'b', 'c'\]"):
        method.transform({"d": views["a"]})
    with pytest.raises(RepresentationError, match="'a'.*has 5 columns but 6 are expected"):
        method.transform({"a": views["a"][:, :5]})


def test_reprs_show_no_data(method):
    views, y = equal_width_views()
    text = repr(method.fit(views, y)) + repr(method.integration_functions_)
    assert "array" not in text


def test_input_is_left_alone(method):
    views, y = equal_width_views()
    copies = {party: A.copy() for party, A in views.items()}
    for A in views.values():
        A.setflags(write=False)
    method.fit(views, y).transform(views)
    for party in views:
        assert (views[party] == copies[party]).all()
