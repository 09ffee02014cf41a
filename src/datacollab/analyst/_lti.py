"""Linear target-normalised integration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .._validation import FloatArray, PartyName
from ..linalg import ColumnSpace, fix_signs
from ._linear import LinearIntegrator, common_directions, residual
from ._parameters import N_COMPONENTS

__all__ = ["LTI"]


class LTI(LinearIntegrator):
    r"""Linear target-normalised integration (Theorem 1 of the paper).

    Minimises :math:`\sum_k \|\tilde A^{(k)} G^{(k)} - Z\|_F^2` over maps and target together, with
    :math:`Z^\top Z = I` (eq. linear-formulation).  The target is spanned by the leading left singular vectors of
    :math:`W_Q = [Q_1, \ldots, Q_K]`, :math:`Q_k` an orthonormal basis of :math:`\mathrm{Col}(\tilde A^{(k)})`, and
    :math:`G^{(k)} = (\tilde A^{(k)})^\dagger Z` (eq. lti-global-solution).

    Parameters
    ----------
    n_components : int, default=10
        :math:`\hat d`, columns of the collaboration representation.
    fit_intercept : bool, default=False
        Whether maps are affine, :math:`g_k(x) = x G^{(k)} + b_k`, and the columns of Z sum to zero: representations
        that parties have centred differently, as PCA of each party's own rows does, are then aligned exactly.

    Attributes
    ----------
    target_ : ndarray of shape (n_anchors, n_components)
        Z, with orthonormal columns; the entry of largest magnitude in each column is positive.
    eigenvalues_ : ndarray of shape (n_components,)
        The largest eigenvalues of :math:`M = \sum_k Q_k Q_k^\top`, descending; K for a direction that every party's
        column space contains.
    objective_ : float
        :math:`K \hat d - \mathrm{tr}(Z^\top M Z)`, the sum of squared residuals (eq. lti-reduced-objective).
    integration_functions_ : dict of party to LinearMap

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import LTI
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3))
    >>> integrator = LTI(n_components=2).fit({"a": A, "b": A @ rng.normal(size=(3, 5))})
    >>> round(integrator.objective_, 6)
    0.0
    >>> integrator.integration_functions_["b"]
    LinearMap(party='b', 5 -> 2)

    A shift of one party's representation needs an intercept:

    >>> shifted = {"a": A, "b": A @ rng.normal(size=(3, 3)) + 5}
    >>> affine = LTI(n_components=3, fit_intercept=True).fit(shifted)
    >>> round(LTI(n_components=3).fit(shifted).objective_, 1) > round(affine.objective_, 6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": N_COMPONENTS,
        "fit_intercept": ["boolean"],
    }

    target_: FloatArray
    eigenvalues_: FloatArray
    objective_: float

    def __init__(self, n_components: int = 10, *, fit_intercept: bool = False) -> None:
        self.n_components = n_components
        self.fit_intercept = fit_intercept

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        spaces, U, singular_values, _ = common_directions(anchors, self.n_components)
        return self._onto(spaces, U[:, : self.n_components], singular_values[: self.n_components])

    def _onto(
        self, spaces: Mapping[PartyName, ColumnSpace], U: FloatArray, singular_values: FloatArray
    ) -> dict[PartyName, FloatArray]:
        """Every party's matrix onto a target that is there, and the other learnt attributes."""
        Z = U * fix_signs(U)
        coordinates = {party: space.basis.T @ Z for party, space in spaces.items()}
        matrices = {party: space.coefficients(coordinates[party]) for party, space in spaces.items()}
        self.target_ = Z
        self.eigenvalues_ = singular_values**2
        # Summing residuals instead of subtracting two nearly equal numbers keeps the digits of a small objective.
        self.objective_ = residual((spaces[party].basis @ c for party, c in coordinates.items()), Z)
        return matrices
