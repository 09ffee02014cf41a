"""All findings as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._validation import require
from ._criteria import light_of
from ._findings import Finding
from ._metrics import metric_of

__all__ = ["findings_frame", "findings_rows"]


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
            "light": light_of(finding) if metric_of(finding.metric).criterion else "",
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
