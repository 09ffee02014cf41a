"""Notices of how a table was understood, for the command or page that reads one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_SHOW: ContextVar[Callable[[str, bool], None] | None] = ContextVar("show", default=None)


@contextmanager
def notices_to(show: Callable[[str, bool], None]) -> Iterator[None]:
    """Give every notice to a function, with whether it is the plain case, which needs no words.

    Examples
    --------
    >>> with notices_to(lambda line, is_plain: print(line)):
    ...     notice("patients.csv: 120 rows, 7 columns; semicolons, UTF-8", is_plain=False)
    patients.csv: 120 rows, 7 columns; semicolons, UTF-8
    """
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


def notice(line: str, *, is_plain: bool) -> None:
    """Show a line, if anybody asked for notices."""
    if (show := _SHOW.get()) is not None:
        show(line, is_plain)
