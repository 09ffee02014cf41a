"""A party that learns from answers on the anchor, and needs its f_k no more."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ..errors import ForgottenError
from ..model import AnchorPredictions
from ._combining import CombiningParty
from ._distil import DistilledModel, distil_predictions
from ._release import Ledger

__all__ = ["DistillingParty"]


class DistillingParty(CombiningParty):
    """What a `Party` does with answers in place of a model, and after it has forgotten all else."""

    _forgotten = False

    def distil(
        self,
        anchor: ArrayLike,
        answers: AnchorPredictions,
        estimator: Any = None,
        *,
        rows: ArrayLike | None = None,
    ) -> DistilledModel:
        """Learn a model of one's own from the analyst's answers on the anchor; it takes raw rows.

        No f_k is needed, here or later, so this works after `forget`, too.

        Parameters
        ----------
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            The rows that were shared, in their order.
        answers : AnchorPredictions
            What the analyst made for this party, by `Collaboration.anchor_predictions`.
        estimator : estimator, optional
            Any regressor, of several numbers at once where answers are probabilities, or classifier of scikit-learn;
            cloned before it is fitted.  A classifier learns each row with every class, weighted by its probability,
            or, if it takes no weights, the most probable class alone.  By default kernel ridge regression whose width
            and penalty are chosen by leave-one-out (`datacollab.party.AnchorRidge`).
        rows : array-like or dataframe of shape (n_rows, n_features), optional
            Rows of one's own, at least ten, to see whether the anchor has rows like them.  They are not learned from.

        Returns
        -------
        DistilledModel

        Raises
        ------
        AgreementError
            When the answers are another party's, or of another number of rows.
        AnchorError
            When nothing can be learned that would hold: answers on anchor rows that are left out cannot be told from
            those on the others, or the own rows lie elsewhere.
        TypeError
            When the estimator is of no use.

        Notes
        -----
        Leaves the party: nothing.  Predictions of the anchor's rows as targets of a model on the original columns are
        of [1]_, and a party that forgets is of [2]_.

        References
        ----------
        .. [1] A. Imakura, H. Inaba, Y. Okada and T. Sakurai. "Interpretable collaborative data analysis on distributed
           data". Expert Systems with Applications, 177:114891, 2021.
        .. [2] A. Imakura, T. Sakurai, Y. Okada, T. Fujii, T. Sakamoto and H. Abe. "Non-readily identifiable data
           collaboration analysis for multiple datasets including personal information". Information Fusion, 98, 2023.

        Examples
        --------
        >>> import datacollab as dc
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> X, y = dc.datasets.load("digits")
        >>> f = dc.obfuscator("pca", n_components=16)
        >>> parties = [dc.Party(k, f).fit(X[k:300:5], y[k:300:5]) for k in range(5)]
        >>> anchor, analyst = X[300:600], dc.Analyst(dc.KTI(16), RandomForestClassifier(random_state=0))
        >>> collaboration = analyst.fit([party.share(anchor) for party in parties])
        >>> model = parties[0].distil(anchor, collaboration.anchor_predictions(0), rows=X[:300:5])
        >>> bool((model.predict(X[600:]) == y[600:]).mean() > 0.8)
        True
        """
        return distil_predictions(self.name, anchor, answers, estimator, rows=rows)

    def forget(self) -> str:
        """Destroy f_k, its rotation, the order of the rows, targets, digests and noise, for good.

        Afterwards nothing can be shared, obfuscated or predicted by a `PartyModel`; `learn` works, and what it gave.

        Returns
        -------
        str
            What was done, and what it does not reach.

        Notes
        -----
        Stays: the name.  Not reached: the table itself, shares that were sent, copies of this object,
        files, other references to its parts, and memory that was freed but not written over.

        Examples
        --------
        >>> import datacollab as dc
        >>> X, y = dc.datasets.load("digits")
        >>> party = dc.Party("a", dc.obfuscator("pca")).fit(X[:100], y[:100])
        >>> told = party.forget()
        >>> party
        Party('a', forgotten)
        """
        name = self.name
        # All that there is, whatever it is called, so that nothing is left that a later version adds.
        vars(self).clear()
        self.name = name
        self._forgotten = True
        self._forget_parameters()
        return (
            f"Party {name!r} has forgotten its map f_k with the rotation, the order of its rows, their targets and "
            "digests, and the noise. Copies, files, backups, and what was sent are not reached."
        )

    def _forget_parameters(self) -> None:
        """None in place of what was given: a number in it may tell the secrets drawn from it."""
        none: dict[str, Any] = {"obfuscator": None, "fit_on": None, "random_state": None}
        vars(self).update(none, defences=(), shuffle=True, share_again=False, time_step="auto", _ledger=Ledger())

    def _check_not_forgotten(self) -> None:
        if self._forgotten:
            raise ForgottenError(
                f"Party {self.name!r} has forgotten its map f_k, so it can neither share, obfuscate nor predict with a "
                "PartyModel. Predict with what `learn` gave; to share, make a new Party."
            )

    def _check_fitted(self) -> None:
        self._check_not_forgotten()
        super()._check_fitted()
