"""Training rows inside a model that is about to go to every party."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._validation import FloatArray
from ...risk.attacks import find_training_rows

__all__ = ["RowFinding", "training_rows_in"]

_MOST_ROWS = 5000

_KEEPING_ROWS = {
    "AffinityPropagation": "cluster_centers_",
    "GaussianProcessRegressor": "X_train_",
    "KNNImputer": "_fit_X",
    "KNeighborsClassifier": "_fit_X",
    "KNeighborsRegressor": "_fit_X",
    "KernelPCA": "X_fit_",
    "KernelRidge": "X_fit_",
    "LabelPropagation": "X_",
    "LabelSpreading": "X_",
    "LocalOutlierFactor": "_fit_X",
    "NearestNeighbors": "_fit_X",
    "NuSVC": "support_vectors_",
    "NuSVR": "support_vectors_",
    "Nystroem": "components_",
    "OneClassSVM": "support_vectors_",
    "RadiusNeighborsClassifier": "_fit_X",
    "RadiusNeighborsRegressor": "_fit_X",
    "SVC": "support_vectors_",
    "SVR": "support_vectors_",
    "_BinaryGaussianProcessClassifierLaplace": "X_train_",
}
"""Estimators that predict from training rows, and where they keep them."""


@dataclass(frozen=True, kw_only=True)
class RowFinding:
    """Rows that a model carries.

    Attributes
    ----------
    path : str
        Where: attributes by name, all else by number.
    n_rows : int
        How many; the least number where only some were looked for.
    """

    path: str
    n_rows: int

    def __str__(self) -> str:
        return f"{self.path} ({self.n_rows} rows)"


def training_rows_in(estimator: Any, representations: Sequence[FloatArray]) -> list[RowFinding]:
    """Look for training rows in a fitted model.

    Estimators known to predict from rows are found wherever they are, also where a step before them has changed the
    rows.  In all else, rows are searched for as they are and under changes of units; of more than 5,000 rows, 5,000 are
    looked for.

    Parameters
    ----------
    estimator : estimator
        h, fitted.
    representations : sequence of ndarray of shape (n_samples, n_components)
        Collaboration representations that h was fitted to, of all parties.

    Returns
    -------
    list of RowFinding
        Empty where there is none.

    Notes
    -----
    A decision tree grown down to single rows holds thresholds between rows, which are no copies, and is not found.  It
    still tells much of its rows: of each, between which values its entries lie, and what was its target.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = X[:, 0] > 0
    >>> [str(found) for found in training_rows_in(KNeighborsClassifier().fit(X, y), [X[:20], X[20:]])]
    ['KNeighborsClassifier._fit_X (40 rows)']
    >>> training_rows_in(LogisticRegression().fit(X, y), [X[:20], X[20:]])
    []
    """
    known = {finding.path: finding for finding in _kept_rows(estimator)}
    rows = np.vstack(representations)
    if len(rows) > _MOST_ROWS:
        rows = rows[np.random.default_rng(0).choice(len(rows), size=_MOST_ROWS, replace=False)]
    within = tuple(path.rpartition(".")[0] for path in known)
    # Without rows there is nothing to look for, but an estimator that keeps its rows still does.
    for found in find_training_rows(estimator, rows) if len(rows) else ():
        if found.n_found and not (within and found.path.startswith(within)):
            known[found.path] = RowFinding(path=found.path, n_rows=found.n_found)
    return sorted(known.values(), key=lambda finding: finding.path)


def _kept_rows(estimator: Any) -> Iterator[RowFinding]:
    """Rows of the estimators known to keep them; each object once."""
    waiting: list[tuple[str, Any]] = [(type(estimator).__name__, estimator)]
    seen: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        for kind in type(value).__mro__:
            attribute = _KEEPING_ROWS.get(kind.__name__)
            if attribute is not None and hasattr(value, attribute):
                yield RowFinding(path=f"{path}.{attribute}", n_rows=len(getattr(value, attribute)))
                break
        # In the order of `find_training_rows`, so that what is reached in two ways gets the same path in both.
        waiting.extend((path + step, child) for step, child in reversed(list(_children(value))))


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[entry {number}]", item) for number, item in enumerate(value.values()))
    elif isinstance(value, list | tuple):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from ((f"[{number}]", item) for number, item in enumerate(value.ravel().tolist()))
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from ((f".{name}", item) for name, item in vars(value).items())
