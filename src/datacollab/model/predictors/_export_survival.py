"""Cox regressions and survival forests as chains of steps and a baseline."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ...errors import ExchangeError
from ...survival import CoxRegression, SurvivalForest, SurvivalModel
from ._chain import Chain
from ._columns import Affine, LogFloor, Scale
from ._export_trees import forest_of
from ._parts import MOST_NUMBER
from ._sent import floats
from ._survival import ReceivedSurvival

__all__ = ["SENDABLE_SURVIVAL", "sent_survival"]

SENDABLE_SURVIVAL = (CoxRegression.__name__, SurvivalForest.__name__)


def sent_survival(estimator: SurvivalModel) -> ReceivedSurvival:
    """A fitted survival model as it will be received.

    Parameters
    ----------
    estimator : SurvivalModel
        Of one baseline: see `SurvivalModel.for_party`.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, where it is not fitted, of another class, or has several baselines.
    """
    if isinstance(estimator, ReceivedSurvival):
        return estimator
    name = type(estimator).__name__
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise ExchangeError("MODEL_UNSUPPORTED", f"The {name} is not fitted. Train it before it is sent.") from None
    if len(estimator.baselines_) != 1:
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"The {name} has baselines of {len(estimator.baselines_)} strata, and a party gets its own alone. Take "
            "for_party of the model.",
        )
    ((stratum, baseline),) = estimator.baselines_.items()
    baseline_of = "common" if stratum is None else "own"
    # Not isinstance: a subclass may predict otherwise.
    if type(estimator) is CoxRegression:
        n_columns = len(estimator.coef_)
        centred = Scale(floats(estimator.mean_), np.ones(n_columns))
        times = Affine(floats(estimator.coef_)[:, None], np.zeros(1))
        covariance = floats(estimator.covariance_)
        return ReceivedSurvival(
            Chain((centred, times)), baseline, name=name, baseline_of=baseline_of, covariance=covariance
        )
    if type(estimator) is SurvivalForest:
        trees = forest_of(estimator.estimators_, estimator.n_features_in_)
        # Every leaf has an event, so no risk is 0, and the floor is never reached.
        chain = Chain((trees, LogFloor(1, 1 / MOST_NUMBER)))
        return ReceivedSurvival(chain, baseline, name=name, baseline_of=baseline_of)
    raise ExchangeError(
        "MODEL_UNSUPPORTED",
        f"A survival model of type {name} cannot be sent. Train one of {', '.join(SENDABLE_SURVIVAL)}.",
    )
