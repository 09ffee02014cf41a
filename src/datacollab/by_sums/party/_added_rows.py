"""A party's rows on their way into sums: read in batches, encoded, mapped by the common map, and added up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._frames import plain_table
from ..._typing import FloatArray
from ...agreement import Anchor, Project, are_declared_alike
from ...errors import AgreementError, ExchangeError
from ...folder.ledger import RowKeys
from ...folder.party import Folder, encode
from ...folder.table_codes import TableCodes
from ...study import MAPPED, StudyPlan, effect_map, new_secret
from ...sums import UNITS_PER_RANGE, CommonMap, IsolatedRows, RidgeSums
from ...table import Adjustments, EncodedTable, encode_table, is_read, read_table, table_batches, table_source
from ..plan import study_table
from ._own_model import OwnSample

Batch = tuple[EncodedTable, NDArray[Any] | None, Any]
"""Rows in the project's matrix, labels of those that depend on each other, and the table as it was read."""
_FILE_ROWS = 32768
"""Rows of a file that are in memory at once."""
_BATCH_ROWS = 4096
"""Rows that are mapped together."""
_LOOKED_AT = 1000
"""Rows of each batch that the anchor is compared with."""


@dataclass(frozen=True, eq=False, repr=False)
class ProjectMap:
    """The common map of the matrix, with each number in units of a quarter of its declared range."""

    common: CommonMap
    units: FloatArray
    """Shape (n_features,): a quarter of each number's declared range, and 1 for indicators of categories and gaps."""
    kept: NDArray[np.bool_]
    """The columns of the matrix that are mapped: all but the outcome."""
    alike: bool
    """Whether they are all alike; see `columns_alike`."""

    @property
    def kind(self) -> Literal["table", "alike", "own columns"]:
        """Return the kind of map, as attacks tell them apart."""
        if self.common.is_of_own_columns:
            return "own columns"
        return "alike" if self.alike else "table"

    @property
    def n_components(self) -> int:
        return self.common.n_components

    def transform(self, X: FloatArray) -> FloatArray:
        """Map rows of the matrix, shape (n_rows, n_components); no row is longer than 1."""
        return self.map_encoded(self.encode(X))

    def map_encoded(self, Z: FloatArray) -> FloatArray:
        """Map rows that `encode` gave."""
        return self.common.transform(Z)

    def encode(self, X: FloatArray) -> FloatArray:
        """Return the columns that are mapped, in the map's units."""
        return np.asarray((np.asarray(X) / self.units)[:, self.kept])


def watch_rows(project: Project, plan: StudyPlan) -> IsolatedRows:
    """Return the finder of own rows that stand alone; a study's noise hides them as well as some of a model's."""
    of_study = RidgeSums(project.n_features, limits=(-1.0, 1.0), noise=plan.noise_of_sums)
    return IsolatedRows(plan.ridge or of_study, len(project.parties))


def rows_of_study(project: Project, X: FloatArray) -> FloatArray:
    """Return a study's rows with each declared range 1 wide, scaled to length 1 at most."""
    rows = X.copy()
    for column, places in project.blocks(np.arange(project.n_features)):
        if column.minimum is not None and column.maximum is not None:
            part = (X[:, places[0]] - column.minimum) / (column.maximum - column.minimum) - 0.5
            rows[:, places[0]] = np.clip(part, -0.5, 0.5)
        elif column.flag_missing:
            # A study fills in no category: the flag alone stands for it, so that indicators have length 1 together.
            rows[np.ix_(X[:, places[-1]] == 1, places[:-1])] = 0.0
    # Half of a range and a flag that the number is missing have length √1.25 at most.
    return np.asarray(rows / np.sqrt(1.25 * len(project.columns)))


def project_map(project: Project, anchor: Anchor) -> ProjectMap:
    """Return the map that all parties of a project make of its anchor, for a model."""
    most = project.sums.n_components
    alike = are_declared_alike(project.columns)
    return _map_columns(
        project, anchor, lambda rows: CommonMap.from_anchor(rows, anchor.secret, n_components=most, as_they_are=alike)
    )


