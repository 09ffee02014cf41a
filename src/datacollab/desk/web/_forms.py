"""Files of a desk, and entries of a form: texts, numbers, and files that were named or uploaded."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from starlette.datastructures import FormData, UploadFile
from starlette.responses import FileResponse

from ...bundle import open_unlinked
from ...errors import ExchangeError
from ...folder.step_table import Input, Step

FOLDER = "desk"
INBOX = "inbox"
_ENDING = re.compile(r"\.[a-z]{2,12}")
_PLAIN = re.compile(r"\w[\w .()+-]{0,79}")
"""A name that no file system or shell reads as more than a name."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """A file for one piece of work: one that lies on this machine, or a copy that was uploaded for it alone."""

    path: Path
    _place: TemporaryDirectory[str] | None = field(default=None, repr=False)

    @property
    def is_copy(self) -> bool:
        """Whether it was uploaded."""
        return self._place is not None

    def discard(self) -> None:
        """Remove the copy, if it is one; the end of the interpreter does the same."""
        if self._place is not None:
            self._place.cleanup()


class DeskFiles:
    """The folder ``desk`` in a party's or the analyst's."""

    def __init__(self, folder: Path) -> None:
        self.path = Path(folder) / FOLDER

    def make_folder(self) -> Path:
        """Return the folder, which only its owner may look into."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        self.path.chmod(0o700)
        return self.path

    def take(self, source: BinaryIO, name: str, *, as_name: str, endings: Iterable[str]) -> Chosen:
        """Take an upload into a folder of its own; with its own name if that is a plain one."""
        own = Path(name.replace("\\", "/"))  # Some browsers send a whole path, of Windows too.
        allowed = tuple(endings)
        ending = own.suffix.lower()
        if ending not in allowed or not _ENDING.fullmatch(ending):
            raise ExchangeError(
                "TABLE_UNREADABLE",
                f"The name of the uploaded file ends in {ending[:12]!r}. Expected one of {', '.join(allowed)}.",
            )
        stem = own.stem
        if not _PLAIN.fullmatch(stem):
            stem = as_name
        place = TemporaryDirectory(prefix="upload-", dir=self.make_folder())
        copy = Path(place.name) / f"{stem}{ending}"
        try:
            handle = open_unlinked(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, code="ALREADY_THERE")
            with open(handle, "wb") as file:
                shutil.copyfileobj(source, file, 2**20)
        except BaseException:
            place.cleanup()
            raise
        return Chosen(copy, place)

    def keep(self, chosen: Chosen, *, as_name: str) -> Path:
        """Keep a copy that was uploaded, in the place of the last one; a file that lies elsewhere stays there."""
        if not chosen.is_copy:
            return chosen.path
        self.remove(as_name)
        return chosen.path.replace(self.path / f"{as_name}{chosen.path.suffix}")

    def in_inbox(self, endings: Iterable[str]) -> list[str]:
        """Return names of files with these endings in the role's inbox, where a remote puts files that came."""
        allowed = tuple(endings)
        files = [file for file in self.path.with_name(INBOX).glob("[!.]*") if file.suffix in allowed]
        # A link in the inbox could lead to any file of this machine.
        return sorted(file.name for file in files if file.is_file() and not file.is_symlink())

    def of_inbox(self, name: str, endings: Iterable[str]) -> Path:
        """Return one of them."""
        if name not in self.in_inbox(endings):
            raise FileNotFoundError(f"There is no such file in {self.path.with_name(INBOX)} any more. Look again.")
        return self.path.with_name(INBOX) / name

    def lasting(self) -> list[str]:
        """Return names of files that stay until they are removed, with those that a desk that was killed has left."""
        return sorted(each.name for each in self.path.glob("[!.]*"))

    def clear(self) -> None:
        """Remove all of it."""
        for name in self.lasting():
            if (self.path / name).is_dir():
                shutil.rmtree(self.path / name)
            else:
                (self.path / name).unlink(missing_ok=True)

    def find_copy(self, as_name: str) -> Path | None:
        """Return the copy of this name with any ending; None if there is none."""
        return next(iter(sorted(self.path.glob(f"{as_name}.*"))), None)

    def remove(self, as_name: str) -> None:
        """Remove the copy of this name, if there is one."""
        for file in self.path.glob(f"{as_name}.*"):
            file.unlink()


