"""Files on the disk: written whole or not at all, and opened only if they are files."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from ..errors import ExchangeError

MOST_BYTES = 2 * 1024**3
"""The largest bundle that is read, unless a caller says otherwise."""
_PART = re.compile(r"\..+\.[0-9a-f]{16}\.part", re.DOTALL)
# Windows lacks some of these, and has the first one alone.
_BINARY = getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_SORTS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644, overwrite: bool = True) -> None:
    """Write a file as a whole or not at all; see `replaced`."""
    with replaced(Path(path), mode=mode, overwrite=overwrite) as file:
        file.write(data)


@contextmanager
def replaced(path: Path, *, mode: int, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of another once the block ends without an error.

    The bytes go to ``.NAME.RANDOM.part`` in the same folder, which is renamed once it is on the disk. It has the
    permissions `mode`, less the umask, from the first moment on. Unless it overwrites, it raises ALREADY_THERE.
    """
    if not overwrite and os.path.lexists(path):
        raise _already_there(path)
    # File systems allow 255 bytes of a name, and a letter may take two or more.
    part = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
        with open(handle, "wb") as file:
            # Some file systems know no locks; there, nobody else may work in the folder.
            with contextlib.suppress(OSError):
                _claim(handle)
            yield file
            file.flush()
            os.fsync(handle)
        if overwrite:
            os.replace(part, path)
        else:
            _take_name(part, path)
        sync_folder(path.parent)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(part)):
            raise
        # Nobody knows the file under the name of its part.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _take_name(part: Path, path: Path) -> None:
    """Rename, but never over another file: a link fails if there is one, a renaming does not."""
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
    """Have the disk keep a folder's list of names, if the system and the folder's permissions allow it."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        # A new name is kept by its folder, and not by the file.
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of killed writers from a folder and the folders right below it."""
    for part in [*folder.glob(".*.part"), *folder.glob("*/.*.part")]:
        if _PART.fullmatch(part.name):
            # Not a file that cannot be opened, or is being written.
            with contextlib.suppress(OSError), open(part, "rb") as file:
                _claim(file.fileno())
                part.unlink()


def _claim(handle: int) -> None:
    """Mark a file as being written, or fail if another process has marked it; the mark ends with the process."""
    if os.name == "posix":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def open_regular(path: Path, *, follow: bool = True, code: str = "BUNDLE_MALFORMED") -> BufferedReader:
    """Open a regular file for reading, and refuse anything else at once.

    A plain ``open`` waits at a FIFO until somebody writes to it.  This one looks at the file once it is open, so it
    cannot be exchanged between a look and the opening.  It raises the code, or OSError if the file cannot be opened.
    """
    flags = os.O_RDONLY | _BINARY | _NO_WAIT
    if not follow:
        flags |= _NO_LINK
        if not _NO_LINK and os.path.islink(path):
            raise _irregular(path, "a symbolic link", code)
    try:
        handle = os.open(path, flags)
    except ValueError:  # a name with a null byte, which no file has
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), repr(path)) from None
    except OSError as error:
        if not follow and error.errno in (errno.ELOOP, errno.EMLINK):
            raise _irregular(path, "a symbolic link", code) from None
        if error.errno == errno.ENXIO:
            raise _irregular(path, _SORTS[stat.S_IFSOCK], code) from None
        raise
    # Of the file that is open now, whatever its name may lead to by the next moment.
    sort = stat.S_IFMT(os.fstat(handle).st_mode)
    if sort != stat.S_IFREG:
        os.close(handle)
        raise _irregular(path, _SORTS.get(sort, "something else"), code)
    return os.fdopen(handle, "rb")


def read_regular(path: Path) -> bytes:
    """Return all bytes of a regular file that may be a bundle; TOO_LARGE is raised before anything is read."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise ExchangeError(
                "TOO_LARGE", f"{path} has {size} bytes; {MOST_BYTES} are allowed. Check where it comes from."
            )
        return file.read()


def open_unlinked(path: Path, flags: int, *, code: str) -> int:
    """Open a file of one's own, closed to others, and refuse with the code a link, which may lead to any file."""
    try:
        return os.open(path, flags | _NO_LINK | _BINARY, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ExchangeError(
            code, f"{path} is a symbolic link, which no command makes. Remove it, and find out who put it there."
        ) from None


def _irregular(path: Path, sort: str, code: str) -> ExchangeError:
    return ExchangeError(
        code, f"{path} is {sort}; expected a regular file. Find out who put it there, and have the file sent again."
    )
