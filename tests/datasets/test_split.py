import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from datacollab.datasets import PartyData, load, split_parties

SCHEMES = ["iid", "stratified", "label-skew", "feature-shift"]


@st.composite
def splits(draw):
    n_parties, n_per_party = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    n_samples = n_parties * n_per_party + draw(st.integers(0, 20))
    labels = draw(st.lists(st.integers(0, 4), min_size=n_samples, max_size=n_samples))
    X = np.random.RandomState(draw(st.integers(0, 99))).normal(size=(n_samples, 3))
    options = {
        "scheme": draw(st.sampled_from(SCHEMES)),
        "concentration": draw(st.sampled_from([1e-6, 0.01, 0.5, 10, 1e9])),
        "random_state": draw(st.integers(0, 2**32 - 1)),
    }
    return X, np.array(labels), n_parties, n_per_party, options


@pytest.mark.slow
@settings(max_examples=150)
@given(splits())
def test_parties_are_disjoint_of_equal_size_and_cover_all_with_the_rest(arguments):
    X, y, n_parties, n_per_party, options = arguments
    split = split_parties(X, y, n_parties, n_per_party, **options)
    assert list(split) == [f"party-{k}" for k in range(n_parties)]
    assert all(rows.shape == (n_per_party,) for rows in split.indices.values())
    every = np.concatenate([*split.indices.values(), split.rest])
    np.testing.assert_array_equal(np.sort(every), np.arange(len(X)))
    again = split_parties(X, y, n_parties, n_per_party, **options)
    np.testing.assert_array_equal(np.concatenate([*again.indices.values(), again.rest]), every)


@pytest.fixture(scope="module")
def digits():
    return tuple(load("digits"))


def class_shares(split, n_classes=10):
    return np.array([np.bincount(y, minlength=n_classes) / len(y) for _, y in split.values()])


def test_parties_rest_and_pool_are_rows_of_the_table(digits):
    X, y = digits
    split = split_parties(X, y, 4, 50, random_state=3)
    party = split["party-2"]
    assert isinstance(party, PartyData)
    np.testing.assert_array_equal(party.X, X[split.indices["party-2"]])
    np.testing.assert_array_equal(party.y, y[split.indices["party-2"]])
    X_pooled, y_pooled, groups = split.pooled()
    np.testing.assert_array_equal(X_pooled[groups == "party-2"], party.X)
    np.testing.assert_array_equal(y_pooled[groups == "party-2"], party.y)
    np.testing.assert_array_equal(split.remaining().X, X[split.rest])
    assert (np.diff(split.rest) < 0).any()
    with pytest.raises(KeyError):
        split["party-4"]
    with pytest.raises(AttributeError):
        split.rest = None


def test_frames_and_sparse_matrices_keep_their_type():
    X = pd.DataFrame({"age": np.arange(30.0), "ward": list("abc") * 10}, index=np.arange(100, 130))
    y = pd.Series(np.arange(30) % 2, index=X.index, name="died")
    reference = split_parties(X.to_numpy(), y.to_numpy(), 3, 5, scheme="label-skew", random_state=1)
    split = split_parties(X, y, 3, 5, scheme="label-skew", random_state=1)
    pd.testing.assert_frame_equal(split["party-0"].X, X.iloc[reference.indices["party-0"]])
    pd.testing.assert_series_equal(split["party-0"].y, y.iloc[reference.indices["party-0"]])
    assert isinstance(split.pooled()[0], pd.DataFrame)

    polars_split = split_parties(pl.DataFrame(X.to_dict("list")), pl.Series(y.to_list()), 3, 5, random_state=1)
    assert isinstance(polars_split["party-0"].X, pl.DataFrame)
    assert polars_split["party-0"].X.shape == (5, 2)

    csr = sparse.csr_matrix(np.eye(30))
    assert split_parties(csr, y, 3, 5, random_state=1)["party-1"].X.shape == (5, 30)
    assert split_parties([[0.0], [1.0]], ["a", "b"], 2, 1, random_state=0).pooled()[1].dtype.kind == "U"


def test_stratified_parties_have_the_shares_of_the_table():
    y = np.repeat(["rare", "common", "usual"], [60, 240, 300])
    split = split_parties(np.zeros((600, 1)), y, 10, 50, scheme="stratified", random_state=0)
    counts = np.array(
        [[np.sum(labels == name) for name in ("rare", "common", "usual")] for _, labels in split.values()]
    )
    assert abs(counts - [5, 20, 25]).max() <= 1


def test_concentration_goes_from_one_class_to_the_shares_of_the_table(digits):
    X, y = digits
    options = {"scheme": "label-skew", "random_state": 0}
    alone = class_shares(split_parties(X, y, 3, 50, concentration=1e-6, **options))
    middle = class_shares(split_parties(X, y, 3, 50, concentration=0.5, **options))
    alike = class_shares(split_parties(X, y, 3, 50, concentration=1e9, **options))
    np.testing.assert_array_equal(alone.max(axis=1), 1)
    assert (alike.max(axis=1) < middle.max(axis=1)).all()
    assert alike.max() < 0.3


def test_feature_shift_moves_parties_apart_along_the_principal_direction():
    generator = np.random.RandomState(0)
    direction = generator.normal(size=(1000, 1))
    X = direction @ np.ones((1, 5)) + 0.1 * generator.normal(size=(1000, 5))
    X *= [1, 10, 100, 1000, 0.001]

    def spread(concentration):
        split = split_parties(
            X, direction[:, 0], 8, 50, scheme="feature-shift", concentration=concentration, random_state=0
        )
        return np.std([y.mean() for _, y in split.values()])

    assert spread(0.1) > 3 * spread(1e9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_per_party": 21}, r"5 parties of 21 rows need 105 rows, but X has 100\. Ask for at most 20"),
        ({"n_parties": 0}, "n_parties must be a positive int; got 0"),
        ({"n_per_party": 2.5}, "n_per_party must be a positive int"),
        ({"scheme": "skew"}, "scheme must be one of 'iid'"),
        ({"concentration": 0}, "concentration must be between"),
        ({"concentration": np.nan}, "concentration must be between"),
        ({"scheme": "label-skew"}, "y is continuous.*'feature-shift' for regression"),
        ({"scheme": "stratified", "y": np.zeros((100, 2))}, r"one class label per row; got y of shape \(100, 2\)"),
        ({"scheme": "label-skew", "y": np.array([1, "a"] * 50, dtype=object)}, "y mixes several"),
        ({"y": np.zeros(99)}, "inconsistent numbers of samples"),
        ({"scheme": "feature-shift", "X": np.full((100, 2), np.nan)}, "table of finite numbers"),
    ],
)
def test_bad_arguments_are_answered(options, message):
    arguments = {"X": np.ones((100, 2)), "y": np.linspace(0, 1, 100), "n_parties": 5, "n_per_party": 10} | options
    with pytest.raises(ValueError, match=message):
        split_parties(**arguments)


def test_errors_show_no_entry():
    X = np.array([["secret"], ["other"]], dtype=object)
    with pytest.raises(ValueError, match="finite numbers") as caught:
        split_parties(X, [0, 1], 1, 1, scheme="feature-shift")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(split_parties(X, ["secret", "y"], 1, 1))
