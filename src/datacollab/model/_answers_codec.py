"""Answers on the anchor as facts and members of a bundle, and back: numbers and names, and nothing that runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np

from .._version import __version__
from ..bundle import Bundle, arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ._answer_fields import AnswerFields
from ._class_names import check_classes, class_names
from ._facts import plain_facts

__all__ = ["ANSWERS_KIND", "answers_contents", "decode_answers"]

ANSWERS_KIND = "datacollab.answers"

A = TypeVar("A", bound=AnswerFields)

_MEMBER = "answers.safetensors"
_ARRAY = "values"


def answers_contents(answers: AnswerFields) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a `.dcanswers` file says and holds.

    Parameters
    ----------
    answers : AnchorAnswers

    Returns
    -------
    facts : dict of str to object
        For the manifest; a project adds its own.
    members : dict of str to bytes

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, for classes that are neither texts nor numbers.
    """
    names, dtype = (None, None) if answers.classes is None else class_names(answers.classes)
    facts = {
        "party": answers.party,
        "n_anchors": answers.n_anchors,
        "task": "regression" if answers.classes is None else "classification",
        "classes": names,
        "classes_dtype": dtype,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"datacollab": __version__, "numpy": np.__version__},
    }
    return facts, {_MEMBER: arrays_to_bytes({_ARRAY: answers.values})}


def decode_answers(bundle: Bundle, make: type[A]) -> A:
    """The answers in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.
    make : type
        `AnchorAnswers`; what holds the fields that were read.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE or ANSWERS_MALFORMED.
    """
    if bundle.kind != ANSWERS_KIND:
        raise ExchangeError("WRONG_KIND", f"Answers are wanted, but this is a bundle of kind {bundle.kind!r}.")
    try:
        return _answers_of(bundle, make)
    except MemoryError:
        raise ExchangeError(
            "TOO_LARGE", "The answers take more memory than this machine has. Ask the analyst for fewer."
        ) from None


def _answers_of(bundle: Bundle, make: type[A]) -> A:
    try:
        facts = plain_facts(bundle)
    except ExchangeError as error:
        raise _malformed(str(error)) from None
    if "party" not in facts:
        raise _malformed("they do not say for whom they are")
    if bundle.members.keys() != {_MEMBER}:
        raise _malformed(f"they have the members {sorted(bundle.members)!r}, where {_MEMBER!r} alone is wanted")
    try:
        arrays = bytes_to_arrays(bundle.members[_MEMBER], what=_MEMBER)
        classes = check_classes(facts.get("classes"), facts.get("classes_dtype"))
    except ExchangeError:
        raise _malformed("their numbers, or the names of their classes, cannot be read") from None
    if arrays.keys() != {_ARRAY} or arrays[_ARRAY].dtype != np.float64:
        raise _malformed("they are no table of double precision")
    if facts.get("task") != ("regression" if classes is None else "classification"):
        raise _malformed("they say something else of their task than they hold")
    try:
        answers = make(party=facts["party"], values=arrays[_ARRAY], classes=classes)
    except ValueError as error:
        raise _malformed(str(error)) from None
    n_anchors = facts.get("n_anchors")
    if type(n_anchors) is not int or n_anchors != answers.n_anchors:
        raise _malformed("they say that they are of another number of rows than they hold")
    return answers


def _malformed(what: str) -> ExchangeError:
    reason = what.rstrip(".")
    return ExchangeError(
        "ANSWERS_MALFORMED", f"The answers are inconsistent: {reason}. Do not use them, and ask the analyst."
    )
