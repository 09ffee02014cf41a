"""Entries of a form: texts, numbers, and files that were named or uploaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from starlette.datastructures import FormData, UploadFile

from ._files import Chosen, DeskFiles

__all__ = ["checked", "chosen_file", "chosen_files", "number", "perhaps_file", "text", "whole_number", "written_path"]

_LONGEST = 4096


def text(form: FormData, name: str) -> str:
    """A line of text without blanks at its ends; empty where nothing was written."""
    value = form.get(name)
    if not isinstance(value, str):
        return ""
    if len(value) > _LONGEST:
        raise ValueError(f"{name}: {len(value)} letters are more than the {_LONGEST} that are allowed. Write less.")
    return value.strip()


def checked(form: FormData, name: str) -> bool:
    """Whether a box was ticked."""
    return text(form, name) == "yes"


def number(form: FormData, name: str, *, least: float = 0.0) -> float | None:
    """A number; None where nothing was written.

    Raises
    ------
    ValueError
        Where it is none, or below the least.
    """
    written = text(form, name)
    if not written:
        return None
    try:
        found = float(written)
    except ValueError:
        raise ValueError(f"{_words(name)}: a number is wanted, such as 4 or 0.5. Write one, or nothing.") from None
    if not least <= found < float("inf"):
        raise ValueError(f"{_words(name)}: {found:g} is not allowed; a number from {least:g} on is wanted.")
    return found


def whole_number(form: FormData, name: str, *, least: int = 1) -> int | None:
    """A whole number; None where nothing was written.

    Raises
    ------
    ValueError
        Where it is none, or below the least.
    """
    found = number(form, name, least=least)
    if found is not None and found != int(found):
        raise ValueError(f"{_words(name)}: {found:g} is no whole number. Write one, or nothing.")
    return None if found is None else int(found)


def chosen_file(
    form: FormData, files: DeskFiles, *, as_name: str, endings: Iterable[str], what: str, prefix: str = ""
) -> Chosen:
    """A file that was uploaded, lies in the inbox, or whose path was written; whoever gets it has to discard it.

    Parameters
    ----------
    form : FormData
        With the entries "upload", "inbox" and "path"; and "offered", what a page chose of the inbox by itself, which
        gives way to what somebody uploaded or wrote.
    files : DeskFiles
    as_name : str
        What an upload is called in the folder.
    endings : iterable of str
        That an upload may have.
    what : str
        It is, in an error.
    prefix : str
        Of the names of the entries, where a form has several files.

    Raises
    ------
    ValueError
        Where there is none of these, or more than one.
    FileNotFoundError
        Where there is no such file.
    ExchangeError
        TABLE_UNREADABLE.
    """
    chosen = perhaps_file(form, files, as_name=as_name, endings=endings, what=what, prefix=prefix)
    if chosen is None:
        raise ValueError(f"No {what} was given. Write its path on this machine, or choose a file.")
    return chosen


def perhaps_file(
    form: FormData, files: DeskFiles, *, as_name: str, endings: Iterable[str], what: str, prefix: str = ""
) -> Chosen | None:
    """The same of a file that may be left out; None where it is."""
    upload, waiting, written = form.get(f"{prefix}upload"), text(form, f"{prefix}inbox"), text(form, f"{prefix}path")
    sent = isinstance(upload, UploadFile) and bool(upload.filename)
    if (sent or written) and waiting == text(form, f"{prefix}offered"):
        waiting = ""
    if sent + bool(waiting) + bool(written) > 1:
        raise ValueError(f"More than one file was given as {what}: a path, an upload or the inbox's. Give one of them.")
    if isinstance(upload, UploadFile) and upload.filename:
        return files.take(upload.file, upload.filename, as_name=as_name, endings=endings)
    if waiting:
        return Chosen(files.of_inbox(waiting, endings))
    path = written_path(form, f"{prefix}path", what=what)
    return None if path is None else Chosen(path)


def chosen_files(form: FormData, files: DeskFiles, *, as_name: str, ending: str, what: str) -> list[Chosen]:
    """Files that were uploaded, or else one whose path was written, or all of a folder, or all of the inbox.

    Parameters
    ----------
    form, files, what
        As for `chosen_file`; "whole_inbox", which a page ticks by itself, gives way to all else.
    as_name : str
        What uploads are called in the folder, a number following.
    ending : str
        That they have.

    Raises
    ------
    ValueError
        Where there are neither, or both.
    FileNotFoundError
        Where there are no such files.
    ExchangeError
        TABLE_UNREADABLE.
    """
    sent = [each for each in form.getlist("upload") if isinstance(each, UploadFile) and each.filename]
    place = written_path(form, "path")
    if not sent and place is None and checked(form, "whole_inbox"):
        return [Chosen(files.of_inbox(name, (ending,))) for name in files.in_inbox((ending,))]
    if not sent and place is not None and _is(place, Path.is_dir):
        found = sorted(place.glob(f"*{ending}"))
        if not found:
            raise FileNotFoundError(f"There are no files {ending} in {place}. Write another folder, or a file's path.")
        return [Chosen(file) for file in found]
    if len(sent) < 2 or place is not None:
        return [chosen_file(form, files, as_name=f"{as_name}0", endings=(ending,), what=what)]
    with ExitStack() as taken:
        chosen = []
        for number, each in enumerate(sent):
            chosen.append(files.take(each.file, str(each.filename), as_name=f"{as_name}{number}", endings=(ending,)))
            taken.callback(chosen[-1].discard)
        taken.pop_all()
    return chosen


def written_path(form: FormData, name: str, *, what: str = "") -> Path | None:
    """A path that was written, if any was; absolute, and of what it is of a file that is there.

    Raises
    ------
    FileNotFoundError
        Where it is to be a file, and is none.
    """
    written = text(form, name)
    if not written:
        return None
    try:
        path = Path(written).expanduser().absolute()
    except RuntimeError:
        # Of a user whom nobody knows.
        path = Path(written).absolute()
    if what and not _is(path, Path.is_file):
        raise FileNotFoundError(f"There is no file {path} on this machine. Write the path of the {what}.")
    return path


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
    except (OSError, ValueError):
        return False


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
