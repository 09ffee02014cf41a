"""The privacy audit: what attackers of several kinds would learn from a party's share, before anything leaves."""

from ._assess import Assessment, Option, Risk
from ._choice import Choice, RiskLimits, choose, options_for
from ._comparison import with_defences
from ._criteria import Criterion
from ._findings import DefenceEffect, Finding, Level, Record
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
    "options_for",
    "split_public",
    "with_defences",
]
