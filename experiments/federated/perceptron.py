"""The same perceptron as a scikit-learn classifier, for data collaboration and the baselines."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from mlp import N_CLASSES, Settings, initial_parameters, probabilities, train
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler


class Perceptron(ClassifierMixin, BaseEstimator):
    """`mlp.train` from random weights, on classes 0 to 9.

    Parameters
    ----------
    learning_rate : float, default=0.1
    epochs : int, default=30
    batch_size : int, default=10
    standardize : bool, default=False
        Whether columns are first brought to mean 0 and variance 1: wanted for collaboration representations, whose
        scale means nothing; pixels are taken as they are, as in federated averaging.
    seed : int, default=0
        Of the weights and of the order of the rows.
    """

    def __init__(
        self,
        learning_rate: float = 0.1,
        epochs: int = 30,
        batch_size: int = 10,
        *,
        standardize: bool = False,
        seed: int = 0,
    ) -> None:
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.standardize = standardize
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on rows of shape (n_samples, n_features) and classes of shape (n_samples,)."""
        rows = np.asarray(X)
        self.classes_ = np.arange(N_CLASSES)
        self.n_features_in_ = rows.shape[1]
        self.scaler_ = StandardScaler().fit(rows) if self.standardize else None
        settings = Settings(self.learning_rate, self.epochs, self.batch_size)
        start = initial_parameters(rows.shape[1], seed=self.seed)
        generator = np.random.default_rng(self.seed)
        self.parameters_ = train(start, self._scaled(rows), np.asarray(y), settings, generator)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Most probable classes, shape (n_rows,)."""
        return np.asarray(probabilities(self.parameters_, self._scaled(np.asarray(X))).argmax(axis=1))

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """All numbers that prediction needs."""
        scale = [] if self.scaler_ is None else [self.scaler_.mean_, self.scaler_.scale_]
        return [*self.parameters_, *scale]

    def _scaled(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        scaled = rows if self.scaler_ is None else self.scaler_.transform(rows)
        return np.asarray(scaled, dtype=np.float32)
