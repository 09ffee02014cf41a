"""One command at a time in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...bundle import open_unlinked, remove_leftovers
from ...errors import ExchangeError

__all__ = ["locked"]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a folder to oneself, and clear away what commands that were killed left half-written.

    The system gives the lock back when the process ends, in whatever way.

    Raises
    ------
    ExchangeError
        ``FOLDER_MISSING``, when there is no such folder; ``BUSY``, at once, when another command holds it;
        ``STATE_DAMAGED``, when its file ``.lock`` is a link.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ExchangeError("FOLDER_MISSING", f"{folder} is no folder. Give the folder that was set up, with -C.")
    handle = open_unlinked(folder / ".lock", os.O_RDWR | os.O_CREAT, code="STATE_DAMAGED")
    try:
        try:
            _lock(handle)
        except (BlockingIOError, PermissionError):
            raise ExchangeError(
                "BUSY", f"Another command works in {folder}. Wait until it has ended, then run this one again."
            ) from None
        remove_leftovers(folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
