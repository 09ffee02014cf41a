"""The methods that are solved by linear algebra of the anchors alone: LTI, MPP, GEP and ODC.

* Integration methods whose maps are matrices.
* Linear target-normalised integration.
* Minimum perturbation problem.
* Integration by a generalised eigenvalue problem.
* Orthogonal data collaboration.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from .._validation import FloatArray, PartyName, StrOptions
from ..errors import AgreementError, NumericalError, UnknownPartyError
from ..linalg import ColumnSpace, centred_columns, column_space, fix_signs, leading_left_singular
from ..model import IntegrationFunction, LinearMap
from ._base import N_COMPONENTS, BaseIntegrator, Representations, check_n_components

__all__ = ["GEP", "LTI", "MPP", "ODC", "LinearIntegrator", "common_directions", "residual"]


class LinearIntegrator(BaseIntegrator):
    r"""Base of the methods with :math:`g_k(x) = x G^{(k)}`: a subclass says in `_align` which matrices.

    A subclass with a parameter `fit_intercept` that is true gets representations less the means of the party's anchor,
    and its maps intercepts: :math:`g_k(x) = (x - \bar a_k) G^{(k)}`.

    Attributes
    ----------
    integration_functions_ : dict of party to LinearMap
    """

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Learn one linear map per party.

        Parameters
        ----------
        anchors : mapping of party to array-like of shape (n_anchors, n_intermediate)
            The parties' representations of the same anchor rows; row counts agree.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        AgreementError, RepresentationError
            When row counts differ, or a representation is not finite, empty, or the same in every row; the message
            names the party.
        ValueError
            When the representations together do not allow so many components.  What else a method refuses is said at
            its class.
        """
        checked = self._start_fit(anchors)
        centred, means = self._without_means(checked)
        with self._few_threads(checked):
            self.integration_functions_ = self._maps(self._align(centred), means)
        return self

    def _without_means(
        self, anchors: dict[PartyName, FloatArray]
    ) -> tuple[dict[PartyName, FloatArray], dict[PartyName, FloatArray]]:
        """Representations as `_align` takes them, and what was taken off them, where maps are affine."""
        if not getattr(self, "fit_intercept", False):
            return anchors, {}
        centred = {party: centred_columns(A) for party, A in anchors.items()}
        return {party: A for party, (A, _) in centred.items()}, {party: mean for party, (_, mean) in centred.items()}

    @staticmethod
    def _maps(
        matrices: Mapping[PartyName, FloatArray], means: Mapping[PartyName, FloatArray]
    ) -> dict[PartyName, IntegrationFunction]:
        return {
            party: LinearMap(party, G, -means[party] @ G if party in means else None) for party, G in matrices.items()
        }

    @abstractmethod
    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        """Compute every party's matrix, of shape (n_intermediate, n_components), and set the other attributes."""


def common_directions(
    anchors: Mapping[PartyName, FloatArray], n_components: int
) -> tuple[dict[PartyName, ColumnSpace], FloatArray, FloatArray, FloatArray]:
    """The column space of every party's anchor, and the leading singular triplets of all bases side by side."""
    spaces = {party: column_space(A) for party, A in anchors.items()}
    U, singular_values, V = leading_left_singular(np.hstack([space.basis for space in spaces.values()]))
    check_n_components(n_components, U.shape[1], "that is the dimension the representations span together")
    return spaces, U, singular_values, V


def residual(fitted: Iterable[FloatArray], target: FloatArray) -> float:
    r""":math:`\sum_k \|g_k(\tilde A^{(k)}) - Z\|_F^2` (eq. linear-naive-formulation)."""
    return float(sum(np.sum((A - target) ** 2) for A in fitted))


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


_MUCH_LARGER = 1e8
"""Beyond this the digits of one party are lost in the rounding of another's."""


