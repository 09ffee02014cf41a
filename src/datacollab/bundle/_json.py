"""JSON with one spelling for each value, and a reader that trusts nobody."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any, NoReturn

from ..errors import ExchangeError

__all__ = ["canonical_json", "digest", "parse_json"]

MAX_DEPTH = 32
"""Arrays and objects within one another."""

# A string that is never closed runs to the end, so that each character is looked at once.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|([\[{])|([\]}])', re.DOTALL)


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal.

    Examples
    --------
    >>> digest(b"")[:16]
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: Any) -> bytes:
    """The one spelling of a value: keys sorted by code point, no spaces, UTF-8.

    Parameters
    ----------
    value : object
        Of dict with keys of text, list, tuple, str, int, finite float, bool and None.

    Raises
    ------
    TypeError
        When the value holds anything else.
    ValueError
        When a number is not finite, or a text is no Unicode.

    Examples
    --------
    >>> canonical_json({"b": [1, 2.5], "a": "é"}).decode()
    '{"a":"é","b":[1,2.5]}'
    """
    _check_keys(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _check_keys(value: Any) -> None:
    """json.dumps turns keys that are numbers into text, so that two keys might become one."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise TypeError(f"A key of JSON must be text; got {type(key).__name__}.")
            _check_keys(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_keys(entry)


def parse_json(data: bytes, *, what: str) -> Any:
    """Read JSON of unknown origin.

    Parameters
    ----------
    data : bytes
    what : str
        What an error calls the source.

    Raises
    ------
    ExchangeError
        ``BUNDLE_MALFORMED``: not UTF-8, not JSON, a key given twice, a number that is not finite, nested more deeply
        than 32.
    """
    try:
        text = data.decode("utf-8")
        if _depth(text) > MAX_DEPTH:
            raise ValueError(f"nested more deeply than {MAX_DEPTH}")
        value = json.loads(
            text, object_pairs_hook=_no_twins, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
        )
        # Escapes can spell half a character, which no file can hold.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        reason = "not UTF-8 text"
    except json.JSONDecodeError as error:
        reason = f"not JSON at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    else:
        return value
    raise ExchangeError("BUNDLE_MALFORMED", f"{what} cannot be read: {reason}. Have it sent again.")


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in _BRACKETS.finditer(text):
        if match[1]:
            depth += 1
            deepest = max(deepest, depth)
        elif match[2]:
            depth -= 1
    return deepest


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is given twice")
    return value


def _no_constant(_: str) -> NoReturn:
    raise ValueError("a number that is not finite")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number that is not finite")
    return value


def _integer(text: str) -> int:
    if len(text) > 40:
        raise ValueError("an integer of more than 40 digits")
    return int(text)
