"""How many rows each class has in the tables of all parties: a first message, before a model is agreed on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, PartyName
from ..linalg import gaussian_sigma
from ._masked_sum import MaskedMessage, MaskedSum, MaskKey
from ._ridge_sums import RidgeSums, class_indicators

__all__ = ["COUNT_NOISE", "ClassCounts", "CountsPlan"]

COUNT_NOISE = 2.0
_FEWEST = 10
"""Each row of a class with fewer rows in a total may be recognised."""
_CERTAINTY = 2.0
"""Standard deviations of noise that a class has to be above the fewest rows."""


@dataclass(frozen=True)
class ClassCounts:
    """The statistic that counts the rows of each class.

    Parameters
    ----------
    classes : sequence
        All classes, agreed on.
    noise : float, default=2
        Standard deviation of the noise in each count of the total, in rows.

    Raises
    ------
    AgreementError
        If there are fewer than two classes, or two are the same.

    Examples
    --------
    >>> ClassCounts(["no", "yes"]).part(["no", "no", "yes"])
    array([2., 1.])
    """

    classes: Sequence[Any]
    noise: float = COUNT_NOISE

    def __post_init__(self) -> None:
        _ = self._ridge  # It raises what is wrong with the classes.

    @property
    def n_numbers(self) -> int:
        """Return how many numbers a party adds up."""
        return len(self.classes)

    @property
    def noise_of_each(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        return np.full(self.n_numbers, float(self.noise))

    @property
    def noise_of_sums(self) -> float:
        """Return the `noise` of `RidgeSums` that hides a row as well: noise over sensitivity is equal."""
        return self.noise / math.sqrt(2) * self._ridge.sensitivity

    @property
    def _ridge(self) -> RidgeSums:
        return RidgeSums(1, classes=self.classes)

    @staticmethod
    def noise_for(epsilon: float, delta: float = 1e-5) -> float:
        """Return the noise with which counts are (epsilon, delta)-differentially private for replacing one row.

        A row that is replaced moves two counts by one.  See `RidgeSums.noise_for` for the parameters.
        """
        return gaussian_sigma(epsilon, delta) * math.sqrt(2)

    def part(self, y: ArrayLike) -> FloatArray:
        """Return a party's own counts, shape (n_numbers,).

        Raises
        ------
        AgreementError
            If a target is none of the classes.
        """
        return np.asarray(class_indicators(y, self.classes).sum(axis=0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CountsPlan:
    """All that parties and analyst agree on for counts of classes.

    Counts go first where a class may be rare.  Sums of a rare class would reveal its rows, so that the plan of the
    model merges such a class with another.

    Parameters
    ----------
    roster : mapping of str or int to bytes
        Public mask keys, by party.  A later plan of a model needs new ones.
    classes : sequence
    noise : float, default=2
        See `ClassCounts`.
    facts : mapping, optional
        What else was agreed on.  JSON.
    n_colluding : int, optional
        See `MaskedSum`.

    Raises
    ------
    AgreementError
        As `ClassCounts` and `MaskedSum` raise it.

    Examples
    --------
    >>> from datacollab.sums import CountsPlan, MaskKey
    >>> keys = {name: MaskKey.generate() for name in ("north", "south", "west")}
    >>> plan = CountsPlan({name: key.public for name, key in keys.items()}, ["mild", "severe", "fatal"])
    >>> table = ["mild"] * 60 + ["severe"] * 30 + ["fatal"]
    >>> counts = plan.counts([plan.message(name, table, key) for name, key in keys.items()])
    >>> plan.rare(counts)
    ['fatal']
    """

    roster: Mapping[PartyName, bytes]
    classes: Sequence[Any]
    noise: float = COUNT_NOISE
    facts: Mapping[str, Any] = field(default_factory=dict)
    n_colluding: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(np.asarray(self.classes).tolist()))
        _ = self.statistic, self.agreed  # Both raise what is wrong with the plan.

    @cached_property
    def statistic(self) -> ClassCounts:
        """Return the statistic that a party adds up."""
        return ClassCounts(self.classes, self.noise)

    @cached_property
    def agreed(self) -> MaskedSum:
        """Return the sum under masks."""
        said = {"statistic": "class counts", "classes": list(self.classes), "agreed": dict(self.facts)}
        return MaskedSum(said, self.roster, noise=self.statistic.noise_of_each, n_colluding=self.n_colluding)

    def message(self, party: PartyName, y: ArrayLike, key: MaskKey, *, noise_key: bytes | None = None) -> MaskedMessage:
        """Make a party's message from its targets, shape (n_rows,), and erase its key.

        Raises
        ------
        AgreementError, SharedBeforeError
            As `ClassCounts.part` and `MaskedSum.mask` raise them.
        """
        return self.agreed.mask(party, self.statistic.part(y), key, noise_key=noise_key)

    def counts(self, messages: Sequence[MaskedMessage]) -> dict[Any, float]:
        """Add up the messages of all parties, and return the rows of each class, with noise.

        Raises
        ------
        AgreementError, ShareError
            As `MaskedSum.total` raises them.
        """
        return dict(zip(self.classes, self.agreed.total(messages).tolist(), strict=True))

    def rare(self, counts: Mapping[Any, float]) -> list[Any]:
        """Return the classes that may have fewer than ten rows: counts below ten and twice the noise in the total."""
        least = _FEWEST + _CERTAINTY * self.noise * self.agreed.excess
        return [name for name, count in counts.items() if count < least]
