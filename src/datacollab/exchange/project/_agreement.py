"""What parties and analyst agree on before anything is exchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from ...bundle import PublicKey
from ...errors import ExchangeError
from ._column import Column
from ._recipe import AnchorRecipe
from ._refusals import check_text, invalid, listed
from ._task import Task

__all__ = ["Agreement", "check_party_name", "is_device_name"]

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
    seal_shares: bool = False
    revision: int = 1
    owner: PublicKey
    analyst: PublicKey
    parties: dict[str, PublicKey]

    def __post_init__(self) -> None:
        check_text("[project], name", self.name)
        check_text("[project], purpose", self.purpose, most=5000, lines=True)
        # One order for all, whatever the file's: whether a file was reordered must not show anywhere.
        object.__setattr__(self, "parties", dict(sorted(self.parties.items())))
        self._check_columns()
        self._check_members()
        self._check_rules()

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
