"""A party: obfuscate, share once, predict alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray, PartyName, check_representation, count_missing
from ..errors import AgreementError, DataCollabError, ObfuscationError, RepeatableSecretWarning, RepresentationError
from ..model import PartyModel
from ..share import Share
from ._batches import BATCH_ROWS, TableForm, row_batches
from ._diagnosis import likely_reasons

__all__ = ["Party"]


class Party:
    """One party, with its private rows behind a secret map f_k.

    Parameters
    ----------
    name : str or int
        What the other side calls this party.
    obfuscator : transformer
        f_k: any scikit-learn transformer that maps each row by itself; cloned before it is fitted.  See
        `datacollab.obfuscator`, and `datacollab.testing.check_obfuscator` for one of your own.
    shuffle : bool, default=True
        Whether the rows leave in a random order, so that their position tells nothing.
    random_state : int, RandomState or None, default=None
        Of the row order.  None draws from the operating system, as a secret should be; a number is for experiments.

    Notes
    -----
    Leaves the party: what `share` returns.  Stays: the rows, the anchor and the fitted obfuscator, which may hold the
    raw table (kernel PCA and UMAP do).

    Examples
    --------
    >>> import datacollab as dc
    >>> X, y = dc.datasets.load("digits")
    >>> party = dc.Party("hospital-a", dc.obfuscator("pca", n_components=8)).fit(X[:100], y[:100])
    >>> party.share(X[100:150])
    Share(party='hospital-a', representation=(100, 8), anchor_representation=(50, 8), target=(100,), anchor_target=None)
    """

    def __init__(
        self,
        name: PartyName,
        obfuscator: Any,
        *,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.name = name
        self.obfuscator = obfuscator
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the obfuscator on the party's own rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self

        Raises
        ------
        TypeError
            When the obfuscator is no transformer.
        AgreementError
            When `y` has not one entry per row, or lacks some.
        ObfuscationError
            When the obfuscator fails, or returns something other than finite numbers.
        """
        if not (hasattr(self.obfuscator, "fit") and hasattr(self.obfuscator, "transform")):
            raise TypeError(
                f"Party {self.name!r}: the obfuscator must be a transformer with fit and transform, such as "
                f"obfuscator('pca'); got {type(self.obfuscator).__name__}."
            )
        target = np.asarray(y)
        n_samples = _num_samples(X)
        if target.shape != (n_samples,):
            raise AgreementError(
                f"Party {self.name!r}: y must have one entry per row of X, shape ({n_samples},); got {target.shape}."
            )
        if count_missing(target):
            raise AgreementError(
                f"Party {self.name!r}: {count_missing(target)} of {n_samples} entries of y are missing (None or NaN); "
                "leave out rows without a target."
            )
        if any(isinstance(seed, Integral) for seed in _random_states(self.obfuscator).values()):
            warnings.warn(
                f"Party {self.name!r}: the obfuscator has a fixed random_state. Anyone who learns it can rebuild the "
                "obfuscation; leave it None outside experiments.",
                RepeatableSecretWarning,
                stacklevel=2,
            )
        try:
            fitted = _with_secret_seeds(clone(self.obfuscator)).fit(X, target)
        except Exception as error:
            raise self._obfuscation_error(self.obfuscator, "fit", X, error) from None
        # Assigned together, at the end: a failure leaves a party that can share nothing.
        self._representation = self._obfuscate(fitted, X, "representation")
        self._target = target
        self._form = TableForm.of(X)
        self._obfuscator = fitted
        return self

    def share(self, anchor: ArrayLike, anchor_target: ArrayLike | None = None) -> Share:
        """Obfuscate the own rows and the anchor: all that leaves this party.

        Parameters
        ----------
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            The same rows in the same order at every party.
        anchor_target : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where assigned.

        Returns
        -------
        Share

        Raises
        ------
        ObfuscationError
            When the anchor does not fit the obfuscator.
        ShareError
            When the targets do not fit the rows.
        """
        self._check_fitted()
        order = np.arange(len(self._target))
        if self.shuffle:
            generator = _fresh_generator() if self.random_state is None else check_random_state(self.random_state)
            generator.shuffle(order)
        return Share(
            party=self.name,
            representation=self._representation[order],
            anchor_representation=self._obfuscate(self._obfuscator, anchor, "anchor representation"),
            target=self._target[order],
            anchor_target=None if anchor_target is None else np.asarray(anchor_target),
        )

    def obfuscate(self, X: ArrayLike) -> FloatArray:
        """Intermediate representations f_k(X) of any rows, shape (n_rows, n_intermediate).

        They stay with the party; only `share` makes something to send.

        Raises
        ------
        ObfuscationError
            When the rows do not fit the obfuscator.
        """
        self._check_fitted()
        return self._obfuscate(self._obfuscator, X, "representation")

    def transform(self, X: ArrayLike, model: PartyModel) -> FloatArray:
        """Collaboration representations g_k(f_k(X)) of new rows, shape (n_rows, n_components)."""
        return self._own(model).transform(self.obfuscate(X))

    def predict(self, X: ArrayLike, model: PartyModel) -> NDArray[Any]:
        """Predict new rows alone: h(g_k(f_k(X))).

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
        model : PartyModel
            What the analyst made for this party.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        AgreementError
            When the model was made for another party.
        ObfuscationError
            When the rows do not fit the obfuscator.
        """
        return self._own(model).predict(self.obfuscate(X))

    def predict_proba(self, X: ArrayLike, model: PartyModel) -> FloatArray:
        """Class probabilities of new rows, shape (n_rows, n_classes)."""
        return self._own(model).predict_proba(self.obfuscate(X))

    def transform_batches(
        self, source: Any, model: PartyModel, *, batch_rows: int = BATCH_ROWS
    ) -> Iterator[FloatArray]:
        """Collaboration representations of a large table, batch by batch; see `predict_batches`."""
        return self._in_batches(source, self._own(model).transform, batch_rows)

    def predict_batches(
        self, source: Any, model: PartyModel, *, batch_rows: int = BATCH_ROWS
    ) -> Iterator[NDArray[Any]]:
        """Predict a table of any length alone, with no more than a few batches of it in memory.

        Parameters
        ----------
        source : path, pyarrow object, array, frame, or iterable of them
            * the path of a Parquet file, or of a directory of them (needs pyarrow:
              ``pip install 'datacollab[tables]'``);
            * a pyarrow Dataset, Table, RecordBatch or RecordBatchReader;
            * a two-dimensional array, memory-mapped or not, or a frame, of which one batch is copied at a time;
            * an iterable of arrays, frames or RecordBatches.

            Where the table in `fit` had column names, columns are chosen by them, in whatever order they come, and
            others are left out.  Without names, the number of columns must be that of `fit`, in the same order.
        model : PartyModel
            What the analyst made for this party.
        batch_rows : int, default=16384
            Rows of a batch at most.  Larger pieces are cut; smaller ones are not put together.

        Returns
        -------
        iterator of ndarray of shape (n_batch_rows,)
            In the order of the rows; put together, they are what `predict` gives for the whole table.

        Raises
        ------
        AgreementError
            When the model was made for another party.
        DatasetError
            When a file is missing or cannot be read.
        MissingExtraError
            When `source` is a path, and pyarrow is not installed.
        ObfuscationError
            When columns are missing, or rows do not fit the obfuscator; the message gives the batch's number.
        TypeError
            When rows cannot be read from `source`.

        Examples
        --------
        >>> import datacollab as dc
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = dc.datasets.load("digits")
        >>> parties = [dc.Party(k, dc.obfuscator("pca")).fit(X[k::9], y[k::9]) for k in range(2)]
        >>> analyst = dc.Analyst(dc.LTI(5), LogisticRegression(max_iter=500))
        >>> model = analyst.fit([party.share(X[2::9]) for party in parties]).party_model(0)
        >>> [len(batch) for batch in parties[0].predict_batches(X, model, batch_rows=1000)]
        [1000, 797]
        """
        return self._in_batches(source, self._own(model).predict, batch_rows)

    def predict_proba_batches(
        self, source: Any, model: PartyModel, *, batch_rows: int = BATCH_ROWS
    ) -> Iterator[FloatArray]:
        """Class probabilities of a large table, batch by batch; see `predict_batches`."""
        return self._in_batches(source, self._own(model).predict_proba, batch_rows)

    def _in_batches(
        self, source: Any, apply: Callable[[ArrayLike], NDArray[Any]], batch_rows: int
    ) -> Iterator[NDArray[Any]]:
        if batch_rows < 1:
            raise ValueError(f"Party {self.name!r}: batch_rows must be a whole number from 1 on; got {batch_rows!r}.")
        batches = row_batches(source, self._form, party=self.name, batch_rows=batch_rows)
        return (apply(representation) for representation in self._obfuscate_batches(batches))

    def _obfuscate_batches(self, batches: Iterator[Any]) -> Iterator[FloatArray]:
        start = 0
        for number, batch in enumerate(batches):
            stop = start + _num_samples(batch)
            try:
                rows = self._form.bring(batch, self.name)
                representation = self._obfuscate(self._obfuscator, rows, "representation")
            except ObfuscationError as error:
                place = f"This was batch {number}, rows {start} to {stop - 1}, counted from 0."
                raise ObfuscationError(f"{error} {place}", error.original) from None
            yield representation
            start = stop

    def _own(self, model: PartyModel) -> PartyModel:
        self._check_fitted()
        if not isinstance(model, PartyModel):
            raise TypeError(f"A PartyModel is wanted, as Collaboration.party_model gives; got {type(model).__name__}.")
        if model.party != self.name:
            raise AgreementError(
                f"Party {self.name!r} was given the model made for {model.party!r}; ask the analyst for its own."
            )
        return model

    def _obfuscate(self, obfuscator: Any, X: ArrayLike, what: str) -> FloatArray:
        try:
            rows = obfuscator.transform(X)
        except Exception as error:
            raise self._obfuscation_error(obfuscator, "transform", X, error) from None
        try:
            return check_representation(rows, self.name, what=what)
        except RepresentationError as error:
            raise ObfuscationError(f"{error} Nothing left the party.") from None

    def _obfuscation_error(self, obfuscator: Any, step: str, X: Any, error: Exception) -> ObfuscationError:
        """An error without the obfuscator's own words, unless those are known to show no data."""
        if isinstance(error, DataCollabError):
            reasons = str(error)
        else:
            # Looking for reasons must not raise anything of its own, which would quote what it stumbled over.
            reasons = ""
            with suppress(Exception):
                reasons = " ".join(f"Likely, {reason}" for reason in likely_reasons(obfuscator, X))
            reasons = reasons or "Try its fit and transform on made-up rows of the same kind."
        return ObfuscationError(
            f"Party {self.name!r}: the obfuscator {type(self.obfuscator).__name__} failed in {step} on a table of "
            f"shape {np.shape(X)} ({type(error).__name__}). {reasons} Nothing left the party. The obfuscator's own "
            "words may quote data, so they are only in the error's 'original'.",
            error,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "_obfuscator"):
            raise NotFittedError(f"Party {self.name!r} has no rows yet: call fit(X, y) first.")

    def __repr__(self) -> str:
        state = f"{len(self._target)} rows" if hasattr(self, "_obfuscator") else "not fitted"
        return f"Party({self.name!r}, {state})"


def _random_states(obfuscator: Any) -> dict[str, Any]:
    """All parameters called random_state, also of nested steps."""
    parameters = obfuscator.get_params(deep=True)
    return {name: value for name, value in parameters.items() if name.rpartition("__")[2] == "random_state"}


def _fresh_generator() -> np.random.RandomState:
    """A generator with 128 bits from the operating system, whatever was done to NumPy's global one."""
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence()))


def _with_secret_seeds(obfuscator: Any) -> Any:
    # scikit-learn reads None as NumPy's global generator, which any np.random.seed(0) makes predictable.
    for name, value in _random_states(obfuscator).items():
        if value is None:
            obfuscator.set_params(**{name: _fresh_generator()})
    return obfuscator
