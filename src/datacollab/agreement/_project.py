"""The agreement of parties and analyst: its entries, their checks, its contents and digest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from .._entries import check_choice, check_limits, check_text, join_names, refuse_if
from ..bundle import PublicKey, canonical_json, digest, spell
from ..errors import ExchangeError
from ..sums._recommended import MOST_COLUMNS
from ..table import Schema, Target
from ._sharing import Sharing, check_sharing
from ._task import Task

FORMAT_VERSION = 1
"""The version of the project file."""
SECTIONS = {
    "project": ("format_version", "revision", "name", "purpose"),
    "rules": ("max_components", "min_rows", "min_class_rows", "quorum", "seal_shares", "deadline"),
    "members": ("owner", "analyst", "parties"),
}
"""Tables of the file whose entries are attributes of the project itself."""
_LEFT_OUT = ("revision", "missing_words", "outside", "unknown", "most_unknown", "statistics", "errors")
"""Entries that are not written at their default, so that an agreement has one spelling."""
_METHODS = ("smote", "uniform", "gaussian", "sample")
_PARTY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_DEVICES = re.compile(r"(con|conin\$|conout\$|prn|aux|nul|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *([.:].*)?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class AnchorRecipe:
    """The owner's recipe for the anchor: a sampler of `datacollab.anchor`, its rows, and their public source."""

    OPTIONAL: ClassVar = ("source",)

    method: str = "smote"
    """One of "smote", "uniform", "gaussian" and "sample"."""
    n_rows: int = 1000
    source: str = ""

    @staticmethod
    def entry_names(found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of all entries, in the order of the file."""
        return ("method", "n_rows", "source")

    def __post_init__(self) -> None:
        check_choice("[anchor], method", self.method, _METHODS)
        check_limits("[anchor], n_rows", self.n_rows, 2)
        check_text("[anchor], source", self.source, most=500, empty=True)


def is_device_name(name: str) -> bool:
    """Return whether Windows opens a device instead of a file of this name, with any extension, such as NUL.csv."""
    return _DEVICES.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True)
class Project(Schema):
    """The agreement: columns, task, anchor, rules and members; an ExchangeError if they contradict one another."""

    OPTIONAL: ClassVar = ("revision", "min_rows", "min_class_rows", "quorum", "seal_shares", "deadline")
    format_version: ClassVar = FORMAT_VERSION

    name: str
    purpose: str
    """The purpose of the model, in words."""
    task: Task
    anchor: AnchorRecipe = field(default_factory=AnchorRecipe)
    max_components: int
    """The most columns that a party's representation may have."""
    min_rows: int = 20
    min_class_rows: int = 1
    """The fewest rows of a party, and of each class that it has."""
    quorum: int = 2
    """The fewest parties for an integration."""
    deadline: date | None = None
    """The last day on which shares are made."""
    seal_shares: bool = True
    """Whether only the analyst can read shares, and no carrier."""
    revision: int = 1
    """Raised at each change of a signed agreement, so that an older one is not taken for a newer."""
    owner: PublicKey
    analyst: PublicKey
    """The owner signs this and makes the anchor; the analyst integrates, and must not know the anchor."""
    parties: dict[str, PublicKey]
    """In the order of their names."""
    sharing: Sharing | None = None
    """None if the parties share rows."""

    def __post_init__(self) -> None:
        check_text("[project], name", self.name)
        check_text("[project], purpose", self.purpose, most=5000, lines=True)
        check_limits("[project], revision", self.revision, 1)
        # One order for all: whether a file was reordered must not show anywhere.
        object.__setattr__(self, "parties", dict(sorted(self.parties.items())))
        self._check_columns()
        self._check_members()
        # More components than columns, or parties than there are, can never be.
        most = {"max_components": self.n_features, "quorum": len(self.parties)}
        for name in ("max_components", "min_rows", "min_class_rows", "quorum"):
            check_limits(f"[rules], {name}", getattr(self, name), 1, most.get(name))
        # Sums have conditions on all other parts.
        if self.shares_sums:
            check_sharing(self.sums, self.parties, self.task, self.columns, self.anchor.method, self.min_rows)
        fault = "logarithms are taken in sums for a model of a number alone. Remove it."
        refuse_if(self.task.scale is not None and not self.sums_numbers, "[task], scale", fault)

    @property
    def sums(self) -> Sharing:
        """The agreement on sums, of projects whose parties share sums."""
        assert self.sharing is not None
        return self.sharing

    @property
    def shares_sums(self) -> bool:
        """Whether the parties share sums; rows otherwise."""
        return self.sharing is not None

    @property
    def is_study(self) -> bool:
        """Whether the parties share sums of statistics that make no model."""
        return self.shares_sums and self.sums.is_study

    @property
    def sums_numbers(self) -> bool:
        """Whether the parties share sums for a model of a number."""
        return self.task.kind == "regression" and self.shares_sums and not self.is_study

    def _check_columns(self) -> None:
        where = "[[columns]]"
        names = [column.name for column in self.columns]
        twice = _list_repeated(names)
        refuse_if(not names, where, "there is none. Declare at least one column.")
        refuse_if(twice, where, f"declared twice: {twice}. Declare each column once.")
        for target in self.task.columns:
            refuse_if(target in names, where, f"{target!r} is the target too. Remove it from the columns.")
        alike = _list_repeated(self.feature_names)
        refuse_if(alike, where, f"columns of the matrix get the same name: {alike}. Rename one.")

    def _check_members(self) -> None:
        of_parties = "[members.parties]"
        keys = [*self.parties.values()]
        check_limits(f"{of_parties}, number", len(keys), 2)
        for name in self.parties:
            fault = f"{name!r} cannot name files"
            is_name = _PARTY_NAME.fullmatch(name)
            refuse_if(not is_name, of_parties, f"{fault}. Expected 1 to 64 letters, digits, - and _, not - first.")
            refuse_if(is_device_name(name), of_parties, f"{fault}: on Windows it names a device. Choose another name.")
        # Some disks do not tell capital letters apart.
        alike = _list_repeated(name.casefold() for name in self.parties)
        refuse_if(alike, of_parties, f"names differ by capital letters alone: {alike}. Rename one.")
        refuse_if(len({*keys}) < len(keys), of_parties, "two parties have the same key. Each needs its own.")
        where = "[members]"
        members = {self.owner, self.analyst, *keys}
        both = "a party's key is the analyst's too. No one may be both; make another key."
        refuse_if(self.analyst in keys, where, both)
        for half in ("signing", "sealing"):
            # One of the two members presents another's.
            refuse_if(
                len({getattr(key, half) for key in members}) < len(members),
                where,
                f"two different keys have the same {half} half, which only one of them can hold. Ask both by another "
                "way for their public keys.",
            )
        refuse_if(
            self.analyst == self.owner,
            where,
            "owner and analyst have the same key, but the owner makes the anchor, which the analyst must not know. Let "
            "a party own the project.",
        )

    @property
    def fewest_parties(self) -> int:
        """How many parties have to share: the quorum, or all if they share sums."""
        return len(self.parties) if self.shares_sums else self.quorum

    @property
    def most_rows(self) -> int | None:
        """The most rows of a total: those of all parties, and labelled public ones; None if nobody agreed on it."""
        # Without the parties' word the analyst has nothing to hold a total against.
        if not self.shares_sums or self.sums.most_rows is None:
            return None
        n_public = 0 if self.sums.labelled_by is None else self.anchor.n_rows
        return sum(self.sums.most_rows.values()) + n_public

    @property
    def has_anchor(self) -> bool:
        """Whether the parties need an anchor: for rows, a model of sums, or an effect."""
        return not self.shares_sums or self.sums.has_map

    @property
    def fills_missing(self) -> bool:
        """Whether missing entries are filled in: not in a study, unless an effect's map needs them."""
        return self.has_anchor

    @property
    def targets(self) -> tuple[Target, ...]:
        """The columns that hold targets; sums clip numbers to the range that the noise is a part of."""
        return self.task.targets(are_clipped=self.sums_numbers)

    @property
    def most_components(self) -> int:
        """The most columns of the common map: those agreed on, or the table's own, which it may turn as they are."""
        return max(self.sums.n_components, min(self.n_features, MOST_COLUMNS))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the agreement itself: neither comments, layout, the order of entries nor the signature count."""
        return digest(canonical_json(project_content(self)))

    @property
    def fingerprint(self) -> str:
        """Twenty letters and digits, that is 100 bits, of the digest, to compare on the telephone."""
        return spell(bytes.fromhex(self.digest), 20)

    def check_deadline(self, today: date) -> None:
        """Raise DEADLINE_PASSED after the last day."""
        if self.deadline is not None and today > self.deadline:
            raise ExchangeError(
                "DEADLINE_PASSED",
                f"The deadline of project {self.name!r} was {self.deadline.isoformat()}. Ask its owner for a new one; "
                "a changed project file is signed again, and everyone needs it.",
            )

    def check_owner(self, key: PublicKey, action: str) -> None:
        """Raise NOT_A_MEMBER if an action is not the owner's."""
        if key != self.owner:
            raise ExchangeError(
                "NOT_A_MEMBER",
                f"The key {key.fingerprint} is not the owner's ({self.owner.fingerprint}), and only the owner {action}."
                " Do it in the owner's folder.",
            )

    def check_not_older(self, than: Project, where: Path) -> None:
        """Raise PROJECT_OLDER for this agreement in place of a later one of the same owner, in the folder `where`.

        An old file that looks new could undo a change, such as the removal of a stolen key.
        """
        # Another owner is another project, which is compared by fingerprint.
        if self.owner == than.owner and self.revision < than.revision:
            raise ExchangeError(
                "PROJECT_OLDER",
                f"This file is revision {self.revision} of project {self.name!r}; {where} has {than.revision}. "
                "Do not use the older one; if the owner means it, they sign it again with a higher revision.",
            )


def _list_repeated(names: Iterable[str]) -> str:
    return join_names(sorted(name for name, count in Counter(names).items() if count > 1))


def project_content(project: Project) -> dict[str, Any]:
    """Return all entries but the signature, with every default written out: equal agreements have equal contents."""
    general, rules, members = (plain_content(project, names) for names in SECTIONS.values())
    content: dict[str, Any] = {"project": general, "task": _content(project.task)}
    if project.has_anchor:
        content["anchor"] = _content(project.anchor)
    content |= {"rules": rules, "columns": [_content(column) for column in project.columns], "members": members}
    if project.shares_sums:
        content["sharing"] = _content(project.sums)
    return content


def _content(table: Any) -> dict[str, Any]:
    return plain_content(table, table.entry_names(vars(table)))


_USUAL_COMPONENTS = 16


def usual_components(n_free: int, task: Task | None = None) -> int:
    """Return the usual number of columns of a representation: 16, or one less than the free numbers in a row.

    A linear map onto as many columns as there are free numbers turns the table and hides nothing.  For an effect it is
    as many all the same: covariates that are lost are not adjusted for, and estimates come out biased.
    """
    # Adjustment needs every covariate; defences hide rows there.
    if task is not None and task.kind == "effect":
        return n_free
    return max(1, min(_USUAL_COMPONENTS, n_free - 1))


def field_types(kind: type[Any]) -> dict[str, str]:
    """Return the annotations of a class's fields."""
    return {each.name: str(each.type) for each in fields(kind)}


def plain_content(table: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return entries of an object for JSON, with every default written out; those that are None are left out."""
    types = field_types(type(table))
    defaults = {each.name: each.default for each in fields(table)}
    content = {}
    for name in names:
        value = getattr(table, name)
        # Entries that came later stay out at their default: digests of older files hold.
        is_left_out = name in _LEFT_OUT and value == defaults[name]
        if value is not None and not is_left_out:
            content[name] = _plain(value, types.get(name, ""))
    return content


def _plain(value: Any, annotation: str) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each, "") for name, each in value.items()}
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, PublicKey):
        return value.text
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) or "float" not in annotation:
        return value
    # So that 1 and 1.0 are the same agreement; 0 is added to lose the sign of -0.0.
    return float(value) + 0.0
