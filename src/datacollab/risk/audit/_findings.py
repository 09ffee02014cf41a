"""What an audit finds, as data: one measurement, a threat level, a record, a defence's effect."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["DefenceEffect", "Finding", "Level", "Record", "mean_findings"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One measurement: what one attack achieved, and what it has to be compared with.

    Attributes
    ----------
    level : str
        Name of the threat level: "T0", "T1", "T2", "T2f", "T3" or "T4".
    leak : str
        What the attacker holds besides: "nothing", "30 anchor rows", "labels 0, 1, 2", "all anchor rows".
    metric : str
        "re-identification@1", "re-identification@5", "linkage" (closed world), "open-world re-identification",
        "open-world linkage", "R2", "R2c", "membership AUC", "membership TPR", "attribute <name>", "label match",
        "added row named" or "training rows in files".
    attack : str
        Name of the attack.
    value : float
        NaN where it could not be measured.
    low, high : float or None
        Ends of the 95 % interval.
    baseline : float or None
        What is reached with the labels alone, without anything the party shares.
    chance : float or None
        What is reached by guessing.
    mean_reconstruction : float or None
        What is reached by an attacker who answers with the mean row every time.
    control : float or None
        What the same attack reaches on rows that are not the party's.
    n : int
        Rows attacked, over all seeds.
    per_seed : tuple of float
    """

    level: str
    leak: str
    metric: str
    attack: str
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
        """Upper end of the interval; the value itself where there is none."""
        return self.value if self.high is None else self.high

    @property
    def floor(self) -> float:
        """What is reached without the party's share: by the labels, else by guessing, else nothing."""
        if self.baseline is not None:
            return self.baseline
        return 0.0 if self.chance is None else self.chance

    @property
    def excess(self) -> float:
        """Upper end of the interval of what the share adds to the labels."""
        return self.upper - self.floor

    @property
    def is_inconclusive(self) -> bool:
        """Whether the attack did no better than the labels alone, so that it shows nothing; false where unmeasured."""
        return self.value <= self.floor

    @property
    def is_measured(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)


@dataclass(frozen=True, kw_only=True)
class Level:
    """A threat level: who attacks, with what in hand.

    Attributes
    ----------
    name, title : str
        Such as "T2" and "Colluding party".
    holds : tuple of str
        Noun phrases, to be read after "an attacker who holds".
    attacks : tuple of str
        Names of the attacks made.
    """

    name: str
    title: str
    holds: tuple[str, ...]
    attacks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Record:
    """One of the party's records, by its position in the table alone.

    Attributes
    ----------
    index : int
        Row of the party's table, the first being 0.
    margin : float
        Distance of the reconstruction to the nearest other candidate over that to the record itself: above 1, the
        record is singled out, and the more the easier.
    level : str
        Threat level that singles it out best.
    """

    index: int
    margin: float
    level: str


@dataclass(frozen=True, kw_only=True)
class DefenceEffect:
    """What one defence would change, and cost.

    Attributes
    ----------
    name, description : str
    utility : float or None
        What the party's own data are still good for, measured by `utility_name`.
    utility_name : str
    linkage, reidentification, membership : float or None
        Risk with the defence in place: shares of the records, and the AUC of membership.
    """

    name: str
    description: str
    utility: float | None = None
    utility_name: str = ""
    linkage: float | None = None
    reidentification: float | None = None
    membership: float | None = None


def mean_findings(findings: Iterable[Iterable[Finding]]) -> tuple[Finding, ...]:
    """One finding for each measurement that was made several times: means, in which intervals keep the width they had.

    Parameters
    ----------
    findings : iterable of iterable of Finding
        Of one time after the other.

    Returns
    -------
    tuple of Finding
        In the order in which their kinds came first.
    """
    repeated: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in (each for once in findings for each in once):
        repeated.setdefault((finding.level, finding.leak, finding.metric, finding.attack), []).append(finding)
    return tuple(map(_mean, repeated.values()))


def _mean(group: list[Finding]) -> Finding:
    def mean(name: str) -> float | None:
        values = [getattr(finding, name) for finding in group]
        return None if any(value is None for value in values) else math.fsum(values) / len(values)

    value = mean("value")
    assert value is not None
    return replace(
        group[0],
        value=value,
        low=mean("low"),
        high=mean("high"),
        baseline=mean("baseline"),
        control=mean("control"),
        per_seed=tuple(finding.value for finding in group),
    )
