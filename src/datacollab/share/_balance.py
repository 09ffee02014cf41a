"""What a party sends so that it can be seen whether treated rows and others are alike in the raw columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import FloatArray, PartyName
from ..bundle import Bundle, SignedFile, arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError, ShareError

__all__ = ["BALANCE_KIND", "BALANCE_STEP", "FEWEST_OF_ARM", "BalanceSums", "balance_contents", "balance_from"]

BALANCE_KIND = "datacollab.balance"
FEWEST_OF_ARM = 10
"""Rows of either arm below which a party's sums are not sent: a sum of few says much of each."""
BALANCE_STEP = 1e-3
"""Of sums, as a part of their weights: in means, a thousandth of the anchor's standard deviation."""

_MEMBER = "balance.safetensors"
_ARRAYS = ("counts", "truncated", "kept", "weights", "squared_weights", "sums", "squares")
_MOST_NAME = 200
_MOST_COLUMNS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BalanceSums(SignedFile):
    r"""Sums over a party's rows, by arm, with weights that the analyst chose by its propensity.

    No row is among them.  What they tell of single rows all the same is in the Notes of
    `datacollab.party.balance_sums`, which refuses weights that single out a few.

    Columns are in units that all parties and not the analyst know: differences from the anchor's mean, in standard
    deviations of the anchor.  Arrays are copied and made read-only.

    Attributes
    ----------
    party : str or int
    columns : tuple of str
        Their names.
    target : {"ATE", "ATT"}
        Of the weights.
    counts : ndarray of shape (2,)
        Rows without and with treatment; 10 at least.
    truncated : ndarray of shape (2,)
        How many of them have another weight than the propensity gives.
    kept : ndarray of shape (n_columns,)
        Part of each column's variance over the anchor that is linear in its collaboration representation (adjusted R²),
        from 0 to 1; 0 also where the anchor cannot tell: of a constant column, or with too few rows.
    weights, squared_weights : ndarray of shape (2,)
        :math:`\sum w` and :math:`\sum w^2` of each arm.
    sums, squares : ndarray of shape (2, 2, n_columns)
        :math:`\sum w x` and :math:`\sum w x^2`: with w = 1 and with the weights, of each arm.

    Raises
    ------
    ShareError
        When the fields do not fit together, or an arm has fewer than 10 rows.
    """

    kind = BALANCE_KIND

    party: PartyName
    columns: tuple[str, ...]
    target: str
    counts: NDArray[np.int64]
    truncated: NDArray[np.int64]
    kept: FloatArray
    weights: FloatArray
    squared_weights: FloatArray
    sums: FloatArray
    squares: FloatArray

    def __post_init__(self) -> None:
        p = len(self.columns)
        named = all(isinstance(name, str) and 0 < len(name) <= _MOST_NAME for name in self.columns)
        if not 1 <= p <= _MOST_COLUMNS or not named or len(set(self.columns)) < p:
            raise ShareError(f"{self._who}columns must be different names of at most {_MOST_NAME} characters.")
        if self.target not in ("ATE", "ATT"):
            raise ShareError(f"{self._who}target must be 'ATE' or 'ATT'; got another.")
        object.__setattr__(self, "columns", tuple(self.columns))
        self._freeze("counts", self.counts, (2,), np.int64)
        if self.counts.min() < FEWEST_OF_ARM:
            raise ShareError(
                f"{self._who}an arm has fewer than {FEWEST_OF_ARM} rows, so that sums would say much of each. This "
                "party's sums are not sent; the balance is that of the others."
            )
        self._freeze("truncated", self.truncated, (2,), np.int64)
        for name, shape in {
            "kept": (p,),
            "weights": (2,),
            "squared_weights": (2,),
            "sums": (2, 2, p),
            "squares": (2, 2, p),
        }.items():
            self._freeze(name, getattr(self, name), shape, np.float64)
        totals = np.stack([self.counts.astype(np.float64), self.weights])[:, :, None]
        # Rounded sums of a column that hardly varies may be a little more than its squares allow.
        slack = 0.5 * BALANCE_STEP * totals
        least = np.maximum(np.abs(self.sums) - slack, 0.0)
        fits = (
            (self.weights > 0).all()
            and (self.weights**2 <= self.counts * self.squared_weights * (1 + 1e-9)).all()
            and (least**2 <= totals * (self.squares + slack) * (1 + 1e-9)).all()
            and ((self.truncated >= 0) & (self.truncated <= self.counts)).all()
            and ((self.kept >= 0) & (self.kept <= 1)).all()
        )
        if not fits:
            raise ShareError(f"{self._who}sums and squares are not those of any rows. Have them made again.")

    @property
    def _who(self) -> str:
        return f"Party {self.party!r}: "

    def _freeze(self, name: str, values: ArrayLike, shape: tuple[int, ...], dtype: type[Any]) -> None:
        array = np.array(values)
        if array.shape != shape or array.dtype.kind not in ("iu" if dtype is np.int64 else "iuf"):
            raise ShareError(f"{self._who}{name} must be numbers of shape {shape}; got shape {array.shape}.")
        if not np.isfinite(array).all():
            raise ShareError(f"{self._who}{name} must be finite.")
        frozen = array.astype(dtype)
        frozen.setflags(write=False)
        object.__setattr__(self, name, frozen)

    def is_close_to(self, other: BalanceSums) -> bool:
        """Whether these are the same sums, up to the order of additions."""
        same = (self.party, self.columns, self.target) == (other.party, other.columns, other.target)
        pairs = ((getattr(self, name), getattr(other, name)) for name in _ARRAYS)
        return same and all(np.allclose(mine, others, rtol=1e-9, atol=1e-9) for mine, others in pairs)

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return balance_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> BalanceSums:
        return balance_from(bundle)

    def __repr__(self) -> str:
        return f"BalanceSums(party={self.party!r}, {len(self.columns)} columns, {int(self.counts.sum())} rows)"


