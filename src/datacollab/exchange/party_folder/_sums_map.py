"""The common map of a project's rows: what all of its parties do alike with a row before they add anything up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._typing import FloatArray
from ...sums import CommonMap
from ..project import Anchor, Project, declared_widths

__all__ = ["ProjectMap", "project_map"]


@dataclass(frozen=True, eq=False, repr=False)
class ProjectMap:
    """The common map of the matrix, with each number in units of its declared range.

    Whoever has anchor, secret and project has the map; the analyst has not.

    Attributes
    ----------
    common : CommonMap
    widths : ndarray of shape (n_features,)
        Of the declared ranges; 1 for zeros and ones.
    """

    common: CommonMap
    widths: FloatArray

    @property
    def n_components(self) -> int:
        """Columns of a mapped row."""
        return self.common.n_components

    def transform(self, X: FloatArray) -> FloatArray:
        """Map rows of the matrix, shape (n_rows, n_components); no row is longer than 1."""
        return self.common.transform(np.asarray(X) / self.widths)


def project_map(project: Project, anchor: Anchor) -> ProjectMap:
    """Return the map that all parties of a project make of its anchor.

    Raises
    ------
    AnchorError
        If no map can be made of the anchor.
    """
    assert project.sharing is not None
    widths = declared_widths(project)
    common = CommonMap.from_anchor(anchor.rows / widths, anchor.secret, n_components=project.sharing.n_components)
    return ProjectMap(common, widths)
