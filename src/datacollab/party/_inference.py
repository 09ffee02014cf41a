"""What a party does alone: obfuscate and predict rows that never leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray, PartyName, check_representation
from ..errors import AgreementError, DataCollabError, ObfuscationError, RepresentationError
from ..model import PartyModel
from ._batches import BATCH_ROWS, TableForm, row_batches
from ._predictor import PartyPredictor
from ._public_fit import likely_reasons

__all__ = ["LocalInference"]


class LocalInference:
    """Apply f_k, and the party's model after it, at home: without defences, for nothing of it is shared."""

    name: PartyName
    obfuscator: Any
    _obfuscator: Any
    _rotation: FloatArray | None
    _form: TableForm

    def obfuscate(self, X: ArrayLike) -> FloatArray:
        """Intermediate representations f_k(X) of any rows, shape (n_rows, n_intermediate).

        They stay with the party, and no defence is applied to them; only `share` makes something to send.

        Raises
        ------
        ObfuscationError
            When the rows do not fit the obfuscator.
        """
        self._check_fitted()
        return self._obfuscate(self._obfuscator, self._rotation, X, "representation")

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

    def predictor(self, model: PartyModel) -> PartyPredictor:
        """Return h(g_k(f_k(x))) as one function of the party's raw columns, for packages that explain models.

        With shap, give the anchor as the background.  It is the same at every party, so that parties measure from the
        same base::

            shap.Explainer(party.predictor(model), anchor)(X)

        Parameters
        ----------
        model : PartyModel
            What the analyst made for this party.

        Returns
        -------
        PartyPredictor

        Raises
        ------
        AgreementError
            When the model was made for another party.
        """
        return PartyPredictor(self.obfuscate, self._own(model), self._form, self.name)

    def predict_survival(self, X: ArrayLike, model: PartyModel, times: ArrayLike) -> FloatArray:
        """Probability of no event up to each time, for new rows, alone; `predict` gives their log risk.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
        model : PartyModel
            What the analyst made for this party, of a Cox regression or another survival model.
        times : array-like of shape (n_times,)
            In the unit that was agreed on, up to the end of the observation.

        Returns
        -------
        ndarray of shape (n_rows, n_times)

        Raises
        ------
        AgreementError
            When the model was made for another party.
        AttributeError
            When it is no survival model.
        ValueError
            When a time is beyond the end of the observation, where nothing is known.
        """
        return self._own(model).predict_survival(self.obfuscate(X), times)

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
                representation = self._obfuscate(self._obfuscator, self._rotation, rows, "representation")
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

    def _obfuscate_anchor(self, anchor: ArrayLike) -> FloatArray:
        self._check_fitted()
        if isinstance(anchor, tuple) and len(anchor) == 2 and np.ndim(anchor[0]) == 2:
            raise ObfuscationError(
                f"Party {self.name!r}: the anchor is a pair, of rows and targets, as the method `sample` gives it. "
                "Give the rows as anchor, and the targets, where there are any, as anchor_target."
            )
        return self._obfuscate(self._obfuscator, self._rotation, anchor, "anchor representation")

    def _obfuscate(self, obfuscator: Any, rotation: FloatArray | None, X: ArrayLike, what: str) -> FloatArray:
        try:
            rows = obfuscator.transform(X)
        except Exception as error:
            raise self._obfuscation_error(obfuscator, "transform", X, error) from None
        try:
            representation = check_representation(rows, self.name, what=what)
        except RepresentationError as error:
            raise ObfuscationError(f"{error} Nothing left the party.") from None
        return representation if rotation is None else representation @ rotation

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
