"""The privacy audit: attacks of several kinds on a party's share, made before anything leaves.

* Party, rows and attackers: `_run`, `_scenario`, `_levels`.
* Attacks and their measures: `_trials`, `_measure`.
* Findings and ratings: `_findings`; the result and how it is shown: `_result`, `_page`.
* The most useful way of sharing: `_choice`.
"""

from ._choice import Assessment, Choice, Option, Risk, RiskLimits, choose, options_for, with_defences
from ._findings import Criterion, DefenceEffect, Finding, Level, Record, mean_findings
from ._result import AuditResult
from ._run import audit
from ._scenario import split_public

__all__ = [
    "Assessment",
    "AuditResult",
    "Choice",
    "Criterion",
    "DefenceEffect",
    "Finding",
    "Level",
    "Option",
    "Record",
    "Risk",
    "RiskLimits",
    "audit",
    "choose",
    "mean_findings",
    "options_for",
    "split_public",
    "with_defences",
]
