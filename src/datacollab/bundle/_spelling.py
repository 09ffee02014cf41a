"""Bytes as letters that people read to each other."""

from __future__ import annotations

import base64

__all__ = ["letters_of", "spelt"]

_GROUP = 4


def letters_of(data: bytes) -> str:
    """Base32 in lower case, without padding: five bits a letter."""
    return base64.b32encode(data).decode().rstrip("=").lower()


def spelt(data: bytes, n_letters: int) -> str:
    """The first letters, in groups of four with hyphens between them.

    Examples
    --------
    >>> spelt(bytes(range(10)), 16)
    'aaaq-eaye-auda-ocaj'
    """
    letters = letters_of(data)[:n_letters]
    return "-".join(letters[start : start + _GROUP] for start in range(0, n_letters, _GROUP))
