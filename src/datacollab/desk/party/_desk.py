"""The memory of a party's desk from page to page; all that has to last is in the party's folder."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agreement import Project
from ...bundle import KeyFile, KeyPair, PublicKey
from ...errors import ExchangeError
from ...steps.party import PartyFolder, has_forgotten, last_share
from ..web import Chosen, Commands, Desk, Refusal

if TYPE_CHECKING:
    from ...steps.party import Prepared

_FEWEST_MEMBERS = 3
"""The analyst and two parties."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Offer:
    """A project that was looked at and is not joined yet, with copies: the very files that were shown are joined."""

    project: Project
    file: Chosen
    anchor: Chosen | None
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    def discard(self) -> None:
        """Remove the copies."""
        self.file.discard()
        if self.anchor is not None:
            self.anchor.discard()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Findings on a table: why it cannot be used, or its rows, those of each class, and adjusted entries."""

    refusal: Refusal | None = None
    n_rows: int = 0
    adjusted: dict[str, Any] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    understood: str = ""
    """How the file was read, in one line."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Looked:
    """A share as it would leave, and reasons against it."""

    prepared: Prepared = field(repr=False)
    reasons: list[Refusal]


class PartyDesk(Desk):
    """A party's or an owner's desk over its folder, which may still be empty, with the passphrase of its keys.

    ``table`` is the party's table, and ``seen`` are findings on it. ``options`` say how it is to be shared, as
    `PartyFolder.prepare` takes them; ``looked`` is the share as it would leave then.
    """

    role = "party"

    def __init__(self, path: Path, commands: Commands, *, passphrase: str | None = None) -> None:
        super().__init__(path)
        self.commands = commands
        self.offer: Offer | None = None
        self._passphrase = passphrase
        # Pages are answered in several threads.
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, ...], PartyFolder] | None = None
        self.table: Path | None = self.files.find_copy("table")
        self.seen: Seen | None = None
        self.options: dict[str, Any] = {}
        self.looked: Looked | None = None
        self.public: Path | None = self.files.find_copy("public")
        if self.has("project.toml"):
            self.open_folder()
        elif self.has("keys.json"):
            KeyPair.load(self.path / "keys.json", passphrase)

    @property
    def key(self) -> PublicKey | None:
        """The public key of the folder; None if it has no keys yet."""
        if not self.has("keys.json"):
            return None
        return KeyFile.read(self.path / "keys.json").public

    def has(self, name: str) -> bool:
        """Return whether a file is in the folder."""
        return (self.path / name).is_file()

    @property
    def has_anchor(self) -> bool:
        """Return whether the anchor is in the folder, or the project needs none."""
        return self.has("anchor.dcstate") or (self.has("project.toml") and not self.open_folder().project.has_anchor)

    def replace_offer(self, offer: Offer | None) -> None:
        """Put another project, or none, in the place of the one that was looked at last."""
        if self.offer is not None:
            self.offer.discard()
        self.offer = offer

    def join(self, project: Path, anchor: Path | None, *, owner: PublicKey) -> None:
        """Set the folder up, as `PartyFolder.join` does."""
        PartyFolder.join(self.path, project, anchor, owner=owner, passphrase=self._passphrase)

    def open_folder(self) -> PartyFolder:
        """Return the folder, opened anew if project or keys are others than before."""
        places = (self.path / "project.toml", self.path / "keys.json")
        # To open takes a second where a passphrase is stretched, so a folder is kept open while its files are the same.
        now = tuple(
            each for place in places if place.exists() for each in (place.stat().st_mtime_ns, place.stat().st_size)
        )
        with self._lock:
            if self._opened is None or self._opened[0] != now:
                self._opened = (now, PartyFolder(self.path, passphrase=self._passphrase))
            return self._opened[1]

    @property
    def of_sums(self) -> bool:
        """Whether the project shares sums."""
        return self.open_folder().project.shares_sums

    @property
    def awaits_rounds(self) -> bool:
        """Whether a round of a regression is still to be answered: the mask key is erased after the last one."""
        return self.has("mask.dcstate")

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the paths of steps that the project does not have."""
        project = self.open_folder().project
        # No model of an effect or a study comes back, and without targets there is nothing to evaluate.
        results = ("/model", "/predict", "/evaluate")
        ranked = ("/evaluate", "/explain", "/distil")
        if project.shares_sums:
            assert project.sharing is not None
            of_rows = ("/release", "/approve", "/explain", "/distil", "/forget")
            further = () if project.sharing.rounds else ("/round",)
            return (*of_rows, *further, *results) if project.is_study else (*of_rows, *further)
        of_kind = {"effect": (*results, *ranked), "none": ranked, "survival": ("/distil",)}
        return ("/sums", "/round", *of_kind.get(project.task.kind, ()))

    def lacks(self, path: str) -> tuple[str, str]:
        """Return a sentence on anything missing before the step at a path can be taken, and the page to go to."""
        names = {file.stem for file in (self.path / "owner").glob("*.key")}
        if path == "/project" and ("analyst" not in names or len(names) < _FEWEST_MEMBERS):
            return "A draft needs the public keys of the analyst and of two parties or more. Add them above.", ""
        if not self.has("project.toml"):
            return "", ""
        if path in self.left_out:
            return "This project has no such step.", "/"
        if path in ("/release", "/approve", "/sums") and not self.has_anchor:
            return "The anchor is not here yet. When it has come from the owner, join again with it.", "/join"
        # A model is for those who have shared, and works with the secrets of that share.
        if path in ("/model", "/distil") and self.last_share_entry() is None:
            return "Nothing was shared yet, so nothing comes back.", "/sums" if self.of_sums else "/approve"
        if path == "/round" and self.last_share_entry() is None:
            return "Nothing was shared yet, so there is no further round.", "/sums"
        if path == "/round" and not self.awaits_rounds:
            return "All rounds are answered.", "/outbox"
        has_model = self.has("model.dcmodel")
        if path != "/explain":
            # A distilled model predicts, too, where explanations are of the collaboration's model alone.
            has_model = has_model or self.has("learned.dcstate")
        if path in ("/predict", "/evaluate", "/explain") and not has_model:
            return "No model is installed yet.", "/model"
        return "", ""

    def open_for_rows(self) -> PartyFolder:
        """Return the folder of a project that shares rows; raise a ValueError if it shares sums."""
        if self.of_sums:
            raise ValueError("The project shares sums, and no rows. See 'What would leave' among the steps.")
        return self.open_folder()

    def choose(self, table: Path | None) -> None:
        """Take another table, and forget all findings on the one before."""
        self.table = table
        self.seen = self.looked = None
        self.options = {}

    def forget_copies(self) -> None:
        """Remove all that the desk keeps of rows, on the disk and in memory."""
        if self.table is not None and self.table.parent == self.files.path:
            self.table = None
        self.choose(self.table)
        self.replace_offer(None)
        # A distilled model predicts without the map, so its figures stay.
        self.done = {verb: result for verb, result in self.done.items() if verb == "distil"}
        self.files.clear()

    def require_table(self) -> Path:
        """Return the table; raise a ValueError if none was chosen."""
        if self.table is None:
            raise ValueError("No table was chosen yet. Choose one first.")
        return self.table

    def has_forgotten(self) -> bool:
        """Return whether the map was destroyed after the last share."""
        return has_forgotten(self.open_folder())

    def last_share_entry(self) -> dict[str, Any] | None:
        """Return the log's entry of the last share in this project; None if nothing was shared."""
        return last_share(self.open_folder())

    def sentence(self) -> str | None:
        """Return a sentence on the gain by collaboration, if a model is installed."""
        try:
            return self.open_folder().sentence
        except ExchangeError as error:
            # None of these is a fault: there is no model to speak of.
            if error.code in ("NOT_SHARED", "NOT_INSTALLED", "WRONG_SHARE", "FORGOTTEN"):
                return None
            raise
