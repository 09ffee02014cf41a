"""The ledger of the totals that contain an institution's rows.

Two totals over nearly the same rows reveal their difference: one patient's record, if one was added in between.  A
folder of one project cannot see that, so the ledger belongs to the institution and lies outside of all folders.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bundle import canonical_json, parse_json, write_atomically
from ..errors import ExchangeError
from .log import locked

__all__ = ["Ledger", "LedgerEntry"]

FEWEST_DIFFERENT = 10
"""Totals over row sets that differ by fewer rows are refused."""

_FORMAT, _VERSION = "datacollab.ledger", 1
_HASH = np.dtype("<u8")


@dataclass(frozen=True)
class LedgerEntry:
    """One total."""

    context: str
    """The sum's context in hexadecimal digits."""
    purpose: str
    statistic: str
    """What was added up."""
    noise: float
    """Standard deviation of the total's noise, in the unit of sums of ridge regression."""
    time: str
    """In ISO 8601."""
    agreement: str
    """The digest of one run's project."""
    parties: dict[str, str]
    """Public keys of the parties with rows in the total, by name."""
    rows: NDArray[np.uint64] = field(repr=False)
    """Keyed hashes of the rows, shape (n_rows,), in ascending order."""

    def n_different(self, rows: NDArray[np.uint64]) -> int:
        """Return how many rows only one of both sets has; equal rows count as often as they occur."""
        values = np.concatenate([self.rows, rows])
        signs = np.r_[np.ones(len(self.rows), dtype=np.int64), -np.ones(len(rows), dtype=np.int64)]
        _, codes = np.unique(values, return_inverse=True)
        return int(np.abs(np.bincount(codes, signs)).sum())

    def shares_rows(self, rows: NDArray[np.uint64]) -> bool:
        """Return whether any row is in both sets."""
        return bool(np.isin(rows, self.rows).any())


