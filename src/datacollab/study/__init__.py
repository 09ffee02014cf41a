"""Statistics that are sums over all parties' rows, ridge regression among them, and the one plan of a message."""

from ..sums._ridge_regression import TARGET, RidgeRegression, RidgeResult
from ..sums._statistic import (
    COUNT_NOISE,
    MAPPED,
    RIDGE_MOVED,
    Refused,
    ResultTable,
    Statistic,
    StatisticResult,
    new_secret,
)
from ..sums._sums_plan import StudyPlan
from ._additive_hazards import AdditiveHazards, AdditiveHazardsResult
from ._columns import CategoryColumn, NumberColumn
from ._description import ColumnDescription, Counts, CountsResult, Description, DescriptionResult
from ._effect import Difference, Effect, EffectResult, effect_map
from ._event_rounds import HazardRound, PoissonRound
from ._grouped_regression import GroupedLogistic, GroupedPoisson
from ._groups import deal
from ._least_squares import LeastSquares, LeastSquaresResult
from ._membership import StudyMembership, study_membership_figures
from ._meta_analysis import AcrossParties, MetaAnalysis, MetaAnalysisResult
from ._model_validation import ModelValidation, ModelValidationResult
from ._ratios import RatioResult
from ._rounds import LogisticRound, RoundResult, RoundsSoFar
from ._survival import Survival, SurvivalCurve, SurvivalResult

__all__ = ["COUNT_NOISE", "MAPPED", "RIDGE_MOVED", "TARGET", "AdditiveHazards", "AdditiveHazardsResult"]
__all__ += ["CategoryColumn", "ColumnDescription", "Counts", "CountsResult", "Description", "DescriptionResult"]
__all__ += ["Difference", "Effect", "EffectResult", "GroupedLogistic", "GroupedPoisson"]
__all__ += ["HazardRound", "LogisticRound", "PoissonRound", "RatioResult", "RoundResult", "RoundsSoFar"]
__all__ += ["LeastSquares", "LeastSquaresResult", "NumberColumn", "Refused"]
__all__ += ["ResultTable", "RidgeRegression", "RidgeResult", "Statistic", "StatisticResult", "StudyMembership"]
__all__ += ["StudyPlan", "Survival", "SurvivalCurve", "SurvivalResult", "deal", "effect_map"]
__all__ += ["AcrossParties", "MetaAnalysis", "MetaAnalysisResult", "ModelValidation", "ModelValidationResult"]
__all__ += ["new_secret", "study_membership_figures"]
