"""A column of the parties' tables, as the project declares it."""

from __future__ import annotations

from dataclasses import dataclass

from ._refusals import check_choice, check_labels, check_range, check_text, invalid, listed

__all__ = ["OTHER", "Column"]

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

    Attributes
    ----------
    name : str
    kind : {"number", "category"}
    unit : str
        Of a number; shown to people, not computed with.
    minimum, maximum : float or None
        The possible range of a number, in its unit; None for a category.
    categories : tuple of str
        In the order of their columns of zeros and ones; empty for a number.
    missing : {"refuse", "fill"}
        Whether a missing entry stops everything, or is replaced by `fill`.
    fill : float, str or None
        Replaces a missing entry; nothing is ever computed from a party's rows.
    flag_missing : bool
        Whether one more column says, by 1, where an entry was missing.
    outside : {"refuse", "clip", "missing"}
        Whether a number outside its range stops everything, becomes the nearer bound, or counts as missing.
    unknown : {"refuse", "other", "missing"}
        Whether a category that was not agreed stops everything, counts as "other", or as missing.

    Raises
    ------
    ExchangeError
        If the entries contradict one another.

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
        where = f"Column {self.name!r}"
        for entry, allowed in _RULES.items():
            check_choice(f"{where}, {entry}", getattr(self, entry), allowed)
        check_text(f"{where}, unit", self.unit, most=40, empty=True)
        if self.kind == "number":
            check_range(where, self.minimum, self.maximum)
            if self.categories:
                raise invalid(where, "a number has no categories. Remove them, or set kind to category.")
        else:
            if self.minimum is not None or self.maximum is not None or self.unit:
                raise invalid(where, "a category has no unit, minimum or maximum. Remove them.")
            check_labels(where, self.categories, "category", least=2, types=(str,))
        self._check_fill(where)
        for entry, kind in (("outside", "number"), ("unknown", "category")):
            rule = getattr(self, entry)
            if rule != "refuse" and self.kind != kind:
                raise invalid(where, f"{entry} belongs to a {kind}, and this is a {self.kind}. Remove it.")
            if rule == "missing" and self.missing != "fill":
                raise invalid(
                    where,
                    f'{entry} = "missing" makes entries missing, and missing entries stop everything here. Set '
                    f'missing = "fill" and what to fill in, or take another rule for {entry}.',
                )

    def _check_fill(self, where: str) -> None:
        fill, low, high = self.fill, self.minimum, self.maximum
        if self.missing == "refuse":
            if fill is not None or self.flag_missing:
                raise invalid(where, 'fill and flag_missing belong to missing = "fill". Set it, or remove them.')
        elif low is None or high is None:
            if fill not in self.levels:
                raise invalid(where, f"fill must be one of the categories ({listed(self.levels)}).")
        elif isinstance(fill, bool) or not isinstance(fill, int | float) or not low <= fill <= high:
            raise invalid(where, f"fill must be a number from {low:.10g} to {high:.10g}.")

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
