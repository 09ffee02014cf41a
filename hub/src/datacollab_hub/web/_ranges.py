"""Which bytes of a file a request asks for."""

from __future__ import annotations

import re

__all__ = ["byte_range"]

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first byte, and the one after the last; None where there are no such bytes.

    Several ranges at once, and malformed ones, count as none: all is sent, as the standard allows.

    Examples
    --------
    >>> byte_range("bytes=2-3", 10), byte_range("bytes=-4", 10), byte_range("bytes=7-", 10), byte_range(None, 10)
    ((2, 4), (6, 10), (7, 10), (0, 10))
    >>> byte_range("bytes=10-", 10) is None
    True
    """
    found = _RANGE.fullmatch(header or "")
    if found is None or found[0] == "bytes=-":
        return 0, size
    first = found[1]
    last = found[2]
    if not first:
        return (max(0, size - int(last)), size) if int(last) else None
    start = int(first)
    end = min(int(last) + 1 if last else size, size)
    if last and int(last) < start:
        return 0, size
    return (start, end) if start < size else None