def balance_contents(sums: BalanceSums) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of the bundle of these sums."""
    facts = {"party": sums.party, "columns": list(sums.columns), "target": sums.target}
    return facts, {_MEMBER: arrays_to_bytes({name: getattr(sums, name) for name in _ARRAYS})}


def balance_from(bundle: Bundle) -> BalanceSums:
    """The sums in a bundle, after checks of every part.

    Raises
    ------
    ExchangeError
        WRONG_KIND, or SHARE_MALFORMED where the parts do not fit together.
    """
    if bundle.kind != BALANCE_KIND:
        raise ExchangeError("WRONG_KIND", f"Sums of a balance are wanted; this is a bundle of kind {bundle.kind!r}.")
    facts = bundle.facts
    party, columns, target = facts.get("party"), facts.get("columns"), facts.get("target")
    if type(party) is not int and not (isinstance(party, str) and len(party) <= _MOST_NAME):
        raise _malformed("they do not say whose they are")
    if not isinstance(columns, list) or not isinstance(target, str) or bundle.members.keys() != {_MEMBER}:
        raise _malformed("they do not say of which columns they are")
    try:
        arrays = bytes_to_arrays(bundle.members[_MEMBER], what=_MEMBER)
    except ExchangeError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    if arrays.keys() != set(_ARRAYS):
        raise _malformed(f"they are not the arrays {sorted(_ARRAYS)!r}")
    fields: dict[str, Any] = dict(arrays)
    try:
        return BalanceSums(party=party, columns=tuple(columns), target=target, **fields)
    except (ShareError, TypeError) as error:
        # A TypeError is of names that cannot be compared, which a manifest of unknown origin may hold.
        raise _malformed(str(error) if isinstance(error, ShareError) else "columns have no names") from None


def _malformed(what: str) -> ExchangeError:
    return ExchangeError("SHARE_MALFORMED", f"The sums cannot be used: {what}. Have them made again.")
