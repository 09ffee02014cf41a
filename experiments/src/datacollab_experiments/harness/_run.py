"""Tasks, the file of their results, and a run that computes missing cells and is ready to be stopped at any time."""

import hashlib
import io
import json
import math
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from datacollab._validation import FloatArray

from ._carried import source_state, versions

# A cell's hash and a seed: where the results keep an outcome.
Key = tuple[str, int]


def cell_id(definition: Mapping[str, Any]) -> str:
    """Hash of a cell's definition: all that determines a result but the seed, as JSON can hold it."""
    # Sorted keys and no blanks: equal definitions have equal text.
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The result of one cell and seed.

    Attributes
    ----------
    cell : str
        Hash of the cell.
    scores, seconds : mapping of str to float
        Empty where it failed.
    """

    cell: str
    scores: Mapping[str, float]
    seconds: Mapping[str, float]
    error: str | None = None
    images: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """One unit of work: cells that are computed together for one seed, and written together."""

    seed: int
    cells: Mapping[str, Any]

    @property
    @abstractmethod
    def label(self) -> str:
        """The task in words."""

    @property
    def cost(self) -> float:
        """A rough measure of the work, to estimate the time left."""
        return float(len(self.cells))

    @property
    def keys(self) -> tuple[Key, ...]:
        """Where the results keep its outcomes."""
        return tuple((cell, self.seed) for cell in self.cells)

    @abstractmethod
    def measure(self) -> Iterable[Outcome]:
        """Return one outcome for each cell; in a process with one BLAS thread."""

    def without(self, done: Container[Key]) -> Self:
        """Return the task without the cells that have a result."""
        return replace(self, cells={cell: what for cell, what in self.cells.items() if (cell, self.seed) not in done})


@dataclass(frozen=True, kw_only=True)
class ModuleTask(Task):
    """All figures of one module and seed: its ``measure(seed, **options)`` yields names, and a number after them."""

    module: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def label(self) -> str:
        return f"{self.name}, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Return the module's figures as the scores of its one cell."""
        (cell,) = self.cells
        figures = import_module(self.module).measure(self.seed, **self.options)
        yield Outcome(cell=cell, scores={"|".join(names): float(value) for *names, value in figures}, seconds={})


def module_tasks(
    package: str, names: Iterable[str], n_seeds: int, *, beside: Sequence[str] = (), **options: Any
) -> list[ModuleTask]:
    """Return a task for each module of a package and seed.

    Figures of an earlier version of a module, or of those `beside` it, are computed again.
    """
    tasks = []
    for module in (f"{package}.{name}" for name in names):
        specs = [find_spec(each) for each in (module, *(f"{package}.{name}" for name in beside))]
        code = b"".join(Path(str(spec.origin)).read_bytes() for spec in specs if spec is not None)
        cell = cell_id({"module": module, "code": hashlib.sha256(code).hexdigest(), **options})
        for seed in range(n_seeds):
            tasks.append(ModuleTask(seed=seed, cells={cell: module}, module=module, options=options))
    return tasks


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
        except (sqlite3.DatabaseError, ValueError) as error:
            self._connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(f"{path} cannot be opened for writing ({error}). Is another run using it?") from None
            if isinstance(error, sqlite3.DatabaseError):
                raise ValueError(f"{path} is not a file of experiment results ({error}).") from None
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


# Faults of the machine or the installation, and not of a method: they end the run.
ENVIRONMENT = (OSError, MemoryError, ImportError)

AnyTask = TypeVar("AnyTask", bound=Task)
# Scores, seconds, and images to look at.
Scored = tuple[Mapping[str, float], Mapping[str, float], FloatArray | None]


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Tasks of this run.
    share : float
        Share of the work that is done, estimated from the costs of the tasks; 1 at the end.
    failed : int
        Outcomes of this run that failed.
    """

    done: int
    total: int
    share: float
    failed: int
    label: str


def run_tasks(
    tasks: Sequence[Task],
    store: ResultStore,
    *,
    n_jobs: int | None = None,
    hours: float | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> int:
    """Compute the cells that the store does not hold yet, and return how many of their outcomes failed.

    The outcomes of a task are written when it ends, all or none, so a run that was stopped goes on where it was,
    whatever stopped it.  Every task has one BLAS thread, so that scores do not depend on how many run side by side.
    Times do, a little: for times that matter run one at a time.

    Parameters
    ----------
    n_jobs : int, optional
        Tasks at a time, as joblib takes it: ``joblib.parallel_config(backend="dask")`` spreads them over machines.
    hours : float, optional
        No task is handed out later than this after the start; those that were end.
    progress : callable, optional
        Called after each task.
    """
    done = store.done()
    waiting = [left for task in tasks if (left := task.without(done)).cells]
    if hours is None:
        # The longest first: the last processor is then not busy alone for long.
        waiting.sort(key=lambda task: -task.cost)
    source = source_state()
    total = sum(task.cost for task in waiting)
    spent = 0.0
    n_failed = 0
    last = time.monotonic() + (math.inf if hours is None else 3600 * hours)
    begun = takewhile(lambda _: time.monotonic() < last, waiting)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    for number, (task, outcomes, computed_by) in enumerate(
        parallel(delayed(_measure_task)(task) for task in begun), start=1
    ):
        store.save(task.seed, outcomes, computed_by, source)
        spent += task.cost
        n_failed += sum(outcome.error is not None for outcome in outcomes)
        progress(Progress(number, len(waiting), spent / total, n_failed, task.label))
    return n_failed


def attempt(cell: str, compute: Callable[[], Scored]) -> Outcome:
    """Compute one cell; its failure is an outcome too, and the others go on.

    Raises
    ------
    OSError, MemoryError, ImportError
        When the machine or the installation is at fault.
    """
    try:
        scores, seconds, images = compute()
    except ENVIRONMENT:
        raise
    except Exception as error:
        return to_failure(cell, error)
    return Outcome(cell=cell, scores=dict(scores), seconds=dict(seconds), images=images)


def to_failure(cell: str, error: Exception) -> Outcome:
    """The outcome of a cell that could not be computed."""
    return Outcome(cell=cell, scores={}, seconds={}, error=f"{type(error).__name__}: {error}")


def read_outcomes(path: Path, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, dict[str, Result]]]:
    """Return tasks with results, and these by cell, in the order of the tasks and their cells."""
    with ResultStore(path) as store:
        results = store.results()
    for task in tasks:
        found = {key[0]: results[key] for key in task.keys if key in results}
        if found:
            yield task, found


def _measure_task(task: Task) -> tuple[Task, list[Outcome], dict[str, str]]:
    # One BLAS thread, so that scores do not depend on how many tasks run side by side.
    with threadpool_limits(1):
        return task, list(task.measure()), versions()
