"""Where results are kept: one SQLite file, in which a row is there as a whole or not at all."""

import io
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from datacollab._validation import FloatArray

from ._task import Key, Outcome

FILE = "results.sqlite"
# To be raised with the schema, so that an older version refuses what it cannot read.
FORMAT = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS experiments (name TEXT PRIMARY KEY, definition TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cells (cell TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS datasets (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS provenance (id INTEGER PRIMARY KEY, versions TEXT NOT NULL, source TEXT NOT NULL,
    UNIQUE (versions, source));
CREATE TABLE IF NOT EXISTS results (cell TEXT NOT NULL, seed INTEGER NOT NULL, scores TEXT NOT NULL,
    seconds TEXT NOT NULL, error TEXT, provenance INTEGER NOT NULL REFERENCES provenance, PRIMARY KEY (cell, seed))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS images (cell TEXT NOT NULL, seed INTEGER NOT NULL, array BLOB NOT NULL,
    PRIMARY KEY (cell, seed)) WITHOUT ROWID;
"""

_TABLES = {"experiments", "cells", "datasets", "provenance", "results", "images"}


@dataclass(frozen=True, kw_only=True)
class Result:
    """A stored outcome and where it comes from."""

    scores: dict[str, float]
    seconds: dict[str, float]
    error: str | None
    versions: dict[str, str]
    source: str


class ResultStore:
    """Results in a file, which is made where it is not there.

    Outcomes of one trial are written together or not at all, also when the process is killed while it writes.

    Raises
    ------
    ValueError
        When the file is something else, or was written by a newer version of the library.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        # Another run may be writing: wait a minute for it.
        self._connection = sqlite3.connect(path, timeout=60)
        try:
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
            if version > FORMAT:
                raise ValueError(f"{path} has format {version}; this version reads up to {FORMAT}: upgrade datacollab.")
            if tables and "results" not in tables:
                raise ValueError(f"{path} is a database of something else; choose another file.")
            # In one transaction, so that two runs that start together find all tables or none.
            if not tables >= _TABLES:
                self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise OSError(f"{path} cannot be opened for writing ({error}). Is another run using it?") from None
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"{path} is not a file of experiment results ({error}).") from None
        except ValueError:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def check_data(self, fingerprints: Mapping[str, str]) -> None:
        """Remember the data behind the results, and refuse other data of the same name.

        Raises
        ------
        ValueError
            When a data set is another than before.
        """
        with self._connection:
            for name, fingerprint in fingerprints.items():
                self._connection.execute("INSERT OR IGNORE INTO datasets VALUES (?, ?)", (name, fingerprint))
                (before,) = self._connection.execute(
                    "SELECT fingerprint FROM datasets WHERE name = ?", (name,)
                ).fetchone()
                if before != fingerprint:
                    raise ValueError(
                        f"{self.path} holds results computed from another version of {name!r}, such as an excerpt. "
                        "Choose another --output."
                    )

    def keep_definitions(self, experiments: Mapping[str, str], cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Remember definitions by name, and cells; a newer definition replaces an older one."""
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO experiments VALUES (?, ?)", experiments.items())
            self._connection.executemany(
                "INSERT OR IGNORE INTO cells VALUES (?, ?)",
                [(cell, json.dumps(definition, sort_keys=True)) for cell, definition in cells.items()],
            )

    def definitions(self) -> list[str]:
        """Definitions, in the order of their names."""
        rows = self._connection.execute("SELECT definition FROM experiments ORDER BY name").fetchall()
        return [text for (text,) in rows]

    def save(self, seed: int, outcomes: Sequence[Outcome], versions: Mapping[str, str], source: str) -> None:
        """Write the outcomes of one trial.  Results that are there stay as they are."""
        origin = (json.dumps(dict(versions), sort_keys=True), source)
        # One transaction: a kill leaves all outcomes of a trial or none.
        with self._connection:
            self._connection.execute("INSERT OR IGNORE INTO provenance (versions, source) VALUES (?, ?)", origin)
            (provenance,) = self._connection.execute(
                "SELECT id FROM provenance WHERE versions = ? AND source = ?", origin
            ).fetchone()
            self._connection.executemany(
                "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (o.cell, seed, json.dumps(dict(o.scores)), json.dumps(dict(o.seconds)), o.error, provenance)
                    for o in outcomes
                ],
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO images VALUES (?, ?, ?)",
                [(o.cell, seed, _to_bytes(o.images)) for o in outcomes if o.images is not None],
            )

    def done(self) -> set[Key]:
        """Cells and seeds that have a result, failures included."""
        return set(self._connection.execute("SELECT cell, seed FROM results"))

    def forget_failures(self, cells: Iterable[str]) -> int:
        """Remove failed results of some cells, so that they are tried again; how many there were."""
        with self._connection:
            return self._connection.executemany(
                "DELETE FROM results WHERE error IS NOT NULL AND cell = ?", [(cell,) for cell in cells]
            ).rowcount

    def results(self) -> dict[Key, Result]:
        """All results by cell and seed."""
        origins = {
            number: (json.loads(versions), source)
            for number, versions, source in self._connection.execute("SELECT * FROM provenance")
        }
        with closing(self._connection.execute("SELECT * FROM results")) as rows:
            return {
                (cell, seed): Result(
                    scores=json.loads(scores),
                    seconds=json.loads(seconds),
                    error=error,
                    versions=origins[provenance][0],
                    source=origins[provenance][1],
                )
                for cell, seed, scores, seconds, error, provenance in rows
            }

    def images(self, cell: str, seed: int) -> FloatArray | None:
        """Images of a cell's trial, if it has any."""
        row = self._connection.execute("SELECT array FROM images WHERE cell = ? AND seed = ?", (cell, seed)).fetchone()
        if row is None:
            return None
        return _from_bytes(row[0])


def _to_bytes(array: FloatArray) -> bytes:
    buffer = io.BytesIO()
    # Grey values of images need no more, and the file stays small.
    largest = float(np.finfo(np.float16).max)
    np.save(buffer, np.clip(array, -largest, largest).astype(np.float16), allow_pickle=False)
    return buffer.getvalue()


def _from_bytes(data: bytes) -> FloatArray:
    array: Any = np.load(io.BytesIO(data), allow_pickle=False)
    return np.asarray(array, dtype=np.float64)


def results_file(path: Path) -> Path:
    """The file of results in a directory."""
    if path.is_dir() or not path.suffix:
        return path / FILE
    return path
