"""What crosses between analysts of groups and their centre: a message, the target, and moments of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datacollab._typing import FloatArray
from datacollab.bundle import canonical_json, digest

__all__ = ["GroupMessage", "GroupMoments", "GroupTarget"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GroupMessage:
    r"""What the centre gets from one group: every field here, and nothing else.

    The arrays are functions of what the group's parties made of the anchor, and of nobody's own rows.

    Attributes
    ----------
    group : str
        The group's name.
    settings : dict of str to object
        The integration method and its parameters; groups have to agree on them.
    n_anchors : int
    n_parties : int
        Of the group.
    n_rows : int
        Of all its parties together, by which the group counts in a vote.
    arrays : dict of str to ndarray
        Sums over the group's parties.  Of `LTI` and `GEP` ``factor`` F of shape (n_anchors, rank) with
        :math:`F F^\top = \sum_k Q_k Q_k^\top`, of `MPP` with
        :math:`F F^\top = \sum_k \tilde A^{(k)} \tilde A^{(k)\top}`.
        Of `KTI` ``triangle`` of shape (n_anchors (n_anchors + 1) / 2,), the lower triangle of
        :math:`\lambda \sum_k (\Sigma_k + \lambda I)^{-1}`, column by column; with a graph also ``edges`` of shape
        (n_edges, 2), each from an anchor row to an earlier one, and ``edge_weights`` of shape (n_edges,), summed over
        the parties.
    """

    group: str
    settings: Mapping[str, Any]
    n_anchors: int
    n_parties: int
    n_rows: int
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", {name: _frozen(array) for name, array in self.arrays.items()})

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        return sum(array.nbytes for array in self.arrays.values())

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        return (
            f"GroupMessage(group={self.group!r}, method={self.settings['method']!r}, n_anchors={self.n_anchors}, "
            f"n_parties={self.n_parties}, n_rows={self.n_rows}, arrays={shapes})"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GroupTarget:
    r"""What all groups get from the centre: a target onto which each maps its own parties.

    Attributes
    ----------
    settings : dict of str to object
        The integration method and its parameters, as in the groups' messages.
    groups : tuple of str
        Whose messages it is made of, sorted.
    n_parties : int
        Of all groups together.
    target : ndarray of shape (n_anchors, n_components)
        Orthonormal columns that span Z.
    eigenvalues : ndarray of shape (n_components,)
        Of the sum over all parties: the largest ones, descending, or of `KTI` the smallest ones of the problem solved,
        ascending.
    gap : float or None
        Of `KTI` the first eigenvalue not taken less the last one taken.
    """

    settings: Mapping[str, Any]
    groups: Sequence[str]
    n_parties: int
    target: FloatArray = field(repr=False)
    eigenvalues: FloatArray = field(repr=False)
    gap: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "target", _frozen(self.target))
        object.__setattr__(self, "eigenvalues", _frozen(self.eigenvalues))

    @property
    def n_anchors(self) -> int:
        """Rows of the anchor."""
        return int(self.target.shape[0])

    @property
    def digest(self) -> str:
        """SHA-256 of settings and arrays: what is mapped onto equal ones may be added up."""
        arrays = "".join(digest(np.ascontiguousarray(each).tobytes()) for each in (self.target, self.eigenvalues))
        return digest(canonical_json([dict(self.settings), list(self.groups), self.n_parties, arrays]))

    def __repr__(self) -> str:
        return (
            f"GroupTarget(method={self.settings['method']!r}, groups={list(self.groups)!r}, "
            f"n_parties={self.n_parties}, target={self.target.shape})"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GroupMoments:
    r"""Second moments of one group's collaboration representations and targets.

    With :math:`\hat X` the group's rows and T their one-hot classes, or the columns 1 and y of a numeric target, they
    are :math:`[T, \hat X]^\top [T, \hat X]`: counts and sums of each class, and :math:`\hat X^\top \hat X`.

    Attributes
    ----------
    group : str
    space : str
        `GroupTarget.digest` of the target that the rows are mapped onto.
    classes : ndarray of shape (n_classes,) or None
        Sorted; None of a numeric target.
    gram : ndarray of shape (m + n_components, m + n_components)
        m is the number of classes, or 2 of a numeric target.
    """

    group: str
    space: str
    classes: NDArray[Any] | None
    gram: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gram", _frozen(self.gram))

    @property
    def n_outputs(self) -> int:
        """Columns of T."""
        return 2 if self.classes is None else len(self.classes)

    @property
    def n_rows(self) -> int:
        """Rows that are in the sums."""
        return int(self.gram[0, 0] if self.classes is None else round(np.trace(self.gram[: self.n_outputs])))

    def __repr__(self) -> str:
        kind = "numbers" if self.classes is None else f"{len(self.classes)} classes"
        return f"GroupMoments(group={self.group!r}, {kind}, gram={self.gram.shape})"


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that cannot be written to."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy
