import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from datacollab import KTI, TargetSimilarityGraph
from datacollab.analyst._kti import kernel_widths
from datacollab.analyst._kti_cv import concordance, default_predictor, halves, map_held_out, prediction_score
from datacollab.errors import NumericalError
from datacollab.linalg import Kernel

ALPHAS = (0.001, 0.1, 1.0)


def split(views):
    return {p: A[:140] for p, A in views.items()}, {p: A[140:] for p, A in views.items()}


def searched(views, kernel, *, factor=1.0, **options):
    train, held_out = split(views)
    widths = kernel_widths(train, kernel, "median", factor)
    kernels = {
        p: Kernel(metric=kernel, parameters={"gamma": widths.get(p), "degree": 3, "coef0": 1} if widths else {})
        for p in train
    }
    return list(map_held_out(train, held_out, kernels, alphas=ALPHAS, **options))


@pytest.mark.parametrize(
    ("kernel", "factor", "graph_weights", "center"),
    [
        *(("rbf", factor, None, center) for factor in (0.3, 3.0) for center in (False, True)),
        *(("rbf", 0.3, (0.5, 10.0), center) for center in (False, True)),
        ("linear", 1.0, None, False),
        ("linear", 1.0, (0.5, 10.0), True),
        ("poly", 1.0, None, True),
        ("poly", 1.0, (0.5, 10.0), False),
    ],
)
def test_one_decomposition_gives_what_a_fit_of_each_candidate_gives(
    views, anchor_classes, center, graph_weights, kernel, factor
):
    train, held_out = split(views)
    graph = None if graph_weights is None else TargetSimilarityGraph(5)
    laplacian = None if graph is None else graph.laplacian(train, anchor_classes[:140])
    found = searched(
        views, kernel, factor=factor, n_components=5, center=center, laplacian=laplacian,
        graph_weights=graph_weights or (),
    )  # fmt: skip
    assert len(found) == len(ALPHAS) * len(graph_weights or (None,))
    for view in found:
        for number in (2, 5):
            kti = KTI(number, kernel=kernel, gamma_factor=factor, alpha=view.alpha, center=center, graph=graph)
            if graph is not None:
                kti.set_params(graph_weight=view.graph_weight)
            kti.fit(train, anchor_classes[:140])
            for fast, slow in zip(view.representations, kti.transform(held_out).values(), strict=True):
                assert_allclose(fast[:, :number], slow, atol=1e-8 * np.abs(slow).max())


def test_an_indefinite_kernel_is_an_error_that_names_the_party(views):
    train, held_out = split(views)
    kernels = dict.fromkeys(train, Kernel(metric=lambda a, b: -float(a @ b)))
    with pytest.raises(NumericalError, match=r"Party 'a': .*alpha=0\.001 is not positive definite"):
        list(map_held_out(train, held_out, kernels, alphas=ALPHAS, n_components=2, center=False))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.integers(0, 100))
def test_halves_are_a_partition_that_shares_every_class(target, seed):
    target = np.array(target)
    first, second = halves(target, np.random.RandomState(seed))
    assert sorted([*first, *second]) == list(range(len(target)))
    for value in np.unique(target):
        assert abs(np.sum(target[first] == value) - np.sum(target[second] == value)) <= 1


def test_halves_of_numbers_have_their_distribution(rng):
    target = rng.normal(size=400)
    first, second = halves(target, np.random.RandomState(0))
    first, second = np.sort(target[first]), np.sort(target[second])
    assert (first <= second).all()
    assert (second[:-1] <= first[1:]).all()


def test_the_predictor_copes_with_few_rows():
    parts = np.array([0, 1, 2]), np.array([3, 4])
    one_class = default_predictor(np.array([0, 0, 0, 0, 1]), parts, True)[-1]
    assert isinstance(one_class, KNeighborsClassifier)
    assert one_class.n_neighbors == 2
    assert isinstance(default_predictor(np.arange(5.0), parts, False)[-1], KNeighborsRegressor)


def test_the_predictor_finds_classes_in_noise(rng):
    target = np.arange(120) % 3
    rows = rng.normal(size=(2, 120, 20))
    rows[:, :, :3] += 4 * np.eye(3)[target]
    parts = halves(target, np.random.RandomState(0))
    assert prediction_score(rows, target, parts, default_predictor(target, parts, True)) > 0.95


def test_concordance():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 2))
    assert concordance([rows, rows]) == pytest.approx(1.0)
    assert concordance([rows, rng.normal(size=(500, 2))]) == pytest.approx(0.5, abs=0.1)
    assert concordance([rows, -rows]) == pytest.approx(0.0, abs=1e-3)
    constant = np.column_stack([rows[:, 0], np.ones(500)])
    assert concordance([constant, constant]) == pytest.approx(0.5)