def effect_project_map(project: Project, anchor: Anchor) -> ProjectMap:
    """Return the map that all parties of a study make of its anchor, for an effect."""
    return _map_columns(project, anchor, lambda rows: effect_map(rows, anchor.secret, most=project.sums.n_components))


def _map_columns(project: Project, anchor: Anchor, make: Callable[[FloatArray], CommonMap]) -> ProjectMap:
    """Have the map made of the anchor's columns that are mapped, in its units."""
    units = np.ones(project.n_features)
    kept = np.ones(project.n_features, dtype=bool)
    for column, places in project.blocks(np.arange(project.n_features)):
        # The map of an effect leaves its outcome out, which is looked at by itself.
        kept[places] = column.name != project.sums.outcome
        if column.minimum is not None and column.maximum is not None:
            # By its width: the map would hardly see years of birth, which begin far from 0.
            units[places[0]] = (column.maximum - column.minimum) / UNITS_PER_RANGE
    return ProjectMap(make((anchor.rows / units)[:, kept]), units, kept, are_declared_alike(project.columns))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AddedRows:
    """A party's rows: their sums, hashes in the project's matrix, codes as read, targets, and some for the anchor."""

    sums: list[FloatArray]
    hashed: NDArray[np.uint64]
    table: TableCodes
    targets: Counter[Any]
    sample: OwnSample
    some: FloatArray
    adjusted: Adjustments
    alone: IsolatedRows
    plan: StudyPlan
    message: bytes
    """Of the message that the rows go into; parts of one message alone add up."""

    def __add__(self, other: AddedRows) -> AddedRows:
        """Return the sums over the rows of both parts; no row may be in both."""
        if self.message != other.message:
            raise AgreementError("These parts are of two messages. Make all parts by one `PartyFolder.part_maker()`.")
        sample = OwnSample()
        alone = IsolatedRows(self.alone.statistic, self.alone.n_parties)
        for each in (self, other):
            sample.join(each.sample)
            alone.add(each.alone)
        return AddedRows(
            sums=self.plan.join(self.sums, other.sums),
            hashed=np.concatenate([self.hashed, other.hashed]),
            table=self.table + other.table,
            targets=Counter({each: self.targets[each] + other.targets[each] for each in self.targets | other.targets}),
            sample=sample,
            some=np.vstack([self.some, other.some]),
            adjusted=self.adjusted + other.adjusted,
            alone=alone,
            plan=self.plan,
            message=self.message,
        )


