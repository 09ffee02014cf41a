"""Recommended numbers of components and amounts of noise for sums, and how well attackers read totals with them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

MOST_COMPONENTS = 128
"""With more, an analyst and a party that work together read more of targets; see docs/results/sums."""

MOST_COLUMNS = 1000
"""The most columns of a table that a map turns as they are: with these a message has 8 MB."""

MOST_PATTERNS = 200
"""The most patterns of levels in a regression from counts by pattern: each of their counts has noise."""

UNITS_PER_RANGE = 4.0
"""How wide `by_sums.party.ProjectMap` makes the declared range of a number in the common map, beside zeros and ones.
With 1, zeros and ones count too much; see docs/results/sums."""

FEWEST_ALIKE = 50
"""Fewest columns that can be all alike."""


@dataclass(frozen=True)
class Recommended:
    """Settings of sums for one kind of data, as docs/results/sums found them."""

    n_components: int
    """The most columns of the common map."""
    noise: float
    """s, the standard deviation of the noise on the diagonal of the total."""
    least_penalty: float
    """The smallest ridge penalty, as a multiple of the operator norm of all noise in the total."""


TABLE = Recommended(n_components=MOST_COMPONENTS, noise=0.1, least_penalty=1.0)
_ALIKE = Recommended(n_components=MOST_COMPONENTS, noise=0.04, least_penalty=0.5)


def recommended(*, alike: bool = False) -> Recommended:
    """Return the settings for a table, or for columns that are all alike; see `columns_alike`.

    Examples
    --------
    >>> recommended().noise, recommended(alike=True).noise
    (0.1, 0.04)
    """
    return _ALIKE if alike else TABLE


def columns_alike(ranges: ArrayLike, n_columns: int) -> bool:
    """Return whether a table's columns are all alike: at least 50, all of them numbers, and all with one range.

    ``ranges`` has the smallest and largest value of each numeric column, and ``n_columns`` counts all columns.

    Examples
    --------
    >>> columns_alike([(0.0, 16.0)] * 64, 64), columns_alike([(0.0, 16.0)] * 64, 65)
    (True, False)
    """
    found = np.asarray(ranges, dtype=np.float64)
    return len(found) >= max(FEWEST_ALIKE, n_columns) and bool((found == found[0]).all())


_MEMBERSHIP = Path(__file__).with_name("membership.csv")


@dataclass(frozen=True, kw_only=True)
class MeasuredMembership:
    """Areas under the curve of membership inference: .5 is guessing, 1 is certain.

    Each is the largest mean over the tables of one kind, and over two groups of parties that attack: one of three, and
    five of ten.  They are measured, and bound nothing.
    """

    n_rows: int
    """Rows of all parties together."""
    rare: bool
    """Whether the people are those of a class that has ten rows in the total."""
    noise: float
    """Standard deviation of the noise that the total had."""
    n_components: int
    """Columns of the common map."""
    analyst: float
    party: float
    """Of the parties that attack, with the model."""
    together: float
    """Of the analyst and these parties together."""


def membership_figures(kind: Literal["table", "alike", "own columns"] = "table") -> tuple[MeasuredMembership, ...]:
    """Return how well attackers read totals with the recommended settings, by rows together.

    Parameters
    ----------
    kind : {"table", "alike", "own columns"}
        "alike" if all columns are of one kind, as pixels are (see `columns_alike`), and "own columns" if the common map
        turns the columns themselves (see `CommonMap`): then rows hide one another less.

    Examples
    --------
    >>> people = [each for each in membership_figures() if not each.rare]
    >>> [each.n_rows for each in people]
    [250, 1000, 3000]
    >>> people[0].together > people[2].together
    True
    """
    lines = _MEMBERSHIP.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return tuple(
        MeasuredMembership(
            n_rows=int(row["rows"]),
            rare=row["class of ten"] == "True",
            noise=float(row["s"]),
            n_components=int(row["D"]),
            **{attacker: float(row[attacker]) for attacker in ("analyst", "party", "together")},
        )
        for row in rows
        if row["kind"] == kind
    )
