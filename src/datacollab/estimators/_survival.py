"""Data collaboration for times to an event in one process, behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, Interval, StrOptions
from ..analyst import LTI, Analyst, BaseIntegrator
from ..errors import AgreementError
from ..party import Defence
from ..share import Share
from ..survival import CoxRegression, concordance_index
from ..targets import TargetKind, named_target, target_kind
from ._roles import BaseDataCollaboration


class DataCollaborationSurvival(BaseDataCollaboration):
    """Data collaboration for survival analysis, all roles in one process.

    Built on `Party`, `Analyst` and `PartyModel`, so it predicts what the real roles would.  For trying out methods on
    data that may be in one place; a real collaboration uses the roles themselves.

    Parameters
    ----------
    obfuscator : transformer, mapping of party to transformer, or callable, default=None
        f_k, as in `DataCollaborationClassifier`.
    integrator : BaseIntegrator or None, default=None
        How representations are aligned.  None takes `LTI` with an intercept and as many components as the narrowest
        share has columns.  With maps that keep all of a table's columns, Cox regression is then that of the pooled
        table.
    estimator : SurvivalModel or None, default=None
        h: `datacollab.survival.CoxRegression`, which None takes, or `datacollab.survival.SurvivalForest`.
    strata : {"party"} or None, default="party"
        Whether each party has risks of its own over time, with common hazard ratios.
    time_step : float, "auto" or None, default="auto"
        To multiples of what parties round times up before they share them; see `Party`.
    fit_on, defences, shuffle, party_column, n_jobs, random_state
        As in `DataCollaborationClassifier`.

    Attributes
    ----------
    parties_ : dict of party to Party
    models_ : dict of party to PartyModel
    collaboration_ : Collaboration

    Examples
    --------
    >>> import numpy as np
    >>> import datacollab as dc
    >>> from datacollab.targets import survival_target
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(300, 4))
    >>> time = generator.exponential(np.exp(-X[:, 0]))
    >>> y = survival_target(time < 3, np.minimum(time, 3))
    >>> hospital = np.repeat(["a", "b", "c"], 100)
    >>> anchor = generator.normal(size=(200, 4))
    >>> model = dc.DataCollaborationSurvival(dc.obfuscator("pca", 4), random_state=0)
    >>> model.fit(X, y, groups=hospital, anchor=anchor).predict_survival(X[:2], [0.5, 1.0], groups=hospital[:2]).shape
    (2, 2)
    >>> bool(model.score(X, y, groups=hospital) > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseDataCollaboration._parameter_constraints,
        "strata": [StrOptions({"party"}), None],
        "time_step": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
    }
    __metadata_request__predict_survival: ClassVar = {"groups": True}

    def __init__(
        self,
        obfuscator: Any = None,
        integrator: BaseIntegrator | None = None,
        estimator: Any = None,
        *,
        strata: str | None = "party",
        time_step: float | str | None = "auto",
        fit_on: Any = None,
        defences: Sequence[Defence] = (),
        shuffle: bool = True,
        party_column: str | int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            obfuscator,
            integrator,
            estimator,
            fit_on=fit_on,
            defences=defences,
            shuffle=shuffle,
            party_column=party_column,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.strata = strata
        self.time_step = time_step

    def predict_survival(self, X: ArrayLike, times: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Probability of no event up to each time, each row by its own party's model.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
        times : array-like of shape (n_times,)
            Up to the end of the observation of every party that is asked.
        groups : array-like of shape (n_samples,), optional
            Owner of each row.  Needed unless `party_column` is set.

        Returns
        -------
        ndarray of shape (n_samples, n_times)

        Raises
        ------
        UnknownPartyError
            When a row's owner took no part in `fit`.
        ValueError
            When a time is beyond the end of a party's observation.
        """
        return self._by_party("predict_survival", X, groups, times)

    def score(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None) -> float:
        """Harrell's concordance index of the log risks, over pairs within and between parties."""
        return concordance_index(self._target(y), self.predict(X, groups=groups))

    def _default_integrator(self) -> BaseIntegrator:
        return LTI(fit_intercept=True)

    def _default_estimator(self) -> Any:
        return CoxRegression() if self.estimator is None else self.estimator

    def _integrator_for(self, shares: Sequence[Share]) -> BaseIntegrator:
        return LTI(min(share.representation.shape[1] for share in shares), fit_intercept=True)

    def _analyst(self, integrator: Any, estimator: Any) -> Analyst:
        return Analyst(integrator, estimator, strata=self.strata)

    def _party_options(self) -> dict[str, Any]:
        return {"time_step": self.time_step}

    def _target(self, y: ArrayLike) -> NDArray[Any]:
        return self._checked_target(np.asarray(y))

    def _anchor_target(self, anchor_target: ArrayLike) -> NDArray[Any]:
        return self._checked_anchor_target(np.asarray(anchor_target))

    def _checked_anchor_target(self, anchor_target: NDArray[Any]) -> NDArray[Any]:
        return self._checked_target(anchor_target)

    def _checked_target(self, y: NDArray[Any]) -> NDArray[Any]:
        if target_kind(y) is not TargetKind.SURVIVAL:
            raise AgreementError(
                f"Expected times to an event as targets (see datacollab.targets.survival_target), got {y.dtype}."
            )
        return named_target(y)
