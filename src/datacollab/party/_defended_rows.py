"""A party's rows behind its defences, defended once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..errors import AnchorError, DataCollabError, DataCollabWarning, ObfuscationError
from ._defence import Defence, Published

# Largest difference, relative to the largest entry, between two representations of one anchor.
SAME_ANCHOR = 1e-9


class DefendedRows:
    """Representation and targets of a party's rows behind its defences.

    Noise is drawn once, and so is the order in which rows leave.  If a defence needs the anchor, noise is drawn for the
    first anchor, and no other one is taken afterwards; otherwise it is drawn at once.  Copies of a party share it.
    """

    def __init__(
        self,
        party: PartyName,
        representation: FloatArray,
        target: NDArray[Any],
        defences: Sequence[Defence],
        generator: np.random.RandomState,
    ) -> None:
        self._party = party
        self._defences = defences
        self._published = Published(rows=representation, target=target, own_rows=np.arange(len(target)))
        # Given away with the first use: nothing can draw the same noise, or fresh noise, again.
        self._generator: np.random.RandomState | None = generator
        self._anchor: FloatArray | None = None
        self._order: NDArray[np.intp] | None = None
        if not self._needs_anchor:
            self._defend(None)

    @property
    def _needs_anchor(self) -> bool:
        return any(defence.needs_anchor for defence in self._defences)

    def rows(self, anchor_representation: FloatArray) -> Published:
        """Return defended rows in the order of the own rows behind them."""
        self.check_anchor(anchor_representation)
        if self._generator is not None:
            self._defend(anchor_representation)
        return self._published

    def order(self, generator: np.random.RandomState) -> NDArray[np.intp]:
        """Return the order in which the rows leave, shape (n_published,), drawn with the first generator."""
        # Drawn once, so that two shares of the same rows have them in one order.
        if self._order is None:
            order = np.arange(len(self._published.rows))
            generator.shuffle(order)
            self._order = order
        return self._order

    def bind(self, anchor_representation: FloatArray) -> None:
        """Take this anchor and no other one if the defences depend on it."""
        if self._needs_anchor:
            self._anchor = anchor_representation

    def check_anchor(self, anchor_representation: FloatArray) -> None:
        """Raise AnchorError if the rows are for another anchor."""
        known = self._anchor
        # Linear algebra may add in another order the next time, so the last bits may differ.
        if known is None or (
            known.shape == anchor_representation.shape
            and np.abs(known - anchor_representation).max() <= SAME_ANCHOR * np.abs(known).max()
        ):
            return
        raise AnchorError(
            f"Party {self._party!r}: its rows were defended for another anchor, or a guarantee was given for that. "
            "Published once more, they would have other noise, and both together average it away. Share "
            "with the first anchor; a new one needs a new collaboration, in which the promises for each add up."
        )

    def _defend(self, anchor_representation: FloatArray | None) -> None:
        assert self._generator is not None
        published = self._published
        try:
            for defence in self._defences:
                later = defence.apply(
                    *published[:2], anchor_representation=anchor_representation, random_state=self._generator
                )
                # Each defence counts rows as the one before gave them; the party counts its own.
                published = later._replace(own_rows=published.own_rows[later.own_rows])
        except DataCollabWarning:  # turned into an error by a warnings filter; it shows no data
            raise
        except DataCollabError as error:
            raise ObfuscationError(f"Party {self._party!r}: {error} Nothing left the party.") from None
        except Exception as error:
            raise ObfuscationError(
                f"Party {self._party!r}: a defence failed ({type(error).__name__}). Nothing left the party. Its own "
                "words may quote data, so they are only in the error's 'original'.",
                error,
            ) from None
        if anchor_representation is not None:
            self._anchor = anchor_representation
        self._published = published
        self._generator = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Two copies that draw for two anchors would draw the same noise, or noise anew, for the same rows.
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self._generator is not None:
            raise TypeError(
                f"Party {self._party!r}: its rows have not been shared yet, and each stored copy would draw noise of "
                "its own for them. Share first, or store the rows and fit again."
            )
        return vars(self).copy()
