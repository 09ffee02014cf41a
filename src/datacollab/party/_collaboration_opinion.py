"""What the common model says, of new rows and of own rows that it was not trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..errors import AgreementError
from ..model import PartyModel
from ._own_scorers import log_of_shares

__all__ = ["CollaborationOpinion"]


class CollaborationOpinion:
    """The common model's output in columns of all classes, or as numbers.

    Parameters
    ----------
    model : PartyModel
    labels : sequence of ndarray
        Classes that the party knows of besides those of the model; empty for numbers.
    unit : tuple of float, default=(0, 1)
        Mean and standard deviation by which numbers are standardised.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,) or None
        None for numbers.

    Raises
    ------
    AgreementError
        When some classes are texts and others numbers.
    """

    def __init__(
        self, model: PartyModel, labels: tuple[NDArray[Any], ...], unit: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        self._model = model
        self._unit = unit
        self.classes: NDArray[Any] | None = None
        if labels:
            # Of no labels, as where public rows have none, nothing tells what kind they are.
            known = [np.asarray(model.estimator.classes_), *(each for each in labels if len(each))]
            if len({_is_text(each) for each in known}) > 1:
                raise AgreementError(
                    f"Party {model.party!r}: the classes of its model are of another kind (texts or numbers) than its "
                    "own targets. Give y as it was shared."
                )
            self.classes = np.unique(np.concatenate([each.astype(object) for each in known]).tolist())

    def in_units(self, mean: float, deviation: float) -> CollaborationOpinion:
        """The same with numbers standardised."""
        return CollaborationOpinion(self._model, (), (mean, deviation))

    def of(self, representation: FloatArray) -> FloatArray:
        """Logarithms of class shares (n_rows, n_classes), or numbers (n_rows, 1), for the party's f_k of any rows."""
        return self._output(self._model.estimator, self._model.transform(representation))

    def of_own_rows(self, representation: FloatArray, order: NDArray[np.intp] | None) -> tuple[FloatArray, str | None]:
        """Output for the own rows without their help, and how it was come by.

        Parameters
        ----------
        representation : ndarray of shape (n_own, n_intermediate)
        order : ndarray of shape (n_shared,) or None

        Returns
        -------
        outputs : ndarray of shape (n_own, n_classes) or (n_own, 1)
            NaN where there is none.
        basis : {"left out", "without the party"} or None

        Raises
        ------
        AgreementError
            When left-out predictions and order do not fit the rows.
        """
        n_own = len(representation)
        if self._model.left_out is not None:
            places, told = self._checked(np.asarray(self._model.left_out, dtype=np.float64), order, n_own)
            n_outputs = 1 if self.classes is None else len(self.classes)
            outputs = np.full((n_own, n_outputs), np.nan)
            whole = np.isfinite(told).all(axis=1)
            outputs[places[whole]] = self._in_columns(told[whole], self._model.estimator)
            return outputs, "left out" if whole.any() else None
        if self._model.without_party is not None:
            return self._output(self._model.without_party, self._model.transform(representation)), "without the party"
        return np.full((n_own, 1 if self.classes is None else len(self.classes)), np.nan), None

    def _checked(
        self, left_out: FloatArray, order: NDArray[np.intp] | None, n_own: int
    ) -> tuple[NDArray[np.intp], FloatArray]:
        party = self._model.party
        if order is None:
            raise AgreementError(
                f"Party {party!r}: the model's left-out predictions are in the order of the share, so 'order' is "
                "wanted: the position in the table of each shared row."
            )
        places = np.asarray(order)
        n_classes = None if self.classes is None else len(self._model.estimator.classes_)
        wanted = (len(places),) if n_classes is None else (len(places), n_classes)
        if left_out.shape != wanted:
            raise AgreementError(
                f"Party {party!r}: left-out predictions for its {len(places)} shared rows must have shape {wanted}; "
                f"got {left_out.shape}. The model is not the one made of this share."
            )
        within = places.size > 0 and places.dtype.kind in "iu" and places.min() >= 0 and places.max() < n_own
        if not within or len(np.unique(places)) < len(places):
            raise AgreementError(
                f"Party {party!r}: order must hold positions among the {n_own} own rows, each once; got "
                f"{len(places)} entries, {len(np.unique(places))} of them distinct."
            )
        return places.astype(np.intp), left_out.reshape(len(places), -1)

    def _output(self, estimator: Any, Z: FloatArray) -> FloatArray:
        if self.classes is None:
            return self._in_columns(np.asarray(estimator.predict(Z), dtype=np.float64).reshape(len(Z), -1), estimator)
        if hasattr(estimator, "predict_proba"):
            return self._in_columns(np.asarray(estimator.predict_proba(Z), dtype=np.float64), estimator)
        # A model without probabilities names one class; how far it is to be believed is settled afterwards.
        named = np.asarray(estimator.predict(Z))[:, None] == np.asarray(estimator.classes_)[None, :]
        return self._in_columns(named.astype(np.float64), estimator)

    def _in_columns(self, told: FloatArray, estimator: Any) -> FloatArray:
        if self.classes is None:
            mean, deviation = self._unit
            return (told - mean) / deviation
        shares = np.zeros((len(told), len(self.classes)))
        shares[:, np.searchsorted(self.classes, np.asarray(estimator.classes_))] = np.maximum(told, 0.0)
        return log_of_shares(shares)


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and any(isinstance(one, str) for one in labels))
