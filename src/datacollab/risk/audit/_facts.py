"""What an audit measured, which knows of no text, page or figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._criteria import Criterion, criterion_of
from ._findings import DefenceEffect, Finding, Level, Record
from ._metrics import CRITERIA
from ._table import findings_rows

__all__ = ["AuditFacts"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditFacts:
    """What was found; `AuditResult`, where the fields are described, is this with the ways to show it."""

    party: str
    obfuscator: str
    n_rows: int
    n_attacked: int
    n_candidates: int
    n_open_candidates: int
    n_anchors: int
    n_components: int
    findings: tuple[Finding, ...]
    levels: tuple[Level, ...]
    worst_records: tuple[Record, ...] = ()
    assumptions: tuple[str, ...] = ()
    not_tested: tuple[str, ...] = ()
    defences: tuple[DefenceEffect, ...] = ()
    seeds: tuple[int, ...] | None = None
    seconds: float
    version: str
    complete: bool = True
    guarantee: str | None = None
    proven: dict[str, float] = field(default_factory=dict)

    @property
    def n_repetitions(self) -> int:
        """How often the attacks were made."""
        return 1 if self.seeds is None else len(self.seeds)

    def headline(self, criterion: str) -> Finding | None:
        """Find what decides a criterion: the strongest attack, at the upper end of its interval.

        Parameters
        ----------
        criterion : {"singling out", "linkability", "inference", "membership"}

        Returns
        -------
        Finding or None
            Of the findings with the worst light, that whose interval reaches farthest above what the labels alone
            give; None where there is none.

        Raises
        ------
        ValueError
            When there is no such criterion.
        """
        return self.criterion(criterion).finding

    def criterion(self, name: str) -> Criterion:
        """Judge one criterion.

        Parameters
        ----------
        name : {"singling out", "linkability", "inference", "membership"}

        Returns
        -------
        Criterion
            Its light is green where the finding that decides exceeds the labels alone by .05 at most, amber up to
            .20, and red above, all at the upper end of the 95 % interval.  Where strangers stand among the
            candidates, the share told may not be above .09 for green and .20 for amber either.  "inconclusive" where
            no attack did better than the labels alone: all were too weak to show anything.

        Raises
        ------
        ValueError
            When there is no such criterion.
        """
        if name not in CRITERIA:
            raise ValueError(f"Unknown criterion {name!r}; choose one of {', '.join(CRITERIA)}.")
        return criterion_of(self.findings, name)

    def criteria(self) -> tuple[Criterion, Criterion, Criterion]:
        """Judge the three criteria of the Article 29 Working Party: singling out, linkability and inference."""
        return self.all_criteria()[:3]

    def all_criteria(self) -> tuple[Criterion, Criterion, Criterion, Criterion]:
        """Judge the three criteria, and membership beside them."""
        singling_out, linkability, inference, membership = map(self.criterion, CRITERIA)
        return singling_out, linkability, inference, membership

    def rows(self) -> list[dict[str, Any]]:
        """All findings, one dictionary each."""
        return findings_rows(self.findings)
