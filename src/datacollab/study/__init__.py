"""Statistics of a study that are sums over all parties' rows: the analyst learns the totals alone."""

from ._description import COUNT_NOISE, ColumnDescription, Counts, CountsResult, Description, DescriptionResult
from ._least_squares import LeastSquares, LeastSquaresResult
from ._plan import CategoryColumn, NumberColumn, ResultTable, Statistic, StatisticResult, StudyPlan, new_secret

__all__ = [
    "COUNT_NOISE",
    "CategoryColumn",
    "ColumnDescription",
    "Counts",
    "CountsResult",
    "Description",
    "DescriptionResult",
    "LeastSquares",
    "LeastSquaresResult",
    "NumberColumn",
    "ResultTable",
    "Statistic",
    "StatisticResult",
    "StudyPlan",
    "new_secret",
]
