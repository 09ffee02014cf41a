"""A result in plain words, for a terminal."""

from __future__ import annotations

from ._facts import AuditFacts
from ._metrics import metric_of
from ._sentences import sentence_of
from ._wording import grouped, shown

__all__ = ["BY_LOT", "STOPPED_EARLY", "facts", "proven_text", "summary_text", "worst_text"]

BY_LOT = (
    "No shared row stands for one of yours: for linkage, each was paired with one at random, so that what is linked or "
    "singled out is chance, and the more of it the fewer rows there are."
)
STOPPED_EARLY = "The time budget ended this audit early: what was not tried may be worse than what was."


def facts(result: AuditFacts) -> list[str]:
    """What was audited, in a few short phrases."""
    attacked = "" if result.n_attacked >= result.n_rows else f", {grouped(result.n_attacked)} of them under attack"
    return [
        f"{grouped(result.n_rows)} records{attacked}",
        f"obfuscator {result.obfuscator}",
        f"{grouped(result.n_components)} columns shared",
        f"{grouped(result.n_anchors)} anchor rows",
    ]


def proven_text(result: AuditFacts, criterion: str) -> str:
    """What no attack exceeds, after a criterion's reason; empty where nothing is proven about it."""
    told = [
        f"{metric.partition(' ')[2]} {shown(bound, metric)}"
        for metric, bound in result.proven.items()
        if metric_of(metric).criterion == criterion
    ]
    return f" Proven, for any attack on the share: {', '.join(told)} at most." if told else ""


def worst_text(result: AuditFacts) -> str:
    """The worst-placed records by position, the first record being 0."""
    return ", ".join(str(record.index) for record in result.worst_records) or "none listed"


def summary_text(result: AuditFacts) -> str:
    """Lights, sentences, records and gaps, one line each."""
    lines = [f"Privacy audit of party {result.party!r}", f"  {'; '.join(facts(result))}"]
    if not result.complete:
        lines.append(f"  {STOPPED_EARLY}")
    lines.append("")
    for criterion in result.all_criteria():
        reason = criterion.reason + proven_text(result, criterion.name)
        lines.append(f"  {criterion.name:<13} {criterion.light.upper():<13} {reason}")
    if BY_LOT in result.assumptions:
        lines.append(f"  {BY_LOT}")
    lines.append("")
    lines += [f"  {level.name:<4} {sentence_of(result, level).text}" for level in result.levels]
    lines += ["", f"  Worst-placed records (positions): {worst_text(result)}"]
    if result.guarantee is not None:
        lines.append(f"  Guarantee: {result.guarantee}")
    lines += [f"  Not tested: {what}" for what in result.not_tested]
    return "\n".join(lines)
