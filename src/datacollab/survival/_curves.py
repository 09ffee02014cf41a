"""What all models of a log risk and a baseline have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..errors import AgreementError
from ._baseline import Baseline, breslow_baseline
from ._concordance import concordance_index
from ._rows import SurvivalRows

__all__ = ["SurvivalModel", "baselines_of"]


class SurvivalModel(ABC):
    r"""A log risk η for each row, and Λ₀ for each stratum: :math:`S(t \mid x) = \exp(-\Lambda_0(t) e^{\eta(x)})`.

    Attributes
    ----------
    baselines_ : dict of stratum to Baseline
        Of the one key None where the model was fitted without strata.
    """

    baselines_: Mapping[Any, Baseline]

    @abstractmethod
    def predict(self, X: ArrayLike) -> FloatArray:
        """The log risk of each row, shape (n_rows,)."""

    def predict_cumulative_hazard(self, X: ArrayLike, times: ArrayLike, stratum: Hashable = None) -> FloatArray:
        """Λ(t | x) of each row at each time.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        times : array-like of shape (n_times,)
            From 0 to the end of the observation of the stratum.
        stratum : optional
            Whose baseline is taken.  None takes the only one there is.

        Returns
        -------
        ndarray of shape (n_rows, n_times)

        Raises
        ------
        AgreementError
            When the stratum is not known, or several are and none is named.
        ValueError
            When a time is beyond the end of the observation.
        """
        baseline = self._baseline(stratum)(times)
        # Added as logarithms, so that no risk is too large for a hazard of 0.
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.exp(self.predict(X)[:, None] + np.log(baseline)))

    def predict_survival(self, X: ArrayLike, times: ArrayLike, stratum: Hashable = None) -> FloatArray:
        """Probability of no event up to each time, shape (n_rows, n_times); see `predict_cumulative_hazard`."""
        return np.exp(-self.predict_cumulative_hazard(X, times, stratum))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Harrell's concordance index of the log risk; see `concordance_index`."""
        return concordance_index(y, self.predict(X))

    def for_party(self, party: Hashable) -> Self:
        """The same model with all of its baselines that a party should get: its own, or the one that all share.

        Parameters
        ----------
        party : str or int
            One of the strata, where there are any.

        Raises
        ------
        AgreementError
            When there are strata, and the party is none of them.
        """
        if self.baselines_.keys() == {None}:
            return self
        alone = copy(self)
        alone.baselines_ = {party: self._baseline(party)}
        return alone

    def _baseline(self, stratum: Hashable) -> Baseline:
        if stratum is None and len(self.baselines_) == 1:
            return next(iter(self.baselines_.values()))
        if stratum not in self.baselines_:
            known = ", ".join(repr(name) for name in list(self.baselines_)[:10])
            asked = "none was named" if stratum is None else f"got {stratum!r}"
            raise AgreementError(f"The model has baselines of the strata {known}; {asked}. Name one of them.")
        return self.baselines_[stratum]


def baselines_of(rows: SurvivalRows, log_risk: FloatArray, min_events: int) -> dict[Any, Baseline]:
    """Breslow's estimate of each stratum.

    Parameters
    ----------
    rows : SurvivalRows
    log_risk : ndarray of shape (n_rows,)
    min_events : int
        Of each step.
    """
    return {
        name: breslow_baseline(rows.of(number), log_risk[rows.stratum == number], min_events)
        for number, name in enumerate(rows.strata)
        if (rows.stratum == number).any()
    }
