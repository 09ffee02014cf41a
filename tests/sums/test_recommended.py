"""What is recommended for a table and for columns that are all alike, and who follows it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import datacollab as dc
from datacollab.sums import MOST_COMPONENTS, MaskKey, RidgeSums, SumsPlan, columns_alike, recommended


def test_a_table_has_more_noise_and_a_larger_penalty_than_pixels():
    table, pixels = recommended(), recommended(alike=True)
    assert table.noise > pixels.noise >= 0.03
    assert table.least_penalty > pixels.least_penalty
    assert table.n_components == pixels.n_components == MOST_COMPONENTS


@pytest.mark.parametrize(
    ("ranges", "n_columns", "alike"),
    [
        ([(0, 255)] * 50, 50, True),
        ([(0, 255)] * 49, 49, False),
        ([(0, 255)] * 50, 51, False),
        ([(0, 255)] * 49 + [(1, 256)], 50, False),
        ([], 0, False),
    ],
)
def test_columns_are_alike_if_they_are_many_numbers_of_one_range(ranges, n_columns, alike):
    assert columns_alike(ranges, n_columns) is alike


def test_defaults_are_those_of_a_table():
    plan = SumsPlan({name: MaskKey.generate().public for name in "abc"}, n_components=4, classes=("yes", "no"))
    assert plan.noise == RidgeSums(4, classes=("yes", "no")).noise == recommended().noise
    assert plan.least_penalty == recommended().least_penalty


def test_few_rows_are_refused_beyond_the_noise_of_their_count(rng):
    v = rng.normal(size=(9, 3)) / 10
    statistic = RidgeSums(3, classes=(0, 1))
    total = statistic.part(v, np.arange(9) % 2)
    assert statistic.solve(total, noise=0.1).n_rows == 9
    with pytest.raises(dc.errors.NumericalError, match="9 rows"):
        statistic.solve(total, noise=0.0)


class TestCommonSpace:
    def test_pixels_are_alike(self):
        X, _ = dc.datasets.load("digits")
        for anchor in (X[:100], pd.DataFrame(X[:100]).add_prefix("pixel ")):
            space = dc.CommonSpace(anchor, bytes(32))
            assert space.alike
            assert space.recommended == recommended(alike=True)

    @pytest.mark.parametrize("table", ["measurements", "standardised", "zeros and ones", "with a category"])
    def test_tables_are_not(self, table, rng):
        X, _ = dc.datasets.load("digits")
        rows = {
            "measurements": load_breast_cancer().data[:100],
            "standardised": rng.normal(size=(100, 60)),
            "zeros and ones": rng.integers(2, size=(100, 60)),
            "with a category": pd.DataFrame(X[:100]).add_prefix("pixel ").assign(ward=["day", "night"] * 50),
        }[table]
        space = dc.CommonSpace(rows, bytes(32))
        assert not space.alike
        assert space.recommended == recommended()


def test_one_process_estimators_follow_it():
    X, y = dc.datasets.load("digits")
    groups = np.arange(200) % 4
    plan = dc.DataCollaborationClassifier().fit(X[:200], y[:200], groups=groups, anchor=X[200:300]).sums_.plan
    assert (plan.noise, plan.least_penalty) == (recommended(alike=True).noise, recommended(alike=True).least_penalty)
    X, y = load_breast_cancer(return_X_y=True)
    plan = dc.DataCollaborationClassifier().fit(X[:200], y[:200], groups=groups, anchor=X[200:300]).sums_.plan
    assert (plan.noise, plan.least_penalty) == (recommended().noise, recommended().least_penalty)