def check_version(parts: AddedRows, plan: StudyPlan, project: Project) -> None:
    """Refuse parts that were made for an earlier version of the project."""
    if parts.plan.agreed.context != plan.agreed.context:
        raise AgreementError(
            f"Project {project.name!r}: these parts are of another version of it, or of another project. Make them "
            "again by `PartyFolder.part_maker()`."
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PartMaker:
    """Makes parts of a party's sums where its rows are, such as on the workers of a cluster.

    It travels to workers whole, with the common map, the ledger's key and the secret that deals rows to groups:
    the party's own computers alone may have it.  Parts hold sums, keyed codes of entries, and a sample of rows, which
    stay with the party as its rows do.
    """

    project: Project
    plan: StudyPlan
    common: ProjectMap | None
    row_keys: RowKeys
    secret: bytes

    @property
    def message(self) -> bytes:
        """Return a digest of the agreement and the secret, the same in all parts."""
        return sha256(self.plan.agreed.context + self.secret).digest()

    def part(self, rows: Any) -> AddedRows:
        """Return the part of some rows: a data frame, or anything with ``__arrow_c_stream__``.

        Rules for exceptions, such as that one entry in twenty may be outside of its range, hold in each part by itself.
        """
        where = "the part"
        if is_read(rows):
            frame = read_table(table_source(rows, where), schema=self.project)
        else:
            frame = plain_table(rows, "The part")
        encoded = encode_table(self.project, frame, where=where)
        batch = (encoded, _clusters(self.project, frame, where), frame)
        return add_rows(self.project, self.plan, self.common, self.row_keys, [batch], self)


def read_batches(folder: Folder, table: Any, where: str | None) -> Iterator[Batch]:
    """Encode what is read in batches of rows, so that it need not fit into memory; a frame of pandas is one batch."""
    if not is_read(table):
        yield encode(folder, table, where=where), _clusters(folder.project, table, where or "the table"), table
        return
    # Counts of changed entries go on from batch to batch.
    before = Adjustments()
    source = table_source(table, where or "the table")
    where = where or str(source)
    for frame in table_batches(source, batch_rows=_FILE_ROWS, schema=folder.project):
        batch = encode_table(folder.project, frame, where=where, before=before)
        before = batch.adjusted
        yield batch, _clusters(folder.project, frame, where), frame


def _clusters(project: Project, frame: Any, where: str) -> NDArray[Any] | None:
    """Return the labels of rows that depend on each other, if the project has such a column."""
    name = project.sums.cluster
    if name is None:
        return None
    if name not in frame:
        raise ExchangeError(
            "SCHEMA_MISSING_COLUMN", f"{where} lacks column {name!r}, the project's clusters. Add or rename it."
        )
    return np.asarray(frame[name], dtype=object)


def add_rows(
    project: Project,
    plan: StudyPlan,
    common: ProjectMap | None,
    row_keys: RowKeys,
    batches: Iterable[Batch],
    maker: PartMaker | None = None,
) -> AddedRows:
    """Add batches of rows up, and keep of each the hashes, codes and samples that judge the message.

    They may be a part of the rows alone, which its `maker` makes.
    """
    secret = new_secret() if maker is None else maker.secret
    # Classes without an own row are there with 0.
    targets: Counter[Any] = Counter(dict.fromkeys(project.task.classes, 0))
    sample = OwnSample()
    coder = row_keys.coder()
    alone = watch_rows(project, plan)
    sums = list[FloatArray]()
    hashed = list[NDArray[np.uint64]]()
    some = list[FloatArray]()
    for batch, clusters, frame in batches:
        assert batch.target is not None
        added = sums_over(project, plan, common, batch.X, batch.target, secret, clusters, alone)
        sums = plan.join(sums, added) if sums else added
        hashed.append(row_keys.fingerprints(batch.X))
        coder.add(frame)
        if maker is not None:
            # Parts of equally many rows would otherwise be sampled at the same places.
            sample = OwnSample(int(hashed[-1].sum()))
        sample.add(batch.X, batch.target)
        if project.task.classes:
            targets.update(batch.target.tolist())
        step = max(1, math.ceil(batch.n_rows / _LOOKED_AT))
        # A view would keep the whole batch in memory.
        some.append(batch.X[::step].copy())
    return AddedRows(
        sums=sums,
        hashed=np.concatenate(hashed),
        table=coder.table(),
        targets=targets,
        sample=sample,
        some=np.vstack(some),
        adjusted=batch.adjusted,
        alone=alone,
        plan=plan,
        message=b"" if maker is None else maker.message,
    )


def sums_over(
    project: Project,
    plan: StudyPlan,
    common: ProjectMap | None,
    X: FloatArray,
    target: np.ndarray,
    secret: bytes,
    clusters: NDArray[Any] | None = None,
    alone: IsolatedRows | None = None,
) -> list[FloatArray]:
    """Return sums over rows, made in batches: the mapped rows have many more columns than the matrix."""
    # One batch at least: sums over no rows are zeros, of the right number.
    batches = (slice(start, start + _BATCH_ROWS) for start in range(0, max(len(X), 1), _BATCH_ROWS))
    if plan.ridge is None:
        table = study_table(project, X, target, clusters)
        if common is not None:
            table[MAPPED] = np.concatenate([common.transform(X[rows]) for rows in batches])
        if alone is not None:
            alone.part(rows_of_study(project, X), np.zeros(len(X)))
        return plan.add_up(table, secret)
    assert common is not None
    part = plan.ridge.part if alone is None else alone.part
    parts = (part(common.transform(X[rows]), target[rows]) for rows in batches)
    return [np.asarray(sum(parts, np.zeros(plan.ridge.n_numbers)))]
