"""Predictions for the anchor's rows, which may come back from the analyst in place of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor

from .._typing import FloatArray, PartyName
from .._version import __version__
from ..bundle import Bundle, SignedFile, arrays_to_bytes, bytes_to_arrays, now
from ..errors import ExchangeError, NumericalError
from ._party_model import PartyModel, are_probabilities, plain_facts
from ._refusals import check_classes, class_names

PREDICTIONS_KIND = "datacollab.answers"

_TOLERANCE = 1e-6
# As of shares: squares are finite in double precision.
_MOST_ENTRY = 1e30


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AnchorPredictions(SignedFile):
    """Predictions h(g_k(f_k(a))) for each row of the anchor, as one party's g_k and f_k show it.

    A party learns a model of its own from them, on the raw columns of the anchor, by `Party.distil`.  That needs no
    f_k, so the party may forget it; and nothing comes back that would have to be run.

    Parameters
    ----------
    party : str or int
        For whom they are made.
    values : ndarray of shape (n_anchors,) or (n_anchors, n_classes)
        Numbers, or probabilities of the classes, in the anchor's order of rows.  Read-only.
    classes : ndarray of shape (n_classes,) or None
        Names of the columns; None for numbers.

    Raises
    ------
    ValueError
        If they are not finite, of another shape, or no probabilities.

    Notes
    -----
    They are a function of all parties' shared rows, as a model is, evaluated on the rows of the anchor.
    Their leakage about single rows is measured, not proven.
    """

    kind = PREDICTIONS_KIND

    party: PartyName
    values: FloatArray
    classes: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        who = f"Anchor predictions for party {self.party!r} must"
        try:
            values = np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{who} be numbers.") from None
        classes = None
        expected = values.shape[:1]
        of_classes = "no classes"
        if self.classes is not None:
            classes = np.array(self.classes)
            expected = (*values.shape[:1], *classes.shape)
            of_classes = f"classes of shape {classes.shape}"
        is_list = classes is None or classes.ndim == 1
        if values.ndim < 1 or not values.size or values.shape != expected or not is_list:
            raise ValueError(
                f"{who} be one number for each anchor row, or one probability for each row and class; got an array of "
                f"shape {values.shape} and {of_classes}."
            )
        # Written so that NaN, which compares to nothing, is refused as well.
        if not np.abs(values).max() <= _MOST_ENTRY:
            raise ValueError(f"{who} be finite, and none beyond {_MOST_ENTRY:g}; some are not.")
        if classes is not None and not are_probabilities(values, _TOLERANCE):
            raise ValueError(
                f"{who} be probabilities of {len(classes)} classes that add up to one in each row; some are not."
            )
        if classes is not None and not np.array_equal(np.unique(classes), classes):
            raise ValueError(f"{who} name each class once, and in order.")
        for name, array in (("values", values), ("classes", classes)):
            if array is not None:
                array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def n_anchors(self) -> int:
        """Rows of the anchor."""
        return len(self.values)

    @property
    def predicted(self) -> NDArray[Any]:
        """The most probable class of each anchor row, or its number, of shape (n_anchors,)."""
        if self.classes is None:
            return self.values
        return np.asarray(self.classes[self.values.argmax(axis=1)])

    @property
    def task(self) -> str:
        """The task as the file names it."""
        return "regression" if self.classes is None else "classification"

    def __repr__(self) -> str:
        kind = "numbers" if self.classes is None else f"probabilities of {len(self.classes)} classes"
        return f"{type(self).__name__}(party={self.party!r}, {self.n_anchors} rows, {kind})"

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return predictions_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> AnchorPredictions:
        return predictions_from(bundle)


_MEMBER = "answers.safetensors"
_ARRAY = "values"


def predictions_contents(predictions: AnchorPredictions) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts of a `.dcanswers` file, to which a project adds its own, and its members.

    Raise MODEL_UNSUPPORTED for classes that are neither texts nor numbers.
    """
    names: list[Any] | None = None
    dtype: str | None = None
    if predictions.classes is not None:
        names, dtype = class_names(predictions.classes)
    facts = {
        "party": predictions.party,
        "n_anchors": predictions.n_anchors,
        "task": predictions.task,
        "classes": names,
        "classes_dtype": dtype,
        "created": now(),
        "versions": {"datacollab": __version__, "numpy": np.__version__},
    }
    return facts, {_MEMBER: arrays_to_bytes({_ARRAY: predictions.values})}


