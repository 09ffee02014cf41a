"""Ratings: what the findings come to, criterion by criterion, and how they are said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ._findings import AMBER_LIMIT, OPEN_WORLD_LIMIT, Finding, metric_of

__all__ = [
    "RATINGS",
    "Criterion",
    "Rating",
    "criterion_of",
    "decimal",
    "grouped",
    "joined",
    "percent",
    "rating_of",
    "shown",
    "strength",
]


def shown(value: float | None, metric: str) -> str:
    """A value in the form of its measure: per cent, or two decimals."""
    return percent(value) if metric_of(metric).is_share else decimal(value)


def percent(value: float | None) -> str:
    """A share in per cent, with one decimal below ten; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{100 * value:.{1 if 0 < 100 * value < 9.95 else 0}f} %"


def decimal(value: float | None) -> str:
    """A number with two decimals and a true minus sign; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.2f}"
    return (text[1:] if float(text) == 0 and text.startswith("-") else text).replace("-", "−")


def grouped(count: int) -> str:
    """A count with its thousands set apart."""
    return f"{count:,}"


def joined(items: Sequence[str]) -> str:
    """A list in a sentence: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


_HOLDS = MappingProxyType(
    {
        "T0": "the share and public rows",
        "T1": "the share and some anchor rows",
        "T2": "the share and all anchor rows",
        "T2f": "all anchor rows and their representation",
        "T3": "collaboration representations and all anchor rows",
        "T4": "the file",
    }
)
_FROM_A_LIST = ("linkage", "re-identification", "open-world", "membership")


def attacker_class(level: str, metric: str) -> str:
    """What the attackers of a level hold who are measured by a metric, to be read after "whoever holds".

    Rows are linked to, and members told from, the records on a list of candidates, which the attacker has.
    """
    listed = " and a list of candidates" if metric.startswith(_FROM_A_LIST) else ""
    holds = _HOLDS[level].replace(" and ", ", ") if listed else _HOLDS[level]
    return f"{holds}{listed}"


Rating = Literal["red", "amber", "green", "inconclusive", "not tested"]
RATINGS: tuple[Rating, ...] = ("red", "amber", "inconclusive", "green", "not tested")
"""Worst first: an attack that shows nothing is no reason for green."""
_STRONGEST: tuple[Rating, ...] = ("red", "amber", "green", "inconclusive", "not tested")
_OPEN = ("singling out", "linkability")
"""Criteria for which strangers among the candidates make a difference."""

# .14 - .09 is not .05 in floating-point numbers.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """What the findings of one criterion come to.

    Attributes
    ----------
    name : str
        "singling out", "linkability", "inference" or "membership".
    rating : {"red", "amber", "green", "inconclusive", "not tested"}
    finding : Finding or None
        The finding that decides: of those with this rating, that with the largest excess over the labels alone.
    reason : str
        Why, in one or two sentences.
    """

    name: str
    rating: Rating
    finding: Finding | None
    reason: str


def rating_of(finding: Finding) -> Rating:
    """Grade one finding at the upper end of its interval.

    An attack that does no better than the labels alone was too weak to show anything: "inconclusive", not "green".
    """
    if not finding.is_measured:
        return "not tested"
    metric = metric_of(finding.metric)
    absolute = finding.upper - _ROUNDING if metric.is_open else 0.0
    green, amber = metric.limits
    if absolute > AMBER_LIMIT or (finding.excess - _ROUNDING > amber and not finding.is_inconclusive):
        return "red"
    if absolute > OPEN_WORLD_LIMIT or (finding.excess - _ROUNDING > green and not finding.is_inconclusive):
        return "amber"
    if metric.is_partial:
        # Over all columns together, a single one that is disclosed hardly counts.
        return "not tested"
    return "inconclusive" if finding.is_inconclusive else "green"


def strength(finding: Finding) -> tuple[int, float]:
    """Sort key among attacks with one aim: what shows something before what shows nothing, then by the upper end."""
    return -_STRONGEST.index(rating_of(finding)), finding.excess


def criterion_of(findings: Iterable[Finding], name: str) -> Criterion:
    """Judge a criterion: the strongest attack on each measure, at its upper end and any level; of these the worst."""
    graded = [finding for finding in findings if metric_of(finding.metric).criterion == name]
    graded = [finding for finding in graded if rating_of(finding) != "not tested"]
    strongest: dict[str, Finding] = {}
    for finding in graded:
        strongest[finding.metric] = max(strongest.get(finding.metric, finding), finding, key=_telling)
    # A search that found nothing speaks only where nothing else does.
    telling = [one for one in strongest.values() if not (metric_of(one.metric).is_search and one.value <= 0)]
    # All columns together speak only where none was named.
    named = [one for one in telling if not metric_of(one.metric).is_partial]
    judged = [(rating_of(finding), finding) for finding in named or telling or strongest.values()]
    if not judged:
        return Criterion(name=name, rating="not tested", finding=None, reason="No attack of this kind was made.")
    rating = min((rating for rating, _ in judged), key=RATINGS.index)
    deciding = max((finding for found, finding in judged if found == rating), key=lambda finding: finding.excess)
    reason = _reason(rating, deciding)
    if rating == "green" and name in _OPEN and not any(metric_of(metric).is_open for metric in strongest):
        reason += " Not measured among strangers."
    return Criterion(name=name, rating=rating, finding=deciding, reason=reason)


def _telling(finding: Finding) -> tuple[float, float]:
    """`strength`, but that the narrow interval of one attack does not make up for the wide one of another."""
    rating, excess = strength(finding)
    is_wide = rating_of(finding) == "inconclusive" and excess - _ROUNDING > metric_of(finding.metric).limits[0]
    return (0.5 - _STRONGEST.index("green") if is_wide else rating), excess


def _reason(rating: Rating, finding: Finding) -> str:
    name = finding.metric
    upper = "" if finding.high is None else f" (at most {shown(finding.high, name)} by the attacks tried)"
    reached = metric_of(name).said.format(value=shown(finding.value, name) + upper, name=name.partition(" ")[2])
    without = ""
    if finding.baseline is not None:
        without = f" Labels alone: {shown(finding.baseline, name)}."
    elif finding.chance is not None:
        without = f" Guessing: {shown(finding.chance, name)}."
    verdict = ""
    if rating == "inconclusive":
        verdict = " Inconclusive: the attacks were too weak to show anything."
    elif finding.is_inconclusive:
        verdict = " The share adds nothing to that, yet it is much in itself."
    return f"{finding.level}, whoever holds {attacker_class(finding.level, name)}: {reached}.{without}{verdict}"
