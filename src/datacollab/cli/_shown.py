"""Text of other people on the terminal: in one line, and without what would steer the terminal."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["shown"]

WIDTH = 100


def shown(value: Any) -> str:
    """A value of JSON as a line of at most 100 characters.

    Examples
    --------
    >>> shown("an ordinary text"), shown(0.5), shown(["a", 1])
    ('an ordinary text', '0.5', '["a", 1]')
    >>> shown(f"red: {chr(27)}[31m")
    'red: ?[31m'
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    safe = "".join(letter if letter.isprintable() else "?" for letter in text)
    return safe if len(safe) <= WIDTH else safe[: WIDTH - 1] + "…"
