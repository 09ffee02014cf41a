"""A party that knows which of its rows were shared, and so can combine what comes back with what it has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import AgreementError
from ..model import PartyModel
from ..targets import coarsened
from ._inference import LocalInference
from ._personal_model import PersonalModel, personalise

__all__ = ["CombiningParty"]


class CombiningParty(LocalInference):
    """What a `Party` does with the model that came back, in the process that shared."""

    _target: NDArray[Any]
    _shared: NDArray[np.intp] | None

    _time_step: float | None

    @property
    def fitted_target(self) -> NDArray[Any]:
        """Targets of `fit` as the party has them, shape (n_samples,); they stay here."""
        self._check_fitted()
        return self._target

    def shown_target(self, target: ArrayLike) -> NDArray[Any]:
        """Targets as they are before defences: times rounded up as this party's are, all else as given."""
        self._check_fitted()
        given = np.asarray(target)
        return given if self._time_step is None else coarsened(given, self._time_step)

    @abstractmethod
    def was_fitted_on(self, X: ArrayLike) -> bool:
        """Whether these are the rows of `fit`, in the same order, with the same columns."""

    def personalise(
        self,
        model: PartyModel,
        X: ArrayLike,
        y: ArrayLike,
        *,
        public: ArrayLike | None = None,
        public_target: ArrayLike | None = None,
        prior: str = "all",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> PersonalModel:
        """Combine the common model with what the party has alone, and say what collaboration brought.

        Parameters
        ----------
        model : PartyModel
            What the analyst made for this party.
        X : array-like or dataframe of shape (n_samples, n_features)
            The rows of `fit`.
        y : array-like of shape (n_samples,)
        public, public_target, prior, random_state, n_jobs, progress
            As for `datacollab.party.personalise`.

        Returns
        -------
        PersonalModel
            Predicts raw rows; ``benefit_`` is the report.

        Raises
        ------
        AgreementError
            When the rows are not those of `fit`, the model is not of this party's share, or things do not fit together.
        ObfuscationError
            When the rows do not fit the obfuscator.

        Notes
        -----
        Leaves the party: nothing.

        Examples
        --------
        >>> import datacollab as dc
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = dc.datasets.load("digits")
        >>> parties = [dc.Party(k, dc.obfuscator("pca")).fit(X[k:90:2], y[k:90:2]) for k in range(2)]
        >>> analyst = dc.Analyst(dc.LTI(8), LogisticRegression(max_iter=500))
        >>> model = analyst.fit([party.share(X[200:300]) for party in parties]).party_model(0)
        >>> mine = parties[0].personalise(model, X[:90:2], y[:90:2], random_state=0)
        >>> mine.predict(X[300:]).shape
        (1497,)
        """
        self._check_fitted()
        order = self._shared
        if isinstance(model, PartyModel) and model.left_out is not None:
            if order is None:
                raise AgreementError(
                    f"Party {self.name!r} has shared nothing since its fit, so the model cannot be of its share."
                )
            if not self.was_fitted_on(X) or not np.array_equal(np.asarray(y), self._target):
                raise AgreementError(
                    f"Party {self.name!r}: the model's left-out predictions are for the rows and targets of fit, in "
                    "their order. Give the same."
                )
        return personalise(
            self,
            model,
            X,
            y,
            order=order,
            public=public,
            public_target=public_target,
            prior=prior,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )
