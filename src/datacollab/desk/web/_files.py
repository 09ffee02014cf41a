"""Files of a desk: kept beside the folder, offered, and in the outbox."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from starlette.responses import FileResponse

from ...bundle import open_unlinked
from ...errors import ExchangeError

__all__ = ["Chosen", "DeskFiles", "files_in", "handed_out", "remote_commands"]

FOLDER, INBOX = "desk", "inbox"
_ENDING = re.compile(r"\.[a-z]{2,12}")


@dataclass(frozen=True, eq=False)
class Chosen:
    """A file for one piece of work: one that lies on this machine, or a copy that was uploaded for it alone.

    Attributes
    ----------
    path : Path
    """

    path: Path
    _place: TemporaryDirectory[str] | None = field(default=None, repr=False)

    @property
    def is_copy(self) -> bool:
        """Whether it was uploaded."""
        return self._place is not None

    def discard(self) -> None:
        """Remove the copy, if it is one; whatever happens, this is done when the interpreter ends."""
        if self._place is not None:
            self._place.cleanup()


class DeskFiles:
    """The folder ``desk`` in a party's or the analyst's.

    Parameters
    ----------
    folder : Path
        The party's, or the analyst's.
    """

    def __init__(self, folder: Path) -> None:
        self.path = Path(folder) / FOLDER

    def made(self) -> Path:
        """The folder, which only its owner may look into."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        self.path.chmod(0o700)
        return self.path

    def take(self, source: BinaryIO, name: str, *, as_name: str, endings: Iterable[str]) -> Chosen:
        """Take what was uploaded, beside all that was before; of its own name nothing is taken but the ending.

        Parameters
        ----------
        source : file object
        name : str
            As the browser called it.
        as_name : str
            What the copy is called, without an ending.
        endings : iterable of str
            Those that are allowed.

        Raises
        ------
        ExchangeError
            TABLE_UNREADABLE, where the ending is none of them.
        """
        allowed, ending = tuple(endings), Path(name.replace("\\", "/")).suffix.lower()
        if ending not in allowed or not _ENDING.fullmatch(ending):
            raise ExchangeError(
                "TABLE_UNREADABLE",
                f"The name of the uploaded file ends in {ending[:12]!r}; one of {', '.join(allowed)} is wanted.",
            )
        place = TemporaryDirectory(prefix="upload-", dir=self.made())
        copy = Path(place.name) / f"{as_name}{ending}"
        try:
            handle = open_unlinked(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, code="ALREADY_THERE")
            with open(handle, "wb") as file:
                shutil.copyfileobj(source, file, 2**20)
        except BaseException:
            place.cleanup()
            raise
        return Chosen(copy, place)

    def keep(self, chosen: Chosen, *, as_name: str) -> Path:
        """Keep a copy that was uploaded, in the place of the last one; what lies elsewhere stays there.

        Parameters
        ----------
        chosen : Chosen
        as_name : str
            What it is called from now on, without an ending.
        """
        if not chosen.is_copy:
            return chosen.path
        self.remove(as_name)
        return chosen.path.replace(self.path / f"{as_name}{chosen.path.suffix}")

    def in_inbox(self, endings: Iterable[str]) -> list[str]:
        """Names of files with these endings that lie in the role's inbox, where a remote puts what came."""
        allowed = tuple(endings)
        found = [file for file in self.path.with_name(INBOX).glob("[!.]*") if file.suffix in allowed]
        return sorted(file.name for file in found if file.is_file() and not file.is_symlink())

    def of_inbox(self, name: str, endings: Iterable[str]) -> Path:
        """One of them.

        Raises
        ------
        FileNotFoundError
            Where there is none of this name.
        """
        if name not in self.in_inbox(endings):
            raise FileNotFoundError(f"There is no such file in {self.path.with_name(INBOX)} any more. Look again.")
        return self.path.with_name(INBOX) / name

    def lasting(self) -> list[str]:
        """Names of what stays until it is removed, with what a desk that was killed has left."""
        return sorted(each.name for each in self.path.glob("[!.]*"))

    def clear(self) -> None:
        """Remove what stays otherwise."""
        for name in self.lasting():
            if (self.path / name).is_dir():
                shutil.rmtree(self.path / name)
            else:
                (self.path / name).unlink(missing_ok=True)

    def kept(self, as_name: str) -> Path | None:
        """The copy of this name, whatever its ending; None where there is none."""
        return next(iter(sorted(self.path.glob(f"{as_name}.*"))), None)

    def remove(self, as_name: str) -> None:
        """Remove the copy of this name, if there is one."""
        for file in self.path.glob(f"{as_name}.*"):
            file.unlink()


def files_in(outbox: Path) -> list[Path]:
    """The files in an outbox by name, but for hidden ones."""
    return sorted(file for file in outbox.iterdir() if file.is_file() and not file.name.startswith("."))


def remote_commands(folder: Path) -> dict[str, str]:
    """Commands that send what is in the outbox and fetch what came; none where the folder has no remote.

    Parameters
    ----------
    folder : Path
        The role's.
    """
    if not (folder / "remotes.toml").is_file():
        return {}
    return {verb: f"datacollab remote {verb} -C {shlex.quote(str(folder))}" for verb in ("push", "pull")}


def handed_out(outbox: Path, name: str) -> FileResponse:
    """One of them as a download.

    Raises
    ------
    FileNotFoundError
        Where there is no file of this name.
    """
    for file in files_in(outbox):
        if file.name == name:
            return FileResponse(file, filename=file.name, media_type="application/octet-stream")
    raise FileNotFoundError("There is no such file in the outbox. Look at the outbox again.")
