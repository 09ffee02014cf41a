"""Whose folder it is that files are carried from and to, and of which project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..bundle import KeyFile, PublicKey
from ..errors import ExchangeError
from ..exchange.project import Project, load_project

__all__ = ["INBOX", "PROJECT_FILE", "Folder"]

INBOX, PROJECT_FILE = "inbox", "project.toml"


@dataclass(frozen=True)
class Folder:
    """A folder of a party, an analyst or an owner.

    Attributes
    ----------
    path : Path
    key : PublicKey
        Whose it is.
    project : Project or None
        That it was set up for; or one that came and it has not joined yet; None before that.
    project_file : Path or None
        Where that is.
    coming : Project or None
        A later revision in the inbox that the folder has not joined yet.
    """

    path: Path
    key: PublicKey
    project: Project | None
    project_file: Path | None
    coming: Project | None = None

    @classmethod
    def at(cls, path: Path, files: Sequence[Path] = ()) -> Folder:
        """Look at a folder that holds keys.

        Parameters
        ----------
        path : Path
        files : sequence of Path
            Named besides; a project file among them is the one that counts.

        Raises
        ------
        ExchangeError
            KEY_MISSING, PROJECT_OLDER, and what reading keys and project may raise.
        """
        path = Path(path)
        key = KeyFile.read(path / "keys.json").public
        named = [file for file in files if file.suffix == ".toml"]
        places = named or [place for place in (path / PROJECT_FILE, path / INBOX / PROJECT_FILE) if place.is_file()]
        if not places:
            return cls(path, key, None, None)
        # What came and was not joined counts only where there is nothing else: joining is a decision.
        project = load_project(places[0])
        coming = None if named or len(places) == 1 else load_project(places[1])
        return cls(path, key, project, places[0], coming if _follows(coming, project) else None)

    @property
    def agreed(self) -> Project:
        """The project.

        Raises
        ------
        ExchangeError
            PROJECT_MISSING.
        """
        if self.project is None:
            raise ExchangeError(
                "PROJECT_MISSING",
                f"{self.path} has no project yet. Run `datacollab remote pull` when the owner has sent it; an owner "
                "names the file: datacollab remote push project.toml.",
            )
        return self.project

    def version(self, digest: object) -> Project:
        """The revision of the project that has a digest; the folder's own where none has."""
        return self.coming if self.coming is not None and self.coming.digest == digest else self.agreed

    @property
    def versions(self) -> tuple[Project, ...]:
        """The folder's own revision, and one that is to be joined."""
        return (self.agreed,) if self.coming is None else (self.agreed, self.coming)

    @property
    def party(self) -> str | None:
        """The party that the key is, if it is one."""
        parties = {} if self.project is None else self.project.parties
        return next((name for name, key in parties.items() if key == self.key), None)

    @property
    def is_owner(self) -> bool:
        """Whether the key is the owner's."""
        return self.project is not None and self.project.owner == self.key

    @property
    def is_analyst(self) -> bool:
        """Whether the key is the analyst's."""
        return self.project is not None and self.project.analyst == self.key

    @property
    def inbox(self) -> Path:
        """Where what came lies."""
        return self.path / INBOX


def _follows(coming: Project | None, project: Project) -> bool:
    return coming is not None and coming.owner == project.owner and coming.revision > project.revision
