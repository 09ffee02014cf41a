"""A party's rows as they are shared: defended once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..errors import AnchorError, DataCollabError, DataCollabWarning, ObfuscationError
from ._defence import Defence, defend
from ._published import Published

__all__ = ["Release"]

SAME_ANCHOR = 1e-9
"""Largest difference, relative to the largest entry, between two representations of one anchor."""


class Release:
    """Representation and targets of a party's rows behind its defences.

    Noise is drawn once, and so is the order in which rows leave.  Where a defence needs the anchor, noise is drawn when
    the first anchor comes, and no other one is taken afterwards; otherwise it is at once.  A copy of a party, deep or
    not, has the same release.

    Parameters
    ----------
    party : str or int
    representation : ndarray of shape (n_samples, n_intermediate)
        Not defended.
    target : ndarray of shape (n_samples,)
    defences : sequence of Defence
    generator : RandomState
        Of the noise.
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
        self._anchor: tuple[FloatArray, NDArray[Any] | None] | None = None
        self._order: NDArray[np.intp] | None = None
        if not self._needs_anchor:
            self._defend(None, None)

    @property
    def defences(self) -> Sequence[Defence]:
        """Those that the rows leave behind."""
        return self._defences

    @property
    def _needs_anchor(self) -> bool:
        return any(defence.needs_anchor for defence in self._defences)

    def rows(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> Published:
        """Defended rows, in the order of the own rows where they stand for these.

        Parameters
        ----------
        anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        anchor_target : ndarray of shape (n_anchors,) or None

        Returns
        -------
        Published

        Raises
        ------
        AnchorError
            When the rows were defended for another anchor.
        ObfuscationError
            When a defence fails.
        """
        self.check_anchor(anchor_representation, anchor_target)
        if self._generator is not None:
            self._defend(anchor_representation, anchor_target)
        return self._published

    def order(self, generator: np.random.RandomState) -> NDArray[np.intp]:
        """The order in which the rows leave, shape (n_published,): drawn with the first generator given."""
        if self._order is None:
            order = np.arange(len(self._published.rows))
            generator.shuffle(order)
            self._order = order
        return self._order

    def bind(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> None:
        """Take this anchor and no other one, where the defences depend on it."""
        self.check_anchor(anchor_representation, anchor_target)
        if self._needs_anchor:
            self._anchor = (anchor_representation, anchor_target)

    def check_anchor(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> None:
        """Raise AnchorError where the rows were defended for another anchor, or are to be."""
        if self._anchor is None:
            return
        known, known_target = self._anchor
        same_rows = (
            known.shape == anchor_representation.shape
            and np.abs(known - anchor_representation).max() <= SAME_ANCHOR * np.abs(known).max()
        )
        if same_rows and _same_target(known_target, anchor_target):
            return
        what = "other targets of the anchor" if same_rows else "another anchor"
        raise AnchorError(
            f"Party {self._party!r}: its rows were defended for {what}, or a guarantee was given for that. Once more "
            "for this one, they would be published with other noise, and whoever sees both could average it away. "
            "Share with the first anchor; a new one needs a new collaboration, in which what was promised for each "
            "adds up."
        )

    def _defend(self, anchor_representation: FloatArray | None, anchor_target: NDArray[Any] | None) -> None:
        assert self._generator is not None
        given = self._published
        try:
            self._published = defend(
                self._defences, given.rows, given.target, anchor_representation, anchor_target, self._generator
            )
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
            self._anchor = (anchor_representation, anchor_target)
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


def _same_target(known: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if known is None or other is None:
        return known is other
    return known.shape == other.shape and bool(np.all(known == other))
