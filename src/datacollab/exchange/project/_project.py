"""What parties and analyst agree on before anything is exchanged: entries, checks, contents and digest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from ...bundle import PublicKey, canonical_json, digest, spelt
from ...errors import ExchangeError
from ._column import Column
from ._refusals import check_text, invalid, listed
from ._sharing import Sharing, check_sharing, sharing_content
from ._task import Task, task_entries

__all__ = ["FORMAT_VERSION", "AnchorRecipe", "Project", "check_party_name", "is_device_name", "project_content"]

ANCHOR_METHODS = ("smote", "uniform", "gaussian", "sample")


@dataclass(frozen=True, kw_only=True)
class AnchorRecipe:
    """How the owner makes the anchor from public rows.

    Attributes
    ----------
    method : {"smote", "uniform", "gaussian", "sample"}
        See the samplers of `datacollab.anchor`.
    n_rows : int
        The rows of the anchor.
    source : str
        Where the public rows come from, in words.

    Raises
    ------
    ExchangeError
        When the method is unknown, or there are too few rows.
    """

    method: str = "smote"
    n_rows: int = 1000
    source: str = ""

    def __post_init__(self) -> None:
        if self.method not in ANCHOR_METHODS:
            raise invalid("[anchor], method", f"{self.method!r}; one of {', '.join(ANCHOR_METHODS)} is wanted.")
        if self.n_rows < 2:
            raise invalid("[anchor], n_rows", f"{self.n_rows}; at least 2 are wanted.")
        check_text("[anchor], source", self.source, most=500, empty=True)


_PARTY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_DEVICES = re.compile(r"(con|conin\$|conout\$|prn|aux|nul|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *([.:].*)?", re.IGNORECASE)


def is_device_name(name: str) -> bool:
    """Return whether Windows opens a device instead of a file of this name, whatever its extension.

    Examples
    --------
    >>> is_device_name("NUL.dcshare"), is_device_name("null")
    (True, False)
    """
    return _DEVICES.fullmatch(name) is not None


def check_party_name(name: str) -> None:
    """Check that files can be named after a party on every system.

    Parameters
    ----------
    name : str

    Raises
    ------
    ExchangeError
        SPEC_INVALID.
    """
    if not _PARTY_NAME.fullmatch(name):
        raise invalid(
            "[members.parties]",
            f"{name!r} cannot name files. Expected 1 to 64 letters, digits, - and _, not - first.",
        )
    if is_device_name(name):
        raise invalid(
            "[members.parties]", f"{name!r} cannot name files: on Windows it names a device. Choose another name."
        )


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The entries and their checks; `Project`, where they are described, is this with its digest."""

    name: str
    purpose: str
    columns: tuple[Column, ...]
    task: Task
    anchor: AnchorRecipe = field(default_factory=AnchorRecipe)
    max_components: int
    min_rows: int = 20
    min_class_rows: int = 1
    quorum: int = 2
    deadline: date | None = None
    seal_shares: bool = True
    revision: int = 1
    owner: PublicKey
    analyst: PublicKey
    parties: dict[str, PublicKey]
    sharing: Sharing | None = None

    def __post_init__(self) -> None:
        check_text("[project], name", self.name)
        check_text("[project], purpose", self.purpose, most=5000, lines=True)
        # One order for all, whatever the file's: whether a file was reordered must not show anywhere.
        object.__setattr__(self, "parties", dict(sorted(self.parties.items())))
        self._check_columns()
        self._check_members()
        self._check_rules()
        if self.sharing is not None:
            check_sharing(self.sharing, self.parties, self.task, self.anchor.method)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def n_features(self) -> int:
        """Columns of the matrix."""
        return sum(column.n_features for column in self.columns)

    @property
    def n_free(self) -> int:
        """How many numbers tell a row; as many components of a linear map hide nothing."""
        return sum(column.n_free for column in self.columns)

    def check_deadline(self, today: date) -> None:
        """Refuse what comes after the last day.

        Raises
        ------
        ExchangeError
            When it is over.
        """
        if self.deadline is not None and today > self.deadline:
            raise ExchangeError(
                "DEADLINE_PASSED",
                f"The deadline of project {self.name!r} was {self.deadline.isoformat()}. Ask its owner for a new one; "
                "a changed project file is signed again, and everyone needs it.",
            )

    def _check_columns(self) -> None:
        if not self.columns:
            raise invalid("[[columns]]", "there is none. Declare at least one column.")
        names = [column.name for column in self.columns]
        if repeated := sorted(_repeated(names)):
            raise invalid("[[columns]]", f"declared twice: {listed(repeated)}. Declare each column once.")
        for target in self.task.columns:
            if target in names:
                raise invalid("[[columns]]", f"{target!r} is the target too. Remove it from the columns.")
        if repeated := sorted(_repeated(self.feature_names)):
            raise invalid("[[columns]]", f"columns of the matrix get the same name: {listed(repeated)}. Rename one.")

    def _check_members(self) -> None:
        if len(self.parties) < 2:
            raise invalid("[members.parties]", f"{len(self.parties)} parties; at least 2 are wanted.")
        for name in self.parties:
            check_party_name(name)
        if repeated := sorted(_repeated(name.casefold() for name in self.parties)):
            raise invalid(
                "[members.parties]", f"names differ by capital letters alone: {listed(repeated)}. Rename one."
            )
        if len(set(self.parties.values())) < len(self.parties):
            raise invalid("[members.parties]", "two parties have the same key. Each needs its own.")
        if self.analyst in self.parties.values():
            raise invalid("[members]", "a party's key is the analyst's too. No one may be both; make another key.")
        self._check_halves()
        if self.analyst == self.owner:
            raise invalid(
                "[members]", "owner and analyst have the same key, but the owner makes the anchor, which the analyst "
                "must not know. Let a party own the project."
            )  # fmt: skip

    def _check_halves(self) -> None:
        """Refuse two keys that share a half: one of the two members presents what is another's."""
        keys = {self.owner, self.analyst, *self.parties.values()}
        for what, halves in (("signing", {key.signing for key in keys}), ("sealing", {key.sealing for key in keys})):
            if len(halves) < len(keys):
                raise invalid(
                    "[members]",
                    f"two different keys have the same {what} half, which only one of them can hold. Ask both by "
                    "another way for their public keys.",
                )

    def check_not_older(self, than: Agreement, where: Path) -> None:
        """Refuse this agreement in place of a later one of the same owner.

        Whoever can make an old file look new, such as one that still names a key that was stolen, could undo a change.

        Parameters
        ----------
        than : Agreement
            The one that is there.
        where : Path
            Its folder, for errors.

        Raises
        ------
        ExchangeError
            PROJECT_OLDER.
        """
        if self.owner == than.owner and self.revision < than.revision:
            raise ExchangeError(
                "PROJECT_OLDER",
                f"This file is revision {self.revision} of project {self.name!r}; {where} has {than.revision}. "
                "Do not use the older one; if the owner means it, they sign it again with a higher revision.",
            )

    def _check_rules(self) -> None:
        if self.revision < 1:
            raise invalid("[project], revision", f"{self.revision}; 1 or more is wanted.")
        most = {"max_components": self.n_features, "quorum": len(self.parties)}
        for name in ("max_components", "min_rows", "min_class_rows", "quorum"):
            number = getattr(self, name)
            if not 1 <= number <= most.get(name, number):
                limit = f"1 to {most[name]}" if name in most else "1 or more"
                raise invalid(f"[rules], {name}", f"{number}; {limit} is wanted.")