def files_in(outbox: Path) -> list[Path]:
    """Return the files in an outbox by name, but for hidden ones."""
    return sorted(file for file in outbox.iterdir() if file.is_file() and not file.name.startswith("."))


def remote_commands(folder: Path) -> dict[str, str]:
    """Return commands that send the outbox and fetch files that came; none if the folder has no remote."""
    if not (folder / "remotes.toml").is_file():
        return {}
    return {verb: f"datacollab remote {verb} -C {shlex.quote(str(folder))}" for verb in ("push", "pull")}


def download_of(outbox: Path, name: str) -> FileResponse:
    """Return a file of the outbox as a download."""
    for file in files_in(outbox):
        if file.name == name:
            return FileResponse(file, filename=file.name, media_type="application/octet-stream")
    raise FileNotFoundError("There is no such file in the outbox. Look at the outbox again.")


_LONGEST = 4096
"""Letters of a text, far more than any name, path or list of columns has."""


def text(form: FormData, name: str) -> str:
    """Return a line of text without blanks at its ends; empty if nothing was written."""
    value = form.get(name)
    if not isinstance(value, str):
        return ""
    if len(value) > _LONGEST:
        raise ValueError(f"{name}: {len(value)} letters are more than the {_LONGEST} that are allowed. Write less.")
    return value.strip()


def is_ticked(form: FormData, name: str) -> bool:
    """Return whether a box was ticked."""
    return text(form, name) == "yes"


def read_inputs(form: FormData, step: Step, names: Iterable[str]) -> dict[str, Any]:
    """Return a form's values of some inputs of a step, by their names; fields left open are not among them."""
    values: dict[str, Any] = {}
    for each in (step[name] for name in names):
        written = text(form, each.field)
        # A box turns its input from the default: on, or off where it is on by default.
        if each.kind is bool and written == "yes":
            values[each.name] = not each.default
        elif each.kind is not bool and written:
            values[each.name] = _parse_value(each, written)
    return values


def _parse_value(of: Input, written: str) -> Any:
    if of.is_many:
        return [name for name in (part.strip() for part in written.splitlines()) if name]
    if of.kind is Path:
        return _path(written, what=of.label or of.words)
    if of.kind not in (str, int, float):
        ends = tuple(float(number(_label(of), each, least=-float("inf"))) for each in written.split())
        if len(ends) != 2:
            raise ValueError(f"{_label(of)}: expected two numbers with a blank between, such as 0 14.")
        return ends
    if of.kind in (int, float):
        return _parse_number(of, written)
    # Fields that offer a list can be sent any text all the same.
    if of.known and written not in (known := of.names()):
        raise ValueError(f"{_label(of)}: expected one of {', '.join(known)}. Choose one of them.")
    return written


def _parse_number(of: Input, written: str) -> float | int:
    # Pages ask for per cent, where commands take a share of one.
    scale = 100 if of.is_percent else 1
    most = of.most
    if most is not None:
        most *= scale
    value = number(_label(of), written, least=of.least or 0.0, most=most, is_whole=of.kind is int)
    if of.is_percent:
        return value / scale
    return value


def _label(of: Input) -> str:
    return of.field.replace("_", " ").capitalize()


