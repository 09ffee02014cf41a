"""Targets of rows: one value, a time to an event, or a treatment and its outcome."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._frames import plain_column
from ._typing import FloatArray, PartyName
from .errors import AgreementError, DataCollabWarning, SmallClassWarning

__all__ = ["EFFECT", "NO_TARGET", "SURVIVAL", "SURVIVAL_EFFECT", "TargetKind", "coarsen_times", "effect_target"]
__all__ += [
    "check_class_names",
    "check_coding",
    "named_target",
    "no_target",
    "survival_target",
    "target_kind",
    "usual_time_step",
]

SURVIVAL = np.dtype([("event", np.bool_), ("time", np.float64)])
"""Whether the event was seen, and when it or the end of observation was."""
EFFECT = np.dtype([("treatment", np.int64), ("outcome", np.float64)])
"""Treated (1) or not (0), and the outcome."""
SURVIVAL_EFFECT = np.dtype([("treatment", np.int64), ("event", np.bool_), ("time", np.float64)])
"""Treated or not, and a time to an event as the outcome."""
NO_TARGET: np.dtype[Any] = np.dtype({"names": [], "formats": [], "offsets": [], "itemsize": 1})
"""Rows without fields, but of one byte: joblib cannot write rows of no bytes."""
_STEPS = 60
"""Least number of steps of the longest time: months of five years."""
_EARLY_STEPS = 3
"""Least number of steps of the median time of an event."""


class TargetKind(StrEnum):
    """The kinds of targets."""

    SINGLE = "single"
    """A class or a number."""
    SURVIVAL = "survival"
    EFFECT = "effect"
    SURVIVAL_EFFECT = "survival-effect"
    NONE = "none"
    """Rows with features alone."""

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Return the fields of one row; None for a single value."""
        return next((dtype for dtype, kind in _KINDS.items() if kind is self), None)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the fields; None for a single value."""
        if self.dtype is None:
            return None
        return self.dtype.names


_KINDS = {
    SURVIVAL: TargetKind.SURVIVAL,
    EFFECT: TargetKind.EFFECT,
    SURVIVAL_EFFECT: TargetKind.SURVIVAL_EFFECT,
    NO_TARGET: TargetKind.NONE,
}


def survival_target(event: ArrayLike, time: ArrayLike) -> NDArray[np.void]:
    """Return times to an event, some of them censored, as one array.

    Parameters
    ----------
    event : array-like of shape (n_samples,)
        Truth values, or 0 and 1: whether the event was seen.  If not, the time is that of the last observation.
    time : array-like of shape (n_samples,)
        Above 0, in the unit that was agreed on.

    Returns
    -------
    ndarray of shape (n_samples,)
        With the fields ``event`` and ``time``; scikit-survival reads it.

    Raises
    ------
    AgreementError
        If there is not one event and one time per row, or an entry is no event or time.

    Examples
    --------
    >>> from datacollab.targets import survival_target
    >>> survival_target(event=[1, 0], time=[3.5, 12.0])["time"]
    array([ 3.5, 12. ])
    """
    return _assemble(SURVIVAL, event=event, time=time)


def effect_target(
    treatment: ArrayLike,
    outcome: ArrayLike | None = None,
    *,
    event: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> NDArray[np.void]:
    """Return treatments and outcomes as one array.

    Parameters
    ----------
    treatment : array-like of shape (n_samples,)
        1 if treated, 0 if not.
    outcome : array-like of shape (n_samples,), optional
        A number; 1 and 0 for yes and no.
    event, time : array-like of shape (n_samples,), optional
        Instead of `outcome`, a time to an event: see `survival_target`.

    Returns
    -------
    ndarray of shape (n_samples,)
        With the fields ``treatment`` and ``outcome``, or ``treatment``, ``event`` and ``time``.

    Raises
    ------
    AgreementError
        If there is no outcome or more than one, or an entry is of no meaning in its field.

    Examples
    --------
    >>> from datacollab.targets import effect_target
    >>> effect_target(treatment=[1, 0], outcome=[7.5, 2.0])["treatment"]
    array([1, 0])
    """
    if outcome is not None and event is None and time is None:
        return _assemble(EFFECT, treatment=treatment, outcome=outcome)
    if outcome is None and event is not None and time is not None:
        return _assemble(SURVIVAL_EFFECT, treatment=treatment, event=event, time=time)
    raise AgreementError("An effect is on one outcome: give outcome, or event and time together.")


def no_target(n_samples: int) -> NDArray[np.void]:
    """Return targets of rows without any, as for clusters; shape (n_samples,)."""
    return np.zeros(n_samples, dtype=NO_TARGET)


def named_target(target: NDArray[Any]) -> NDArray[Any]:
    """Return targets in the types of their kind, checked as by `survival_target` and `effect_target`."""
    dtype = target_kind(target).dtype
    if dtype is None or not dtype.names:
        return target
    return _assemble(dtype, **{name: target[name] for name in dtype.names})


def target_kind(target: NDArray[Any]) -> TargetKind:
    """Return the kind of targets in an array; arrays of scikit-survival count as survival.

    Raise AgreementError if rows have several values that are of no kind.
    """
    names = target.dtype.names
    if names is None:
        return TargetKind.SINGLE
    for dtype, kind in _KINDS.items():
        if names == dtype.names:
            return kind
    raise AgreementError(
        f"Targets have the fields {', '.join(names)}, which are of no kind. Make them with survival_target or "
        "effect_target of datacollab.targets."
    )


def coarsen_times(target: NDArray[Any], step: float) -> NDArray[Any]:
    """Return targets with times rounded up to multiples of a step, so that few rows have a time of their own.

    Targets without a field ``time`` are returned as they are.

    Examples
    --------
    >>> from datacollab.targets import coarsen_times, survival_target
    >>> coarsen_times(survival_target([1, 0], [3.5, 30.0]), 30.0)["time"]
    array([30., 30.])
    """
    if "time" not in (target.dtype.names or ()):
        return target
    rounded = target.copy()
    # A time at a multiple stays, although division may leave it a hair above.
    rounded["time"] = np.ceil(target["time"] / step * (1.0 - 1e-12)) * step
    return rounded


def usual_time_step(times: FloatArray, event: NDArray[np.bool_]) -> float:
    """Return the largest of 1, 2, 3 and 5 times a power of ten that fits often enough into the times.

    That is sixty times into the longest time, and three into the median time of an event: coarser steps tie most early
    events, which draws a regression's coefficients to zero.  Finer ones would leave more rows a time of their own.

    Examples
    --------
    >>> import numpy as np
    >>> usual_time_step(np.array([30.0, 60.0]), np.array([True, False]))
    1.0
    >>> usual_time_step(np.array([3.0, 1826.0]), np.array([True, False]))
    1.0
    """
    most = float(times.max()) / _STEPS
    if event.any():
        most = min(most, float(np.median(times[event])) / _EARLY_STEPS)
    # Round steps are ones that people use, such as days, weeks of five or months of thirty.
    power = 10.0 ** np.floor(np.log10(most))
    return float(power * max(digit for digit in (1, 2, 3, 5) if digit * power <= most * (1 + 1e-9)))


def _assemble(dtype: np.dtype[Any], **given: ArrayLike) -> NDArray[np.void]:
    columns = {name: _column(name, values) for name, values in given.items()}
    n_rows = {name: len(column) for name, column in columns.items()}
    if len(set(n_rows.values())) != 1:
        raise AgreementError(f"Expected one of each per row, got {n_rows}.")
    target = np.empty(next(iter(n_rows.values())), dtype=dtype)
    for name, column in columns.items():
        target[name] = column
    return target


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        column = np.asarray(plain_column(values), dtype=np.float64)
    except (TypeError, ValueError):
        # NumPy's own words may quote an entry.
        raise AgreementError(f"{name} must be numbers; got entries that are none.") from None
    if column.ndim != 1 or not np.isfinite(column).all():
        raise AgreementError(
            f"{name} must have one finite number per row, shape (n_samples,); got shape {column.shape} with "
            f"{int((~np.isfinite(column)).sum())} missing or infinite. Leave such rows out."
        )
    if name in ("event", "treatment") and not np.isin(column, (0.0, 1.0)).all():
        raise AgreementError(f"{name} must be 0 or 1 in each row; got {len(np.unique(column))} distinct values.")
    # A time of zero adds nothing to a likelihood, and its sign could not carry the event.
    if name == "time" and (column <= 0).any():
        raise AgreementError(f"time must be above 0; {int((column <= 0).sum())} of {len(column)} rows are not.")
    return column


FEWEST_OF_A_CLASS = 5
"""As a party's policy has it by default."""
_FEWEST_JUDGED = 10
"""Rows below which half may differ by chance."""


