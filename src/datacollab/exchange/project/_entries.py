"""Reading a table of entries that may come from anyone: every type checked, nothing unknown let pass."""

from __future__ import annotations

import difflib
import math
from datetime import date, datetime
from typing import Any

from ._refusals import invalid, listed

__all__ = ["Entries"]

_LARGEST = 2**53


class Entries:
    """The entries of one TOML table; each is taken once, and in the end none may be left.

    Parameters
    ----------
    found : object
        What stands in the file.
    where : str
        What an error calls the table.

    Raises
    ------
    ExchangeError
        When it is no table.
    """

    def __init__(self, found: object, where: str) -> None:
        if not isinstance(found, dict):
            raise invalid(where, f"a table of entries is wanted, not {_type(found)}.")
        self.where = where
        self._left: dict[str, Any] = dict(found)
        self._known: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        return str(self._take(name, (str,), "text", default))

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number."""
        number = int(self._take(name, (int,), "a whole number", default))
        if abs(number) > _LARGEST:
            raise invalid(f"{self.where}, {name}", f"the number is too large; at most {_LARGEST} is wanted.")
        return number

    def number(self, name: str) -> float:
        """A finite number."""
        return _finite(f"{self.where}, {name}", self._take(name, (int, float), "a number", None))

    def number_or_text(self, name: str) -> float | str:
        """A finite number, or a text."""
        found = self._take(name, (int, float, str), "a number or text", None)
        return found if isinstance(found, str) else _finite(f"{self.where}, {name}", found)

    def truth(self, name: str, default: bool) -> bool:
        """True or false."""
        return bool(self._take(name, (bool,), "true or false", default))

    def day(self, name: str) -> date | None:
        """A date, or None where there is none."""
        if name not in self._left:
            self._known.append(name)
            return None
        found = self._take(name, (date,), "a date such as 2027-01-31, without quotes or time,", None)
        assert isinstance(found, date)
        return found

    def items(self, name: str, *types: type) -> tuple[Any, ...]:
        """A list of values of the types given."""
        found = self._take(name, (list,), "a list", None)
        for each in found:
            if type(each) not in types:
                wanted = " or ".join(_NAMES[kind] for kind in types)
                raise invalid(f"{self.where}, {name}", f"a list of {wanted} is wanted; there is {_type(each)} in it.")
        return tuple(found)

    def table(self, name: str) -> dict[str, Any]:
        """A table inside this one."""
        return dict(self._take(name, (dict,), "a table", None))

    def tables(self, name: str) -> list[Any]:
        """A list of tables inside this one."""
        return list(self._take(name, (list,), "a list of tables", None))

    def names(self) -> list[str]:
        """Names of the entries that were not taken yet."""
        return list(self._left)

    def has(self, name: str) -> bool:
        """Whether an entry is there that was not taken yet."""
        return name in self._left

    def drop(self, name: str) -> None:
        """Let an entry pass unread."""
        self._known.append(name)
        self._left.pop(name, None)

    def finish(self) -> None:
        """Refuse what is left: a misspelt entry must not silently become its default.

        Raises
        ------
        ExchangeError
            When anything is left.
        """
        if not self._left:
            return
        unknown = sorted(self._left)
        near = difflib.get_close_matches(unknown[0], self._known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise invalid(
            self.where, f"unknown: {listed(repr(name) for name in unknown)}. Allowed: {', '.join(self._known)}.{hint}"
        )

    def _take(self, name: str, types: tuple[type, ...], wanted: str, default: Any) -> Any:
        self._known.append(name)
        if name not in self._left:
            if default is None:
                raise invalid(self.where, f"{name} is missing. Add it: {wanted} is wanted.")
            return default
        found = self._left.pop(name)
        # True is an int to Python, and a time with a day is a date.
        if type(found) not in types:
            raise invalid(f"{self.where}, {name}", f"{wanted} is wanted, not {_type(found)}.")
        return found


def _finite(where: str, number: float) -> float:
    try:
        converted = float(number)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        raise invalid(where, "a finite number is wanted.")
    return converted


_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a point",
    list: "a list",
    dict: "a table",
    date: "a date",
    datetime: "a date with a time",
}


def _type(found: object) -> str:
    return _NAMES.get(type(found), type(found).__name__)
