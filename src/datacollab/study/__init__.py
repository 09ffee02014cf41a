"""Statistics of a study that are sums over all parties' rows: the analyst learns the totals alone."""

from ._additive_hazards import AdditiveHazards, AdditiveHazardsResult
from ._cells import COUNT_NOISE
from ._description import ColumnDescription, Counts, CountsResult, Description, DescriptionResult
from ._effect import MAPPED, Difference, Effect, EffectResult, effect_map
from ._least_squares import LeastSquares, LeastSquaresResult
from ._membership import StudyMembership, measured_study_membership
from ._plan import CategoryColumn, NumberColumn, Refused, ResultTable, Statistic, StatisticResult, StudyPlan, new_secret
from ._survival import Survival, SurvivalCurve, SurvivalResult

__all__ = ["COUNT_NOISE", "MAPPED", "AdditiveHazards", "AdditiveHazardsResult", "CategoryColumn", "ColumnDescription"]
__all__ += ["Counts", "CountsResult", "Description", "DescriptionResult", "Difference", "Effect", "EffectResult"]
__all__ += ["LeastSquares", "LeastSquaresResult", "NumberColumn", "Refused", "ResultTable", "Statistic"]
__all__ += ["StatisticResult", "StudyMembership", "StudyPlan", "Survival", "SurvivalCurve", "SurvivalResult"]
__all__ += ["effect_map", "measured_study_membership", "new_secret"]