def check_class_names(target: NDArray[Any], what: str) -> None:
    """Refuse texts that tell rows apart, and warn of classes with few rows, whose labels say more of each.

    Raise AgreementError if at least half of ten rows or more have a text of their own, and warn with SmallClassWarning
    if a class of texts has fewer than 5 rows.
    """
    if target.dtype.kind not in "OSU" or len(target) < _FEWEST_JUDGED:
        return
    sizes = np.unique(target.astype(str), return_counts=True)[1]
    # Half of the rows: names and record numbers are nearly all different, and no classes that can be learnt are.
    if (n_alone := int((sizes == 1).sum())) >= len(target) / 2:
        raise AgreementError(
            f"{what} has {len(sizes)} different texts in {len(target)} rows, and {n_alone} rows have one of their own: "
            "these are names rather than classes. Give the column with the classes."
        )
    if n_small := int((sizes < FEWEST_OF_A_CLASS).sum()):
        warnings.warn(
            f"{n_small} of {len(sizes)} classes in {what} have fewer than {FEWEST_OF_A_CLASS} rows, so their labels "
            "tell much of single rows. Merge these classes, or leave their rows out.",
            SmallClassWarning,
            stacklevel=4,
        )


def check_coding(targets: Mapping[PartyName, NDArray[Any]], *, are_classes: bool = True) -> None:
    """Raise AgreementError if parties code targets in different ways: some by texts and others by numbers.

    Of classes, also if parties spell one differently, as with capitals, and none has both spellings; or if some count
    as many classes from 0 as others count from 1.
    """
    are_texts = {party: target.dtype.kind in "OSU" for party, target in targets.items()}
    if len(set(are_texts.values())) > 1:
        # Joined as they are, 1 and "1" would be two classes.
        kinds = {party: "text" if is_text else "numbers" for party, is_text in are_texts.items()}
        raise AgreementError(f"Some parties' targets are numbers and others' are text: {kinds}. Agree on one coding.")
    if not are_classes:
        return
    classes = {party: set(np.unique(target).tolist()) for party, target in targets.items()}
    if any(are_texts.values()):
        _check_spelling(classes)
        _warn_of_other_words(classes)
    else:
        _check_first_number(classes)


