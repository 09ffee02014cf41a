"""Opening a file whose name somebody else may have given to something that is no file."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from ..errors import ExchangeError
from ._container import Limits

__all__ = ["open_regular", "open_unlinked", "read_regular"]

_BINARY, _NO_LINK = getattr(os, "O_BINARY", 0), getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_SORTS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path, *, follow: bool = True, code: str = "BUNDLE_MALFORMED") -> BufferedReader:
    """Open a file for reading, and refuse at once what is no regular file.

    A plain ``open`` waits at a FIFO until somebody writes to it.  This one looks at what it has opened, so nothing can
    be exchanged between a look and the opening.

    Parameters
    ----------
    path : Path
    follow : bool, default=True
        Whether the name may be a symbolic link to a file.
    code : str, default="BUNDLE_MALFORMED"
        Code of the refusal.

    Raises
    ------
    ExchangeError
        With the code, when it is a folder, FIFO, socket or device, or a link that may not be followed.
    OSError
        When the file cannot be opened.
    """
    if not follow and not _NO_LINK and os.path.islink(path):
        raise _irregular(path, "a symbolic link", code)
    try:
        handle = os.open(path, os.O_RDONLY | _BINARY | _NO_WAIT | (0 if follow else _NO_LINK))
    except ValueError:  # a name with a null byte, which no file has
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), repr(path)) from None
    except OSError as error:
        if not follow and error.errno in (errno.ELOOP, errno.EMLINK):
            raise _irregular(path, "a symbolic link", code) from None
        if error.errno == errno.ENXIO:
            raise _irregular(path, _SORTS[stat.S_IFSOCK], code) from None
        raise
    sort = stat.S_IFMT(os.fstat(handle).st_mode)
    if sort != stat.S_IFREG:
        os.close(handle)
        raise _irregular(path, _SORTS.get(sort, "something else"), code)
    return os.fdopen(handle, "rb")


def read_regular(path: Path) -> bytes:
    """Return all bytes of a regular file that may be a bundle.

    Raises
    ------
    ExchangeError
        TOO_LARGE, before anything is read, when no bundle has so many bytes; otherwise as `open_regular`.
    """
    most = Limits().total_bytes
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ExchangeError("TOO_LARGE", f"{path} has {size} bytes; {most} are allowed. Check where it comes from.")
        return file.read()


def open_unlinked(path: Path, flags: int, *, code: str) -> int:
    """Open a file of one's own, closed to others, by its name alone: a link there may lead to any file.

    Raises
    ------
    ExchangeError
        With the code that is given, when it is a link.
    """
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
