"""Bytes as letters that people read to each other."""

from __future__ import annotations

import base64

__all__ = ["bytes_of", "letters_of", "spelt"]

_GROUP = 4


def letters_of(data: bytes) -> str:
    """Base32 in lower case, without padding: five bits a letter."""
    return base64.b32encode(data).decode().rstrip("=").lower()


def bytes_of(letters: str) -> bytes:
    """What `letters_of` wrote.

    Raises
    ------
    ValueError
        When they are no such letters.
    """
    if not letters.isascii():
        raise ValueError("letters and digits are wanted")
    return base64.b32decode(letters.upper() + "=" * (-len(letters) % 8))


def spelt(data: bytes, n_letters: int) -> str:
    """The first letters, in groups of four with hyphens between them.

    Examples
    --------
    >>> spelt(bytes(range(10)), 16)
    'aaaq-eaye-auda-ocaj'
    """
    letters = letters_of(data)[:n_letters]
    return "-".join(letters[start : start + _GROUP] for start in range(0, n_letters, _GROUP))
