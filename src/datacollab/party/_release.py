"""A party's rows as they are shared: defended once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..errors import AnchorError, DataCollabError, DataCollabWarning, ObfuscationError
from ._defence import Defence, defend

__all__ = ["Release"]

SAME_ANCHOR = 1e-9
"""Largest difference, relative to the largest entry, between two representations of one anchor."""


class Release:
    """Representation and targets of a party's rows behind its defences.

    Noise is drawn once.  Where a defence needs the anchor, that is when the first anchor comes, and no other one is
    taken afterwards; otherwise it is at once.

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
        self._target = target
        self._defences = defences
        self._representation = representation
        self._kept = np.arange(len(target))
        # Given away with the first use: nothing can draw the same noise, or fresh noise, again.
        self._generator: np.random.RandomState | None = generator
        self._anchor_representation: FloatArray | None = None
        if not any(defence.needs_anchor for defence in defences):
            self._defend(None)

    def rows(self, anchor_representation: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
        """Defended rows, and the positions of the own rows that they stand for.

        Parameters
        ----------
        anchor_representation : ndarray of shape (n_anchors, n_intermediate)

        Returns
        -------
        representation : ndarray of shape (n_published, n_intermediate)
        kept : ndarray of shape (n_published,)

        Raises
        ------
        AnchorError
            When the rows were defended for another anchor.
        ObfuscationError
            When a defence fails.
        """
        self.check_anchor(anchor_representation)
        if self._generator is not None:
            self._defend(anchor_representation)
        return self._representation, self._kept

    def check_anchor(self, anchor_representation: FloatArray) -> None:
        """Raise AnchorError where the rows were defended for another anchor."""
        known = self._anchor_representation
        if known is None or (
            known.shape == anchor_representation.shape
            and np.abs(known - anchor_representation).max() <= SAME_ANCHOR * np.abs(known).max()
        ):
            return
        raise AnchorError(
            f"Party {self._party!r}: its rows were defended for another anchor. Once more for this one, they would be "
            "published with other noise, and whoever sees both could average it away. Share with the first anchor; a "
            "new one needs a new collaboration, in which what was promised for each adds up."
        )

    def _defend(self, anchor_representation: FloatArray | None) -> None:
        assert self._generator is not None
        try:
            self._representation, self._kept = defend(
                self._defences, self._representation, self._target, anchor_representation, self._generator
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
        self._anchor_representation = anchor_representation
        self._generator = None
