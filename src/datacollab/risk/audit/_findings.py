"""Threat levels, findings and measures as data, and the ratings that findings come to."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

GREEN_LIMIT = 0.05
AMBER_LIMIT = 0.20
OPEN_WORLD_LIMIT = 0.09
"""Largest excess over the labels alone that is still green, and amber; share among strangers (EMA, Health Canada)."""
_WORDS = tomllib.loads(Path(__file__).with_name("audit.toml").read_text(encoding="utf-8"))
CRITERIA: dict[str, str] = _WORDS["criteria"]
"""The criteria, each with its question."""
Rating = Literal["red", "amber", "green", "inconclusive", "not tested"]
RATINGS: tuple[Rating, ...] = ("red", "amber", "inconclusive", "green", "not tested")
"""Worst first: an attack that shows nothing is no reason for green."""
_STRONGEST: tuple[Rating, ...] = ("red", "amber", "green", "inconclusive", "not tested")
# .14 - .09 is not .05 in floating-point numbers.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Level:
    """Threat level: who attacks (name and title), holding which things (noun phrases), by which attacks."""

    name: str
    title: str
    holds: tuple[str, ...]
    attacks: tuple[str, ...]


_LEVELS = {each["name"]: each for each in _WORDS["levels"]}
LEVELS = {
    name: Level(name=name, title=each["title"], holds=tuple(each["holds"]), attacks=tuple(each["attacks"]))
    for name, each in _LEVELS.items()
}
"""Ordered from the weakest on."""
NEEDS: dict[str, str] = {name: each["needs"] for name, each in _LEVELS.items()}
"""What is missing where a level could not be tried."""
SAID: dict[str, str] = _WORDS["said"]
"""Sentences on what was assumed and not tested."""
NOT_FOUND: str = _WORDS["not_found"]
ATTACKS = tuple(dict.fromkeys([*chain(*(level.attacks for level in LEVELS.values())), "membership"]))
"""Names that may be asked for."""
WITH_LABELS = " + labels"
"""Ends the name of an attack that uses the targets, too."""
AVERAGED = ("kernel ridge", "kernel ridge + labels", "emulator + labels")
"""Attacks whose reconstructions, averaged, link better than each alone, mostly."""
AVERAGED_NAME = "kernel ridge and emulator, averaged"
FORWARD = "forward emulator"
EXACT_MAP = "exact map"
UNIT_SPREAD = "forward map, columns alike"
"""An estimate of f_k, or f_k itself, brings candidates to the share; the better in units of each column's spread."""
FORWARD_KNOWN = "forward map, candidates’ labels known"
"""The same among candidates of a row's class, where the list of candidates has their classes."""
DEMIXING = "demixing"
KNOWN_TARGETS = "demixing, candidates’ labels known"
SHADOWS = "shadow shares"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Measure, with its words and limits.

    If it `is_open`, strangers stand among the candidates, and `OPEN_WORLD_LIMIT` holds as well; if it `is_search`, it
    shows nothing if it finds nothing; if it `is_partial`, it can show a leak but not that there is none.
    """

    meaning: str
    criterion: str | None = None
    said: str = "{value}"
    sentence: str = _WORDS["pointed"]
    is_share: bool = True
    is_open: bool = False
    is_search: bool = False
    is_partial: bool = False
    limits: tuple[float, float] = (GREEN_LIMIT, AMBER_LIMIT)


_METRICS = {name: Metric(**entries) for name, entries in _WORDS["measures"].items()}


def kind_of(name: str) -> str:
    """Return a measure's name in the table of measures: attributes, which the auditor names, have one entry there."""
    if name.startswith("attribute "):
        return "attribute"
    return name


def metric_of(name: str) -> Metric:
    """Find a measure by its name; an unknown one is reported, and counts for no criterion."""
    return _METRICS.get(kind_of(name)) or Metric(meaning="", is_share=False)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Result of one attack on one measure, with the figures to compare it with.

    Attributes
    ----------
    level, leak, metric, attack : str
        Such as "T2", "all anchor rows" (further knowledge), "open-world linkage" or "attribute <name>", and "emulator".
    value, low, high : float or None
        NaN if it could not be measured, with the ends of the 95 % interval.
    baseline, chance, mean_reconstruction, control : float or None
        The same with the labels alone, by guessing, with the mean row every time, and on rows that are not the party's.
    n : int
        Rows attacked, over all seeds.
    per_seed : tuple of float
    """

    level: str = ""
    leak: str = ""
    metric: str
    attack: str = ""
    value: float
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    chance: float | None = None
    mean_reconstruction: float | None = None
    control: float | None = None
    n: int
    per_seed: tuple[float, ...] = ()

    @property
    def upper(self) -> float:
        """Return the upper end of the interval, or the value itself if there is none."""
        if self.high is None:
            return self.value
        return self.high

    @property
    def floor(self) -> float:
        """Return the figure without the party's share: by the labels, else by guessing, else nothing."""
        return next((value for value in (self.baseline, self.chance) if value is not None), 0.0)

    @property
    def excess(self) -> float:
        """Return how far the upper end exceeds the floor."""
        return self.upper - self.floor

    @property
    def is_inconclusive(self) -> bool:
        """Return whether the attack did no better than the labels alone, which shows nothing; False if unmeasured."""
        return self.value <= self.floor

    @property
    def is_measured(self) -> bool:
        """Return whether there is a value."""
        return not math.isnan(self.value)


@dataclass(frozen=True, kw_only=True)
class Record:
    """Record, by its position in the table alone, with its margin (`match_margins`) at the level that finds it best."""

    index: int
    margin: float
    level: str


