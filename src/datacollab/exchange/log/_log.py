"""The log: what was done, in entries chained by their hashes."""

from __future__ import annotations

import csv
import io
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...bundle import canonical_json, open_unlinked, parse_json, sync_folder, write_atomically
from ...errors import ExchangeError
from ._chain import CHAIN_START, Chain

__all__ = ["AuditLog"]


class AuditLog:
    """An append-only list of what was done in a folder; it holds counts, names and hashes, never data.

    Each entry names the hash of the one before it, so that an entry edited, removed, inserted or moved is found.  That
    entries at the end were cut off, or that all was written anew, cannot be seen from the log itself, for there is no
    key in it: the hash of the last entry, its head, goes into the files that are sent, and `contains` tells whether a
    head that others have seen is still there.  The first entry holds a random number, the fact ``nonce``, so that from
    a head nobody can tell whether a guess of the entries is right.

    One command at a time may append; callers hold `locked`.

    Parameters
    ----------
    path : Path
        Made with the first entry, readable by its owner alone.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = AuditLog(Path(folder.name) / "log.jsonl")
    >>> log.append("shared", rows=100, components=5)
    >>> log.append("looked", columns=3)
    >>> [(entry["number"], entry["event"]) for entry in log.entries()]
    [(1, 'shared'), (2, 'looked')]
    >>> log.entries()[-1]["facts"]
    {'columns': 3}
    >>> log.verify() == log.head
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def append(self, event: str, **facts: Any) -> None:
        """Add an entry, on the disk when this returns.

        A last line that a kill cut off is removed first, and an entry ``log-repaired`` says so.

        Raises
        ------
        ExchangeError
            ``LOG_BROKEN``, when the last entry is none, or the file is a link.
        TypeError, ValueError
            When JSON cannot hold the facts.
        """
        whole, cut = self._lines()
        last = _entry(whole[-1], len(whole)) if whole else None
        number, previous = (last["number"], last["hash"]) if last else (0, CHAIN_START)
        added = [("log-repaired", {"bytes_cut": cut})] if cut else []
        lines = b""
        for name, what in [*added, (event, facts)]:
            what = what if number else {**what, "nonce": secrets.token_hex(16)}
            number += 1
            line, previous = _written(number, name, what, previous)
            # What could not be read again would break the log for good.
            parse_json(line, what="The entry")
            lines += line
        self._write(lines, cut)

    def _write(self, lines: bytes, cut: int) -> None:
        new = not self.path.exists()
        handle = open_unlinked(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, code="LOG_BROKEN")
        with open(handle, "ab") as file:
            if cut:
                os.truncate(handle, os.fstat(handle).st_size - cut)
            file.write(lines)
            file.flush()
            os.fsync(handle)
        if new:
            sync_folder(self.path.parent)

    def entries(self) -> list[dict[str, Any]]:
        """All entries as they are; `verify` says whether they are what was written.

        Raises
        ------
        ExchangeError
            ``LOG_BROKEN``, when a line is no entry.
        """
        return [_entry(line, number) for number, line in enumerate(self._lines()[0], start=1)]

    @property
    def head(self) -> str:
        """Hash of the last entry; zeros where there is none."""
        whole, _ = self._lines()
        return str(_entry(whole[-1], len(whole))["hash"]) if whole else CHAIN_START

    def verify(self) -> str:
        """Check the whole chain.

        Returns
        -------
        str
            The head.

        Raises
        ------
        ExchangeError
            ``LOG_BROKEN``, naming the first entry that does not fit the one before it.
        """
        return _CHAIN.check(self.entries())

    def contains(self, head: str) -> bool:
        """Whether this was the head once: what others have seen is still there."""
        return head == CHAIN_START or any(entry["hash"] == head for entry in self.entries())

    def export(self, path: Path) -> None:
        """Write the log for others to read, after verifying it, into a file that is closed to all but its owner.

        Parameters
        ----------
        path : Path
            ``.jsonl`` for the entries as they are, ``.csv`` for a table.

        Raises
        ------
        ExchangeError
            ``LOG_BROKEN``.
        ValueError
            When the file is to have another suffix.
        """
        path = Path(path)
        self.verify()
        if path.suffix == ".jsonl":
            write_atomically(path, b"".join(line + b"\n" for line in self._lines()[0]), mode=0o600)
        elif path.suffix == ".csv":
            write_atomically(path, self._table().encode(), mode=0o600)
        else:
            raise ValueError(f"{path} is to be written; a name that ends with .jsonl or .csv is wanted.")

    def _table(self) -> str:
        table = io.StringIO()
        writer = csv.writer(table)
        writer.writerow(["number", "time", "event", "facts", "hash"])
        for entry in self.entries():
            facts = canonical_json(entry["facts"]).decode()
            writer.writerow([entry["number"], entry["time"], entry["event"], facts, entry["hash"]])
        return table.getvalue()

    def _lines(self) -> tuple[list[bytes], int]:
        """Whole lines, and how many bytes follow the last of them."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return [], 0
        *whole, rest = data.split(b"\n")
        return whole, len(rest)


def _written(number: int, event: str, facts: dict[str, Any], previous: str) -> tuple[bytes, str]:
    """The line of an entry, and its hash."""
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = _CHAIN.entry(number, previous, time=time, event=event, facts=facts)
    return canonical_json(entry) + b"\n", str(entry["hash"])


def _entry(line: bytes, number: int) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = parse_json(line, what="The entry")
    except ExchangeError:
        raise _broken(number) from None
    _CHAIN.check_form(entry, number)
    return entry


def _broken(number: int) -> ExchangeError:
    return ExchangeError(
        "LOG_BROKEN",
        f"Entry {number} of the log does not follow from the one before it: entries were changed, moved or removed. "
        "Keep the file, and compare it with a copy.",
    )


_CHAIN = Chain(b"datacollab log 1\n", _broken, others=("time", "event"))
