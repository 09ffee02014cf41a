"""Comparisons of integration methods under the paper's protocol, and their reports."""

from ._comparison import Comparison, compare_methods
from ._condition import Condition
from ._figure import alignment_figure, disagreement, score_figure
from ._methods import BASELINES, METHODS, check_methods, method
from ._page import comparison_page, verdicts
from ._trial import Score, Trial, draw_trial, score_method

__all__ = [
    "BASELINES",
    "METHODS",
    "Comparison",
    "Condition",
    "Score",
    "Trial",
    "alignment_figure",
    "check_methods",
    "compare_methods",
    "comparison_page",
    "disagreement",
    "draw_trial",
    "method",
    "score_figure",
    "score_method",
    "verdicts",
]
