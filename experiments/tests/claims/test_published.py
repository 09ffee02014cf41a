from collections import Counter

import pytest

from datacollab_experiments.claims import find_published, published_values

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


def test_some_cells_by_hand():
    cell = find_published(TRADE_OFF, dataset="fashion-mnist", obfuscator="umap", n_components=16, name="reconstruction")
    assert (cell.mean, cell.half_width, cell.attack) == (0.220, 0.033, "LR")
    cell = find_published(RMSE, dataset="ujiindoorloc", obfuscator="kernel-pca", name="MPP")
    assert (cell.mean, cell.half_width, cell.attack) == (50.15, 1.77, None)
    cell = find_published(RQ1, dataset="mnist", n_parties=64, name="Central")
    assert (cell.mean, cell.half_width) == (0.941, None)