def _check_spelling(classes: Mapping[PartyName, set[Any]]) -> None:
    """Refuse one class in several spellings, as with capitals; where a party has both, they are two classes."""
    spellings: dict[str, set[Any]] = {}
    for label in set().union(*classes.values()):
        # NFKC: Japanese texts have wide and narrow forms of one letter.
        name = unicodedata.normalize("NFKC", str(label)).casefold()
        spellings.setdefault(" ".join(name.split()), set()).add(label)
    unlike = [
        each for each in spellings.values() if len(each) > 1 and all(len(each & own) < 2 for own in classes.values())
    ]
    if unlike:
        parties = [party for party, own in classes.items() if any(each & own for each in unlike)]
        raise AgreementError(
            f"Parties {parties!r} spell {len(unlike)} of the classes in different ways, such as with other "
            "capitals or blanks. Write each class in one way at all parties."
        )


def _warn_of_other_words(classes: Mapping[PartyName, set[Any]]) -> None:
    """Warn of parties with two classes or more that nobody else has; a single one may be their own rightly."""
    alone = []
    for party, own in classes.items():
        others = set().union(*(classes[each] for each in classes if each != party))
        if len(own) > 1 and others and not own & others:
            alone.append(party)
    if alone:
        warnings.warn(
            f"Parties {alone!r} have no class in common with any other. If these are the same classes in other "
            "words, such as another language, write each in one way at all parties.",
            DataCollabWarning,
            stacklevel=4,
        )


def _check_first_number(classes: Mapping[PartyName, set[Any]]) -> None:
    """Refuse classes that some parties count from 0, and all others, as many, from 1."""
    n = max(map(len, classes.values()))
    from_0 = [party for party, own in classes.items() if own == {*range(n)}]
    from_1 = [party for party, own in classes.items() if own == {*range(1, n + 1)}]
    # Only if every party counts in one of the two ways: a party that lacks a class may have any numbers.
    if n > 1 and from_0 and from_1 and len(classes) == len(from_0) + len(from_1):
        raise AgreementError(
            f"Parties {from_0!r} count their {n} classes from 0, and parties {from_1!r} from 1. Agree on one "
            "coding; if these are different classes, name them by texts."
        )
