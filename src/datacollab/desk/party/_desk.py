"""What a party's desk remembers from page to page; what has to last is in the party's folder."""

from __future__ import annotations

import secrets
import shlex
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...bundle import KeyPair, PublicKey
from ...exchange.party_folder import PartyFolder
from ...exchange.project import Project
from ..web import Chosen, DeskFiles, Jobs, Refusal

if TYPE_CHECKING:
    from ...exchange.party_folder import Explained, Prepared

__all__ = ["TABLE_ENDINGS", "Looked", "Offer", "PartyDesk", "Seen"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Offer:
    """A project that was looked at and is not joined yet.

    Attributes
    ----------
    project : Project
    file : Chosen
        A copy of the project file: what is joined is what was looked at.
    anchor : Chosen or None
    id : str
        Of this look and no other.
    """

    project: Project
    file: Chosen
    anchor: Chosen | None
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    def discard(self) -> None:
        """Remove the copies."""
        self.file.discard()
        if self.anchor is not None:
            self.anchor.discard()


TABLE_ENDINGS = (".csv", ".parquet", ".pq", ".arrow", ".feather", ".ipc")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is wrong with a table.

    Attributes
    ----------
    refusal : Refusal or None
        Why it cannot be used at all.
    n_rows : int
    adjusted : dict of str to object
        What the project's rules made of entries, as `Adjustments.to_dict` gives it.
    targets : dict of str to int
        Rows of each class; empty where there are none.
    """

    refusal: Refusal | None = None
    n_rows: int = 0
    adjusted: dict[str, Any] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Looked:
    """What would leave, as `PartyFolder.prepare` made it, and what speaks against it.

    Attributes
    ----------
    prepared : Prepared
    reasons : list of Refusal
    """

    prepared: Prepared = field(repr=False)
    reasons: list[Refusal]


class PartyDesk:
    """A party's desk over its folder.

    Parameters
    ----------
    path : Path
        The party's folder.
    passphrase : str, optional
        Of its keys.

    Attributes
    ----------
    path : Path
    key : PublicKey
        The party's.
    files : DeskFiles
    jobs : Jobs
    offer : Offer or None
        A project that was looked at and is not joined yet.
    table : Path or None
        The party's table.
    seen : Seen or None
    options : dict of str to object
        How it is to be shared, as `PartyFolder.prepare` takes it.
    attacks : dict of str to object
        Whether the share is attacked first, and for how long attacks are begun.
    looked : Looked or None
    installed : dict of str to object or None
        What `PartyFolder.install` gave.
    predicted : tuple of (Path, int, dict) or None
        The predictions, how many there are, and what was adjusted.
    evaluated : dict of str to object or None
        What `PartyFolder.evaluate` gave.
    explained : Explained or None
    distilled : dict of str to object or None
        What `PartyFolder.distil` gave.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        self.path = Path(path)
        self.files = DeskFiles(self.path)
        self.jobs = Jobs()
        self.offer: Offer | None = None
        self._passphrase = passphrase
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, ...], PartyFolder] | None = None
        self.table: Path | None = self.files.kept("table")
        self.seen: Seen | None = None
        self.options: dict[str, Any] = {}
        self.attacks: dict[str, Any] = {}
        self.looked: Looked | None = None
        self.installed: dict[str, Any] | None = None
        self.predicted: tuple[Path, int, dict[str, Any]] | None = None
        self.evaluated: dict[str, Any] | None = None
        self.explained: Explained | None = None
        self.distilled: dict[str, Any] | None = None
        keys = self.path / "keys.json"
        if self.is_joined or not keys.is_file():
            self.key: PublicKey = self.opened().key.public
        else:
            self.key = KeyPair.load(keys, passphrase).public

    @property
    def is_joined(self) -> bool:
        """Whether the folder was set up for a project."""
        return (self.path / "project.toml").is_file()

    @property
    def has_distilled(self) -> bool:
        """Whether a model was distilled from anchor predictions."""
        return (self.path / "learned.dcstate").is_file()

    @property
    def has_anchor(self) -> bool:
        """Whether the anchor was opened."""
        return (self.path / "anchor.dcstate").is_file()

    def offered(self, offer: Offer | None) -> None:
        """Put another project, or none, in the place of the one that was looked at last."""
        last, self.offer = self.offer, offer
        if last is not None:
            last.discard()

    def join(self, project: Path, anchor: Path | None, *, owner: PublicKey) -> None:
        """Set the folder up, as `PartyFolder.join` does."""
        PartyFolder.join(self.path, project, anchor, owner=owner, passphrase=self._passphrase)

    def opened(self) -> PartyFolder:
        """The folder, opened anew where project or keys are others than before."""
        places = (self.path / "project.toml", self.path / "keys.json")
        now = tuple(
            each for place in places if place.exists() for each in (place.stat().st_mtime_ns, place.stat().st_size)
        )
        with self._lock:
            if self._opened is None or self._opened[0] != now:
                self._opened = now, PartyFolder(self.path, passphrase=self._passphrase)
            return self._opened[1]

    def opened_for_rows(self) -> PartyFolder:
        """The folder of a project that shares rows.

        Raises
        ------
        ValueError
            If the project shares sums.
        """
        opened = self.opened()
        if opened.project.sharing is not None:
            raise ValueError("The project shares sums, and no rows. See 'What would leave' among the steps.")
        return opened

    def choose(self, table: Path | None) -> None:
        """Take another table: nothing that was seen of the one before is of it."""
        self.table = table
        self.seen = self.looked = None
        self.options, self.attacks = {}, {}

    def forget_copies(self) -> None:
        """Remove what the desk keeps of rows, on the disk and in memory."""
        if self.table is not None and self.table.parent == self.files.path:
            self.table = None
        self.choose(self.table)
        self.offered(None)
        self.installed = self.predicted = self.evaluated = self.explained = None
        self.files.clear()

    def wanted_table(self) -> Path:
        """The table.

        Raises
        ------
        ValueError
            Where none was chosen.
        """
        if self.table is None:
            raise ValueError("No table was chosen yet. Choose one first.")
        return self.table

    def command(self, verb: str, *words: str) -> str:
        """The command that does the same; words that are a shell's already stay as they are."""
        return " ".join(["datacollab party", verb, *words, "-C", shlex.quote(str(self.path))])

    def has_forgotten(self) -> bool:
        """Whether the map was destroyed after the last share."""
        told = [entry["event"] for entry in self.opened().log.entries() if entry["event"] in ("share", "forget")]
        return told[-1:] == ["forget"]

    def shared_entry(self) -> dict[str, Any] | None:
        """What the log says of the last share in this project."""
        opened = self.opened()
        shares = [entry for entry in opened.log.entries() if entry["event"] == "share"]
        ours = [entry for entry in shares if entry["facts"].get("project_digest") == opened.project.digest]
        return ours[-1] if ours else None
