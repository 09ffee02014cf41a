"""The privacy audit: attacks of several kinds on a party's share, made before anything leaves."""

from ._findings import LEVELS, Criterion, Finding, Level, Record, mean_findings
from ._result import AuditResult
from ._run import audit
from ._scenario import split_public

__all__ = ["LEVELS", "AuditResult", "Criterion", "Finding", "Level", "Record", "audit", "mean_findings", "split_public"]
