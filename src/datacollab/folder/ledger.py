"""The ledger of the totals that contain an institution's rows.

Two totals over nearly the same rows reveal their difference: one patient's record, if one was added in between.  A
folder of one project cannot see that, so the ledger belongs to the institution and lies outside of all folders.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bundle import canonical_pieces, now, parse_json, replaced
from ..errors import ExchangeError
from .log import locked
from .table_codes import TableCoder, TableCodes

__all__ = ["Ledger", "LedgerEntry", "RowKeys", "joint_noise"]

_FORMAT = "datacollab.ledger"
_VERSION = 1
_ROWS_AT_ONCE = 1024
_CODE = np.dtype("<u2")


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One total."""

    context: str
    """The sum's context in hexadecimal digits."""
    purpose: str
    statistic: str
    """What was added up."""
    noise: float
    """Standard deviation of the total's noise, in the unit of sums of ridge regression."""
    time: str = field(default_factory=now)
    """In ISO 8601."""
    agreement: str
    """The digest of one run's project."""
    parties: dict[str, str]
    """Public keys of the parties with rows in the total, by name."""
    table: TableCodes = field(repr=False)
    """Keyed codes of its rows."""
    round: int = 1
    """Of the agreement's rounds, which are announced together and have one noise."""


def joint_noise(entries: Iterable[LedgerEntry]) -> float:
    """Return the joint noise of totals, (Σ 1/s²)^(-1/2); infinity if there is none."""
    # Gaussian noise of several totals tells as much as one total with the sum of 1/s².
    spent = sum(entry.noise**-2 for entry in entries)
    return float(spent**-0.5) if spent else math.inf


def _codes_text(codes: NDArray[np.uint16]) -> str:
    return base64.b64encode(codes.astype(_CODE).tobytes()).decode()