class MPP(LinearIntegrator):
    r"""Minimum perturbation problem [1]_: a common target from the singular vectors of all representations.

    With :math:`W_A = [\tilde A^{(1)}, \ldots, \tilde A^{(K)}]` and its leading left singular vectors
    :math:`U_{\hat d}`, the target is :math:`Z = U_{\hat d} R` and each party gets
    :math:`G^{(k)} = (\tilde A^{(k)})^\dagger Z` (eq. fixed-Z-linear-solution).

    Parameters
    ----------
    n_components : int, default=10
        :math:`\hat d`, columns of the collaboration representation.
    basis : {"orthonormal", "singular_values"} or array-like of shape (n_components, n_components)
        The invertible matrix R that the method leaves open: the identity, the diagonal of the singular values, or
        any other.  The choice matters to models that are not invariant to scaling and rotation.

    Attributes
    ----------
    target_ : ndarray of shape (n_anchors, n_components)
        Z.
    eigenvalues_ : ndarray of shape (n_components,)
        The largest eigenvalues of :math:`W_A W_A^\top`, descending.
    objective_ : float
        :math:`\sum_k \|\tilde A^{(k)} G^{(k)} - Z\|_F^2`.
    integration_functions_ : dict of party to LinearMap

    References
    ----------
    .. [1] Imakura, Ye and Sakurai (2021). Collaborative data analysis: non-model sharing-type machine learning for
       distributed data. Knowledge Management and Acquisition for Intelligent Systems, 14-29.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import MPP
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3))
    >>> integrator = MPP(n_components=2).fit({"a": A, "b": A @ rng.normal(size=(3, 3))})
    >>> aligned = integrator.transform({"a": A[:4]})
    >>> aligned["a"].shape
    (4, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": N_COMPONENTS,
        "basis": [StrOptions({"orthonormal", "singular_values"}), "array-like"],
    }

    target_: FloatArray
    eigenvalues_: FloatArray
    objective_: float

    def __init__(self, n_components: int = 10, *, basis: str | ArrayLike = "orthonormal") -> None:
        self.n_components = n_components
        self.basis = basis

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        U, singular_values, _ = leading_left_singular(np.hstack(list(anchors.values())))
        reason = f"that is the rank of all representations together{_dwarfed(anchors)}"
        check_n_components(self.n_components, U.shape[1], reason)
        spaces = {party: column_space(A) for party, A in anchors.items()}
        return self._onto(spaces, U[:, : self.n_components], singular_values[: self.n_components])

    def _onto(
        self, spaces: Mapping[PartyName, ColumnSpace], U: FloatArray, singular_values: FloatArray
    ) -> dict[PartyName, FloatArray]:
        """Every party's matrix onto a target that is there, and the other learnt attributes."""
        target = U * fix_signs(U) @ self._mixing(singular_values)
        coordinates = {party: space.basis.T @ target for party, space in spaces.items()}
        matrices = {party: space.coefficients(coordinates[party]) for party, space in spaces.items()}
        self.target_ = target
        self.eigenvalues_ = singular_values**2
        self.objective_ = residual((spaces[party].basis @ c for party, c in coordinates.items()), target)
        return matrices

    def _mixing(self, singular_values: FloatArray) -> FloatArray:
        """The matrix R of shape (n_components, n_components)."""
        if isinstance(self.basis, str):
            return np.diag(singular_values) if self.basis == "singular_values" else np.eye(self.n_components)
        R = np.asarray(self.basis, dtype=np.float64)
        if R.shape != (self.n_components, self.n_components):
            raise ValueError(f"basis must be square with n_components={self.n_components} rows; got shape {R.shape}.")
        if not np.isfinite(R).all() or np.linalg.cond(R) > 1 / np.finfo(np.float64).eps:
            raise NumericalError("basis must be an invertible matrix of finite numbers; this one is singular.")
        return R


def _dwarfed(representations: Mapping[PartyName, FloatArray]) -> str:
    """Words on a party beside whose numbers those of another one vanish, for MPP compares sizes."""
    sizes = {party: float(np.abs(A).max()) for party, A in representations.items()}
    largest, smallest = max(sizes, key=lambda party: sizes[party]), min(sizes, key=lambda party: sizes[party])
    if sizes[largest] < _MUCH_LARGER * sizes[smallest]:
        return ""
    return f", beside the numbers of party {largest!r}, which dwarf those of party {smallest!r}"


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


_MOST_TURNS = 100
_LITTLE = 1e-9
"""Part of the sum of squares below which another turn is in vain."""


