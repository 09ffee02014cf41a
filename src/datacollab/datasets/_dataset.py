"""What `load` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._validation import FloatArray

__all__ = ["Dataset"]


class Dataset(Bunch):
    """A data set: scikit-learn's `Bunch` that also unpacks as ``X, y``.

    Entries are attributes and keys at once: ``dataset.X`` is ``dataset["X"]``.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Also under the name ``data``.
    y : ndarray of shape (n_samples,)
        Class labels (int64) or numbers (float64).  Also under the name ``target``.
    feature_names : list of str
        Names of the columns of `X`.
    target_names : list of str
        Names of the classes 0, 1, ...; classification only.
    task : {"classification", "regression"}
    name : str
        The name it was loaded by.
    DESCR : str
        Origin, licence, citation and the meaning of the columns.

    Notes
    -----
    Iterating gives `X` and `y`, not the keys; ``keys()``, ``items()``, ``in`` and ``**`` are those of a dict.

    Examples
    --------
    >>> from datacollab.datasets import load
    >>> X, y = load("digits")
    >>> X.shape, y.shape
    ((1797, 64), (1797,))
    >>> dataset = load("digits")
    >>> dataset.task, dataset.feature_names[:2], "DESCR" in dataset
    ('classification', ['pixel_0_0', 'pixel_0_1'], True)
    """

    X: FloatArray
    y: NDArray[Any]
    data: FloatArray
    target: NDArray[Any]
    feature_names: list[str]
    task: Literal["classification", "regression"]
    name: str
    DESCR: str

    def __iter__(self) -> Iterator[Any]:
        yield self["X"]
        yield self["y"]