@dataclass(frozen=True)
class RowKeys:
    """Keyed codes and hashes of an institution's rows, for its ledger; the same wherever the rows are read."""

    key: bytes = field(repr=False)

    def coder(self) -> TableCoder:
        """Return a coder of a table as it is read, for the ledger."""
        return TableCoder(self.key)

    def fingerprints(self, table: ArrayLike) -> NDArray[np.uint64]:
        """Return a keyed hash of each row of a project's matrix, shape (n_rows,), to compare it with an anchor's.

        It is the sum of a mixed word for each number, times a secret odd factor of its column: rows that differ in one
        column never have the same, and others once in 2^60 times.  It is never stored.
        """
        table = np.asarray(table, dtype=np.float64)
        seed = hashlib.blake2b(b"", digest_size=32, key=self.key, person=b"datacollab row 2").digest()
        random = np.random.default_rng(np.frombuffer(seed, dtype="<u4"))
        factors = random.integers(2**63, size=table.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        hashes = np.empty(len(table), dtype=np.uint64)
        for start in range(0, len(table), _ROWS_AT_ONCE):
            # Zero is added to lose the sign of -0.0.
            words = (table[start : start + _ROWS_AT_ONCE] + 0.0).view(np.uint64)
            # Whole numbers end in zeros, and a product with the factor alone would keep these.
            words ^= words >> np.uint64(32)
            words *= factors
            words ^= words >> np.uint64(29)
            hashes[start : start + _ROWS_AT_ONCE] = words.sum(axis=1, dtype=np.uint64)
        return hashes


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
    >>> import pandas as pd
    >>> from datacollab.folder.ledger import Ledger, LedgerEntry, joint_noise
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.json", key=bytes(32))
    ...     coder = ledger.row_keys.coder()
    ...     coder.add(pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3))))
    ...     table = coder.table()
    ...     said = {"purpose": "stroke, first model", "statistic": "ridge regression", "noise": 0.1, "parties": {}}
    ...     ledger.enter(LedgerEntry(context="00" * 32, agreement="run 1", table=table, **said), fewest=60)
    ...     joint_noise(ledger.earlier(table))
    0.1
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = Path(path)
        self.row_keys = RowKeys(key)
        self.entries: tuple[LedgerEntry, ...] = ()
        self.closed: tuple[str, ...] = ()
        self._load()

    def check(self, total: LedgerEntry, *, fewest: int, void: Collection[str] = frozenset()) -> None:
        """Refuse a total that beside the earlier ones would reveal few rows.

        The rows in which two tables differ are a total of their own: all others cancel if the other parties bring
        the same rows again.  So at this party alone as many rows have to differ as the project's totals have to have,
        `fewest`; as many as the smaller table has are enough, as they are hidden as well as that table.

        Another statistic of exactly the same rows is allowed among the same parties, by their keys: with another roster
        the difference of both totals would be the sums of one party.  So is the next round of an agreement, of exactly
        the rows of the one before.  Totals of `void` agreements are left out: they will never be made, as one of their
        parties has left.  ``ALREADY_SHARED`` is raised if the sum was entered before, the agreement was closed, or an
        earlier total has nearly the same rows; ``ROWS_CHANGED`` if a round has other rows than the one before it.
        """
        if total.agreement in self.closed:
            raise ExchangeError(
                "ALREADY_SHARED",
                "A party has left this run, and no sum of it is made any more. Ask the project's owner for a new run.",
            )
        if total.round > 1:
            self._check_round(total)
        for entry in self.entries:
            when = entry.time[:10]
            if entry.context == total.context:
                raise ExchangeError(
                    "ALREADY_SHARED",
                    f"This sum is in the ledger since {when}. Send the file that was made then; no second one is made.",
                )
            least = min(fewest, entry.table.n_rows, total.table.n_rows)
            if entry.agreement in void:
                continue
            n_different = total.table.n_different(entry.table, least)
            # The same statistic again, with fresh noise, would take half of its noise away.
            are_others = set(entry.statistic.split(", ")).isdisjoint(total.statistic.split(", "))
            # Rounds of one agreement were announced together, and share its noise.
            is_next = entry.agreement == total.agreement and entry.round < total.round
            are_alike = set(entry.parties.values()) == set(total.parties.values()) and (are_others or is_next)
            if n_different is not None and (n_different or not are_alike):
                raise ExchangeError(
                    "ALREADY_SHARED",
                    f"Nearly the same rows went into the total {entry.purpose!r} on {when}: fewer than "
                    f"{least} differ. Two totals would reveal these rows. Put all targets into one study, or share "
                    "new rows alone. If a party has left that run, give its withdrawal (--withdrawal).",
                )

    def _check_round(self, total: LedgerEntry) -> None:
        """Refuse a round of other rows than the one before it, or without one."""
        before = [each for each in self.entries if each.agreement == total.agreement and each.round == total.round - 1]
        if not any(total.table.n_different(each.table, each.table.n_rows) == 0 for each in before):
            raise ExchangeError(
                "ROWS_CHANGED",
                f"Round {total.round} needs exactly the rows of round {total.round - 1}, and this table has others, or "
                "changed entries. Give the file that was shared then. If it is gone, this study cannot go on: withdraw "
                "(`datacollab party withdraw`), and tell the owner.",
            )

    def enter(self, total: LedgerEntry, *, fewest: int, void: Collection[str] = frozenset()) -> None:
        """Check a total and write it to the disk, before any message of it leaves.

        No sum of `void` agreements is entered from now on.  BUSY is raised if another command has the ledger.
        """
        if not 0 < total.noise < math.inf:
            raise ValueError(f"noise must be a finite number above 0; got {total.noise!r}.")
        with locked(self.path.parent):
            # Another folder of the institution may have entered a total since.
            self._load()
            self.check(total, fewest=fewest, void=void)
            self._write((*self.entries, total), {*self.closed, *void})

    def close(self, agreement: str) -> None:
        """Enter no sum of an agreement any more, or raise ``BUSY`` if another command has the ledger."""
        with locked(self.path.parent):
            self._load()
            self._write(self.entries, {*self.closed, agreement})

    def earlier(self, table: TableCodes) -> tuple[LedgerEntry, ...]:
        """Return all totals with any of a table's rows, void ones too."""
        return tuple(entry for entry in self.entries if table.shares_rows(entry.table))

    def _write(self, entries: tuple[LedgerEntry, ...], closed: Collection[str]) -> None:
        listed = []
        for entry in entries:
            columns = dict(entry.table.columns)
            listed.append({**vars(entry), "table": {"n_rows": entry.table.n_rows, "columns": columns}})
        contents = {"format": _FORMAT, "format_version": _VERSION, "entries": listed, "closed": sorted(closed)}
        with replaced(self.path, mode=0o600) as file:
            # Column by column: the text of a million rows takes more memory than all else.
            file.writelines(canonical_pieces(contents, default=_codes_text))
            file.write(b"\n")
        self.entries = entries
        self.closed = tuple(sorted(closed))

    def _load(self) -> None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        try:
            contents = parse_json(data, what=str(self.path))
            if (contents["format"], contents["format_version"]) != (_FORMAT, _VERSION):
                raise ValueError
            entries = tuple(self._entry(entry) for entry in contents["entries"])
            closed = contents["closed"]
            if not all(isinstance(each, str) for each in closed):
                raise ValueError
        except (KeyError, TypeError, ValueError, ExchangeError):
            raise ExchangeError(
                "STATE_DAMAGED",
                f"{self.path} is no ledger of this program. Put back a copy only if it is newer than the last share "
                "and withdrawal: an older one lacks totals. Without such a copy, move the file away, and share no row "
                "again that was shared before: a new ledger knows no earlier total.",
            ) from None
        self.entries = entries
        self.closed = tuple(closed)

    @staticmethod
    def _entry(entry: dict[str, Any]) -> LedgerEntry:
        n_rows = entry["table"]["n_rows"]
        columns = entry["table"]["columns"]
        decoded = {name: base64.b64decode(each, validate=True) for name, each in columns.items()}
        codes = {name: np.frombuffer(each, dtype=_CODE).astype(np.uint16) for name, each in decoded.items()}
        # A damaged entry must not make old rows look new.
        if any(len(each) != n_rows for each in codes.values()):
            raise ValueError
        return LedgerEntry(**{**entry, "noise": float(entry["noise"]), "table": TableCodes(n_rows, codes)})

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, {len(self.entries)} entries)"
