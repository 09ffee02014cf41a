"""The common map of a project, which all its parties make of the anchor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...agreement import Anchor, Project, are_declared_alike
from ...study import StudyPlan, effect_map
from ...sums import UNITS_PER_RANGE, CommonMap, IsolatedRows, RidgeSums


@dataclass(frozen=True, eq=False, repr=False)
class ProjectMap:
    """The common map of the matrix, with each number in units of a quarter of its declared range."""

    common: CommonMap
    units: FloatArray
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
    # Categories are indicators already, and have length 1 together.
    for column, places in project.blocks(np.arange(project.n_features)):
        if column.minimum is not None and column.maximum is not None:
            part = (X[:, places[0]] - column.minimum) / (column.maximum - column.minimum) - 0.5
            rows[:, places[0]] = np.clip(part, -0.5, 0.5)
    # Half of a range and a flag that the number is missing have length √1.25 at most.
    return np.asarray(rows / np.sqrt(1.25 * len(project.columns)))


def project_map(project: Project, anchor: Anchor) -> ProjectMap:
    """Return the map that all parties of a project make of its anchor."""
    units = np.ones(project.n_features)
    kept = np.ones(project.n_features, dtype=bool)
    for column, places in project.blocks(np.arange(project.n_features)):
        # The map of an effect leaves its outcome out, which is looked at by itself.
        kept[places] = column.name != project.sums.outcome
        if column.minimum is not None and column.maximum is not None:
            units[places[0]] = (column.maximum - column.minimum) / UNITS_PER_RANGE
    most = project.sums.n_components
    alike = are_declared_alike(project.columns)
    rows = (anchor.rows / units)[:, kept]
    if project.is_study:
        common = effect_map(rows, anchor.secret, most=most)
    else:
        common = CommonMap.from_anchor(rows, anchor.secret, n_components=most, as_they_are=alike)
    return ProjectMap(common, units, kept, alike)