class Ledger:
    """The ledger of one institution, a file; ``STATE_DAMAGED`` is raised if the file is something else.

    Parameters
    ----------
    path : Path
        Made with the first entry.  Its folder must exist.
    key : bytes of length 32
        A secret of the institution, without which hashes of guessed rows cannot be compared.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from datacollab.exchange.ledger import Ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.json", key=bytes(32))
    ...     rows = ledger.fingerprints(np.random.default_rng(0).normal(size=(40, 3)))
    ...     said = {"purpose": "stroke, first model", "statistic": "ridge regression", "noise": 0.1}
    ...     ledger.enter(rows, context="00" * 32, agreement="run 1", parties={}, **said)
    ...     ledger.noise_left(rows)
    0.1
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = Path(path)
        self._key = key
        self.entries: tuple[LedgerEntry, ...] = ()
        self.closed: tuple[str, ...] = ()
        self._load()

    def fingerprints(self, table: ArrayLike) -> NDArray[np.uint64]:
        """Return a keyed hash of each row of a party's matrix, shape (n_rows,).

        Targets are not part of it: another target of the same rows is another total of them.
        """
        # Zero is added to lose the sign of -0.0.
        table = np.ascontiguousarray(np.asarray(table, dtype="<f8") + 0.0)
        hashes = b"".join(
            hashlib.blake2b(row.tobytes(), digest_size=8, key=self._key, person=b"datacollab row 1").digest()
            for row in table
        )
        return np.frombuffer(hashes, dtype=_HASH).astype(np.uint64)

    def check(
        self,
        rows: NDArray[np.uint64],
        *,
        context: str,
        statistic: str,
        agreement: str,
        parties: Mapping[str, str],
        void: Collection[str] = frozenset(),
    ) -> None:
        """Refuse a total of rows, by their fingerprints, that beside the earlier ones would reveal single rows.

        Another statistic of exactly the same rows is allowed among the same parties, by their keys: with another roster
        the difference of both totals would be the sums of one party.  Totals of `void` agreements are left out: they
        will never be made, as one of their parties has left.  ``ALREADY_SHARED`` is raised if the sum was entered
        before, the agreement was closed, or an earlier total has nearly the same rows.
        """
        if agreement in self.closed:
            raise ExchangeError(
                "ALREADY_SHARED",
                "A party has left this run, and no sum of it is made any more. Ask the project's owner for a new run.",
            )
        for entry in self.entries:
            when = entry.time[:10]
            if entry.context == context:
                raise ExchangeError(
                    "ALREADY_SHARED",
                    f"This sum is in the ledger since {when}. Send the file that was made then; no second one is made.",
                )
            n_different = FEWEST_DIFFERENT if entry.agreement in void else entry.n_different(rows)
            are_others = set(entry.statistic.split(", ")).isdisjoint(statistic.split(", "))
            are_alike = set(entry.parties.values()) == set(parties.values()) and are_others
            if n_different < FEWEST_DIFFERENT and (n_different or not are_alike):
                raise ExchangeError(
                    "ALREADY_SHARED",
                    f"Nearly the same rows went into the total {entry.purpose!r} on {when}: fewer than "
                    f"{FEWEST_DIFFERENT} differ. Two totals would reveal these rows. Put all targets into one study, "
                    "or wait for more rows. If a party has left that run, give its withdrawal (--withdrawal).",
                )

    def enter(
        self,
        rows: NDArray[np.uint64],
        *,
        context: str,
        purpose: str,
        statistic: str,
        noise: float,
        agreement: str,
        parties: Mapping[str, str],
        void: Collection[str] = frozenset(),
    ) -> None:
        """Check a total and write it to the disk, before any message of it leaves.

        No sum of `void` agreements is entered from now on.  BUSY is raised if another command has the ledger.
        """
        if not 0 < noise < math.inf:
            raise ValueError(f"noise must be a finite number above 0; got {noise!r}.")
        with locked(self.path.parent):
            self._load()
            self.check(rows, context=context, statistic=statistic, agreement=agreement, parties=parties, void=void)
            time = datetime.now(UTC).isoformat(timespec="seconds")
            entry = LedgerEntry(
                context, purpose, statistic, float(noise), time, agreement, dict(parties), np.sort(rows)
            )
            self._write((*self.entries, entry), {*self.closed, *void})

    def close(self, agreement: str) -> None:
        """Enter no sum of an agreement any more, or raise ``BUSY`` if another command has the ledger."""
        with locked(self.path.parent):
            self._load()
            self._write(self.entries, {*self.closed, agreement})

    def noise_left(self, rows: NDArray[np.uint64]) -> float:
        """Return the joint noise of all totals with any of these rows, (Σ 1/s²)^(-1/2); infinity if there is none."""
        spent = sum(entry.noise**-2 for entry in self.entries if entry.shares_rows(rows))
        return math.inf if spent == 0 else float(spent**-0.5)

    def _write(self, entries: tuple[LedgerEntry, ...], closed: Collection[str]) -> None:
        listed = []
        for entry in entries:
            listed.append({**vars(entry), "rows": base64.b64encode(entry.rows.astype(_HASH).tobytes()).decode()})
        contents = {"format": _FORMAT, "format_version": _VERSION, "entries": listed, "closed": sorted(closed)}
        write_atomically(self.path, canonical_json(contents) + b"\n", mode=0o600)
        self.entries, self.closed = entries, tuple(sorted(closed))

    def _load(self) -> None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        try:
            contents = parse_json(data, what=str(self.path))
            if (contents["format"], contents["format_version"]) != (_FORMAT, _VERSION):
                raise ValueError
            entries, closed = tuple(self._entry(entry) for entry in contents["entries"]), contents["closed"]
            if not all(isinstance(each, str) for each in closed):
                raise ValueError
        except (KeyError, TypeError, ValueError, ExchangeError):
            raise ExchangeError(
                "STATE_DAMAGED",
                f"{self.path} is no ledger of this program. Put back a copy only if it is newer than the last share "
                "and withdrawal: an older one lacks totals. Without such a copy, move the file away, and share no row "
                "again that was shared before: a new ledger knows no earlier total.",
            ) from None
        self.entries, self.closed = entries, tuple(closed)

    @staticmethod
    def _entry(entry: dict[str, Any]) -> LedgerEntry:
        rows = np.frombuffer(base64.b64decode(entry["rows"], validate=True), dtype=_HASH).astype(np.uint64)
        return LedgerEntry(**{**entry, "noise": float(entry["noise"]), "rows": rows})

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, {len(self.entries)} entries)"
