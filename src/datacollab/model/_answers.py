"""The other thing that may come back from the analyst: no model, but what it says of the anchor's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier, is_regressor

from .._typing import FloatArray
from ..bundle import Bundle, SignedFile
from ..errors import NumericalError
from ._answer_fields import AnswerFields
from ._answers_codec import ANSWERS_KIND, answers_contents, decode_answers
from ._composed import ComposedModel

__all__ = ["AnchorAnswers", "anchor_answers", "answers_from"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AnchorAnswers(AnswerFields, SignedFile):
    """What h says of each row of the anchor, as one party's g_k and f_k show it: h(g_k(f_k(a))).

    A party learns a model of its own from them, on the raw columns of the anchor, by `Party.learn`.  That needs no
    f_k, so the party may forget it; and nothing comes back that would have to be run.

    Parameters
    ----------
    party : str or int
        For whom they are made.
    values : ndarray of shape (n_anchors,) or (n_anchors, n_classes)
        Numbers, or probabilities of the classes, in the anchor's order of rows.  Read-only.
    classes : ndarray of shape (n_classes,) or None
        Names of the columns; None where answers are numbers.

    Raises
    ------
    ValueError
        When they are not finite, of another shape, or no probabilities.

    Notes
    -----
    They are a function of all parties' shared rows, as a model is, of which each party may ask on as many rows as the
    anchor has.  What they tell of single rows is measured in docs/answers.md, not proven.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import AnchorAnswers
    >>> answers = AnchorAnswers(party="a", values=[[0.9, 0.1], [0.2, 0.8]], classes=["ill", "well"])
    >>> answers
    AnchorAnswers(party='a', 2 rows, probabilities of 2 classes)
    >>> answers.predicted.tolist()
    ['ill', 'well']
    """

    kind = ANSWERS_KIND

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return answers_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> AnchorAnswers:
        return answers_from(bundle)


def answers_from(bundle: Bundle) -> AnchorAnswers:
    """The answers in a bundle, after checks of every part.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE or ANSWERS_MALFORMED.
    """
    return decode_answers(bundle, AnchorAnswers)


def anchor_answers(model: ComposedModel, anchor_representation: ArrayLike) -> AnchorAnswers:
    """What a party's model says of its representation of the anchor.

    Probabilities where h gives them; of a classifier that gives none, 1 for the class that it names.

    Parameters
    ----------
    model : PartyModel
    anchor_representation : array-like of shape (n_anchors, n_intermediate)
        f_k of the anchor's rows, as in the party's share.

    Raises
    ------
    TypeError
        When h is neither a classifier nor a regressor of one number.
    NumericalError
        When h says something that is neither numbers nor probabilities.
    """
    estimator = model.estimator
    classes = None
    if is_classifier(estimator):
        classes = np.asarray(estimator.classes_)
        values = _probabilities(model, anchor_representation)
    elif is_regressor(estimator):
        values = np.asarray(model.predict(anchor_representation), dtype=np.float64)
    else:
        raise TypeError(
            "Answers on the anchor are a classifier's probabilities or a regressor's numbers; the model is a "
            f"{type(estimator).__name__}."
        )
    try:
        return AnchorAnswers(party=model.party, values=values, classes=classes)
    except ValueError as error:
        raise NumericalError(f"{error} The model is a {type(estimator).__name__}; train another one.") from None


def _probabilities(model: ComposedModel, anchor_representation: ArrayLike) -> FloatArray:
    estimator: Any = model.estimator
    if hasattr(estimator, "predict_proba"):
        return model.predict_proba(anchor_representation)
    named = model.predict(anchor_representation)
    return np.asarray(named[:, None] == estimator.classes_, dtype=np.float64)
