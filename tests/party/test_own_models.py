"""What a party has without the others: closed forms against refits, and tables as they come."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.semi_supervised import LabelSpreading

from datacollab.errors import AgreementError
from datacollab.party._common_space import TableEncoder
from datacollab.party._own_models import (
    OwnData,
    equal_rows,
    fold_numbers,
    left_out_spreading,
    own_candidates,
    spreading_matrix,
)


def gram(X, Y):
    return np.exp(-0.3 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


def test_left_out_spreading_is_what_hiding_a_label_gives(rng):
    X = rng.normal(size=(30, 2))
    X[3] = X[2]
    labels = (X[:, 0] > 0).astype(int)
    Y = np.eye(2)[labels]
    Y[12:] = 0
    W = gram(X, X)
    np.fill_diagonal(W, 0)
    groups = equal_rows(X)
    spread = left_out_spreading(spreading_matrix(W, 0.8), Y, groups)
    for row in range(12):
        hidden = np.where(groups == groups[row], -1, np.where(np.arange(30) < 12, labels, -1))
        # scikit-learn's affinity has a zero diagonal too, and iterates to the same limit.
        reference = LabelSpreading(kernel=gram, alpha=0.8, max_iter=5000, tol=1e-12).fit(X, hidden)
        assert_allclose(spread[row] / spread[row].sum(), reference.label_distributions_[row], atol=1e-6)


def test_folds_keep_equal_rows_together_and_spread_classes(rng):
    groups = np.repeat(np.arange(30), 2)
    classes = np.repeat(np.arange(3), 20)
    folds = fold_numbers(groups, classes, 5, np.random.RandomState(0))
    assert all(len(set(folds[groups == group])) == 1 for group in range(30))
    assert (np.array([[np.sum(folds[classes == c] == f) for c in range(3)] for f in range(5)]) == 4).all()


def data_of(rng, n_own=24, n_public=16, n_classes=3, labelled=True, duplicates=False):
    target = np.arange(n_own + n_public) % n_classes
    rows = rng.normal(size=(n_own + n_public, 4)) + 1.5 * np.eye(4)[target]
    if duplicates:
        rows[1], rows[n_own] = rows[0], rows[2]
    return OwnData(
        rows=rows,
        target=target if labelled else target[:n_own],
        n_own=n_own,
        n_classes=n_classes,
        common_units=np.ones(4),
    )


def changed_label(data, row):
    target = data.target.copy()
    target[row] = (target[row] + 1) % data.n_classes
    return OwnData(
        rows=data.rows, target=target, n_own=data.n_own, n_classes=data.n_classes, common_units=data.common_units
    )


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("duplicates", [True, False])
def test_no_candidate_has_seen_the_label_of_the_row(rng, labelled, duplicates):
    """Another label, for the row and its equals, changes nothing of what is said of it."""
    data = data_of(rng, labelled=labelled, duplicates=duplicates)

    def deterministic(candidates):
        return {
            each.name: each.left_out[0] for each in candidates if each.family in ("kernel ridge", "label spreading")
        }

    seed = np.random.RandomState
    before = deterministic(own_candidates(data, seed(0), n_trees=5))
    after_data = changed_label(changed_label(data, 0), 1) if duplicates else changed_label(data, 0)
    after = deterministic(own_candidates(after_data, seed(0), n_trees=5))
    assert ("label spreading" in {name.split(" (")[0] for name in before}) == (not labelled)
    for name, said in before.items():
        assert_allclose(after[name], said, atol=1e-7, err_msg=name)


def test_a_public_row_equal_to_an_own_one_does_not_give_it_away(rng):
    """Memorising is of no use where equal rows are left out together: labels here are noise."""
    rows = rng.normal(size=(30, 3))
    target = rng.integers(2, size=30)
    data = OwnData(rows=np.vstack([rows, rows]), target=np.tile(target, 2), n_own=30, n_classes=2)
    for candidate in own_candidates(data, np.random.RandomState(0), n_trees=50):
        right = (candidate.left_out[:30].argmax(axis=1) == target).mean()
        assert right < 0.85, candidate.name


@pytest.mark.parametrize("family", ["kernel ridge", "random forest", "logistic regression"])
def test_candidates_learn(rng, family):
    data = data_of(rng, n_own=60, n_public=60)
    candidates = [each for each in own_candidates(data, np.random.RandomState(0), n_trees=60) if each.family == family]
    tested = rng.normal(size=(300, 4)) + 1.5 * np.eye(4)[np.arange(300) % 3]
    best = min(candidates, key=lambda each: -(each.left_out[:60].argmax(axis=1) == data.target[:60]).mean())
    assert (best.fit()(tested).argmax(axis=1) == np.arange(300) % 3).mean() > 0.6
    assert best.left_out.shape == (120, 3)


@pytest.mark.parametrize("n_own", [2, 3, 8])
def test_few_rows_and_single_classes(rng, n_own):
    data = OwnData(rows=rng.normal(size=(n_own, 2)), target=np.zeros(n_own, dtype=int), n_own=n_own, n_classes=1)
    for candidate in own_candidates(data, np.random.RandomState(0), n_trees=10):
        assert candidate.left_out.shape == (n_own, 1)
        assert candidate.fit()(data.rows).shape == (n_own, 1)


# Tables as they come.


def test_units_gaps_and_constant_columns(rng):
    X = rng.normal(size=(40, 4)) * [1, 1e6, 1e-6, 0] + [0, 5e6, 0, 7]
    X[3, 1] = np.nan
    encoder = TableEncoder(X, None, "a")
    Z = encoder.encode(X)
    assert np.isfinite(Z).all()
    assert_allclose(Z[:, :3].std(axis=0), 1, atol=1e-9)
    assert_allclose(Z[:, 3], 0)
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    in_common_units = (Z * encoder.common_units).std(axis=0)
    assert_allclose(in_common_units[1] / in_common_units[0], filled[:, 1].std() / filled[:, 0].std())
    assert_allclose(encoder.encode(X[3:4])[0, 1], encoder.encode(np.nanmedian(X, axis=0)[None])[0, 1])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_with_categories(frame, rng):
    table = frame({"age": rng.normal(size=12), "ward": ["north", "south", "east"] * 4})
    public = frame({"age": rng.normal(size=2), "ward": ["west", "north"]})
    encoder = TableEncoder(table, public, "a")
    assert encoder.encode(table).shape == (12, 5)
    unknown = frame({"ward": ["nowhere"], "age": [0.0]})
    assert_allclose(encoder.encode(unknown)[0, 1:], 0)
    assert encoder.common_units is None


def test_a_gap_in_a_category_is_one_more(rng):
    table = pd.DataFrame({"age": rng.normal(size=6), "ward": ["n", None, "s", "n", None, "s"]})
    Z = TableEncoder(table, None, "a").encode(table)
    assert Z.shape == (6, 4)
    assert_allclose(Z[:, 1:].sum(axis=1), 1)


@pytest.mark.parametrize(
    "rows", [np.zeros((3, 5)), pd.DataFrame(np.zeros((3, 4)), columns=list("abcd")), np.full((3, 4), np.inf)]
)
def test_rows_that_do_not_fit_are_refused(rng, rows):
    encoder = TableEncoder(rng.normal(size=(9, 4)), None, "a")
    with pytest.raises(AgreementError, match="Party 'a'"):
        encoder.encode(rows)


def test_refusals_show_no_entry():
    table = np.array([["12.5", 1], ["secret", 2]], dtype=object)
    encoder = TableEncoder(np.array([[1.5, 1], [2.5, 2]], dtype=object), None, "a")
    with pytest.raises(AgreementError) as caught:
        encoder.encode(table)
    assert "secret" not in str(caught.value)
    assert "12.5" not in str(caught.value)
