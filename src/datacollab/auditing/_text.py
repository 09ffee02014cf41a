"""A result in plain words, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._wording import grouped

if TYPE_CHECKING:
    from ._result import AuditResult

__all__ = ["STOPPED_EARLY", "facts", "summary_text", "worst_text"]

STOPPED_EARLY = "The time budget ended this audit early: what was not tried may be worse than what was."


def facts(result: AuditResult) -> list[str]:
    """What was audited, in a few short phrases."""
    attacked = "" if result.n_attacked >= result.n_rows else f", {grouped(result.n_attacked)} of them under attack"
    return [
        f"{grouped(result.n_rows)} records{attacked}",
        f"obfuscator {result.obfuscator}",
        f"{grouped(result.n_components)} columns shared",
        f"{grouped(result.n_anchors)} anchor rows",
    ]


def worst_text(result: AuditResult) -> str:
    """The worst-placed records by position, the first record being 0."""
    return ", ".join(str(record.index) for record in result.worst_records) or "none listed"


def summary_text(result: AuditResult) -> str:
    """Lights, sentences, records and gaps, one line each."""
    lines = [f"Privacy audit of party {result.party!r}", f"  {'; '.join(facts(result))}"]
    if not result.complete:
        lines.append(f"  {STOPPED_EARLY}")
    lines.append("")
    for criterion in result.all_criteria():
        lines.append(f"  {criterion.name:<13} {criterion.light.upper():<13} {criterion.reason}")
    lines.append("")
    lines += [f"  {name:<4} {sentence}" for name, sentence in result.sentences().items()]
    lines += ["", f"  Worst-placed records (positions): {worst_text(result)}"]
    if result.guarantee is not None:
        lines.append(f"  Guarantee: {result.guarantee}")
    lines += [f"  Not tested: {what}" for what in result.not_tested]
    return "\n".join(lines)
