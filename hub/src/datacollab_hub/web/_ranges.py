"""Which bytes of a file a request asks for."""

from __future__ import annotations

import re

__all__ = ["byte_range"]

# One range, of numbers that 64 bits hold.
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
        # RFC 9110, section 14.1.2: the last so many bytes, of which zero are no range.
        if int(last) == 0:
            return None
        return max(0, size - int(last)), size
    start = int(first)
    end = size
    if last:
        # The standard's last byte is part of the range.
        end = min(int(last) + 1, size)
    if last and int(last) < start:
        return 0, size
    if start >= size:
        return None
    return start, end