class ODC(LinearIntegrator):
    r"""Orthogonal data collaboration [1]_: an orthogonal Procrustes map of each party onto a reference.

    :math:`G^{(k)} = U V^\top` from the singular value decomposition of :math:`\tilde A^{(k)\top} Z`, where the target Z
    is the anchor representation of a reference party, or the mean of all.  The dimension is that of the
    representations, which must agree.

    Parameters
    ----------
    reference : party, "mean" or "consensus", default=None
        Whose anchor representation the others are turned onto.  None takes the first party, and "mean" the average
        of all.  "consensus" takes the average of all once they are turned onto it (generalised Procrustes analysis
        [2]_), in its principal axes: the same wherever the parties' secret rotations point.

    Attributes
    ----------
    target_ : ndarray of shape (n_anchors, n_intermediate)
        Z.
    objective_ : float
        :math:`\sum_k \|\tilde A^{(k)} G^{(k)} - Z\|_F^2`.
    integration_functions_ : dict of party to LinearMap

    Notes
    -----
    Whoever is the reference gives something away: the other parties learn maps onto its anchor representation, and
    hold the anchor.  With "mean" and "consensus" it is an average of all that they learn about.  Where parties rotate
    their representations in secret, "mean" averages what does not belong together, and "consensus" does not.

    `fit` raises `AgreementError` also where the dimensions differ, and `UnknownPartyError` where the reference is none
    of the parties.

    References
    ----------
    .. [1] Nosaka, Suetake, Takano and Yoshise (2026). Data collaboration analysis with orthonormal basis selection and
       alignment. Computers and Electrical Engineering 135, 111192.
    .. [2] Gower (1975). Generalized Procrustes analysis. Psychometrika 40, 33-51.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import ODC
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3))
    >>> rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    >>> integrator = ODC().fit({"a": A, "b": A @ rotation})
    >>> bool(np.allclose(integrator.transform({"b": A @ rotation})["b"], A))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"reference": [str, int, None]}

    target_: FloatArray
    objective_: float

    def __init__(self, *, reference: PartyName | None = None) -> None:
        self.reference = reference

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        columns = {party: A.shape[1] for party, A in anchors.items()}
        if len(set(columns.values())) > 1:
            raise AgreementError(
                f"ODC turns representations by orthogonal maps, so their dimensions must agree; got {columns}. "
                "Use LTI, GEP, MPP or KTI, or ask the parties for one dimension."
            )
        target = self._target(anchors)
        matrices = {party: _procrustes(A, target) for party, A in anchors.items()}
        self.target_ = target
        self.objective_ = residual((A @ matrices[party] for party, A in anchors.items()), target)
        return matrices

    def _target(self, anchors: dict[PartyName, FloatArray]) -> FloatArray:
        if self.reference is None:
            return next(iter(anchors.values())).copy()
        if self.reference in anchors:
            return anchors[self.reference].copy()
        if self.reference == "mean":
            return np.asarray(np.mean(list(anchors.values()), axis=0))
        if self.reference == "consensus":
            return _consensus(list(anchors.values()))
        raise UnknownPartyError(
            f"reference={self.reference!r} is none of the parties {list(anchors)!r}; name one of them, or use 'mean' "
            "or 'consensus'."
        )


def _procrustes(A: FloatArray, Z: FloatArray) -> FloatArray:
    r"""The orthogonal G that minimises :math:`\|A G - Z\|_F`."""
    U, _, Vt = scipy.linalg.svd(A.T @ Z, full_matrices=False, check_finite=False)
    return np.asarray(U @ Vt)


def _consensus(anchors: Sequence[FloatArray]) -> FloatArray:
    """The mean of all, turned onto it by turns, in its principal axes, shape (n_anchors, n_intermediate)."""
    Z, previous = anchors[0], np.inf
    for _ in range(_MOST_TURNS):
        turned = [A @ _procrustes(A, Z) for A in anchors]
        Z = np.mean(turned, axis=0)
        # Neither step raises the sum of squares, so it converges.
        residual = sum(float(np.sum((each - Z) ** 2)) for each in turned)
        if residual >= previous * (1 - _LITTLE):
            break
        previous = residual
    _, _, Vt = scipy.linalg.svd(Z, full_matrices=False, check_finite=False)
    in_axes = Z @ Vt.T
    return np.asarray(in_axes * fix_signs(in_axes))
