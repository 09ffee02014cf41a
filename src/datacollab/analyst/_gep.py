"""Integration by a generalised eigenvalue problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .._validation import FloatArray, PartyName
from ..linalg import ColumnSpace, fix_signs
from ._linear import LinearIntegrator, common_directions
from ._parameters import N_COMPONENTS

__all__ = ["GEP"]


class GEP(LinearIntegrator):
    r"""Least discrepancy between all pairs of parties, as a generalised eigenvalue problem [1]_.

    Minimises :math:`\sum_{k,k'} \|\tilde A^{(k)} G^{(k)} - \tilde A^{(k')} G^{(k')}\|_F^2` with
    :math:`\sum_k \|\tilde A^{(k)} G^{(k)}_{:,j}\|^2 = 1` for each component j (eq. existing-gep-formulation).

    The published reduction needs representations of full column rank.  Here it is solved in an orthonormal basis
    :math:`Q_k` of each column space, where the pencil of :math:`W_A^\top W_A` and
    :math:`\mathrm{blockdiag}(\tilde A^{(k)\top} \tilde A^{(k)})` becomes an ordinary singular value decomposition of
    :math:`[Q_1, \ldots, Q_K]`; any rank will do, and the minimum-norm maps are taken.

    Parameters
    ----------
    n_components : int, default=10
        :math:`\hat d`, columns of the collaboration representation.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        The largest generalised eigenvalues, descending; K for a direction on which all parties agree.
    objective_ : float
        :math:`\sum_{k,k'} \|\tilde A^{(k)} G^{(k)} - \tilde A^{(k')} G^{(k')}\|_F^2`.
    integration_functions_ : dict of party to LinearMap

    Notes
    -----
    GEP and LTI find the same directions: an LTI map is the GEP map with column j times
    :math:`\sqrt{\eta_j}`, :math:`\eta_j` the j-th eigenvalue.

    References
    ----------
    .. [1] Kawakami, Takano and Imakura (2025). New solutions based on the generalized eigenvalue problem for the data
       collaboration analysis. Information Sciences 723, 122642.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import GEP
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3))
    >>> integrator = GEP(n_components=2).fit({"a": A, "b": A @ rng.normal(size=(3, 3))})
    >>> integrator.eigenvalues_.round(6)
    array([2., 2.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": N_COMPONENTS,
    }

    eigenvalues_: FloatArray
    objective_: float

    def __init__(self, n_components: int = 10) -> None:
        self.n_components = n_components

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        spaces, U, singular_values, V = common_directions(anchors, self.n_components)
        V = V[:, : self.n_components] * fix_signs(U[:, : self.n_components])
        blocks = np.split(V, np.cumsum([space.rank for space in spaces.values()])[:-1])
        return self._of_blocks(spaces, blocks, singular_values[: self.n_components])

    def _onto(
        self, spaces: Mapping[PartyName, ColumnSpace], U: FloatArray, singular_values: FloatArray
    ) -> dict[PartyName, FloatArray]:
        """The same from the left singular vectors, where the right ones, of all parties' bases, are not there."""
        directions = U * fix_signs(U) / singular_values
        return self._of_blocks(spaces, [space.basis.T @ directions for space in spaces.values()], singular_values)

    def _of_blocks(
        self, spaces: Mapping[PartyName, ColumnSpace], blocks: Sequence[FloatArray], singular_values: FloatArray
    ) -> dict[PartyName, FloatArray]:
        # The paper's sum over pairs is 2K times the sum of squared deviations from the mean over parties, which keeps
        # the digits of a small objective.
        fitted = np.stack([space.basis @ block for space, block in zip(spaces.values(), blocks, strict=True)])
        matrices = {
            party: space.coefficients(block) for (party, space), block in zip(spaces.items(), blocks, strict=True)
        }
        self.eigenvalues_ = singular_values**2
        self.objective_ = float(2.0 * len(spaces) * np.sum((fitted - fitted.mean(axis=0)) ** 2))
        return matrices
