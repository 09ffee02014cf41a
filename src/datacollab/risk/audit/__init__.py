"""The privacy audit: attacks of several kinds on a party's share, made before anything leaves."""

from ._choice import Assessment, Choice, Option, Risk, RiskLimits, choose, options_for
from ._findings import Criterion, Finding, Level, Record, mean_findings
from ._result import AuditResult
from ._run import audit
from ._scenario import split_public

__all__ = [
    "Assessment",
    "AuditResult",
    "Choice",
    "Criterion",
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
]
