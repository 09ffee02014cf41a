"""What the supervised one-process estimators share: playing all roles, with targets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from .._validation import FloatArray, check_single_targets
from ..analyst import KTI, Analyst, BaseIntegrator
from ..errors import AgreementError, AnchorError
from ..share import Share
from ._anchor_check import warn_of_anchor
from ._groups import owners
from ._roles import PlayedRoles, seeded

__all__ = ["BaseDataCollaboration"]


class BaseDataCollaboration(PlayedRoles):
    """Fit by targets, for a subclass that says of which kind they are."""

    __metadata_request__fit: ClassVar = {"groups": True, "anchor": True, "anchor_target": True}
    __metadata_request__predict_proba: ClassVar = {"groups": True}

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> Self:
        """Play all roles: every party obfuscates and shares, the analyst integrates and trains.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            Rows of all parties.
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Owner of each row.  Needed unless `party_column` is set.
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            Public or synthetic rows that all parties obfuscate.  Under cross-validation, scikit-learn's metadata
            routing cuts whatever has as many rows as `X` into folds: an anchor of that length loses some of its rows.
            Inside a `Pipeline`, the steps before transform X but not the anchor, unless it is built with
            ``transform_input=["anchor"]``; to cross-validate that needs scikit-learn 1.8.
        anchor_target : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where a graph needs them.

        Returns
        -------
        self

        Raises
        ------
        AnchorError
            When there is no anchor.
        ObfuscationError
            When a party's obfuscator or a defence fails; the message names the party.
        AgreementError, RepresentationError, NumericalError
            When the representations cannot be integrated.

        Warns
        -----
        UserWarning
            When the anchor looks as if it were in other units than `X`, or, in cross-validation, has as many rows.
        """
        self._validate_params()
        X, y = validate_data(self, self._checked(X), y, skip_check_array=True)
        target = self._target(y)
        check_consistent_length(X, target)
        if anchor is None:
            raise AnchorError(
                "Data collaboration needs an anchor: public or synthetic rows that all parties obfuscate. Pass "
                "anchor=..., for example from datacollab.UniformAnchor or datacollab.SMOTEAnchor."
            )
        X, names = owners(X, groups, self.party_column)
        warn_of_anchor(X, anchor)
        if anchor_target is not None:
            anchor_target = self._anchor_target(anchor_target)
        random_state = None if self.random_state is None else check_random_state(self.random_state)
        shares = self._shared(X, target, names, anchor, anchor_target, random_state)
        integrator = self._integrator_for(shares) if self.integrator is None else self.integrator
        analyst = self._analyst(seeded(integrator, random_state), seeded(self._default_estimator(), random_state))
        self.collaboration_ = analyst.fit(shares)
        self.models_ = {party: self.collaboration_.party_model(party) for party in self.parties_}
        return self

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> FloatArray:
        """Fit, and give the collaboration representations of all rows in their order."""
        fitted = self.fit(X, y, groups=groups, anchor=anchor, anchor_target=anchor_target)
        return np.asarray(fitted.represent(X, groups=groups))

    def _default_integrator(self) -> BaseIntegrator:
        return KTI()

    def _integrator_for(self, shares: Sequence[Share]) -> BaseIntegrator:
        """How these representations are aligned where nothing is said."""
        return self._default_integrator()

    def _analyst(self, integrator: Any, estimator: Any) -> Analyst:
        return Analyst(integrator, estimator, task="classification" if is_classifier(self) else "regression")

    def _target(self, y: ArrayLike) -> NDArray[Any]:
        """Targets as they are shared."""
        check_single_targets(np.asarray(y), "y", AgreementError)
        y = check_array(y, input_name="y", ensure_2d=False, dtype=None)
        return self._checked_target(column_or_1d(y, warn=True))

    def _anchor_target(self, anchor_target: ArrayLike) -> NDArray[Any]:
        """Targets of the anchor as they are shared."""
        check_single_targets(np.asarray(anchor_target), "anchor_target", AgreementError)
        return self._checked_anchor_target(np.asarray(anchor_target))

    @abstractmethod
    def _checked_anchor_target(self, anchor_target: NDArray[Any]) -> NDArray[Any]:
        """Anchor targets, of a type that graphs read as the task has it."""

    @abstractmethod
    def _checked_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets, of the type that the task has."""
