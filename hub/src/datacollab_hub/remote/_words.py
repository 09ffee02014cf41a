"""Words of a hub, others' text: without characters that steer a terminal, or lines that look like ours."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["harmless"]

# Whatever Python or a terminal takes for the end of a line.
_ENDS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# Control characters, and those that turn the direction of writing.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(value: Any) -> Any:
    r"""A value of JSON with all its texts, keys too, on a line each and without letters that steer.

    Examples
    --------
    >>> harmless({"message": "in\nvain\x1b[2J", "n": [1, None]}) == {"message": "in vain\ufffd[2J", "n": [1, None]}
    True
    """
    if isinstance(value, str):
        return _STEERING.sub("\N{REPLACEMENT CHARACTER}", _ENDS.sub(" ", value))
    if isinstance(value, list):
        return [harmless(each) for each in value]
    if isinstance(value, dict):
        return {harmless(key): harmless(each) for key, each in value.items()}
    return value
