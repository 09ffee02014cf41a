"""The log of a folder: its entries, chained by their hashes, its witnesses, and one command at a time."""

from __future__ import annotations

import csv
import io
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..bundle import (
    KeyFile,
    canonical_json,
    digest,
    open_unlinked,
    parse_json,
    remove_leftovers,
    sync_folder,
    unpack,
    write_atomically,
)
from ..errors import ExchangeError

__all__ = ["CHAIN_START", "AuditLog", "Chain", "check_log_against", "locked", "log_witnesses"]

CHAIN_START = "0" * 64
"""The previous hash of a first entry."""
# Seconds between two attempts to lock a folder.
_PAUSE = 0.05


@dataclass(frozen=True)
class Chain:
    """A form of entries, each with the hash of the one before it: one changed, removed, inserted or moved is found.

    The chain itself cannot show that its end was cut off, or that all was written anew.
    """

    domain: bytes
    """Hashed before each entry, so that none of another chain can stand for it."""
    broken: Callable[[int], Exception]
    """Makes the error from the number of the first entry that does not follow."""
    number: str = "number"
    """Key of an entry's number, from 1."""
    hash: str = "hash"
    """Key of its hash."""
    others: tuple[str, ...] = ()
    """Further keys of an entry, whose values are texts, and ``facts``, which is an object."""
    besides: Mapping[str, str] = field(default_factory=dict)
    """Hashed with each entry and not written into it."""

    def entry(self, number: int, previous: str, **contents: Any) -> dict[str, Any]:
        """Return an entry with its hash, after the entry of the previous hash, or `CHAIN_START`."""
        entry = {self.number: number, **contents, "previous": previous}
        return {**entry, self.hash: digest(self.domain + canonical_json({**self.besides, **entry}))}

    def check_form(self, entry: Any, number: int) -> None:
        """Raise the error of ``broken`` if an object has not the form of an entry."""
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
        """Check that entries follow entry `after`, of hash `previous`, and return the hash of the last one."""
        # Each hash covers the one before it: a change anywhere changes all that follow.
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


@contextmanager
def locked(folder: Path, *, patience: float = 0.0) -> Iterator[None]:
    """Keep other commands out of a folder, and clear away half-written files of killed ones.

    The system releases the lock when the process ends, in any way.  ``FOLDER_MISSING`` is raised if there is no such
    folder; ``BUSY`` if another command still holds it after `patience` seconds; ``STATE_DAMAGED`` if its file ``.lock``
    is a link.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ExchangeError("FOLDER_MISSING", f"{folder} is no folder. Give the folder that was set up, with -C.")
    handle = open_unlinked(folder / ".lock", os.O_RDWR | os.O_CREAT, code="STATE_DAMAGED")
    last = time.monotonic() + patience
    try:
        while not _lock(handle):
            if time.monotonic() >= last:
                raise ExchangeError(
                    "BUSY", f"Another command works in {folder}. Wait until it has ended, then run this one again."
                )
            time.sleep(_PAUSE)
        remove_leftovers(folder)
        yield
    finally:
        # Closing lets go of the lock, as the end of a killed process does.
        os.close(handle)


def _lock(handle: int) -> bool:
    """Return whether the file could be locked."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


