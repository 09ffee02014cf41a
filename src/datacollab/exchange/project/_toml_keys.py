"""Whether the keys of a TOML file are short, before it is parsed.

The parser of the standard library takes time in proportion to the square of the number of parts of a dotted key, so
that a small file can keep it busy for long before any signature can be looked at.
"""

from __future__ import annotations

import re

from ...errors import ExchangeError

__all__ = ["MOST_PARTS", "check_keys"]

MOST_PARTS = 4
"""Names between dots in one key; files of this program need two."""

_QUOTED = re.compile(
    r"""\#[^\n]*+ | "{3}.*?(?:"{3}|\Z) | \'{3}.*?(?:\'{3}|\Z) | "(?:\\.|[^"\\\n])*+"? | \'[^\'\n]*+\'?""",
    re.DOTALL | re.VERBOSE,
)
"""Comments and texts, in which dots mean nothing; also those never closed, so that no letter is looked at twice."""
_DOTTED = re.compile(r"[A-Za-z0-9_-]++(?:[ \t]*+\.[ \t]*+[A-Za-z0-9_-]++)*+")


def check_keys(text: str, what: str) -> None:
    """Refuse a file with a dotted key of many parts.

    Parameters
    ----------
    text : str
    what : str
        What an error calls the file.

    Raises
    ------
    ExchangeError
        TOO_LARGE.
    """
    # A text may be part of a key as well as a value: a letter keeps its place.
    plain = _QUOTED.sub(lambda found: " " if found[0].startswith("#") else "x", text)
    if any(found[0].count(".") >= MOST_PARTS for found in _DOTTED.finditer(plain)):
        raise ExchangeError(
            "TOO_LARGE",
            f"{what} has a key of more than {MOST_PARTS} names between dots, which no file needs. Check its origin.",
        )
