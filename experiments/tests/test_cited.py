"""Figures that documents cite: attacks against known answers and naive computations, and that the script runs."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from datacollab.analyst._training import looks_interpolated
from datacollab.datasets import load
from datacollab_experiments.risks import cited, cited_demixing, cited_left_out, cited_neighbours

SMALL = {"n_own": 40, "n_public": 300, "n_strangers": 40, "n_columns": 12}


@pytest.fixture(scope="module", params=["classes", "numbers"])
def world(request):
    return getattr(cited_left_out, request.param)(0)


def targets_of(world):
    """Of the other party."""
    y = world.other_target[:, None]
    return y if y.dtype.kind == "f" else (y == world.exact.h.classes_).astype(float)


@pytest.mark.filterwarnings("ignore::datacollab.errors.DataCollabWarning")
def test_groups_of_a_small_share_are_taken_apart(monkeypatch):
    X, y = load("digits")
    found = cited_demixing.demixed(X, y % 2, 0, **SMALL)
    assert sorted(found.solved) == sorted(found.sizes)
    assert sum(found.sizes) == SMALL["n_own"]
    assert min(found.sizes) == 5
    assert found.n_wrong == 0
    assert found.auc == 1.0
    assert 0.4 < found.auc_by_distance < 0.95

    def off_by_one(*arguments, demix=cited_demixing.demix, **options):
        right = demix(*arguments, **options)
        return replace(right, members=(right.members[0] + 1, *right.members[1:]))

    monkeypatch.setattr(cited_demixing, "demix", off_by_one)
    assert cited_demixing.demixed(X, y % 2, 0, **SMALL).n_wrong == 1


def test_leverages_are_those_of_the_hat_matrix(world):
    """Oracle: the hat matrix of all rows."""
    X = np.vstack([world.exact.rows, world.other_rows])
    centred = X - X.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred + world.exact.h.alpha_ * np.eye(X.shape[1]))
    wanted = 1 / len(X) + np.diag(centred @ inverse @ centred.T)
    assert_allclose(cited_left_out.leverages(world.exact)[0], wanted[: len(world.exact.rows)], rtol=1e-6)


def test_exact_predictions_give_sums_over_the_others(world):
    T, X = targets_of(world), world.other_rows
    found = cited_left_out.recovered(world.exact, 0.0)
    assert_allclose(found.totals, T.sum(axis=0), rtol=1e-6, atol=1e-4)
    assert_allclose(found.sums, T.T @ X, atol=1e-4 * np.abs(T.T @ X).max())
    assert_allclose(found.mean, X.mean(axis=0), atol=1e-4 * np.abs(X).max())
    assert cited_left_out.told(world, world.exact, 0.0) == (pytest.approx(1.0), 1.0)
    assert cited_left_out.told(world, world.rounded, 0.0)[0] < 0.9


def test_without_leverages_rows_are_taken_to_be_like_ones_own(world):
    """Oracle: where all rows are one's own several times, that is so, and the others' sums are multiples."""
    h, X, y = world.exact.h, world.exact.rows, world.exact.target
    fitted = type(h)(kernel="linear", alphas=[h.alpha_]).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    seen = replace(world.exact, h=fitted, n_rows=3 * len(X))
    found = cited_left_out.recovered(seen, np.inf)
    assert_allclose(found.totals, 2 * seen.targets.sum(axis=0), rtol=1e-8)
    assert_allclose(found.sums, 2 * seen.targets.T @ X, atol=1e-8 * np.abs(found.sums).max())
    assert_allclose(found.mean, X.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("dataset", ["digits", "diabetes"])
def test_ratios_tell_interpolated_rows_as_the_library_does(dataset, monkeypatch):
    seen = []
    ratio = cited_neighbours.neighbour_ratio
    monkeypatch.setattr(cited_neighbours, "neighbour_ratio", lambda rows: seen.append(rows) or ratio(rows))
    found = cited_neighbours.ratios(dataset, 0, None)
    assert [looks_interpolated(rows) for rows in seen] == [True, False]
    for rows, one in zip(seen, found, strict=True):
        distances = np.sort(cdist(rows, rows), axis=1)
        assert one == pytest.approx(np.median(distances[:, 1] / distances[:, 10]))


def test_sums_and_means_of_parties():
    parties = [
        cited_demixing.Demixed((5, 6), (5,), 0, 0.9, 0.6, 50.0),
        cited_demixing.Demixed((5, 7, 5), (5, 7), 1, 0.8, 0.7, 40.0),
    ]
    assert cited_demixing.demixing_figures(parties)[-1] == ["all", "5", "3", "1", "2 of 3", "0.850", "0.650", "90"]


@pytest.mark.parametrize(
    ("arguments", "first", "n_lines"),
    [
        (["left-out", "--draws", "2"], "the one row of a class", 16),
        (["neighbours", "--draws", "2", "--datasets", "digits"], "digits", 3),
    ],
)
def test_the_script_prints_a_table(arguments, first, n_lines, capsys):
    cited.main(arguments)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == n_lines
    assert lines[2].startswith(f"| {first} |")