class AuditLog:
    """An append-only list of the steps in a folder; it holds counts, names and hashes, never data.

    There is no key in the log, so it cannot show itself that its end was cut off, or that all was written anew.
    Therefore its head, the hash of the last entry, goes into the files that are sent, and `contains` finds a head that
    others have seen.  The first entry holds a random number, so that a head confirms no guess of entries.

    One command at a time may append; callers hold the lock of `locked`.  The file is made with the first entry, and is
    readable by its owner alone.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = AuditLog(Path(folder.name) / "log.jsonl")
    >>> log.append("shared", rows=100, components=5)
    >>> [(entry["number"], entry["event"]) for entry in log.entries()]
    [(1, 'shared')]
    >>> log.verify() == log.head
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._held: tuple[list[bytes], int] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Read the file once as long as the caller holds `locked`, in which nobody else appends."""
        self._held = self._lines()
        try:
            yield
        finally:
            self._held = None

    def append(self, event: str, **facts: Any) -> None:
        """Add an entry, on the disk when this returns; facts that JSON cannot hold raise TypeError or ValueError.

        A last line that a kill cut off is removed first, and an entry ``log-repaired`` says so.  ``LOG_BROKEN`` is
        raised if the last line is no entry, or the file is a link.
        """
        whole, cut = self._lines()
        number = 0
        previous = CHAIN_START
        if whole:
            last = _entry(whole[-1], len(whole))
            number = last["number"]
            previous = last["hash"]
        events = [(event, facts)]
        if cut:
            events.insert(0, ("log-repaired", {"bytes_cut": cut}))
        lines = b""
        for name, contents in events:
            if not number:
                # With a random number in the first entry, no head confirms a guess of entries.
                contents = {**contents, "nonce": secrets.token_hex(16)}
            number += 1
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            entry = _CHAIN.entry(number, previous, time=now, event=name, facts=contents)
            previous = str(entry["hash"])
            line = canonical_json(entry) + b"\n"
            # An entry that cannot be read again would break the log for good.
            parse_json(line, what="The entry")
            lines += line
        # A new name has to be on the disk as well, in its folder.
        new = not self.path.exists()
        handle = open_unlinked(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, code="LOG_BROKEN")
        with open(handle, "ab") as file:
            if cut:
                os.truncate(handle, os.fstat(handle).st_size - cut)
            file.write(lines)
            # On the disk before the step itself goes on.
            file.flush()
            os.fsync(handle)
        if new:
            sync_folder(self.path.parent)
        if self._held is not None:
            self._held = [*whole, *lines.split(b"\n")[:-1]], 0

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, unverified (see `verify`), or raise ``LOG_BROKEN`` if a line is no entry."""
        return [_entry(line, number) for number, line in enumerate(self._lines()[0], start=1)]

    @property
    def head(self) -> str:
        """Hash of the last entry; zeros if there is none."""
        whole, _ = self._lines()
        if not whole:
            return CHAIN_START
        return str(_entry(whole[-1], len(whole))["hash"])

    def verify(self) -> str:
        """Check the whole chain, and return the head; ``LOG_BROKEN`` names the first entry that does not fit."""
        return _CHAIN.check(self.entries())

    def contains(self, head: str) -> bool:
        """Return whether this was the head once: entries that others have seen are still there."""
        return head == CHAIN_START or any(entry["hash"] == head for entry in self.entries())

    def export(self, path: Path) -> None:
        """Verify the log and write it for others to read, into a file that is closed to all but its owner.

        The name ends with ``.jsonl`` for the entries as they are, or with ``.csv`` for a table.
        """
        path = Path(path)
        self.verify()
        if path.suffix == ".jsonl":
            write_atomically(path, b"".join(line + b"\n" for line in self._lines()[0]), mode=0o600)
        elif path.suffix == ".csv":
            table = io.StringIO()
            writer = csv.writer(table)
            writer.writerow(["number", "time", "event", "facts", "hash"])
            for entry in self.entries():
                facts = canonical_json(entry["facts"]).decode()
                writer.writerow([entry["number"], entry["time"], entry["event"], facts, entry["hash"]])
            write_atomically(path, table.getvalue().encode(), mode=0o600)
        else:
            raise ValueError(f"Expected a name that ends with .jsonl or .csv, got {path}.")

    def _lines(self) -> tuple[list[bytes], int]:
        """Return whole lines, and the number of bytes after the last of them."""
        # Read once: another thread may let go of the lock in between.
        if (held := self._held) is not None:
            return held
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return [], 0
        # A line without an end is one that a kill cut off.
        *whole, cut = data.split(b"\n")
        return whole, len(cut)


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

_SHARE = "datacollab.share"
_MODEL = "datacollab.model"
_ANSWERS = "datacollab.answers"
_SUFFIXES = (".dcshare", ".dcmodel", ".dcanswers")
_INSTALLED = "model.dcmodel"


def log_witnesses(folder: Path) -> list[Path]:
    """Return the files of a folder that its log has to name."""
    there = [*folder.glob("outbox/*.dc*"), *folder.glob("shares/*.dc*"), folder / _INSTALLED]
    return sorted(path for path in there if path.is_file() and path.suffix in _SUFFIXES)


def check_log_against(log: AuditLog, files: Iterable[Path], *, keys: Path | None = None) -> list[Path]:
    """Refuse a log that lacks entries to which files testify; return the files that name no entry, as those of sums do.

    A share names the log's head when it was made, and the log then names the share; a model, or answers in its place,
    name the share that they were made of.  Entries after the last of the files have no witness.  Shares by others than
    the owner of `keys` testify to other logs.  ``LOG_BROKEN`` is raised, or an error of reading a file.
    """
    owner = None
    if keys is not None and keys.is_file():
        owner = KeyFile.read(keys).public
    known = {value for entry in log.entries() for value in entry["facts"].values() if isinstance(value, str)}
    silent = []
    for path in files:
        bundle = unpack(path)
        named = set[str]()
        if bundle.kind == _SHARE or path.name == _INSTALLED:
            named.add(bundle.digest)
        if bundle.kind in (_MODEL, _ANSWERS) and isinstance(made_of := bundle.facts.get("share_digest"), str):
            named.add(made_of)
        if not named:
            silent.append(path)
        # A share of another party testifies to that party's log.
        is_own = owner is None or bundle.signer == owner
        head = bundle.facts.get("log_head")
        lacks_head = bundle.kind == _SHARE and is_own and isinstance(head, str) and not log.contains(head)
        if lacks_head or not named <= known:
            raise ExchangeError(
                "LOG_BROKEN",
                f"{log.path} does not know of {path}, or of what was in the log when it was made: entries are missing. "
                "Keep the file, and compare it with a copy.",
            )
    return silent
