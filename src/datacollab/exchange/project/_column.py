"""A column of the parties' tables, as the project declares it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ._refusals import check_text, invalid, listed

__all__ = ["KINDS", "MISSING_RULES", "OTHER", "OUTSIDE_RULES", "UNKNOWN_RULES", "Column", "check_range"]

KINDS = ("number", "category")
MISSING_RULES = ("refuse", "fill")
OUTSIDE_RULES = ("refuse", "clip", "missing")
UNKNOWN_RULES = ("refuse", "other", "missing")
OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: what it is called, what may stand in it, and what becomes of entries that do not fit.

    Attributes
    ----------
    name : str
    kind : {"number", "category"}
    unit : str
        Of a number; shown to people, not computed with.
    minimum, maximum : float or None
        Of a number, in its unit: what is possible.  None for a category.
    categories : tuple of str
        In the order of their columns of zeros and ones; empty for a number.
    missing : {"refuse", "fill"}
        Whether a missing entry stops everything, or is replaced by `fill`.
    fill : float, str or None
        What stands for a missing entry; nothing is ever computed from a party's rows.
    flag_missing : bool
        Whether one more column says, by 1, where an entry was missing.
    outside : {"refuse", "clip", "missing"}
        Of a number: whether one outside its range stops everything, becomes the nearer bound, or counts as missing.
    unknown : {"refuse", "other", "missing"}
        Of a category: whether one that was not agreed stops everything, counts as "other", or as missing.

    Raises
    ------
    ExchangeError
        When the entries contradict one another.

    Examples
    --------
    >>> from datacollab.exchange.project import Column
    >>> Column(name="ward", kind="category", categories=("north", "south")).feature_names
    ('ward=north', 'ward=south')
    """

    name: str
    kind: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    categories: tuple[str, ...] = ()
    missing: str = "refuse"
    fill: float | str | None = None
    flag_missing: bool = False
    outside: str = "refuse"
    unknown: str = "refuse"

    def __post_init__(self) -> None:
        check_text("A column's name", self.name)
        if self.kind not in KINDS:
            raise invalid(self._where, f"kind is {self.kind!r}; {' or '.join(KINDS)} is wanted.")
        check_text(f"{self._where}, unit", self.unit, most=40, empty=True)
        if self.kind == "number":
            self._check_number()
        else:
            self._check_category()
        self._check_missing()
        self._check_rules()

    @property
    def levels(self) -> tuple[str, ...]:
        """All that a category can become: those declared, and "other" where unknown ones become that."""
        if self.unknown != OTHER or self.other is not None:
            return self.categories
        return (*self.categories, OTHER)

    @property
    def other(self) -> int | None:
        """Position among the categories of one that means "other" already; None where there is none."""
        return next((at for at, category in enumerate(self.categories) if category.casefold() == OTHER), None)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix that this column becomes."""
        values = tuple(f"{self.name}={each}" for each in self.levels) if self.categories else (self.name,)
        return (*values, f"{self.name} is missing") if self.flag_missing else values

    @property
    def n_features(self) -> int:
        """How many columns of the matrix this column becomes."""
        return max(1, len(self.levels)) + self.flag_missing

    @property
    def n_free(self) -> int:
        """How many numbers tell a row's entry: the zeros and ones of a category add up to one, and "other" is rare."""
        return max(1, len(self.categories) - 1) + self.flag_missing

    @property
    def _where(self) -> str:
        return f"Column {self.name!r}"

    def _check_number(self) -> None:
        check_range(self._where, self.minimum, self.maximum)
        if self.categories:
            raise invalid(self._where, "a number has no categories. Remove them, or set kind to category.")

    def _check_category(self) -> None:
        if self.minimum is not None or self.maximum is not None or self.unit:
            raise invalid(self._where, "a category has no unit, minimum or maximum. Remove them.")
        if len(self.categories) < 2:
            raise invalid(self._where, f"{len(self.categories)} categories; at least 2 are wanted.")
        for category in self.categories:
            check_text(f"{self._where}, a category", category)
        if len(set(self.categories)) < len(self.categories):
            raise invalid(self._where, "a category occurs twice. Name each once.")

    def _check_missing(self) -> None:
        if self.missing not in MISSING_RULES:
            raise invalid(self._where, f"missing is {self.missing!r}; {' or '.join(MISSING_RULES)} is wanted.")
        if self.missing == "refuse":
            if self.fill is not None or self.flag_missing:
                raise invalid(self._where, 'fill and flag_missing belong to missing = "fill". Set it, or remove them.')
        elif self.kind == "category":
            if self.fill not in self.levels:
                raise invalid(self._where, f"fill must be one of the categories ({listed(self.levels)}).")
        elif isinstance(self.fill, bool) or not isinstance(self.fill, int | float) or not self._contains(self.fill):
            raise invalid(self._where, f"fill must be a number from {self.minimum:.10g} to {self.maximum:.10g}.")

    def _check_rules(self) -> None:
        rules = [
            ("outside", self.outside, OUTSIDE_RULES, "number"),
            ("unknown", self.unknown, UNKNOWN_RULES, "category"),
        ]
        for entry, rule, allowed, kind in rules:
            if rule not in allowed:
                raise invalid(
                    self._where, f"{entry} is {rule!r}; {', '.join(allowed[:-1])} or {allowed[-1]} is wanted."
                )
            if rule != "refuse" and self.kind != kind:
                raise invalid(self._where, f"{entry} belongs to a {kind}, and this is a {self.kind}. Remove it.")
            if rule == "missing" and self.missing != "fill":
                raise invalid(
                    self._where,
                    f'{entry} = "missing" makes entries missing, and missing entries stop everything here. Set '
                    f'missing = "fill" and what to fill in, or take another rule for {entry}.',
                )

    def _contains(self, number: float) -> bool:
        return self.minimum is not None and self.maximum is not None and self.minimum <= number <= self.maximum


def check_range(where: str, minimum: float | None, maximum: float | None) -> None:
    """Check the declared range of numbers.

    Raises
    ------
    ExchangeError
        When a bound is missing or not finite, or they are not in order.
    """
    if minimum is None or maximum is None:
        raise invalid(where, "a number needs a minimum and a maximum. Declare what is possible, in its unit.")
    if not (math.isfinite(minimum) and math.isfinite(maximum)):
        raise invalid(where, "minimum and maximum must be finite numbers.")
    if minimum >= maximum:
        raise invalid(where, f"minimum is {minimum:.10g} and maximum {maximum:.10g}; the maximum must be larger.")
