"""Comparisons of integration methods under the paper's protocol, its experiments, and their results."""

from ._attackers import MLPAttack, PseudoinverseAttack
from ._comparison import Comparison, compare_methods, verdicts
from ._condition import Condition
from ._definition import AUDIT, Attacks, Experiment, definition_text, experiment_names, load_experiment, preset_names
from ._figure import alignment_figure, disagreement, score_figure
from ._methods import BASELINES, METHODS, check_methods, method
from ._results import SECONDS, ExperimentResults, Row, read_results, take_rows
from ._run import TrialTask, make_tasks, run_experiments
from ._trial import Score, Trial, draw_trial, score_method

__all__ = [
    "AUDIT",
    "BASELINES",
    "METHODS",
    "SECONDS",
    "Attacks",
    "Comparison",
    "Condition",
    "Experiment",
    "ExperimentResults",
    "MLPAttack",
    "PseudoinverseAttack",
    "Row",
    "Score",
    "Trial",
    "TrialTask",
    "alignment_figure",
    "check_methods",
    "compare_methods",
    "definition_text",
    "disagreement",
    "draw_trial",
    "experiment_names",
    "load_experiment",
    "make_tasks",
    "method",
    "preset_names",
    "read_results",
    "run_experiments",
    "score_figure",
    "score_method",
    "take_rows",
    "verdicts",
]
