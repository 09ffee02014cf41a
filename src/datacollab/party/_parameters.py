"""What a party is told to do, checked before anything is fitted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples

from .._validation import PartyName, check_single_targets, count_missing
from ..errors import AgreementError, ObfuscationError, PrivateRowsWarning, RepeatableSecretWarning, ShareError
from ..targets import named_target, no_target, usual_time_step
from ._defence import Defence
from ._noisy_class_sums import NoisyClassSums
from ._secret_draws import has_fixed_seed

__all__ = [
    "check_defences",
    "check_parameters",
    "checked_anchor_target",
    "checked_target",
    "time_step_for",
    "warn_of_own_rows",
]


def check_parameters(
    party: PartyName, obfuscator: Any, defences: Any, random_state: Any, *, on_public_rows: bool
) -> None:
    """Check a party's parameters; called by its `fit`.

    Parameters
    ----------
    party : str or int
    obfuscator : transformer
    defences : sequence of Defence
    random_state : int, RandomState or None
    on_public_rows : bool
        Whether the obfuscator is fitted on public rows, and a secret half of them.

    Raises
    ------
    TypeError
        When the obfuscator is no transformer, or `defences` no sequence of defences.
    ValueError
        When `NoisyClassSums` is not the only defence.

    Warns
    -----
    RepeatableSecretWarning
        When a secret comes from a known number.
    """
    if not (hasattr(obfuscator, "fit") and hasattr(obfuscator, "transform")):
        raise TypeError(
            f"Party {party!r}: the obfuscator must be a transformer with fit and transform, such as "
            f"obfuscator('pca'); got {type(obfuscator).__name__}."
        )
    if not isinstance(defences, Sequence) or not all(isinstance(defence, Defence) for defence in defences):
        found = defences if isinstance(defences, Sequence) else [defences]
        raise TypeError(
            f"Party {party!r}: defences must be a list of them, such as [ClassShift(epsilon=4.0)]; got "
            f"{[type(defence).__name__ for defence in found]}."
        )
    if len(defences) > 1 and any(isinstance(defence, NoisyClassSums) for defence in defences):
        raise ValueError(
            f"Party {party!r}: NoisyClassSums is given with other defences; it must be alone, for what is done to rows "
            f"before it only adds noise, and none leaves behind it. Got {[type(each).__name__ for each in defences]}."
        )
    if has_fixed_seed(obfuscator):
        _warn_of_seed(party, "the obfuscator has", "rebuild the obfuscation")
    elif isinstance(random_state, int | np.integer) and (on_public_rows or defences):
        _warn_of_seed(party, "the party has", "rebuild the rotation and the noise")


def checked_target(party: PartyName, X: Any, y: ArrayLike | None) -> NDArray[Any]:
    """Targets as an array of shape (n_samples,), with fields where there are none or several values each.

    Raises
    ------
    AgreementError
        When there is not one for each row, or fields are of no kind.
    """
    n_samples = _num_samples(X)
    target = no_target(n_samples) if y is None else np.asarray(y)
    if target.dtype.names is None:
        check_single_targets(target, f"Party {party!r}: y", AgreementError)
    if target.shape != (n_samples,):
        raise AgreementError(
            f"Party {party!r}: y must have one entry per row of X, shape ({n_samples},); got {target.shape}."
        )
    if count_missing(target):
        raise AgreementError(
            f"Party {party!r}: {count_missing(target)} of {n_samples} entries of y are missing (None or NaN); "
            "leave out rows without a target."
        )
    try:
        return named_target(target)
    except AgreementError as error:
        raise AgreementError(f"Party {party!r}: y: {error}") from None


def check_defences(party: PartyName, defences: Sequence[Defence], target: NDArray[Any]) -> None:
    """Refuse defences that have no way with these targets, before anything is fitted.

    Raises
    ------
    ObfuscationError
    """
    for defence in defences:
        try:
            defence.check_kind(target)
        except ObfuscationError as error:
            raise ObfuscationError(f"Party {party!r}: {error} Nothing left the party.") from None


def time_step_for(party: PartyName, target: NDArray[Any], time_step: float | str | None) -> float | None:
    """To multiples of what times are rounded up before they are shared; None where they are not, or there are none.

    "auto" takes the largest of 1, 2, 3 and 5 times a power of ten of which the longest time has sixty.

    Raises
    ------
    ValueError
        When `time_step` is neither "auto", None nor a number above 0.
    """
    step = np.nan if isinstance(time_step, str) else time_step
    if time_step != "auto" and step is not None and not 0 < step < np.inf:
        raise ValueError(
            f"Party {party!r}: time_step must be 'auto', a number above 0 in the unit of the times, or None, which "
            f"shares them as they are; got {time_step!r}."
        )
    if time_step is None or "time" not in (target.dtype.names or ()):
        return None
    if not isinstance(time_step, str):
        return float(time_step)
    return usual_time_step(float(target["time"].max()))


def checked_anchor_target(party: PartyName, anchor_target: ArrayLike, n_anchors: int) -> NDArray[Any]:
    """Targets of the anchor, of shape (n_anchors,).

    Raises
    ------
    ShareError
        When there is not one for each row.
    """
    targets = np.array(anchor_target)
    if targets.dtype.names is None:
        check_single_targets(targets, f"Party {party!r}: anchor_target", ShareError)
    if targets.shape != (n_anchors,):
        raise ShareError(
            f"Party {party!r}: anchor_target must have one entry per row, shape ({n_anchors},); got {targets.shape}."
        )
    return targets


def warn_of_own_rows(party: PartyName, n_own: int, n_public: int) -> None:
    """Say that private rows are among the public ones that the map is learnt from."""
    warnings.warn(
        f"Party {party!r}: {n_own} of {n_public} rows in fit_on are also among its private rows, so the map holds "
        "something of them. Take them out of fit_on.",
        PrivateRowsWarning,
        stacklevel=4,
    )


def _warn_of_seed(party: PartyName, who: str, what: str) -> None:
    warnings.warn(
        f"Party {party!r}: {who} a fixed random_state. Anyone who learns it can {what}; leave it None outside "
        "experiments.",
        RepeatableSecretWarning,
        stacklevel=4,
    )