def number(label: str, written: str, *, least: float, most: float | None = None, is_whole: bool = False) -> float | int:
    """Read a number; raise a ValueError if it is none, or out of its bounds."""
    try:
        value = float(written)
    except ValueError:
        raise ValueError(f"{label}: expected a number, such as 4 or 0.5. Write one, or nothing.") from None
    # NaN fails every comparison, so it is asked for as being inside.
    if not (least <= value < float("inf")) or (most is not None and value > most):
        bounds = f"a number from {least:g} on" if most is None else f"a number from {least:g} to {most:g}"
        raise ValueError(f"{label}: {value:g} is not allowed; expected {bounds}.")
    if is_whole and value != int(value):
        raise ValueError(f"{label}: {value:g} is no whole number. Write one, or nothing.")
    if is_whole:
        return int(value)
    return value


def take_file(form: FormData, files: DeskFiles, of: Input, *, as_name: str) -> Chosen:
    """Return a file that was uploaded, lies in the inbox, or whose path was written; its user has to discard it."""
    chosen = take_optional_file(form, files, of, as_name=as_name)
    if chosen is None:
        raise ValueError(f"No {of.label} was given. Write its path on this machine, or choose a file.")
    return chosen


def take_optional_file(form: FormData, files: DeskFiles, of: Input, *, as_name: str, prefix: str = "") -> Chosen | None:
    """Return a file as `take_file` does, but None if it was left out."""
    upload = form.get(f"{prefix}upload")
    waiting = text(form, f"{prefix}inbox")
    written = text(form, f"{prefix}path")
    sent = isinstance(upload, UploadFile) and bool(upload.filename)
    if (sent or waiting) and written == text(form, f"{prefix}filled_in"):
        # The page wrote it by itself, and gives way, too.
        written = ""
    if (sent or written) and waiting == text(form, f"{prefix}offered"):
        # The page chose it by itself; it gives way to what somebody uploaded or wrote.
        waiting = ""
    # Which one is meant, nobody can know; rows of the wrong file would be shared.
    if sent + bool(waiting) + bool(written) > 1:
        raise ValueError(
            f"More than one file was given as {of.label}: a path, an upload or the inbox's. Give one of them."
        )
    if isinstance(upload, UploadFile) and upload.filename:
        return files.take(upload.file, upload.filename, as_name=as_name, endings=of.endings)
    if waiting:
        return Chosen(files.of_inbox(waiting, of.endings))
    if written:
        return Chosen(_path(written, what=of.label))
    return None


def take_files(form: FormData, files: DeskFiles, of: Input, *, as_name: str, ending: str) -> list[Chosen]:
    """Return files that were uploaded, or one whose path was written, or all of a folder, or all of the inbox."""
    sent = [each for each in form.getlist("upload") if isinstance(each, UploadFile) and each.filename]
    written = text(form, "path")
    # The box is ticked beforehand, so a file that somebody gives counts before it.
    if not (sent or written) and is_ticked(form, "whole_inbox"):
        return [Chosen(files.of_inbox(name, (ending,))) for name in files.in_inbox((ending,))]
    if not sent and written and _is(place := _path(written), Path.is_dir):
        if not (found := sorted(place.glob(f"*{ending}"))):
            raise FileNotFoundError(f"There are no files {ending} in {place}. Write another folder, or a file's path.")
        return [Chosen(file) for file in found]
    if len(sent) < 2 or written:
        return [take_file(form, files, replace(of, endings=(ending,)), as_name=f"{as_name}0")]
    # All or none: a file that is refused takes those before it along.
    with ExitStack() as taken:
        chosen = []
        for number, each in enumerate(sent):
            chosen.append(files.take(each.file, str(each.filename), as_name=f"{as_name}{number}", endings=(ending,)))
            taken.callback(chosen[-1].discard)
        taken.pop_all()
    return chosen


def _path(written: str, *, what: str = "") -> Path:
    """Return a path, absolute; given a name of its contents, of a file that is there."""
    try:
        path = Path(written).expanduser().absolute()
    except RuntimeError:
        # The home of a user whom nobody knows.
        path = Path(written).absolute()
    if what and not _is(path, Path.is_file):
        raise FileNotFoundError(f"There is no file {path} on this machine. Write the path of the {what}.")
    return path


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
    except (OSError, ValueError):  # a path with a null, or one that may not be looked at
        return False
