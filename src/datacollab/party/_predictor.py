"""A party's f_k, g_k and h as one function of its raw columns."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, NumericalError
from ..model import PartyModel
from ._batches import TableForm

__all__ = ["PartyPredictor"]


class PartyPredictor:
    """The composed model h(g_k(f_k(x))) on the party's raw columns; `Party.predictor` makes it.

    It takes tables in the form of `Party.fit`.  Where that was a frame it takes arrays too, with the columns in the
    same order.  It holds the secret map f_k, so it stays with the party.

    Called with rows, it returns numbers: the probability of each class, shape (n_rows, n_classes), where the model has
    probabilities, and predictions, shape (n_rows,), elsewhere.  This is what packages such as shap explain.

    Parameters
    ----------
    obfuscate : callable
        The party's f_k.
    model : PartyModel
    form : TableForm
        Of the table in `Party.fit`.
    party : str or int
        Named in error messages.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,) or None
        None where the model has no probabilities.
    feature_names_in_ : list of str or None
        None where the table had no names.

    Examples
    --------
    >>> import datacollab as dc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> parties = [dc.Party(k, dc.obfuscator("pca")).fit(X[k:300:2], y[k:300:2]) for k in range(2)]
    >>> analyst = dc.Analyst(dc.LTI(10, fit_intercept=True), LinearRegression())
    >>> model = analyst.fit([party.share(X[300:]) for party in parties]).party_model(0)
    >>> predictor = parties[0].predictor(model)
    >>> bool((predictor(X[:4]) == parties[0].predict(X[:4], model)).all())
    True
    """

    def __init__(
        self, obfuscate: Callable[[Any], FloatArray], model: PartyModel, form: TableForm, party: PartyName
    ) -> None:
        self._obfuscate, self._model, self._form, self._party = obfuscate, model, form, party
        has_probabilities = hasattr(model.estimator, "predict_proba")
        self.classes_: NDArray[Any] | None = np.asarray(model.estimator.classes_) if has_probabilities else None
        self.feature_names_in_ = form.columns

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions, shape (n_rows,)."""
        return self._model.predict(self._representation(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n_rows, n_classes).

        Raises
        ------
        AgreementError
            When the model has none.
        """
        if self.classes_ is None:
            raise AgreementError(
                f"Party {self._party!r}: the model, a {type(self._model.estimator).__name__}, gives no probabilities."
            )
        return self._model.predict_proba(self._representation(X))

    def log_odds(self, X: Any) -> FloatArray:
        """Log odds of each class against all others, shape (n_rows, n_classes).

        Raises
        ------
        AgreementError
            When the model has no probabilities.
        NumericalError
            When a probability is 0 or 1.
        """
        found = self.predict_proba(X)
        if (found <= 0).any() or (found >= 1).any():
            raise NumericalError(
                f"Party {self._party!r}: the model gives probabilities of 0 or 1, which have no log odds. Explain "
                "probabilities."
            )
        return np.asarray(np.log(found) - np.log1p(-found))

    def __call__(self, X: Any) -> FloatArray:
        """Numbers to be explained: probabilities, shape (n_rows, n_classes), or predictions, shape (n_rows,)."""
        found = np.asarray(self.predict(X) if self.classes_ is None else self.predict_proba(X))
        if found.dtype.kind not in "biuf":
            raise AgreementError(
                f"Party {self._party!r}: the model predicts names of classes, which cannot be added. It needs "
                "probabilities."
            )
        if not np.isfinite(found).all():
            raise NumericalError(f"Party {self._party!r}: the model has answers that are not finite.")
        return found.astype(np.float64)

    def _representation(self, X: Any) -> FloatArray:
        return self._obfuscate(self._table(self._form.bring(X, self._party)))

    def _table(self, X: Any) -> Any:
        """An array under the names that the columns had in `fit`, if it had any."""
        names = self._form.columns
        if names is None or not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != len(names):
            return X
        columns = [X[:, place] if X.dtype.kind in "biuf" else X[:, place].tolist() for place in range(len(names))]
        return importlib.import_module(str(self._form.library)).DataFrame(dict(zip(names, columns, strict=True)))

    def __repr__(self) -> str:
        return f"PartyPredictor(party={self._party!r}, {type(self._model.estimator).__name__})"
