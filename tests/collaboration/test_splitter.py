import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from datacollab import Local, PartyStratifiedKFold


@given(
    seed=st.integers(0, 1000), n_splits=st.integers(2, 5), n_parties=st.integers(1, 4), shuffle=st.booleans(),
    n_classes=st.integers(1, 10),
)  # fmt: skip
def test_folds_are_a_partition_and_even(seed, n_splits, n_parties, shuffle, n_classes):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_parties), rng.integers(5, 20, size=n_parties)))
    y = rng.integers(n_classes, size=len(groups))
    folds = list(
        PartyStratifiedKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None).split(y, y, groups)
    )
    assert len(folds) == n_splits
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(y)))
        assert set(groups[train]) == set(groups)
    for party in range(n_parties):
        counts = [np.sum(groups[test] == party) for _, test in folds]
        assert max(counts) - min(counts) <= 1
        for label in range(n_classes):
            counts = [np.sum((groups[test] == party) & (y[test] == label)) for _, test in folds]
            assert max(counts) - min(counts) <= 1


def test_numeric_targets_are_stratified_by_party_only():
    groups = np.repeat(["a", "b"], [6, 4])
    y = np.linspace(0, 1, 10)
    for _, test in PartyStratifiedKFold(2).split(y, y, groups):
        assert (groups[test] == "a").sum() == 3


def test_routing_brings_the_owners():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(30, 2)), np.arange(30) % 2, np.arange(30) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            Local(LogisticRegression()), X, y, cv=PartyStratifiedKFold(3), params={"groups": groups}
        )
    assert scores.shape == (3,)


def test_clear_errors():
    with pytest.raises(ValueError, match="needs groups"):
        next(PartyStratifiedKFold().split(np.zeros((4, 1))))
    with pytest.raises(ValueError, match=r"as many rows of every party; got \{'b': 1\}"):
        next(PartyStratifiedKFold(2).split(np.zeros(4), None, ["a", "a", "a", "b"]))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[4, 3\]"):
        next(PartyStratifiedKFold(2).split(np.zeros(4), None, ["a", "a", "b"]))
    with pytest.raises(ValueError, match="n_splits=1"):
        PartyStratifiedKFold(1)


def test_shuffling_is_repeatable():
    groups, y = np.repeat([0, 1], 10), np.tile([0, 1], 10)
    folds = [
        [test.tolist() for _, test in PartyStratifiedKFold(2, shuffle=True, random_state=seed).split(y, y, groups)]
        for seed in (0, 0, 1)
    ]
    assert folds[0] == folds[1] != folds[2]


def test_owners_from_a_column():
    groups, y = np.repeat(["a", "b"], 6), np.tile([0, 1], 6)
    table = pd.DataFrame({"age": np.arange(12), "ward": groups})
    from_column = [test.tolist() for _, test in PartyStratifiedKFold(3, party_column="ward").split(table, y)]
    from_groups = [test.tolist() for _, test in PartyStratifiedKFold(3).split(table, y, groups)]
    assert from_column == from_groups
