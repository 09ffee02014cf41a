"""The folder of what may be sent."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ._files import Files

__all__ = ["open_outbox"]


def open_outbox(files: Files, path: Path) -> None:
    """Have an outbox to write a file to, better noticed before the party has shared than after.

    Raises
    ------
    PermissionError
        If nothing can be written there.
    """
    # Whoever tidies up may have removed an empty one.
    files.outbox.mkdir(mode=0o700, exist_ok=True)
    if not os.access(files.outbox, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
