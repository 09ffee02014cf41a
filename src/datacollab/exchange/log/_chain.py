"""Entries chained by their hashes: each names the hash of the one before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...bundle import canonical_json, digest
from ...errors import ExchangeError

__all__ = ["CHAIN_START", "Chain"]

CHAIN_START = "0" * 64
"""What the first entry names as the one before it."""


@dataclass(frozen=True)
class Chain:
    r"""A form of entries; one that was changed, removed, inserted or moved is found.

    That entries at the end were cut off, or that all was written anew, cannot be seen from a chain itself.

    Attributes
    ----------
    domain : bytes
        Hashed before each entry, so that none of another chain can stand for it.
    broken : callable
        Makes the error from the number of the first entry that does not follow.
    number, hash : str
        What entries call their number, from 1, and their hash.
    others : tuple of str
        Further keys of an entry, whose values are texts, and ``facts``, which is an object.
    besides : mapping of str to str
        Hashed with each entry and not written into it.

    Examples
    --------
    >>> chain = Chain(b"weather 1\n", lambda number: ValueError(number), others=("day",))
    >>> first = chain.entry(1, CHAIN_START, day="Monday", facts={"rain": 3})
    >>> second = chain.entry(2, first["hash"], day="Tuesday", facts={})
    >>> chain.check([first, second]) == second["hash"]
    True
    """

    domain: bytes
    broken: Callable[[int], Exception]
    number: str = "number"
    hash: str = "hash"
    others: tuple[str, ...] = ()
    besides: Mapping[str, str] = field(default_factory=dict)

    def entry(self, number: int, previous: str, **contents: Any) -> dict[str, Any]:
        """Return an entry with its hash.

        Parameters
        ----------
        number : int
        previous : str
            Hash of the entry before it, or `CHAIN_START`.
        **contents
            What JSON can hold.
        """
        entry = {self.number: number, **contents, "previous": previous}
        return {**entry, self.hash: digest(self.domain + canonical_json({**self.besides, **entry}))}

    def check_form(self, entry: Any, number: int) -> None:
        """Check that something has the form of an entry; whether it follows from another is not looked at.

        Raises
        ------
        Exception
            As ``broken`` makes it.
        """
        texts = (*self.others, "previous", self.hash)
        if not (
            isinstance(entry, Mapping)
            and entry.keys() == {self.number, "facts", *texts}
            and all(isinstance(entry[key], str) for key in texts)
            and isinstance(entry["facts"], dict)
            and type(entry[self.number]) is int
        ):
            raise self.broken(number)

    def check(self, entries: Iterable[Any], *, after: int = 0, previous: str = CHAIN_START) -> str:
        """Check that entries follow from those that were seen before, and return the hash of the last one.

        Parameters
        ----------
        entries : iterable
        after : int, default=0
            Number of the last entry that was seen.
        previous : str
            Its hash, which is returned where there are no entries.

        Raises
        ------
        Exception
            As ``broken`` makes it, from the number of the first entry that does not follow.
        """
        for number, entry in enumerate(entries, start=after + 1):
            self.check_form(entry, number)
            contents = {key: entry[key] for key in (*self.others, "facts")}
            try:
                expected = self.entry(number, previous, **contents)
            except (TypeError, ValueError, ExchangeError):
                expected = None
            if entry != expected:
                raise self.broken(number)
            previous = str(entry[self.hash])
        return previous
