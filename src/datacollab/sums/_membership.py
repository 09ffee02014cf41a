"""Measured membership inference against a total, from the experiments on sums."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_TABLE = Path(__file__).with_name("membership.csv")


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
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
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
