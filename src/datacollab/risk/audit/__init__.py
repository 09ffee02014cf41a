"""The privacy audit: what attackers of several kinds would learn from a party's share, before anything leaves.

Files by what they are for:

* What is attacked, and by whom: `_run`, `_recipe`, `_scenario`, `_scenario_targets`, `_named_targets`, `_alignment`,
  `_levels`, `_attacker_class`, `_attacks`, `_known_targets`.
* Attacks: `_trials`, `_forward`, `_membership`, `_demixing`, `_group_rows`, `_shadows`, `_collusion`.
* What they come to: `_measure`, `_metrics`, `_findings`, `_criteria`, `_statements`, `_facts`, `_result`,
  `_comparison`.
* The most useful way of sharing: `_choice`, `_assess`, `_frontier_plot`.
* How it is shown: `_sentences`, `_wording`, `_text`, `_table`, `_json`, `_plot`, `_page`, `_appendix`, `_html`,
  `_bar`, `_style`.
"""

from ._assess import Assessment, Option, Risk
from ._choice import Choice, RiskLimits, choose, options_for
from ._comparison import with_defences
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