def _repeated(names: Iterator[str] | list[str] | tuple[str, ...]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]


FORMAT_VERSION = 1
"""Of the project file."""


def project_content(project: Agreement) -> dict[str, Any]:
    """All entries but the signature, with every default written out, so that equal agreements have equal contents."""
    rules: dict[str, Any] = {
        "max_components": project.max_components,
        "min_rows": project.min_rows,
        "min_class_rows": project.min_class_rows,
        "quorum": project.quorum,
        "seal_shares": project.seal_shares,
    }
    if project.deadline is not None:
        rules["deadline"] = project.deadline.isoformat()
    recipe = project.anchor
    general: dict[str, Any] = {"format_version": FORMAT_VERSION}
    # Left out where it is the first, so that an agreement has one spelling.
    general |= {"revision": project.revision} if project.revision > 1 else {}
    return {
        "project": general | {"name": project.name, "purpose": project.purpose},
        "task": _task_content(project.task),
        "anchor": {"method": recipe.method, "n_rows": recipe.n_rows, "source": recipe.source},
        "rules": rules,
        "columns": [_column_content(column) for column in project.columns],
        "members": {
            "owner": project.owner.text,
            "analyst": project.analyst.text,
            "parties": {name: key.text for name, key in project.parties.items()},
        },
        # Left out where rows are shared, so that an agreement has one spelling.
        **({} if project.sharing is None else {"sharing": sharing_content(project.sharing)}),
    }


