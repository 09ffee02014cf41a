"""Whether a party's promise has a basis: what was found at fit, and what an anchor adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._validation import FloatArray, PartyName
from ..errors import NoGuaranteeError
from ._defence import Defence, Promise
from ._guarantee import PrivacyGuarantee, guarantee_of, mu_of
from ._release import FittedTable, RowDigests

__all__ = ["Basis"]


@dataclass(frozen=True, eq=False)
class Basis:
    """What a guarantee of one fit rests on.

    Attributes
    ----------
    party : str or int
    n_rows : int
    mechanism : Defence or None
        The one whose promise it is.
    obstacle : str or None
        What stands against it.
    own_rows : RowDigests or None
        To be looked for in an anchor.
    """

    party: PartyName
    n_rows: int
    mechanism: Defence | None
    obstacle: str | None
    own_rows: RowDigests | None

    def guarantee(self, anchor: Any, representation: FloatArray, table: FittedTable | None) -> PrivacyGuarantee:
        """What is promised with this anchor, together with earlier shares of the same rows.

        Raises
        ------
        NoGuaranteeError
            When nothing is.
        """
        promise = self._promise(anchor, representation)
        earlier = [] if table is None else table.shared_before
        spent = [each.mu for each in earlier if each.mu is not None]
        if len(spent) < len(earlier):
            raise self._refusal("some of its rows were shared before, and nothing was promised then")
        return guarantee_of(promise, self.party, self.n_rows, spent)

    def mu(self, anchor: Any, representation: FloatArray) -> float | None:
        """What a share with this anchor spends; None where nothing is promised."""
        try:
            return mu_of(self._promise(anchor, representation))
        except NoGuaranteeError:
            return None

    def _promise(self, anchor: Any, representation: FloatArray) -> Promise:
        if self.mechanism is None or self.obstacle is not None:
            raise self._refusal(str(self.obstacle))
        if self.own_rows is not None and (n_own := self.own_rows.count_in(anchor)):
            raise self._refusal(f"{n_own} rows of the anchor are also among its private rows; take them out")
        promise = self.mechanism.promise(representation)
        if promise is None:
            raise self._refusal(f"{type(self.mechanism).__name__} promises nothing with this anchor")
        if promise.delta * self.n_rows >= 1:
            raise self._refusal(
                f"delta={promise.delta:g} is not below one over its {self.n_rows} rows; publishing one of them as it "
                "is would satisfy that"
            )
        return promise

    def _refusal(self, reason: str) -> NoGuaranteeError:
        return NoGuaranteeError(f"Party {self.party!r}: no epsilon can be stated, for {reason}.")
