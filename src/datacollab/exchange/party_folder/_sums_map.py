"""The common map of a project's rows: what all of its parties do alike with a row before they add anything up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._typing import FloatArray
from ...sums import UNITS_PER_RANGE, CommonMap
from ..project import Anchor, Project

__all__ = ["ProjectMap", "map_units", "project_map"]


@dataclass(frozen=True, eq=False, repr=False)
class ProjectMap:
    """The common map of the matrix, with each number in units of a quarter of its declared range.

    Whoever has anchor, secret and project has the map; the analyst has not.

    Attributes
    ----------
    common : CommonMap
    units : ndarray of shape (n_features,)
        A quarter of the declared range of a number; 1 for zeros and ones.
    """

    common: CommonMap
    units: FloatArray

    @property
    def n_components(self) -> int:
        """Columns of a mapped row."""
        return self.common.n_components

    def transform(self, X: FloatArray) -> FloatArray:
        """Map rows of the matrix, shape (n_rows, n_components); no row is longer than 1."""
        return self.common.transform(np.asarray(X) / self.units)


def project_map(project: Project, anchor: Anchor) -> ProjectMap:
    """Return the map that all parties of a project make of its anchor.

    Raises
    ------
    AnchorError
        If no map can be made of the anchor.
    """
    assert project.sharing is not None
    units = map_units(project)
    common = CommonMap.from_anchor(anchor.rows / units, anchor.secret, n_components=project.sharing.n_components)
    return ProjectMap(common, units)


def map_units(project: Project) -> FloatArray:
    """Return what the common map divides each column of the matrix by, shape (n_features,)."""
    units, start = np.ones(project.n_features), 0
    for column in project.columns:
        if column.minimum is not None and column.maximum is not None:
            units[start] = (column.maximum - column.minimum) / UNITS_PER_RANGE
        start += column.n_features
    return units
