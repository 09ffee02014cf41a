"""A column of the parties' tables, as the project declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .._entries import check_choice, check_labels, check_no_others, check_range, check_text, join_names, refuse_if

OTHER = "other"
_RULES = {
    "kind": ("number", "category"),
    "missing": ("refuse", "fill"),
    "outside": ("refuse", "clip", "missing"),
    "unknown": ("refuse", OTHER, "missing"),
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its name, its possible entries, and a rule for those that do not fit.

    Entries that contradict one another raise an ExchangeError.

    Examples
    --------
    >>> from datacollab.table import Column
    >>> Column(name="ward", kind="category", categories=("north", "south")).feature_names
    ('ward=north', 'ward=south')
    """

    OPTIONAL: ClassVar = ("unit", "missing", "missing_words", "flag_missing", "outside", "unknown")

    name: str
    kind: str
    """Either "number" or "category"."""
    unit: str = ""
    """Of a number; shown to people, not computed with."""
    minimum: float | None = None
    maximum: float | None = None
    """The possible range of a number, in its unit; None for a category."""
    categories: tuple[str, ...] = ()
    """In the order of their columns of zeros and ones; empty for a number."""
    missing: str = "refuse"
    """Whether a missing entry stops everything ("refuse"), or is replaced by `fill` ("fill")."""
    missing_words: tuple[str, ...] = ()
    """Entries that mean that there is none, such as "?" or "999", also inside a range; an empty entry always does."""
    fill: float | str | None = None
    """Replaces a missing entry; nothing is ever computed from a party's rows."""
    flag_missing: bool = False
    """Whether one more column says, by 1, where an entry was missing."""
    outside: str = "refuse"
    """Whether a number outside its range is refused, becomes the nearer bound ("clip"), or counts as "missing"."""
    unknown: str = "refuse"
    """Whether a category that was not agreed is refused, counts as "other", or as "missing"."""

    @staticmethod
    def entry_names(found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of all entries that a column with these may have, in the order of the file."""
        is_category = found.get("kind") == "category"
        fill = ("fill", "flag_missing") if found.get("missing") == "fill" else ()
        values = ("categories",) if is_category else ("unit", "minimum", "maximum")
        return ("name", "kind", *values, "missing", "missing_words", *fill, "unknown" if is_category else "outside")

    def __post_init__(self) -> None:
        check_text("A column's name", self.name)
        where = f"Column {self.name!r}"
        for entry, allowed in _RULES.items():
            check_choice(f"{where}, {entry}", getattr(self, entry), allowed)
        check_text(f"{where}, unit", self.unit, most=40, empty=True)
        check_no_others(where, self, f"a {self.kind} with missing = {self.missing!r}")
        fill, low, high = self.fill, self.minimum, self.maximum
        if self.kind == "number":
            check_range(where, low, high)
        else:
            check_labels(where, self.categories, "category", least=2, types=(str,))
        check_labels(f"{where}, missing_words", self.missing_words, "word", least=0, types=(str,))
        both = set(self.missing_words) & set(self.categories)
        refuse_if(
            both, where, f"missing_words: {join_names(both)} would be an entry, too. Take it out of one of the two."
        )
        if self.missing == "fill" and low is not None and high is not None:
            is_inside = isinstance(fill, int | float) and not isinstance(fill, bool) and low <= fill <= high
            refuse_if(not is_inside, where, f"fill must be a number from {low:.10g} to {high:.10g}.")
        elif self.missing == "fill":
            refuse_if(
                fill not in self.levels, where, f"fill must be one of the categories ({join_names(self.levels)})."
            )
        refuse_if(
            self.missing != "fill" and "missing" in (self.outside, self.unknown),
            where,
            'a rule "missing" makes entries missing, and these stop everything here. Set missing = "fill" and what '
            "to fill in, or take another rule.",
        )

    @property
    def rule(self) -> str:
        """The rule for an entry that was not agreed: `outside` of a number, `unknown` of a category."""
        return self.outside if self.kind == "number" else self.unknown

    @property
    def levels(self) -> tuple[str, ...]:
        """All values of a category: those declared, and "other" if unknown ones become that."""
        if self.unknown != OTHER or self.other is not None:
            return self.categories
        return (*self.categories, OTHER)

    @property
    def other(self) -> int | None:
        """Position among the categories of one that means "other" already; None if there is none."""
        return next((at for at, category in enumerate(self.categories) if category.casefold() == OTHER), None)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix that this column becomes."""
        values = tuple(f"{self.name}={each}" for each in self.levels) if self.categories else (self.name,)
        return (*values, f"{self.name} is missing") if self.flag_missing else values

    @property
    def n_features(self) -> int:
        """Number of columns of the matrix that this column becomes."""
        return max(1, len(self.levels)) + self.flag_missing

    @property
    def n_free(self) -> int:
        """Numbers that determine a row's entry: the zeros and ones of a category add up to one; "other" is rare."""
        return max(1, len(self.categories) - 1) + self.flag_missing
