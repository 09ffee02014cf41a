"""Writing a file so that it is either the old or the new one, whenever the power goes."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

from ..errors import ExchangeError

__all__ = ["remove_leftovers", "sync_folder", "write_atomically"]

_PART = re.compile(r"\..+\.[0-9a-f]{16}\.part", re.DOTALL)


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644, overwrite: bool = True) -> None:
    """Write a file as a whole or not at all.

    The bytes go to ``.NAME.RANDOM.part`` in the same folder, which takes the name of the file once it is on the disk.

    Parameters
    ----------
    path : Path
    data : bytes
    mode : int, default=0o644
        Permissions from the first moment on; the umask takes away from them.
    overwrite : bool, default=True
        Whether a file of the name may be replaced.

    Raises
    ------
    ExchangeError
        ``ALREADY_THERE``, when the file exists and may not be replaced.
    OSError
        When the file cannot be written; what was there before is still there.
    """
    path = Path(path)
    if not overwrite and os.path.lexists(path):
        raise _already_there(path)
    part = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.part")
    try:
        _write(part, data, mode)
        if overwrite:
            os.replace(part, path)
        else:
            _take_name(part, path)
        sync_folder(path.parent)
    except OSError as error:
        # The name in the error is to be the one that was asked for.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _write(part: Path, data: bytes, mode: int) -> None:
    """Write to a new file and have the disk keep it."""
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with open(handle, "wb") as file:
        # Some file systems know no locks; there, nobody else may work in the folder.
        with contextlib.suppress(OSError):
            _claim(handle)
        file.write(data)
        file.flush()
        os.fsync(handle)


def _take_name(part: Path, path: Path) -> None:
    """Rename, but never over another file; a link fails where there is one, a renaming does not."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise _already_there(path) from None
    except OSError:
        # File systems of memory sticks know no links.
        os.rename(part, path)


def _already_there(path: Path) -> ExchangeError:
    return ExchangeError(
        "ALREADY_THERE", f"{path} exists, and is not overwritten. Choose another place, or remove it first."
    )


def sync_folder(folder: Path) -> None:
    """Have the disk keep a folder's list of names, where the system can and the folder's permissions let it."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove what writers that were killed left behind in a folder and the folders right below it."""
    for part in [*folder.glob(".*.part"), *folder.glob("*/.*.part")]:
        if _PART.fullmatch(part.name):
            # A file that cannot be opened or is being written is none of ours to remove.
            with contextlib.suppress(OSError), open(part, "rb") as file:
                _claim(file.fileno())
                part.unlink()


def _claim(handle: int) -> None:
    """Mark a file as being written, or fail where another process has marked it; the mark ends with the process."""
    if os.name == "posix":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
