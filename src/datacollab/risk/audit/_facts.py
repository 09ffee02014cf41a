"""What an audit measured, which knows of no text, page or figure; and its findings as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..._validation import require
from ._criteria import Criterion, criterion_of, rating_of
from ._findings import CRITERIA, DefenceEffect, Finding, Level, Record, metric_of

__all__ = ["AuditFacts", "findings_frame"]


def findings_rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """One dictionary per finding; seeds in one text, and what the finding counts for."""
    return [
        {
            "level": finding.level,
            "leak": finding.leak,
            "metric": finding.metric,
            "attack": finding.attack,
            "value": finding.value,
            "low": finding.low,
            "high": finding.high,
            "label_only": finding.baseline,
            "chance": finding.chance,
            "mean_reconstruction": finding.mean_reconstruction,
            "control": finding.control,
            "n": finding.n,
            "per_seed": " ".join(f"{value:.4g}" for value in finding.per_seed),
            "criterion": metric_of(finding.metric).criterion or "",
            "light": rating_of(finding) if metric_of(finding.metric).criterion else "",
        }
        for finding in findings
    ]


def findings_frame(findings: Iterable[Finding]) -> Any:
    """The rows as a pandas data frame.

    Raises
    ------
    MissingExtraError
        When pandas is not installed.
    """
    return require("pandas", "cli").DataFrame(findings_rows(findings))


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
            Of the findings with the worst rating, that whose interval reaches farthest above what the labels alone
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
            Its rating is green where the finding that decides exceeds the labels alone by .05 at most, amber up to
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
