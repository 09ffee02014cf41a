"""Measured membership inference against a study's totals, from the experiments on studies."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path(__file__).with_name("membership.csv")


@dataclass(frozen=True, kw_only=True)
class StudyMembership:
    """Areas under the curve of membership inference against totals of a study: .5 is guessing, 1 is certain.

    Each is the largest mean over tables, and over three and ten parties.  They are measured with the usual noise, and
    bound nothing.
    """

    statistics: tuple[str, ...]
    """Titles; that of least squares says which errors, and those of ratios by counts that."""
    n_rows: int
    """Rows of all parties together."""
    analyst: float
    """Of the analyst alone: no secret map hides the rows, but for an effect's."""
    analyst_of_tenth: float
    """The same over the tenth of people who stand out most."""
    together: float
    """Of the analyst with one of three parties, or five of ten; or of these parties alone, if they get the results."""
    together_of_tenth: float


def study_membership_figures(
    asked: Iterable[str], *, errors: str = "robust", by_rounds: bool = False
) -> tuple[StudyMembership, ...]:
    """Return how well attackers read the totals of statistics with these titles, by rows together.

    Figures are of the largest sets that were measured.  Counts are taken to have gone before; `errors` are those of
    least squares, and `by_rounds` says whether ratios come by rounds, all read together, or by counts.  A meta-analysis
    was not measured.

    Examples
    --------
    >>> found = study_membership_figures(["description", "survival"])
    >>> sorted({each.statistics for each in found})
    [('counts', 'description'), ('survival',)]
    >>> sorted({each.n_rows for each in found})
    [150, 300, 1000, 3000]
    """
    titles = {"least squares": f"least squares ({errors})"}
    if not by_rounds:
        titles |= {title: f"{title} (counts)" for title in ("logistic regression", "poisson regression")}
    named = {titles.get(title, title) for title in asked}
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    rows = [*csv.DictReader(line for line in lines if not line.startswith("#"))]
    measured = [
        StudyMembership(
            statistics=tuple(row.pop("statistics").split(" + ")),
            n_rows=int(row.pop("n_rows")),
            **{attacker: float(area) for attacker, area in row.items()},
        )
        for row in rows
    ]
    fitting = [each for each in measured if named & {*each.statistics} and {*each.statistics} <= named | {"counts"}]
    # A set within another one that was measured says less.
    sets = [{*each.statistics} for each in fitting]
    return tuple(each for each in fitting if not any({*each.statistics} < other for other in sets))
