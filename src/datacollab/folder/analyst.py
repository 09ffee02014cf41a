"""The analyst's folder on disk, the files that parties sent, and one way to share, as the analyst takes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ..agreement import Project, load_project
from ..bundle import Bundle, KeyPair
from ..errors import AgreementError, ExchangeError
from .log import AuditLog

__all__ = ["SEALED", "AnalystFiles", "AnalystWay", "Export", "ReceivedFile"]
__all__ += ["check_anchors", "load_analysts_key", "sender_of"]

SEALED = "sealed.bin"
"""The member of a bundle that is sealed to its recipient."""


@dataclass(frozen=True, kw_only=True)
class ReceivedFile:
    """A `Share` or `MaskedMessage` that belongs to the project and comes from its party; facts are those outside."""

    party: str
    share: Any = field(repr=False)
    facts: dict[str, Any]
    digest: str


def sender_of(bundle: Bundle, project: Project, where: str) -> str:
    """Return the party that a file comes from; refuse it if that is none, or has not signed it."""
    party = bundle.facts.get("party")
    if not isinstance(party, str) or party not in project.parties:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"{where} comes from a party that is not in project {project.name!r}; its parties are "
            f"{list(project.parties)!r}. Ask the project's owner.",
        )
    if bundle.signer is None:
        raise ExchangeError(
            "SIGNATURE_MISSING", f"{where} is not signed. Ask party {party!r} for the file that its program wrote."
        )
    # A name in a file is a claim; the key that signed it is the proof.
    if bundle.signer != (key := project.parties[party]):
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{where} says that it comes from party {party!r}, but is signed by {bundle.signer.fingerprint}; the "
            f"project names {key.fingerprint}. Do not use it, and ask the party by another way.",
        )
    return party


def check_anchors(received: ReceivedFile, present: Mapping[str, ReceivedFile], way_on: str) -> None:
    """Refuse a file of another anchor than the other parties' files; `way_on` says what they may do then."""
    commitment = received.facts["anchor_commitment"]
    others = {name: each for name, each in present.items() if name != received.party}
    if differing := [name for name, each in others.items() if each.facts["anchor_commitment"] != commitment]:
        raise ExchangeError(
            "ANCHOR_MISMATCH",
            f"Party {received.party!r} used another anchor than {differing!r}, so what they sent cannot be combined. "
            f"{way_on}",
        )


def load_analysts_key(path: Path, project: Project, passphrase: str | None) -> KeyPair:
    """Return the key in a folder, or raise NOT_A_MEMBER if it is not that of the project's analyst."""
    key = KeyPair.load(path / "keys.json", passphrase)
    if key.public == project.analyst:
        return key
    whose = "not the analyst's"
    way_on = "Send the owner the file public.key of this folder"
    for name, public in project.parties.items():
        if public == key.public:
            whose = f"that of party {name!r}"
            way_on = "This is a step of the analyst's: name their folder with -C"
    raise ExchangeError(
        "NOT_A_MEMBER",
        f"The key in {path} ({key.public.fingerprint}) is {whose} in project {project.name!r}; the analyst's is "
        f"{project.analyst.fingerprint}. {way_on}.",
    )


class AnalystFiles:
    """A folder with the analyst's key: its project and log."""

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        self.path = Path(path)
        if not (self.path / "project.toml").is_file():
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{self.path} is no analyst's folder: there is no project.toml. Run `datacollab analyst init "
                "project.toml -C FOLDER` first.",
            )
        self.project: Project = load_project(self.path / "project.toml")
        self.log = AuditLog(self.path / "log.jsonl")
        self.key = load_analysts_key(self.path, self.project, passphrase)

    def check_quorum(self, n_shares: int) -> None:
        """Raise if fewer parties have shared than the project needs."""
        if n_shares < self.project.quorum:
            raise ExchangeError(
                "QUORUM_NOT_MET",
                f"{n_shares} of {len(self.project.parties)} parties have shared; project {self.project.name!r} wants "
                f"{self.project.quorum}. Wait for the others.",
            )


@dataclass(frozen=True, kw_only=True)
class Export:
    """The parties that get a file, facts for the log, and a function that writes a party's file."""

    parties: list[str]
    facts: dict[str, Any]
    data_for: Callable[[str], bytes]


@dataclass(frozen=True, eq=False)
class AnalystWay(ABC):
    """The analyst's steps by one way to share, in its folder; `steps` chooses it once, from the project."""

    ending: ClassVar[str]
    """Of the files that parties send."""
    made: ClassVar[str]
    """The file of the last integration."""
    takes_again: ClassVar[bool] = False
    """Whether a party's second file may take the place of its first."""
    predicts_anchor: ClassVar[bool] = False
    """Whether predictions for the anchor may go back in place of models."""

    folder: AnalystFiles

    @abstractmethod
    def receive(self, data: bytes, *, where: str) -> ReceivedFile:
        """Read and check a party's file."""

    @abstractmethod
    def check_fits(self, received: ReceivedFile, present: Mapping[str, ReceivedFile], *, where: str) -> None:
        """Refuse a file that does not go with those that are there."""

    @abstractmethod
    def facts_to_log(self, received: ReceivedFile) -> dict[str, Any]:
        """Return facts of a file for the log."""

    @abstractmethod
    def describe(self, n_rows: int | None, n_components: int) -> str:
        """Return the contents of a party's file, in a few words."""

    @abstractmethod
    def made_of(self, received: ReceivedFile) -> dict[str, Any]:
        """Return the facts by which a file that goes out names the party's file."""

    @abstractmethod
    def integrate(self, *args: Any, **options: Any) -> Any:
        """Make one model, or the results of a study; the folder must be locked."""

    @abstractmethod
    def export(self, *, anchor_predictions: bool) -> Export:
        """Return the files that go back to the parties."""

    def read_integration(self) -> tuple[dict[str, Any], Any]:
        """Return models by party, and their integration."""
        raise AgreementError(f"Project {self.folder.project.name!r} shares sums, which are added up, not aligned.")

    def file_of(self, party: str) -> Path:
        """Return the path of a party's file."""
        return self.folder.path / "shares" / f"{party}{self.ending}"

    def shares(self) -> list[ReceivedFile]:
        """Return the files that parties sent, in the project's order; all are checked anew."""
        files = [file for file in map(self.file_of, self.folder.project.parties) if file.is_file()]
        return [self.receive(file.read_bytes(), where=str(file)) for file in files]

    def read_made(self) -> bytes:
        """Return the file of the last integration, or raise NOT_INTEGRATED."""
        path = self.folder.path
        if not (path / self.made).is_file():
            run = "integrate` first"
            if self.folder.project.task.kind == "effect":
                run = "effect`: no model goes back"
            raise ExchangeError("NOT_INTEGRATED", f"{path} holds no integration. Run `datacollab analyst {run}.")
        return (path / self.made).read_bytes()
