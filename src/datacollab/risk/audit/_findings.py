"""What an audit finds, as data, and what each measure is: criterion, limits, words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = [
    "AMBER_LIMIT",
    "CRITERIA",
    "GREEN_LIMIT",
    "OPEN_WORLD_LIMIT",
    "DefenceEffect",
    "Finding",
    "Level",
    "Record",
    "mean_findings",
    "metric_of",
]

GREEN_LIMIT, AMBER_LIMIT = 0.05, 0.20
"""Largest excess over the labels alone that is still green, and still amber."""
OPEN_WORLD_LIMIT = 0.09
"""Largest share told among strangers that is still green: the re-identification threshold of EMA and Health Canada."""
CRITERIA = {
    "singling out": "Can one record be told from all others?",
    "linkability": "Can shared rows be joined to the records of the people they describe?",
    "inference": "Can more be inferred about a person than the shared label says?",
    "membership": "Can it be told who is in the table at all?",
}
"""The three criteria of the Article 29 Working Party's opinion 05/2014, and membership beside them."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A measure.

    Attributes
    ----------
    meaning : str
        What it says, in one sentence.
    criterion : str or None
        The criterion it counts for; None where it is reported only.
    is_share : bool
        Whether it is a share of cases, to be printed in per cent.
    said : str
        How a finding reads, with `{value}` and, of an attribute, `{name}`.
    is_open : bool
        Whether strangers stand among the candidates, so that `OPEN_WORLD_LIMIT` holds as well.
    is_search : bool
        Whether it is a search, which shows nothing where it finds nothing.
    is_partial : bool
        Whether it can show a leak but not that there is none, so that it is never green.
    limits : tuple of float
        Of the excess: up to the first is green, up to the second amber.
    """

    meaning: str
    criterion: str | None = None
    said: str = "{value}"
    is_share: bool = True
    is_open: bool = False
    is_search: bool = False
    is_partial: bool = False
    limits: tuple[float, float] = (GREEN_LIMIT, AMBER_LIMIT)


_METRICS = {
    "re-identification@1": Metric(
        meaning="Share of reconstructions nearer to their own record than to any other of the party’s.",
        criterion="singling out",
        said="{value} of your records singled out",
    ),
    "re-identification@5": Metric(
        meaning="Share of reconstructions with their own record among the five nearest: a shortlist.",
    ),
    "open-world re-identification": Metric(
        meaning="Re-identification where records of strangers stand among the candidates.",
        criterion="singling out",
        said="{value} of your records singled out among strangers",
        is_open=True,
    ),
    "linkage": Metric(
        meaning="Share of right pairs where every shared row is assigned a record of the party, each used once.",
        criterion="linkability",
        said="{value} of shared rows joined to the right record",
    ),
    "open-world linkage": Metric(
        meaning="Linkage where records of strangers stand among the candidates.",
        criterion="linkability",
        said="{value} of shared rows joined to the right record among strangers",
        is_open=True,
    ),
    "membership AUC": Metric(
        meaning="How often, of a record of the party and one of a stranger, the attacker tells which is which.",
        criterion="membership",
        said="a record of yours told from a stranger’s {value} of the time",
    ),
    "membership TPR": Metric(
        meaning="Share of the party’s records recognised as such where 1 in 100 strangers is taken for one by mistake.",
        criterion="membership",
        said="{value} of your records recognised, for 1 stranger in 100",
    ),
    "added row named": Metric(
        meaning="How often, of two shares with the same f and one row added in between, the row is named among "
        "strangers. It counts for no rating, since it presumes a second share.",
    ),
    "training rows in files": Metric(
        meaning="Share of the party’s rows found as plain numbers, or scaled ones, in a file that would leave.",
        criterion="singling out",
        said="{value} of your rows found in a file",
        is_search=True,
        limits=(0.0, 0.0),
    ),
    "R2c": Metric(
        meaning="How much of what the label leaves open is reconstructed: 1 all, 0 nothing; below 0, it misleads.",
        criterion="inference",
        said="{value} of 1 of what the label leaves open of your records is reconstructed, all columns together",
        is_share=False,
        is_partial=True,
    ),
    "R2": Metric(
        meaning="How much of the rows’ variance is reconstructed: 1 all, 0 what is known of the domain anyway.",
        is_share=False,
    ),
    "label match": Metric(
        meaning="How often a judge names a reconstruction’s label: the measure of the published experiments. It is not "
        "one of risk, since the labels are shared anyway.",
    ),
}
_ATTRIBUTE = Metric(
    meaning="How well the attribute is inferred: explained variance of a number, share of right answers of a category.",
    criterion="inference",
    said="{name} inferred with {value} of 1",
    is_share=False,
)


def metric_of(name: str) -> Metric:
    """Find a measure by its name; one that is not known is reported, and counts for no criterion."""
    if name.partition(" ")[0] == "attribute":
        return _ATTRIBUTE
    return _METRICS.get(name) or Metric(meaning="", is_share=False)


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