def _task_content(task: Task) -> dict[str, Any]:
    content: dict[str, Any] = {"kind": task.kind}
    for name in task_entries(task.kind, has_time=bool(task.time)):
        value = getattr(task, name)
        if isinstance(value, tuple):
            content[name] = list(value)
        else:
            content[name] = value if isinstance(value, str) else _number(value)
    return content


def _column_content(column: Column) -> dict[str, Any]:
    content: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "number":
        content |= {"unit": column.unit, "minimum": _number(column.minimum), "maximum": _number(column.maximum)}
    else:
        content["categories"] = list(column.categories)
    content["missing"] = column.missing
    if column.missing == "fill":
        fill = column.fill if isinstance(column.fill, str) else _number(column.fill)
        content |= {"fill": fill, "flag_missing": column.flag_missing}
    # Left out where they refuse, so that an agreement has one spelling.
    content |= {name: rule for name in ("outside", "unknown") if (rule := getattr(column, name)) != "refuse"}
    return content


def _number(value: float | None) -> float:
    """As a float, so that 1 and 1.0 are the same agreement; 0 is added to lose the sign of -0.0."""
    assert value is not None  # the constructors refuse a range with a bound missing
    return float(value) + 0.0


@dataclass(frozen=True, kw_only=True)
class Project(Agreement):
    """The agreement: columns, task, anchor, rules and members.

    Attributes
    ----------
    name : str
    purpose : str
        What the model is for, in words.
    revision : int
        Raised whenever a signed agreement is changed, so that an older one is not taken for a newer.
    columns : tuple of Column
        In the order of the columns of the matrix.
    task : Task
    anchor : AnchorRecipe
    max_components : int
        The most columns that a party's representation may have.
    min_rows, min_class_rows : int
        The fewest rows of a party, and of each class that it has.
    quorum : int
        The fewest parties for an integration.
    deadline : date or None
        The last day on which shares are made.
    seal_shares : bool
        Whether shares can be read by the analyst alone, and not by whoever carries them.
    owner, analyst : PublicKey
        Who signs this and makes the anchor; who integrates.  They differ, as the analyst must not know the anchor.
    parties : dict of str to PublicKey
        In the order of their names.
    sharing : Sharing or None
        None if the parties share rows.

    Raises
    ------
    ExchangeError
        When the entries contradict one another.
    """

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the agreement itself: neither comments, layout, the order of entries nor the signature count."""
        return digest(canonical_json(project_content(self)))

    @property
    def fingerprint(self) -> str:
        """Twenty letters and digits, that is 100 bits, of the digest, to compare on the telephone."""
        return spelt(bytes.fromhex(self.digest), 20)
