"""Columns of a table as a project declares them, columns of targets, and the schema of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._entries import check_choice, check_labels, check_no_others, check_range, check_text, join_names, refuse_if
from .._frames import MOST_OUTSIDE

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

    OPTIONAL: ClassVar = ("unit", "missing", "missing_words", "flag_missing", "outside", "unknown", "most_unknown")

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
    most_unknown: float = MOST_OUTSIDE
    """The largest share of such entries; more are taken for another coding, and refused."""

    @staticmethod
    def entry_names(found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of all entries that a column with these may have, in the order of the file."""
        fill = ("fill", "flag_missing") if found.get("missing") == "fill" else ()
        rules = ("missing", "missing_words", *fill)
        if found.get("kind") == "category":
            most = ("most_unknown",) if found.get("unknown", "refuse") != "refuse" else ()
            return ("name", "kind", "categories", *rules, "unknown", *most)
        return ("name", "kind", "unit", "minimum", "maximum", *rules, "outside")

    def __post_init__(self) -> None:
        check_text("A column's name", self.name)
        where = f"Column {self.name!r}"
        for entry, allowed in _RULES.items():
            check_choice(f"{where}, {entry}", getattr(self, entry), allowed)
        check_text(f"{where}, unit", self.unit, most=40, empty=True)
        # An entry of the other kind would be a slip that nobody notices.
        check_no_others(where, self, f"a {self.kind} with missing = {self.missing!r}")
        if self.kind == "number":
            check_range(where, self.minimum, self.maximum)
        else:
            check_labels(where, self.categories, "category", least=2, types=(str,))
            refuse_if(
                not MOST_OUTSIDE <= self.most_unknown <= 1,
                where,
                f"most_unknown must be a share from {MOST_OUTSIDE:g} to 1, of entries that are not listed.",
            )
        check_labels(f"{where}, missing_words", self.missing_words, "word", least=0, types=(str,))
        # A word cannot be missing and a category at once.
        both = join_names(set(self.missing_words) & set(self.categories))
        refuse_if(both, where, f"missing_words: {both} would be an entry, too. Take it out of one of the two.")
        if self.missing == "fill":
            self._check_fill(where)
            return
        refuse_if(
            # Without a fill, the rule "missing" would stop everything as "refuse" does.
            "missing" in (self.outside, self.unknown),
            where,
            'a rule "missing" makes entries missing, and these stop everything here. Set missing = "fill" and what '
            "to fill in, or take another rule.",
        )

    def _check_fill(self, where: str) -> None:
        """Refuse a value to fill in that no row could have."""
        fill = self.fill
        if self.minimum is None or self.maximum is None:
            fault = f"fill must be one of the categories ({join_names(self.levels)})."
            refuse_if(fill not in self.levels, where, fault)
            return
        # True is an int to Python.
        is_inside = (
            isinstance(fill, int | float) and not isinstance(fill, bool) and self.minimum <= fill <= self.maximum
        )
        refuse_if(not is_inside, where, f"fill must be a number from {self.minimum:.10g} to {self.maximum:.10g}.")

    @property
    def rule(self) -> str:
        """The rule for an entry that was not agreed: `outside` of a number, `unknown` of a category."""
        return self.outside if self.kind == "number" else self.unknown

    @property
    def levels(self) -> tuple[str, ...]:
        """All values of a category: those declared, and "other" if unknown ones become that."""
        if self.unknown != OTHER or self.other < len(self.categories):
            return self.categories
        return (*self.categories, OTHER)

    @property
    def other(self) -> int:
        """Position of "other" among the levels: of a category that means it already, or after all of them."""
        spellings = [category.casefold() for category in self.categories]
        return [*spellings, OTHER].index(OTHER)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix that this column becomes."""
        names = [self.name]
        if self.categories:
            names = [f"{self.name}={each}" for each in self.levels]
        if self.flag_missing:
            names.append(f"{self.name} is missing")
        return tuple(names)

    @property
    def n_features(self) -> int:
        """Number of columns of the matrix that this column becomes."""
        # A number is one column.
        return max(1, len(self.levels)) + self.flag_missing

    @property
    def n_free(self) -> int:
        """Numbers that determine a row's entry: the zeros and ones of a category add up to one; "other" is rare."""
        return max(1, len(self.categories) - 1) + self.flag_missing


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """A column that holds targets, or a part of them: labels, or numbers in a range."""

    part: str
    """The part that it holds: "target" for a class or number, or a name of `datacollab.targets`."""
    name: str
    labels: tuple[str | int, ...] = ()
    """All entries that it may have; none if it holds numbers."""
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    """The target for each label, shape (n_labels,)."""
    minimum: float = 0.0
    maximum: float = math.inf
    """The possible range of numbers, in their unit."""
    unit: str = ""
    missing_words: tuple[str, ...] = ()
    is_clipped: bool = False
    """Whether numbers outside the range become the nearer bound; otherwise they are refused."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table, in the order of the matrix that it becomes; a subclass may name targets."""

    columns: tuple[Column, ...]

    @property
    def keep(self) -> Sequence[str]:
        """Columns that are also read as they came; none here, see `Keeping`."""
        return ()

    @property
    def targets(self) -> tuple[Target, ...]:
        """The columns that hold targets; none here."""
        return ()

    @property
    def labels(self) -> dict[str, tuple[str | int, ...]]:
        """The entries that each column may have, targets among them; none if it holds numbers."""
        labels: dict[str, tuple[str | int, ...]] = {column.name: column.categories for column in self.columns}
        return labels | {target.name: target.labels for target in self.targets}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def n_features(self) -> int:
        """Number of columns of the matrix."""
        return sum(column.n_features for column in self.columns)

    @property
    def n_free(self) -> int:
        """Numbers that determine a row; as many components of a linear map hide nothing."""
        return sum(column.n_free for column in self.columns)

    def blocks(self, X: NDArray[Any]) -> Iterator[tuple[Column, NDArray[Any]]]:
        """Yield each column, and its part of a matrix of shape (n_rows, n_features), or of one row."""
        start = 0
        for column in self.columns:
            yield column, X[..., start : start + column.n_features]
            start += column.n_features


@dataclass(frozen=True, kw_only=True)
class Keeping(Schema):
    """A schema by which some columns are read twice: by the rules of a schema, and as they came (`take_kept`)."""

    schema: Schema
    kept: Sequence[str]

    @property
    def keep(self) -> Sequence[str]:
        """Columns that are also read as they came."""
        return self.kept

    @property
    def targets(self) -> tuple[Target, ...]:
        """The columns that hold targets."""
        return self.schema.targets
