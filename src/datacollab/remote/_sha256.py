"""The hash of a file, and having it on the disk."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["sha256_of"]


def sha256_of(path: Path) -> str:
    """SHA-256 of a file that was written by now, after the disk has it."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()
