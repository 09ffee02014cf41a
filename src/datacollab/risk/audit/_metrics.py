"""What each measure is, which criterion it belongs to, and where the limits of the lights are."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AMBER_LIMIT", "CRITERIA", "GREEN_LIMIT", "OPEN_WORLD_LIMIT", "Metric", "metric_of"]

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
        "strangers. It counts for no light, since it presumes a second share.",
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
