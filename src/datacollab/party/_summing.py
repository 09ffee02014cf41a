"""A party that sends sums over its classes instead of rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike, NDArray

from .._threads import one_thread
from .._validation import FloatArray
from ..errors import NoGuaranteeError, ShareError
from ..share import ClassSums
from ._basis import Basis
from ._combining import CombiningParty
from ._guarantee import PrivacyGuarantee
from ._noisy_class_sums import NoisyClassSums
from ._release import FittedTable, Release

__all__ = ["SummingParty"]


class SummingParty(CombiningParty):
    """What a `Party` sends behind `NoisyClassSums`."""

    share_again: bool
    _basis: Basis
    _fitted_table: FittedTable | None
    _release: Release

    @abstractmethod
    def guarantee(self, anchor: ArrayLike, anchor_target: ArrayLike | None = None) -> PrivacyGuarantee:
        """Differential privacy of what leaves with this anchor."""

    @abstractmethod
    def _checked_anchor(
        self, anchor: ArrayLike, anchor_target: ArrayLike | None
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """The anchor's representation and targets."""

    @one_thread
    def class_sums(
        self, anchor: ArrayLike, anchor_target: ArrayLike | None = None, *, unproven: bool = False
    ) -> ClassSums:
        """Sums over the own rows of each class, with noise, and the anchor: all that leaves this party.

        Its defence must be `NoisyClassSums`.  Called again, it gives the same numbers.

        Parameters
        ----------
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            The same public rows in the same order at every party.
        anchor_target : array-like of shape (n_anchors,), optional
            Public targets of the anchor rows, where there are any.
        unproven : bool, default=False
            Whether sums may leave of which no epsilon can be stated, as in experiments with a `random_state`.  They say
            so.

        Returns
        -------
        ClassSums

        Raises
        ------
        NoGuaranteeError
            When no epsilon can be stated, unless `unproven`; the message says why.
        AnchorError
            When sums left with another anchor before.
        SharedBeforeError
            When rows, or sums of them, left after an earlier fit of this object.
        ObfuscationError
            When the anchor does not fit the obfuscator, or there are no classes to go by.
        ShareError
            When its defences are others.

        Examples
        --------
        >>> import datacollab as dc
        >>> from datacollab.party import NoisyClassSums
        >>> X, y = dc.datasets.load("digits")
        >>> f, defence = dc.obfuscator("pca", n_components=8), NoisyClassSums(epsilon=4.0, classes=range(10))
        >>> party = dc.Party("a", f, fit_on=X[300:600], defences=[defence]).fit(X[:300], y[:300])
        >>> sums = party.class_sums(X[300:600])
        >>> sums.counts.shape, sums.epsilon
        ((10,), 4.0)
        """
        representation, targets = self._checked_anchor(anchor, anchor_target)
        mechanism = self._check_leaving("sums")
        try:
            promised = self.guarantee(anchor, anchor_target)
        except NoGuaranteeError:
            if not unproven:
                raise
            promised = None
        published = self._release.rows(representation, targets)
        assert published.counts is not None
        assert mechanism is not None
        sums = ClassSums(
            party=self.name,
            classes=published.target,
            sums=published.rows,
            counts=published.counts,
            anchor_representation=representation,
            clip=mechanism.clip(representation),
            noise=mechanism.noise(representation),
            anchor_target=targets,
            epsilon=None if promised is None else promised.epsilon,
            delta=None if promised is None else promised.delta,
        )
        self._note_left(anchor, representation, targets)
        return sums

    def _check_leaving(self, what: str) -> NoisyClassSums | None:
        """The defence whose sums leave; None where rows do.

        Raises
        ------
        ShareError
            When rows are asked for and sums leave, or the other way round.
        SharedBeforeError
            When something of the rows left after an earlier fit.
        """
        mechanism = next((each for each in self._release.defences if isinstance(each, NoisyClassSums)), None)
        if what == "rows" and mechanism is not None:
            raise ShareError(
                f"Party {self.name!r}: no row leaves behind NoisyClassSums. Call class_sums for what does, or make a "
                "party with another defence."
            )
        if what == "sums" and mechanism is None:
            raise ShareError(
                f"Party {self.name!r}: class sums leave behind NoisyClassSums alone. Make a party with "
                "defences=[NoisyClassSums(epsilon=..., classes=...)]."
            )
        if self._fitted_table is not None:
            self._fitted_table.check(self.name, allowed=self.share_again)
        return mechanism

    def _note_left(self, anchor: Any, representation: FloatArray, targets: NDArray[Any] | None) -> None:
        """Enter in the ledger that something of the rows has left, and what it spent."""
        if self._fitted_table is not None and not self._fitted_table.shared:
            self._fitted_table.mu = self._basis.mu(anchor, representation, targets)
            self._fitted_table.shared = True
