from collections import Counter

import pytest

from datacollab.datasets import available
from datacollab_experiments.claims import find_published, published_values
from datacollab_experiments.paper import BASELINES, METHODS

TRADE_OFF = "tab:rq4-tradeoff-main-wide"
INTEGRATION = "tab:rq4-integration-accuracy-wide"
RMSE = "tab:recon-score-2datasets-transposed-se"
RQ1 = "fig:num-existing"

# The tables print the best value of each row in bold; here by hand, from the print.
BEST_OF_INTEGRATION = {
    ("mnist", "pca"): ("LTI", "KTI+TSL", "KTI+TSL"),
    ("mnist", "kernel-pca"): ("LTI", "KTI+TSL", "KTI+TSL"),
    ("mnist", "umap"): ("KTI+TSL", "KTI+TSL", "KTI+TSL"),
    ("fashion-mnist", "pca"): ("KTI+TSL", "LTI", "LTI"),
    ("fashion-mnist", "kernel-pca"): ("KTI+TSL", "KTI+TSL", "KTI+TSL"),
    ("fashion-mnist", "umap"): ("KTI+TSL", "KTI+TSL", "KTI+TSL"),
}
BEST_RMSE = {
    ("slice-localization", "pca"): {"LTI", "GEP"},
    ("slice-localization", "kernel-pca"): {"KTI+TSL"},
    ("slice-localization", "umap"): {"KTI+GL"},
    ("ujiindoorloc", "pca"): {"LTI", "GEP", "ODC"},
    ("ujiindoorloc", "kernel-pca"): {"KTI"},
    ("ujiindoorloc", "umap"): {"KTI+GL"},
}


def of(table):
    return [value for value in published_values() if value.table == table]


def test_every_cell_is_there():
    assert Counter(value.table for value in published_values()) == {TRADE_OFF: 36, INTEGRATION: 54, RMSE: 46, RQ1: 4}


@pytest.mark.parametrize(
    ("table", "n_trials", "measures"),
    [
        (TRADE_OFF, 30, {"accuracy", "reconstruction_accuracy"}),
        (INTEGRATION, 30, {"accuracy"}),
        (RMSE, 20, {"rmse"}),
        (RQ1, 100, {"accuracy"}),
    ],
)
def test_trials_and_measures(table, n_trials, measures):
    assert {value.n_trials for value in of(table)} == {n_trials}
    assert {value.measure for value in of(table)} == measures


def test_names_are_the_librarys():
    values = published_values()
    assert {value.dataset for value in values} <= {info.name for info in available()}
    assert {value.name for value in values} <= {*METHODS, *BASELINES, "reconstruction"}


def test_numbers_are_on_the_scale_of_their_measure():
    for value in published_values():
        assert (1 < value.mean < 100) if value.measure == "rmse" else (0 < value.mean < 1)
        assert value.half_width is None or value.half_width < 0.2 * value.mean
        assert (value.attack is not None) == (value.name == "reconstruction")


def test_two_tables_print_the_same_accuracies_of_kti_tsl():
    for value in of(TRADE_OFF):
        if value.name == "KTI+TSL":
            where = {"dataset": value.dataset, "obfuscator": value.obfuscator, "n_components": value.n_components}
            twin = find_published(INTEGRATION, name="KTI+TSL", **where)
            assert (twin.mean, twin.half_width) == (value.mean, value.half_width)


@pytest.mark.parametrize(("dataset", "obfuscator"), BEST_OF_INTEGRATION)
def test_the_best_accuracies_are_those_in_bold(dataset, obfuscator):
    for n_components, best in zip((4, 16, 64), BEST_OF_INTEGRATION[dataset, obfuscator], strict=True):
        where = {"dataset": dataset, "obfuscator": obfuscator, "n_components": n_components}
        accuracies = {name: find_published(INTEGRATION, name=name, **where).mean for name in ("LTI", "KTI", "KTI+TSL")}
        assert max(accuracies, key=accuracies.get) == best


@pytest.mark.parametrize(("dataset", "obfuscator"), BEST_RMSE)
def test_the_lowest_errors_are_those_in_bold(dataset, obfuscator):
    errors = {
        value.name: value.mean for value in of(RMSE) if (value.dataset, value.obfuscator) == (dataset, obfuscator)
    }
    assert len(errors) == 7
    assert {name for name, error in errors.items() if error == min(errors.values())} == BEST_RMSE[dataset, obfuscator]


def test_every_value_is_found_by_what_it_is_of():
    for value in published_values():
        axes = {axis: getattr(value, axis) for axis in ("dataset", "name", "obfuscator", "n_components", "n_parties")}
        assert find_published(value.table, **axes) is value


def test_some_cells_by_hand():
    cell = find_published(TRADE_OFF, dataset="fashion-mnist", obfuscator="umap", n_components=16, name="reconstruction")
    assert (cell.mean, cell.half_width, cell.attack) == (0.220, 0.033, "LR")
    cell = find_published(RMSE, dataset="ujiindoorloc", obfuscator="kernel-pca", name="MPP")
    assert (cell.mean, cell.half_width, cell.attack) == (50.15, 1.77, None)
    cell = find_published(RQ1, dataset="mnist", n_parties=64, name="Central")
    assert (cell.mean, cell.half_width) == (0.941, None)


def test_settings_that_a_value_does_not_depend_on_may_be_any():
    """A condition of an experiment has them all."""
    local = find_published(RMSE, dataset="ujiindoorloc", obfuscator="umap", n_components=10, n_parties=10, name="Local")
    assert local.mean == 28.54
    where = {"dataset": "mnist", "obfuscator": "umap", "n_components": 10, "name": "Central"}
    assert find_published(RQ1, n_parties=2, **where).mean == 0.680
    assert find_published(RQ1, n_parties=8, **where) is None


@pytest.mark.parametrize(
    "other",
    [
        {"dataset": "digits"},
        {"obfuscator": "random-projection"},
        {"obfuscator": None},
        {"n_components": 8},
        {"name": "KTI+TSL+Center"},
        {"name": "a method of my own"},
    ],
)
def test_nothing_is_found_where_the_paper_prints_nothing(other):
    cell = {"dataset": "mnist", "obfuscator": "pca", "n_components": 16, "name": "LTI"}
    assert find_published(INTEGRATION, **cell).mean == 0.755
    assert find_published(INTEGRATION, **{**cell, **other}) is None
