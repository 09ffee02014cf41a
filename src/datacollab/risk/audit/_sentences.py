"""Findings as sentences in natural frequencies, and a result as plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ._criteria import grouped, joined, shown, strength
from ._facts import AuditFacts
from ._findings import Finding, Level, metric_of

__all__ = ["STOPPED_EARLY", "Sentence", "facts", "proven_text", "sentence_of", "summary_text"]

_CLOSED = ("linkage", "re-identification@1")
_OPEN = ("open-world linkage", "open-world re-identification")
Count = Callable[[float], str]


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """What a threat level comes to.

    Attributes
    ----------
    level : Level
    text : str
    finding : Finding or None
        What the sentence says in words; None where the level was not tried.
    base : int
        Out of how many is counted.
    """

    level: Level
    text: str
    finding: Finding | None
    base: int = 100

    @property
    def count(self) -> str:
        """How many out of `base`."""
        return "" if self.finding is None else _counter(self.base)(self.finding.value)


def sentence_of(result: AuditFacts, level: Level) -> Sentence:
    """Say what the strongest attack of a threat level would achieve."""
    findings = [finding for finding in result.findings if finding.level == level.name and finding.is_measured]
    for metrics, say in (
        (_CLOSED, _pointing),
        (_OPEN, _pointing),
        (("membership AUC",), _telling_apart),
        (("membership TPR",), _recognising),
        (("training rows in files",), _finding_rows),
    ):
        strongest = _strongest(findings, metrics)
        if strongest is not None:
            text = say(result, level, strongest)
            if strongest.is_inconclusive and say is not _finding_rows:
                text += " Inconclusive: the attack was too weak to show anything."
            base = 100 if say is _telling_apart else _base(result)[0]
            return Sentence(level=level, text=text, finding=strongest, base=base)
    return Sentence(level=level, text="Not tested.", finding=None)


def _strongest(findings: Sequence[Finding], metrics: Sequence[str]) -> Finding | None:
    return max((one for one in findings if one.metric in metrics), key=strength, default=None)


def _pointing(result: AuditFacts, level: Level, finding: Finding) -> str:
    base, records = _base(result)
    count = _counter(base)
    text = (
        f"Of {records}, {_attacker(level, finding)} would correctly point to {count(finding.value)}"
        f"{_interval(finding, count)}; {_without(finding, count)}."
    )
    strangers = result.n_open_candidates - result.n_candidates
    if finding.metric in _OPEN:
        return f"{text} The candidates are {grouped(result.n_open_candidates)}, strangers among them."
    hidden = _strongest([one for one in result.findings if one.level == level.name and one.is_measured], _OPEN)
    if hidden is None or strangers <= 0:
        return text
    return f"{text} With {grouped(strangers)} strangers among the candidates, to {count(hidden.value)}."


def _telling_apart(result: AuditFacts, level: Level, finding: Finding) -> str:
    count = _counter(100)
    return (
        f"Shown one of your records and one of a stranger, {_attacker(level, finding)} would tell which is yours "
        f"{count(finding.value)} times out of 100{_interval(finding, count)}; {_without(finding, count)}."
    )


def _recognising(result: AuditFacts, level: Level, finding: Finding) -> str:
    base, records = _base(result)
    count = _counter(base)
    return (
        f"Of {records}, {_attacker(level, finding)} would recognise {count(finding.value)} as belonging to your table"
        f"{_interval(finding, count)}, taking 1 stranger in 100 for one of them; {_without(finding, count)}."
    )


def _finding_rows(result: AuditFacts, level: Level, finding: Finding) -> str:
    base, records = _base(result)
    if finding.value <= 0:
        return (
            f"None of {records} was found as plain numbers in what {_attacker(level, finding)} has; a search can miss."
        )
    stored = _counter(base)(finding.value)
    return (
        f"Of {records}, {stored} stand as plain numbers in what {_attacker(level, finding)} has: no attack is needed."
    )


def _base(result: AuditFacts) -> tuple[int, str]:
    """How many records a sentence counts by, and how it calls them."""
    if result.n_candidates == result.n_attacked == result.n_rows:
        return result.n_rows, f"your {grouped(result.n_rows)} records"
    return 100, f"every 100 of your records, sought among {grouped(result.n_candidates)} at a time"


def _counter(base: int) -> Count:
    """Turn shares into whole numbers of records out of a base."""
    return lambda share: grouped(round(share * base))


def _attacker(level: Level, finding: Finding) -> str:
    holds = joined(level.holds)
    if finding.leak in ("nothing", "") or finding.leak in level.holds:
        return f"an attacker who holds {holds}"
    return f"an attacker who holds {holds} (here: {finding.leak})"


def _interval(finding: Finding, count: Count) -> str:
    if finding.low is None or finding.high is None:
        return ""
    return f" (95 % interval {count(finding.low)} to {count(finding.high)})"


def _without(finding: Finding, count: Count) -> str:
    if finding.baseline is not None:
        return f"knowing labels alone, {count(finding.baseline)}"
    return f"by guessing, {count(finding.floor)}"


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
    """Ratings, sentences, records and gaps, one line each."""
    lines = [f"Privacy audit of party {result.party!r}", f"  {'; '.join(facts(result))}"]
    if not result.complete:
        lines.append(f"  {STOPPED_EARLY}")
    lines.append("")
    for criterion in result.all_criteria():
        reason = criterion.reason + proven_text(result, criterion.name)
        lines.append(f"  {criterion.name:<13} {criterion.rating.upper():<13} {reason}")
    lines.append("")
    lines += [f"  {level.name:<4} {sentence_of(result, level).text}" for level in result.levels]
    lines += ["", f"  Worst-placed records (positions): {worst_text(result)}"]
    if result.guarantee is not None:
        lines.append(f"  Guarantee: {result.guarantee}")
    lines += [f"  Not tested: {what}" for what in result.not_tested]
    return "\n".join(lines)
