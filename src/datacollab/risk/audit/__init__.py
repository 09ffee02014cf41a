"""The privacy audit: what attackers of several kinds would learn from a party's share, before anything leaves.

Files by what they are for:

* What is attacked, and by whom: `_run`, `_scenario`, `_levels`.
* Attacks: `_trials`, `_membership`, `_demixing`.
* What they come to: `_measure`, `_findings`, `_criteria`, `_facts`, `_result`.
* The most useful way of sharing: `_choice`.
* How it is shown: `_sentences`, `_plot`, `_page`.
"""

from ._choice import Assessment, Choice, Option, Risk, RiskLimits, choose, options_for, with_defences
from ._criteria import Criterion
from ._findings import DefenceEffect, Finding, Level, Record, mean_findings
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
