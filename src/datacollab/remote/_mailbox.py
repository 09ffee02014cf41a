"""A store on this machine, whose files somebody else's framework carries to another one, piece by piece."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ..bundle import Limits, PublicKey, digest, read_envelope, sync_folder
from ..errors import ExchangeError
from ..exchange.project import Project
from ._addressed import addressed
from ._base import Tell, silent
from ._folder import Folder
from ._kinds import AGREEMENT, KINDS, Kind
from ._parcel import Parcel
from ._project_text import project_of
from ._sha256 import sha256_of
from ._store import StoreRemote

__all__ = ["MOST_FILES", "PIECE", "Mailbox"]

PIECE = 4 * 2**20
"""Bytes in a message at most, which all frameworks' own limits let pass."""

_SUFFIXES = {name: kind.suffix for name, kind in KINDS.items()} | {AGREEMENT: ".toml"}
_NAME = re.compile(r"([0-9a-f]{64})/([a-z]+)/([0-9a-f]{64})(\.[a-z]+)")
MOST_FILES = 1000
"""In a mailbox."""
_MOST_TEXT = 2**20


class Mailbox(StoreRemote):
    """A store of which one side of a connection has a part, and the other side another.

    What comes gets its name when it is whole, sealed, signed as its project wants, and of a project whose file lies
    here.  To whom a framework hands a file, it knows by what its members say of themselves: the seal alone keeps others
    from reading it.

    Parameters
    ----------
    path : Path
        Made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path).resolve()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(str(self.path))

    def send(self, parcel: Parcel, *, tell: Tell = silent) -> None:
        """As of `Remote`, for what is sealed.

        Raises
        ------
        ExchangeError
            REMOTE_REFUSED.
        """
        _check_sealed(parcel.sealed, parcel.kind, str(parcel.path))
        super().send(parcel, tell=tell)

    def from_folder(self, folder: Folder) -> dict[str, int]:
        """Names and sizes of what a folder has left here: what its own key signed, and nothing that came."""
        names = {
            f"{each.project}/{each.kind}/{each.sha256}{_SUFFIXES[each.kind]}": each.size
            for each in (self.list(folder) if folder.project is not None else ())
            if each.sender == folder.key.fingerprint
        }
        texts = {name: len(text) for name, project, text in self._texts() if project.owner == folder.key}
        return texts | names

    def for_member(self, key: PublicKey) -> dict[str, int]:
        """Names and sizes of what is for the holder of a key, project files first."""
        texts, names = {}, {}
        for name, project, text in self._texts():
            if key not in (project.owner, project.analyst, *project.parties.values()):
                continue
            texts[name] = len(text)
            for each in self.list(Folder(self.path, key, project, None)):
                if each.is_for(Folder(self.path, key, project, None)):
                    names[f"{each.project}/{each.kind}/{each.sha256}{_SUFFIXES[each.kind]}"] = each.size
        return texts | names

    def names(self) -> list[str]:
        """Of all that lies here whole."""
        found = (str(path.relative_to(self.path).as_posix()) for path in self.path.glob("*/*/*"))
        return sorted(name for name in found if _NAME.fullmatch(name))

    def has(self, name: str) -> bool:
        """Whether a file lies here, whole."""
        return self._path_of(name).is_file()

    def piece(self, name: str, start: int) -> bytes:
        """Bytes of a file that lies here."""
        with open(self._path_of(name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if start >= size:
                raise ExchangeError(
                    "REMOTE_REFUSED",
                    f"The other side wants {name} from byte {start} on, and it has {size}. Compare the programs' "
                    "versions.",
                )
            file.seek(start)
            return file.read(PIECE)

    def begun(self, name: str, size: int, *, source: str) -> int:
        """How many bytes of a file lie here that is coming from somewhere, and to have that size."""
        path = self._path_of(name)
        if path.is_file():
            return size
        part = _part(path, source)
        if not part.is_file():
            return 0
        if part.stat().st_size >= size:
            part.unlink()  # it should have its name by now: nothing that could go on
            return 0
        return part.stat().st_size

    def take(self, name: str, start: int, size: int, piece: bytes, *, source: str) -> int:
        """Put a piece behind those that came; a piece from elsewhere in the file changes nothing.

        Parameters
        ----------
        name : str
        start, size : int
            Where the piece begins, and how large the whole file is said to be.
        piece : bytes
        source : str
            From whom, so that nobody spoils what comes from another.

        Returns
        -------
        int
            How many bytes lie here now: where the next piece begins.

        Raises
        ------
        ExchangeError
            REMOTE_REFUSED, QUOTA_EXCEEDED, TOO_LARGE, HASH_MISMATCH, and of the kinds "verification" and "keys".
        """
        path = self._path_of(name)
        part, done = _part(path, source), self.begun(name, size, source=source)
        if path.is_file() or start != done:
            return done
        most = _MOST_TEXT if f"/{AGREEMENT}/" in name else Limits().total_bytes
        if not 0 < size <= most or done + len(piece) > size:
            raise ExchangeError("TOO_LARGE", f"{name} is to have {size} bytes, and {most} are allowed. Ask its sender.")
        root, kind, _ = name.split("/")
        if kind != AGREEMENT:
            self._project(root, name)
        if len(self.names()) >= MOST_FILES:
            raise ExchangeError(
                "QUOTA_EXCEEDED", f"{self.path} holds {MOST_FILES} files already. Remove those of past projects."
            )
        # Of one file alone a source's part is kept: whatever it begins, no disk is filled by what comes to nothing.
        for other in self.path.glob(f"*/*/{_part(Path('*'), source).name}"):
            if other != part:
                other.unlink()
        part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(part, "ab", opener=_private) as file:
            file.write(piece)
        if done + len(piece) == size:
            self._finish(name, part, path)
        return done + len(piece)

    def _finish(self, name: str, part: Path, path: Path) -> None:
        """Give a file that came its name, if it is what it says."""
        try:
            if sha256_of(part) != path.name.partition(".")[0]:
                raise ExchangeError("HASH_MISMATCH", f"{name} is not the file that was announced. Run it again.")
            self._check(name, part)
        except ExchangeError:
            part.unlink()
            raise
        os.replace(part, path)
        sync_folder(path.parent)

    def _check(self, name: str, part: Path) -> None:
        root, kind, _ = name.split("/")
        if kind == AGREEMENT:
            found = project_of(part.read_bytes(), name)
            if found.digest != root:
                raise ExchangeError("PROJECT_HASH_MISMATCH", f"{name} is project {found.fingerprint}. Do not use it.")
            return
        project = self._project(root, name)
        with open(part, "rb") as file:
            bundle = addressed(read_envelope(file, os.fstat(file.fileno()).st_size, what=name), project, name)
        if bundle.kind.name != kind:
            raise ExchangeError("WRONG_KIND", f"{name} is in truth {bundle.kind.name}. Do not use it; ask its sender.")
        _check_sealed(bundle.sealed, bundle.kind, name)

    def _project(self, root: str, name: str) -> Project:
        project = next((each for _, each, _ in self._texts() if each.digest == root), None)
        if project is None:
            raise ExchangeError(
                "AGREEMENT_MISSING", f"{name} came before its project file. Have the owner send that, and run it again."
            )
        return project

    def _texts(self) -> Iterator[tuple[str, Project, bytes]]:
        for project, text in self._agreements():
            name = f"{project.digest}/{AGREEMENT}/{digest(text)}.toml"
            if self.has(name):
                yield name, project, text

    def _path_of(self, name: str) -> Path:
        found = _NAME.fullmatch(name)
        if found is None or _SUFFIXES.get(found[2]) != found[4]:
            raise ExchangeError(
                "REMOTE_REFUSED", "The other side named a file as no store names one. Compare the programs' versions."
            )
        return self.path / name


def _check_sealed(sealed: bool, kind: Kind, what: str) -> None:
    if not sealed:
        raise ExchangeError(
            "REMOTE_REFUSED",
            f"{what}, a {kind.name}, is not sealed, and others in the framework could read it. Have the project seal "
            "what parties send (project new --seal-shares) and make it anew, or carry it by another remote.",
        )


def _part(path: Path, source: str) -> Path:
    return path.with_name(f".{path.name}.{digest(source.encode())[:16]}.part")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
