"""The owner's wishes for a first project file; all that they leave open is guessed from public rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from .._entries import invalid, join_names, refuse_if
from ..table import Answers


@dataclass(frozen=True, kw_only=True)
class DraftOptions:
    """The owner's wishes for a first project file."""

    task: str | None = None
    """By default an effect if there is a treatment, a survival if there are an event and a time, and otherwise a
    classification if the target is text, or whole numbers of at most 20 kinds.  "none" has to be given."""
    target: str | None = None
    event: str | None = None
    time: str | None = None
    treatment: str | None = None
    outcome: str | None = None
    """Columns of the task.  The longest time is guessed like a range, and the rounding by `usual_time_step`."""
    seen: Sequence[str] = ()
    treated: Sequence[str] = ()
    """Entries of the event and of the treatment that mean yes; all others mean no.  By default 1, true or yes, if
    nothing but these and 0, false or no occur."""
    classes: Sequence[str] = ()
    target_range: tuple[float, float] | None = None
    """All classes, or the smallest and largest target; the public rows need no target then."""
    positive: str | None = None
    """Of two classes, the one that is sought; by default the one that means yes, or else the rarer one."""
    without: Sequence[str] = ()
    """Columns to leave out, such as identifiers."""
    valid_range: tuple[float, float] | None = None
    """Smallest and largest number of all columns, instead of a guess for each."""
    source: str = ""
    """The origin of the public rows, in words."""
    anchor_rows: int | None = None
    max_components: int | None = None
    """By default 1,000, and as `usual_components`."""
    mask_keys: Mapping[str, str] | None = None
    """Cards, one of each party: the project then shares sums, and the anchor is a sample of the public rows.  Names
    stand for legal entities until somebody writes them.  If the public rows have targets, the owner, or else the
    first party, adds them to its own.  By default the project shares rows."""
    statistics: Sequence[str] = ()
    """Those of a study, which are shared in place of a model's sums.  Missing and unknown entries are then counted as
    missing, there is an anchor for an effect alone, and `outcome` may be a column beside a target or times."""
    logistic_model: Mapping[str, float] | None = None
    """The coefficients of a published model that a validation tries."""
    kinds: Mapping[str, str] | None = None
    """By column "number" or "category", if it has two readings."""
    missing: Mapping[str, Collection[str]] | None = None
    keep: Mapping[str, Collection[str]] | None = None
    """Entries that mean missing, and those that are taken as they are, by column; of all columns under ""."""
    explained: str | None = field(default=None, init=False)
    """The column of a study's outcome beside the task's own target."""

    @cached_property
    def answers(self) -> Answers:
        """The answers on columns."""
        return Answers(kinds=self.kinds or {}, missing=self.missing or {}, keep=self.keep or {})

    @property
    def parts(self) -> dict[str, str]:
        """The column of each part of the targets that has one."""
        names = ("target", "event", "time", "treatment", "outcome")
        columns = {name: getattr(self, name) for name in names}
        return {name: column for name, column in columns.items() if column is not None}

    @property
    def has_entries(self) -> bool:
        """Whether the target's possible entries were given, so that public rows need no target."""
        return bool(self.classes) or self.target_range is not None

    @property
    def explains_target(self) -> bool:
        """Whether a regression explains the target, which has to be a number then."""
        has_target = self.target is not None and not self.classes
        # Classes were given on purpose, and are no number.
        return has_target and self.explained is None and "least squares" in self.statistics

    @property
    def is_model_of_sums(self) -> bool:
        """Whether the parties share sums for a model."""
        return self.mask_keys is not None and not self.statistics

    def settle_outcome(self) -> DraftOptions:
        """Return the options with a study's outcome as the target, or as a column beside the task's own target."""
        if not self.statistics or self.outcome is None:
            return self
        if self.time or self.target:
            beside = replace(self, outcome=None)
            object.__setattr__(beside, "explained", self.outcome)
            return beside
        if self.treatment or self.event:
            return self
        # Nothing else can be meant.
        return replace(self, target=self.outcome, outcome=None)

    def target_columns(self, names: Sequence[str]) -> list[str]:
        """Return the task's columns that a table of these names must have, or has."""
        return [each for each in self.parts.values() if each in names or not self.has_entries or each != self.target]

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a column that an option names."""
        unknown = [each for each in [*self.target_columns(names), *self.without] if each not in names]
        if unknown:
            advice = ""
            if self.target in unknown:
                advice = " Public rows need no targets: give them by --class for each class, or by --target-range."
            sentence = f"it has no column {join_names(unknown)}; it has {join_names(names)}.{advice}"
            raise invalid("The public table", sentence)
        # A slip in an option's column would silently change nothing.
        strange = join_names(sorted({*(self.kinds or {}), *(self.missing or {}), *(self.keep or {})} - {*names, ""}))
        refuse_if(strange, "The public table", f"it has no column {strange}, which an option names.")