def mean_findings(findings: Iterable[Iterable[Finding]]) -> tuple[Finding, ...]:
    """Average findings of one kind over repetitions, in the order in which kinds came first."""
    repeated: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in chain.from_iterable(findings):
        repeated.setdefault((finding.level, finding.leak, finding.metric, finding.attack), []).append(finding)
    return tuple(map(_mean, repeated.values()))


def _mean(group: list[Finding]) -> Finding:
    means: dict[str, Any] = {}
    for name in ("value", "low", "high", "baseline", "control"):
        values = [getattr(finding, name) for finding in group]
        # A mean over some repetitions alone could not stand beside the value's, which is over all.
        means[name] = None
        if None not in values:
            means[name] = math.fsum(values) / len(values)
    return replace(group[0], **means, per_seed=tuple(finding.value for finding in group))


def format_value(value: float | None, metric: str) -> str:
    """Format a value by its measure: per cent, with one decimal below ten, or two decimals; a dash stands for none."""
    if value is None or math.isnan(value) or not metric_of(metric).is_share:
        return decimal(value)
    # From 9.95 on one decimal would round to "10.0", beside "10" for a hair more.
    if 0 < 100 * value < 9.95:
        return f"{100 * value:.1f} %"
    return f"{100 * value:.0f} %"


def decimal(value: float | None) -> str:
    """Format a number with two decimals and a true minus sign; a dash stands for none."""
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.2f}"
    # A small negative number is not "−0.00".
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")


def join_words(items: Sequence[str]) -> str:
    """Join a list in a sentence: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """Verdict on "singling out", "linkability", "inference" or "membership", with its `reason` in words.

    The `finding` that decides has the largest excess over the labels alone among those with this rating.
    """

    name: str
    rating: Rating
    finding: Finding | None
    reason: str


def rating_of(finding: Finding) -> Rating:
    """Grade one finding at the upper end of its interval; an attack no better than labels alone is "inconclusive"."""
    if not finding.is_measured:
        return "not tested"
    metric = metric_of(finding.metric)
    # Among strangers the rate itself has a limit, whatever labels alone achieve: so medicines agencies judge it.
    absolute = 0.0
    if metric.is_open:
        absolute = finding.upper - _ROUNDING
    green, amber = metric.limits
    if absolute > AMBER_LIMIT or (finding.excess - _ROUNDING > amber and not finding.is_inconclusive):
        return "red"
    if absolute > OPEN_WORLD_LIMIT or (finding.excess - _ROUNDING > green and not finding.is_inconclusive):
        return "amber"
    if metric.is_partial:
        # Over all columns together, a single one that is disclosed hardly counts.
        return "not tested"
    if finding.is_inconclusive:
        return "inconclusive"
    return "green"


def strength(finding: Finding) -> tuple[int, float]:
    """Sort attacks with one aim: those that show something before those that show nothing, then by the upper end."""
    return -_STRONGEST.index(rating_of(finding)), finding.excess


def criterion_of(findings: Iterable[Finding], name: str) -> Criterion:
    """Judge a criterion by the worst of its measures, each at the upper end of its strongest attack."""
    strongest: dict[str, Finding] = {}
    for finding in findings:
        if metric_of(finding.metric).criterion == name and rating_of(finding) != "not tested":
            strongest[finding.metric] = max(strongest.get(finding.metric, finding), finding, key=_telling)
    # A search that found nothing speaks only where nothing else does.
    telling = [one for one in strongest.values() if not (metric_of(one.metric).is_search and one.value <= 0)]
    # All columns together speak only where none was named.
    named = [one for one in telling if not metric_of(one.metric).is_partial]
    judged = [(rating_of(finding), finding) for finding in named or telling or strongest.values()]
    if not judged:
        return Criterion(name=name, rating="not tested", finding=None, reason="No attack of this kind was made.")
    # The worst measure decides: one way to single somebody out is enough.
    rating = min((rating for rating, _ in judged), key=RATINGS.index)
    deciding = max((finding for found, finding in judged if found == rating), key=lambda finding: finding.excess)
    reason = _reason(rating, deciding)
    among_strangers = any(metric_of(metric).is_open for metric in strongest)
    if rating == "green" and name in ("singling out", "linkability") and not among_strangers:
        reason += " Not measured among strangers."
    return Criterion(name=name, rating=rating, finding=deciding, reason=reason)


def _telling(finding: Finding) -> tuple[float, float]:
    """Return `strength`, but so that one attack's narrow interval does not make up for another's wide one."""
    rating, excess = strength(finding)
    # An attack that shows nothing, with an interval up to amber, stands between those that are amber and green.
    if rating_of(finding) == "inconclusive" and excess - _ROUNDING > metric_of(finding.metric).limits[0]:
        return 0.5 - _STRONGEST.index("green"), excess
    return rating, excess


def _reason(rating: Rating, finding: Finding) -> str:
    name = finding.metric
    held = _LEVELS[finding.level]["held"]
    # These measures suppose an attacker who knows whom to look for.
    if name.startswith(("linkage", "re-identification", "open-world", "membership")):
        held = f"{held.replace(' and ', ', ')} and a list of candidates"
    upper = ""
    if finding.high is not None:
        upper = f" (at most {format_value(finding.high, name)} by the attacks tried)"
    reached = metric_of(name).said.format(value=format_value(finding.value, name) + upper, name=name.partition(" ")[2])
    without = ""
    if finding.baseline is not None:
        without = f" Labels alone: {format_value(finding.baseline, name)}."
    elif finding.chance is not None:
        without = f" Guessing: {format_value(finding.chance, name)}."
    verdict = ""
    if rating == "inconclusive":
        verdict = " Inconclusive: the attacks were too weak to show anything."
    elif finding.is_inconclusive:
        verdict = " The share adds nothing to that, yet it is much in itself."
    return f"{finding.level}, an attacker with {held}: {reached}.{without}{verdict}"