def predictions_from(bundle: Bundle) -> AnchorPredictions:
    """Return the anchor predictions in a bundle that is not sealed, after checks of every part.

    Raise WRONG_KIND, TOO_LARGE or ANSWERS_MALFORMED.
    """
    if bundle.kind != PREDICTIONS_KIND:
        raise ExchangeError("WRONG_KIND", f"Expected anchor predictions, got a bundle of kind {bundle.kind!r}.")
    try:
        return _read(bundle)
    except MemoryError:
        raise ExchangeError(
            "TOO_LARGE", "The anchor predictions take more memory than this machine has. Ask the analyst for fewer."
        ) from None


def _read(bundle: Bundle) -> AnchorPredictions:
    # A member that nothing reads could carry anything to the party.
    if bundle.members.keys() != {_MEMBER}:
        raise _bad_predictions(f"they have the members {sorted(bundle.members)!r}, expected {_MEMBER!r}")
    try:
        facts = plain_facts(bundle)
        arrays = bytes_to_arrays(bundle.members[_MEMBER], what=_MEMBER)
        classes = check_classes(facts.get("classes"), facts.get("classes_dtype"))
    except ExchangeError:
        raise _bad_predictions("their facts, their numbers, or the names of their classes cannot be read") from None
    if "party" not in facts:
        raise _bad_predictions("they do not say for whom they are")
    if arrays.keys() != {_ARRAY} or arrays[_ARRAY].dtype != np.float64:
        raise _bad_predictions("they are no table of double precision")
    try:
        predictions = AnchorPredictions(party=facts["party"], values=arrays[_ARRAY], classes=classes)
    except ValueError as error:
        raise _bad_predictions(str(error)) from None
    if facts.get("task") != predictions.task:
        raise _bad_predictions("they say something else of their task than they hold")
    n_anchors = facts.get("n_anchors")
    if type(n_anchors) is not int or n_anchors != predictions.n_anchors:
        raise _bad_predictions("they say that they are of another number of rows than they hold")
    return predictions


def _bad_predictions(what: str) -> ExchangeError:
    reason = what.rstrip(".")
    return ExchangeError(
        "ANSWERS_MALFORMED", f"The anchor predictions are inconsistent: {reason}. Do not use them, and ask the analyst."
    )


def anchor_predictions(model: PartyModel, anchor_representation: ArrayLike) -> AnchorPredictions:
    """Return the predictions of a party's model for its representation of the anchor.

    Probabilities where h gives them; of a classifier that gives none, 1 for the class that it names.  The
    representation is f_k of the anchor's rows, of shape (n_anchors, n_intermediate), as in the party's share.

    Raise TypeError if h is neither a classifier nor a regressor of one number, and NumericalError if it says something
    that is neither numbers nor probabilities.
    """
    estimator: Any = model.estimator
    classes = None
    if is_classifier(estimator):
        classes = np.asarray(estimator.classes_)
        if hasattr(estimator, "predict_proba"):
            values = model.predict_proba(anchor_representation)
        # A class that is named without a probability is certain.
        else:
            values = np.asarray(model.predict(anchor_representation)[:, None] == classes, dtype=np.float64)
    elif is_regressor(estimator):
        values = np.asarray(model.predict(anchor_representation), dtype=np.float64)
    else:
        raise TypeError(
            "Anchor predictions are a classifier's probabilities or a regressor's numbers; the model is a "
            f"{type(estimator).__name__}."
        )
    try:
        return AnchorPredictions(party=model.party, values=values, classes=classes)
    except ValueError as error:
        raise NumericalError(f"{error} The model is a {type(estimator).__name__}; train another one.") from None
