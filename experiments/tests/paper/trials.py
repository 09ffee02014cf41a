"""Small conditions and data that the tests of the experiments share."""

from functools import partial

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from datacollab.datasets import Dataset, load
from datacollab_experiments.paper import Comparison, Condition, Score

DIGITS = Condition(
    dataset="digits", n_parties=3, n_per_party=40, n_test=150, n_anchors=200, n_sources=60, obfuscator="pca",
    n_components=8, n_neighbors=5,
)  # fmt: skip
DIABETES = Condition(
    dataset="diabetes", n_parties=3, n_per_party=40, n_test=100, n_anchors=150, n_sources=60, obfuscator="pca",
    n_components=4, n_neighbors=5,
)  # fmt: skip


def distinct_digits():
    """Digits without the rows that occur twice, so that a row's bytes say which row it is."""
    data = load("digits")
    _, first = np.unique(data.X, axis=0, return_index=True)
    return as_dataset("digits", "classification", data.X[np.sort(first)], data.y[np.sort(first)])


def diabetes():
    return as_dataset("diabetes", "regression", *load_diabetes(return_X_y=True))


def as_dataset(name, task, X, y):
    return Dataset(X=X, y=y, data=X, target=y, name=name, task=task)


def comparison(values, task="classification", condition=DIGITS, seconds=1.5):
    """A comparison with the given values of each method, one per seed."""
    n_seeds = len(next(iter(values.values())))
    scores = [
        Score(name, seed, value, {"train": seconds})
        for name, of_seeds in values.items()
        for seed, value in enumerate(of_seeds)
    ]
    return Comparison(condition, task, tuple(values), tuple(range(n_seeds)), tuple(scores))


def shrink_forests(monkeypatch):
    """Ten trees, for tests where the score itself does not matter."""
    for forest in (RandomForestClassifier, RandomForestRegressor):
        monkeypatch.setattr(f"datacollab_experiments.paper._trial.{forest.__name__}", partial(forest, n_estimators=10))
