import dataclasses

import pytest

from datacollab.analyst import KTI, KTICV, GeometricGraph, TargetSimilarityGraph
from datacollab_experiments.paper import Condition, method


@pytest.mark.parametrize("preset", ["recommended", "paper"])
@pytest.mark.parametrize(
    ("name", "graph", "center"),
    [
        ("KTI", None, False),
        ("KTI+Center", None, True),
        ("KTI+GL", GeometricGraph, False),
        ("KTI+TSL", TargetSimilarityGraph, False),
        ("KTI+GL+Center", GeometricGraph, True),
        ("KTI+TSL+Center", TargetSimilarityGraph, True),
    ],
)
def test_kernel_methods_by_name(name, graph, center, preset):
    integrator = method(name, Condition(n_components=7, n_neighbors=4, hyperparameters=preset))
    assert type(integrator) is KTI
    assert (integrator.n_components, integrator.center, integrator.kernel) == (7, center, "rbf")
    assert integrator.graph_weight == 1.0
    assert type(integrator.graph) is (graph or type(None))
    if graph:
        assert integrator.graph.n_neighbors == 4
    width = (integrator.gamma, integrator.gamma_factor, integrator.alpha)
    if preset == "paper":
        assert width == (1.0, 1.0, 1.0)
    else:
        assert width == (("median", 0.3, 0.001) if name == "KTI+TSL+Center" else ("median", 1.0, 0.1))


@pytest.mark.parametrize("preset", ["paper", "recommended"])
def test_the_searches_are_the_same_under_every_preset(preset):
    condition = Condition(hyperparameters=preset, n_sources=None, n_components=4, n_neighbors=3)
    searched = method("KTICV+TSL+Center", condition)
    assert isinstance(searched, KTICV)
    assert (searched.center, searched.graph.n_neighbors, searched.graph.scale) == (True, 3, "std")
    plain = method("KTICV", condition)
    assert (plain.center, plain.graph) == (False, None)


def test_a_search_on_interpolated_anchors_has_wide_kernels_and_large_penalties_only():
    interpolated, real = (method("KTICV", Condition(n_sources=n_sources)) for n_sources in (100, None))
    assert (interpolated.gamma_factors, interpolated.alphas) == ([0.1, 0.3], [0.1, 1.0])
    assert (real.gamma_factors, real.alphas) == ([0.1, 0.3, 1.0], [0.001, 0.01, 0.1])


@pytest.mark.parametrize("name", ["lti", "KTI+", "KTI+Center+TSL", "Local", ""])
def test_an_unknown_method_is_an_error_that_lists_the_known_ones(name):
    with pytest.raises(ValueError, match=r"Unknown method .*MPP, GEP, ODC, LTI, KTI, "):
        method(name, Condition())


@pytest.mark.parametrize(
    ("setting", "value", "listed"),
    [
        ("split", "random", "iid, stratified, label-skew"),
        ("obfuscator", "tsne", "pca, kernel-pca, umap, random-projection"),
        ("out_of_sample", "batch", "auto, row-wise, umap"),
        ("kernel_width", "mean", "median-squared, median"),
        ("hyperparameters", "best", "recommended, paper"),
        ("defence", "noise", "none, groups"),
    ],
)
def test_an_unknown_setting_is_an_error_that_lists_the_known_ones(setting, value, listed):
    with pytest.raises(ValueError, match=f"Unknown {setting} {value!r}; choose one of {listed}"):
        Condition(**{setting: value})


COUNTS = ["n_parties", "n_per_party", "n_test", "n_anchors", "n_sources", "n_components", "n_neighbors"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [*((setting, -1) for setting in COUNTS), *(("n_parties", value) for value in (0, 2.0, True, "3"))],
)
def test_a_count_is_a_positive_int(setting, value):
    with pytest.raises(ValueError, match=f"{setting} must be a positive int; got {value!r}"):
        Condition(**{setting: value})


def test_what_is_left_open_is_the_papers_choice():
    assert Condition(n_parties=4, n_per_party=30).n_test == 120
    assert Condition(n_parties=4, n_per_party=30, n_test=7).n_test == 7
    assert Condition(hyperparameters="paper").out_of_sample == "umap"
    assert Condition(hyperparameters="recommended").out_of_sample == "row-wise"
    assert Condition(hyperparameters="paper", out_of_sample="row-wise").out_of_sample == "row-wise"


def test_sources_fit_into_the_anchor():
    assert Condition(n_sources=50, n_anchors=50).n_sources == 50
    with pytest.raises(ValueError, match="n_sources=51 is above n_anchors=50"):
        Condition(n_sources=51, n_anchors=50)


def test_an_unknown_or_later_setting_is_an_error():
    with pytest.raises(TypeError, match="n_party"):
        Condition(n_party=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Condition().n_parties = 3


def test_rows_of_a_trial_are_counted():
    assert Condition(n_parties=3, n_per_party=20, n_test=30, n_anchors=500, n_sources=40).n_rows == 60 + 30 + 40
    assert Condition(n_parties=3, n_per_party=20, n_test=30, n_anchors=500, n_sources=None).n_rows == 60 + 30 + 500
