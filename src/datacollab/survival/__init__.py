"""Times to an event: Cox regression, forests of relative risks, and measures of how good they are.

A model here is a log risk for each row and, for each stratum, how the hazard of the mean row adds up over time
(`Baseline`).  That is all there is of it, so both kinds can be sent as plain numbers.
"""

from ._baseline import Baseline, SurvivalModel
from ._cox import CoxRegression
from ._forest import SurvivalForest
from ._measures import (
    Calibration,
    KaplanMeier,
    LogRank,
    calibration,
    concordance_index,
    kaplan_meier,
    log_rank_test,
    plot_calibration,
    plot_kaplan_meier,
    risk_groups,
)

__all__ = ["Baseline", "Calibration", "CoxRegression", "KaplanMeier", "LogRank", "SurvivalForest", "SurvivalModel"]
__all__ += ["calibration", "concordance_index", "kaplan_meier", "log_rank_test", "plot_calibration"]
__all__ += ["plot_kaplan_meier", "risk_groups"]
