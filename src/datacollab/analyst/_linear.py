"""Integration methods: their base, those that linear algebra of the anchors solves, and the scaled one."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._constraints import HasMethods, Interval, StrOptions
from .._threads import one_thread_if_small
from .._typing import USUAL, DefaultNumber
from .._validation import FloatArray, PartyName, array_namespace, check_parties, name_parties, to_numpy
from ..errors import AgreementError, NumericalError, RepresentationError, SinglePartyWarning, UnknownPartyError
from ..linalg import (
    ColumnSpace,
    centre_columns,
    column_space,
    fix_signs,
    leading_left_singular,
    leading_singular_of_blocks,
    like,
    metric_scaling,
)
from ..model import IntegrationFunction, KernelMap, LinearMap
from ._engine import Engine
from ._graphs import NeighborGraph

Representations = Mapping[Any, ArrayLike] | Sequence[ArrayLike]
"""Several parties' arrays: keyed by party, or a plain sequence that is keyed 0..K-1."""


def check_n_components(n_components: int, largest: int, reason: str) -> int:
    """Return the number of components; refuse more than the data allow, but for a default, which is lowered."""
    # A number that was asked for is a matter of agreement, and never lowered silently.
    if isinstance(n_components, DefaultNumber) and largest > 0:
        return min(int(n_components), largest)
    if n_components > largest:
        raise ValueError(
            f"n_components={n_components} is more than the data allow: at most {largest}, because {reason}. "
            "Lower n_components, or ask the parties for richer representations."
        )
    return n_components


class BaseIntegrator(BaseEstimator, ABC):
    """Base of the integration methods: estimators over several parties at once.

    A subclass implements `fit`: it begins with ``anchors = self._start_fit(anchors)``, which checks parameters against
    the subclass's ``_parameter_constraints`` (as scikit-learn's estimators have them; none by default) and returns
    the parties' arrays by name, and it ends by setting `integration_functions_`.  `datacollab.testing.check_integrator`
    checks the result.

    Attributes
    ----------
    integration_functions_ : dict of party to IntegrationFunction

    Examples
    --------
    Bring every party onto the first by least squares:

    >>> import numpy as np
    >>> from datacollab.analyst import BaseIntegrator
    >>> from datacollab.model import LinearMap
    >>> class OntoFirst(BaseIntegrator):
    ...     def fit(self, anchors, y=None):
    ...         checked = self._start_fit(anchors)
    ...         Z = next(iter(checked.values()))
    ...         maps = {party: LinearMap(party, np.linalg.pinv(A) @ Z) for party, A in checked.items()}
    ...         self.integration_functions_ = maps
    ...         return self
    >>> A = np.random.default_rng(0).normal(size=(50, 3))
    >>> moved = OntoFirst().fit_transform({"north": A, "south": A @ np.diag([1.0, 2.0, 3.0])})
    >>> bool(np.allclose(moved["north"], moved["south"]))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _keeps_library: ClassVar[bool] = False
    """Whether `fit` computes with arrays of torch or CuPy where they lie."""

    integration_functions_: dict[PartyName, IntegrationFunction]

    @abstractmethod
    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Learn one integration function per party.

        Parameters
        ----------
        anchors : mapping of party to array-like of shape (n_anchors, n_intermediate)
            The parties' representations of the same anchor rows; row counts agree, columns need not.
        y : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where a method needs them.

        Raises
        ------
        AgreementError, RepresentationError
            If row counts differ, or a representation is not finite, empty, or the same in every row; the message
            names the party.
        """

    def transform(self, representations: Representations) -> dict[PartyName, FloatArray]:
        """Map each party's intermediate representation into the common feature space.

        Parties may be any of those in `fit`, as a mapping to arrays of shape (n_rows, n_intermediate); a plain sequence
        stands for the parties ``0..K-1``.  Each gets an array of shape (n_rows, n_components): after a fit on torch or
        CuPy arrays, such an array.

        Raise UnknownPartyError if a party took no part in `fit`, and RepresentationError, which names the party, if its
        rows cannot be used.
        """
        check_is_fitted(self)
        named = name_parties(representations, what="representation")
        unknown = [party for party in named if party not in self.integration_functions_]
        if unknown:
            raise UnknownPartyError(
                f"No integration function for {unknown!r}; known parties: {list(self.integration_functions_)!r}. "
                "A new party needs a new integration with its share included."
            )
        return {party: self.integration_functions_[party](rows) for party, rows in named.items()}

    def fit_transform(self, anchors: Representations, y: ArrayLike | None = None) -> dict[PartyName, FloatArray]:
        """Fit, and return the collaboration representations of the anchors."""
        return self.fit(anchors, y).transform(anchors)

    def _start_fit(self, anchors: Representations) -> dict[PartyName, FloatArray]:
        """Check the parameters, and the representations of the same anchor rows that all parties sent."""
        self._validate_params()
        checked = check_parties(anchors, keep_library=self._keeps_library)
        rows = {party: A.shape[0] for party, A in checked.items()}
        if len(set(rows.values())) > 1:
            raise AgreementError(
                f"Every party must transform the same anchor dataset, but the numbers of anchor rows differ: {rows}. "
                "Send the same anchor to all parties and ask for new shares."
            )
        for party, A in checked.items():
            # One row has no differences, by which representations are aligned.
            if A.shape[0] < 2:
                raise RepresentationError(f"Party {party!r}: one anchor row cannot be aligned; expected at least two.")
            if array_namespace(A).all(A[:1, :] == A):
                raise RepresentationError(
                    f"Party {party!r}: all {A.shape[0]} rows of the anchor representation are equal, so it carries no "
                    "information. The party should check its obfuscator against the anchor."
                )
        if len(checked) == 1:
            only = next(iter(checked))
            words = f"Only party {only!r} takes part: there is nothing to align."
            warnings.warn(words, SinglePartyWarning, stacklevel=3)
        return checked

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; an engine is shared, as a connection to a cluster cannot be copied."""
        parameters = self.get_params(deep=False)
        engine = parameters.pop("engine", None)
        if engine is None:
            copied: Self = super().__sklearn_clone__()
            return copied
        return type(self)(**{name: clone(value, safe=False) for name, value in parameters.items()}, engine=engine)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # A connection to a cluster cannot be written to a file; a fitted integrator needs none.
        return {**state, "engine": None} if "engine" in state else state

    @staticmethod
    def _few_threads(anchors: Mapping[PartyName, FloatArray]) -> AbstractContextManager[Any]:
        """Return a context with one thread of linear algebra where there are too few anchor rows for more to help."""
        return one_thread_if_small(next(iter(anchors.values())).shape[0])


N_COMPONENTS: list[Any] = [Interval(Integral, 1, None, closed="left")]


class _DaskClient(HasMethods):
    """Recognise a Dask client without loading Dask, and name it in errors."""

    def __init__(self) -> None:
        super().__init__(["submit", "scatter", "wait_for_workers"])

    def __str__(self) -> str:
        return "a Dask client, such as distributed.Client(cluster)"


SHARED_CONSTRAINTS: dict[str, Any] = {
    "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median", "scale"}), callable, Mapping],
    "graph": [NeighborGraph, None],
    "penalty_graph": [NeighborGraph, None],
    "penalty_epsilon": [Interval(Real, 0, None, closed="left")],
    "center": ["boolean"],
    "engine": [Engine, _DaskClient(), None],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}
"""Constraints of parameters that `KTI` and `KTICV` share."""


class LinearIntegrator(BaseIntegrator):
    r"""Base of the methods with :math:`g_k(x) = x G^{(k)}`: a subclass says in `_align` which matrices.

    A subclass with a parameter `fit_intercept` that is true gets representations less the means of the party's anchor,
    and its maps intercepts: :math:`g_k(x) = (x - \bar a_k) G^{(k)}`.

    Attributes
    ----------
    integration_functions_ : dict of party to LinearMap
    """

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Learn one linear map per party; `y` is ignored.

        Parameters and errors are those of `BaseIntegrator.fit`; ValueError if the representations together do not allow
        so many components.  A method's class says what else it refuses.
        """
        checked = self._start_fit(anchors)
        centred = checked
        means: dict[PartyName, FloatArray] = {}
        if getattr(self, "fit_intercept", False):
            split = {party: centre_columns(A) for party, A in checked.items()}
            centred = {party: A for party, (A, _) in split.items()}
            means = {party: mean for party, (_, mean) in split.items()}
        with self._few_threads(checked):
            matrices = self._align(centred)
        # (x - mean) G = x G - mean G: the intercept centres every later row.
        intercepts = {party: -mean @ matrices[party] for party, mean in means.items()}
        self.integration_functions_ = {
            party: LinearMap(party, G, intercepts.get(party)) for party, G in matrices.items()
        }
        return self

    @abstractmethod
    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        """Compute every party's matrix, of shape (n_intermediate, n_components), and set the other attributes."""


def common_directions(
    anchors: Mapping[PartyName, FloatArray], n_components: int
) -> tuple[dict[PartyName, ColumnSpace], FloatArray, FloatArray, FloatArray]:
    """Return the column space of every party's anchor, and the leading singular triplets of all bases side by side."""
    spaces = {party: column_space(A) for party, A in anchors.items()}
    # W_Q = [Q_1, ..., Q_K] (eq. WQ-definition), whose left singular vectors are the eigenvectors of M = W_Q W_Q'
    # (eq. lti-M-WQ): M itself would square their condition.
    U, singular_values, V = leading_singular_of_blocks([space.basis for space in spaces.values()], n_components)
    check_n_components(n_components, len(singular_values), "that is the dimension the representations span together")
    return spaces, U, singular_values, V


def residual(fitted: Iterable[FloatArray], target: FloatArray) -> float:
    r"""Return :math:`\sum_k \|g_k(\tilde A^{(k)}) - Z\|_F^2` (eq. linear-naive-formulation)."""
    return float(sum(np.sum((A - target) ** 2) for A in fitted))


class _OntoTarget(LinearIntegrator):
    """Methods in which each party's matrix is the least-squares map onto one target Z."""

    def _onto(
        self, spaces: Mapping[PartyName, ColumnSpace], U: FloatArray, singular_values: FloatArray
    ) -> dict[PartyName, FloatArray]:
        """Return every party's matrix onto the target that these singular vectors give, and set the attributes."""
        Z = self._target(U * fix_signs(U), singular_values)
        # G = A^+ Z (eqs. fixed-Z-linear-solution, lti-G-fixed-Z): the projection of Z onto Col(A), in A's columns
        coordinates = {party: space.basis.T @ Z for party, space in spaces.items()}
        matrices = {party: space.coefficients(coordinates[party]) for party, space in spaces.items()}
        self.target_ = Z
        self.eigenvalues_ = singular_values**2
        # Summing residuals instead of subtracting two nearly equal numbers keeps the digits of a small objective.
        self.objective_ = residual((spaces[party].basis @ c for party, c in coordinates.items()), Z)
        return matrices

    def _target(self, U: FloatArray, singular_values: FloatArray) -> FloatArray:
        """Return Z, given singular vectors."""
        return U


class LTI(_OntoTarget):
    r"""Linear target-normalised integration (Theorem 1 of the paper [1]_, whose printed version calls it LKI).

    Minimises :math:`\sum_k \|\tilde A^{(k)} G^{(k)} - Z\|_F^2` over maps and target together, with
    :math:`Z^\top Z = I` (eq. linear-formulation).  The target is spanned by the leading left singular vectors of
    :math:`W_Q = [Q_1, \ldots, Q_K]`, :math:`Q_k` an orthonormal basis of :math:`\mathrm{Col}(\tilde A^{(k)})`, and
    :math:`G^{(k)} = (\tilde A^{(k)})^\dagger Z` (eq. lti-global-solution).

    Parameters
    ----------
    n_components : int, default=10
        :math:`\hat d`, columns of the collaboration representation.  The default is lowered where data allow fewer.
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
    A shift of one party's representation needs an intercept:

    >>> import numpy as np
    >>> from datacollab import LTI
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3))
    >>> shifted = {"a": A, "b": A @ rng.normal(size=(3, 3)) + 5}
    >>> affine = LTI(n_components=3, fit_intercept=True).fit(shifted)
    >>> round(affine.objective_, 6), round(LTI(n_components=3).fit(shifted).objective_, 6) > 0
    (0.0, True)
    >>> affine.integration_functions_["b"]
    LinearMap(party='b', 3 -> 3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_components": N_COMPONENTS, "fit_intercept": ["boolean"]}

    def __init__(self, n_components: int = USUAL, *, fit_intercept: bool = False) -> None:
        self.n_components = n_components
        self.fit_intercept = fit_intercept

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        # The d leading eigenvectors of M maximise the trace (eq. lti-trace-max), and so minimise the objective.
        spaces, U, singular_values, _ = common_directions(anchors, self.n_components)
        return self._onto(spaces, U[:, : self.n_components], singular_values[: self.n_components])


_MUCH_LARGER = 1e8
"""Beyond this the digits of one party are lost in the rounding of another's."""


class MPP(_OntoTarget):
    r"""Minimum perturbation problem [1]_: a common target from the singular vectors of all representations.

    With :math:`W_A = [\tilde A^{(1)}, \ldots, \tilde A^{(K)}]` and its leading left singular vectors
    :math:`U_{\hat d}`, the target is :math:`Z = U_{\hat d} R` and each party gets
    :math:`G^{(k)} = (\tilde A^{(k)})^\dagger Z` (eq. fixed-Z-linear-solution).

    Parameters
    ----------
    n_components
        As in `LTI`.
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

    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": N_COMPONENTS,
        "basis": [StrOptions({"orthonormal", "singular_values"}), "array-like"],
    }

    def __init__(self, n_components: int = USUAL, *, basis: str | ArrayLike = "orthonormal") -> None:
        self.n_components = n_components
        self.basis = basis

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        # Unlike LTI's bases, the representations come as they are: the target goes where the numbers are large.
        U, singular_values, _ = leading_left_singular(np.hstack(list(anchors.values())))
        reason = f"that is the rank of all representations together{_name_dwarfed(anchors)}"
        check_n_components(self.n_components, U.shape[1], reason)
        spaces = {party: column_space(A) for party, A in anchors.items()}
        return self._onto(spaces, U[:, : self.n_components], singular_values[: self.n_components])

    def _target(self, U: FloatArray, singular_values: FloatArray) -> FloatArray:
        return np.asarray(U @ self._mixing(singular_values))

    def _mixing(self, singular_values: FloatArray) -> FloatArray:
        """Return the matrix R of shape (n_components, n_components)."""
        if isinstance(self.basis, str):
            if self.basis == "singular_values":
                return np.diag(singular_values)
            return np.eye(len(singular_values))
        R = np.asarray(self.basis, dtype=np.float64)
        if R.shape != (len(singular_values), len(singular_values)):
            raise ValueError(
                f"basis must be square with n_components={len(singular_values)} rows; got shape {R.shape}."
            )
        # Beyond this condition number, rounding alone decides the inverse.
        if not np.isfinite(R).all() or np.linalg.cond(R) > 1 / np.finfo(np.float64).eps:
            raise NumericalError("basis must be an invertible matrix of finite numbers; this one is singular.")
        return R


def _name_dwarfed(representations: Mapping[PartyName, FloatArray]) -> str:
    """Return words on a party whose numbers dwarf another's, for MPP compares sizes."""
    sizes = {party: float(np.abs(A).max()) for party, A in representations.items()}
    largest = max(sizes, key=lambda party: sizes[party])
    smallest = min(sizes, key=lambda party: sizes[party])
    if sizes[largest] < _MUCH_LARGER * sizes[smallest]:
        return ""
    return f", beside the numbers of party {largest!r}, which dwarf those of party {smallest!r}"


class GEP(LinearIntegrator):
    r"""Least discrepancy between all pairs of parties, as a generalised eigenvalue problem [1]_.

    Minimises :math:`\sum_{k,k'} \|\tilde A^{(k)} G^{(k)} - \tilde A^{(k')} G^{(k')}\|_F^2` with
    :math:`\sum_k \|\tilde A^{(k)} G^{(k)}_{:,j}\|^2 = 1` for each component j (eq. existing-gep-formulation).

    The published reduction needs representations of full column rank.  Here it is solved in an orthonormal basis
    :math:`Q_k` of each column space, where it becomes a singular value decomposition of :math:`[Q_1, \ldots, Q_K]`; any
    rank will do, and the minimum-norm maps are taken.  They are those of LTI, with column j over :math:`\sqrt{\eta_j}`,
    :math:`\eta_j` the j-th eigenvalue.

    Parameters
    ----------
    n_components
        As in `LTI`.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        The largest generalised eigenvalues, descending; K for a direction on which all parties agree.
    objective_ : float
        The sum over pairs.
    integration_functions_ : dict of party to LinearMap

    References
    ----------
    .. [1] Kawakami, Takano and Imakura (2025). New solutions based on the generalized eigenvalue problem for the data
       collaboration analysis. Information Sciences 723, 122642.

    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_components": N_COMPONENTS}

    def __init__(self, n_components: int = USUAL) -> None:
        self.n_components = n_components

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        # In the bases Q_k, the constraint of eq. existing-gep-formulation is that the right singular vectors, cut by
        # party, have length one.
        spaces, U, singular_values, V = common_directions(anchors, self.n_components)
        V = V[:, : self.n_components] * fix_signs(U[:, : self.n_components])
        blocks = np.split(V, np.cumsum([space.rank for space in spaces.values()])[:-1])
        pairs = list(zip(spaces.values(), blocks, strict=True))
        # The paper's sum over pairs is 2K times the sum of squared deviations from the mean over parties, which keeps
        # the digits of a small objective.
        pairs = list(zip(spaces.values(), blocks, strict=True))
        mean: FloatArray = np.asarray(sum(space.basis @ block for space, block in pairs)) / len(pairs)
        self.eigenvalues_ = singular_values[: self.n_components] ** 2
        self.objective_ = 2.0 * len(pairs) * residual((space.basis @ block for space, block in pairs), mean)
        return {party: space.coefficients(block) for (party, space), block in zip(spaces.items(), blocks, strict=True)}


_MOST_TURNS = 100
_LITTLE = 1e-9
"""Part of the sum of squares below which another turn is in vain."""


class ODC(LinearIntegrator):
    r"""Orthogonal data collaboration [1]_: an orthogonal Procrustes map of each party onto a reference.

    :math:`G^{(k)} = U V^\top` from the singular value decomposition of :math:`\tilde A^{(k)\top} Z`, where the target Z
    is the anchor representation of a reference party, or the mean of all.  The dimensions of the representations must
    agree, or `fit` raises `AgreementError`.

    Parameters
    ----------
    reference : party, "mean" or "consensus", default=None
        Whose anchor representation the others are turned onto.  None takes the first party, and "mean" the average
        of all.  "consensus" takes the average of all once they are turned onto it (generalised Procrustes analysis
        [2]_), in its principal axes: the same wherever the parties' secret rotations point.  `fit` raises
        `UnknownPartyError` for others.

    Attributes
    ----------
    target_ : ndarray of shape (n_anchors, n_intermediate)
        Z.
    objective_ : float
        :math:`\sum_k \|\tilde A^{(k)} G^{(k)} - Z\|_F^2`.
    integration_functions_ : dict of party to LinearMap

    Notes
    -----
    The reference party gives something away: the others learn maps onto its anchor representation, and hold the
    anchor.  With "mean" and "consensus" they learn about an average of all.  Where parties rotate
    their representations in secret, "mean" averages columns that do not belong together, and "consensus" does not.

    References
    ----------
    .. [1] Nosaka, Suetake, Takano and Yoshise (2026). Data collaboration analysis with orthonormal basis selection and
       alignment. Computers and Electrical Engineering 135, 111192.
    .. [2] Gower (1975). Generalized Procrustes analysis. Psychometrika 40, 33-51.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"reference": [str, int, None]}

    def __init__(self, *, reference: PartyName | None = None) -> None:
        self.reference = reference

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        columns = {party: A.shape[1] for party, A in anchors.items()}
        # A square orthogonal matrix has as many rows as columns.
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
    r"""Return the orthogonal G that minimises :math:`\|A G - Z\|_F`."""
    # Schoenemann (1966): the singular values, which G leaves alone, say how well they agree.
    U, _, Vt = scipy.linalg.svd(A.T @ Z, full_matrices=False, check_finite=False)
    return np.asarray(U @ Vt)


def _consensus(anchors: Sequence[FloatArray]) -> FloatArray:
    """Return the mean of all, turned onto it by turns, in its principal axes, shape (n_anchors, n_intermediate)."""
    Z = anchors[0]
    previous = np.inf
    for _ in range(_MOST_TURNS):
        turned = [A @ _procrustes(A, Z) for A in anchors]
        Z = np.mean(turned, axis=0)
        # Neither step raises the sum of squares, so it converges.
        residual = sum(float(np.sum((each - Z) ** 2)) for each in turned)
        if residual >= previous * (1 - _LITTLE):
            break
        previous = residual
    # The mean is found up to a rotation; its principal axes are the same for all secret ones.
    _, _, Vt = scipy.linalg.svd(Z, full_matrices=False, check_finite=False)
    in_axes = Z @ Vt.T
    return np.asarray(in_axes * fix_signs(in_axes))


class AnchorScaled(BaseIntegrator):
    r"""Another integration method, its common space stretched to the distances that parties see on the anchor.

    Targets with orthonormal columns give every direction the same length.  Models with weights undo it; clusters,
    neighbours and scores of novelty cannot.  Here each :math:`g_k` is followed by one matrix W, the same for all
    parties, after which distances between anchor rows are, as nearly as the common space allows, the root mean square
    over the parties of those between the rows of :math:`\tilde A^{(k)}`.

    Parameters
    ----------
    integrator : BaseIntegrator or None, default=None
        Whose maps are linear or of kernels; cloned before it is fitted.  None takes `LTI` with intercepts, and as many
        components as the representation of lowest rank has.

    Attributes
    ----------
    integrator_ : BaseIntegrator
    scaling_ : ndarray of shape (n_components, n_scaled)
        W.  Columns by descending variance of the anchor; fewer than the integrator's where parties' representations
        have fewer dimensions.
    kept_variance_ : float
        Part of the variance of the parties' anchors, and so of squared distances, that is left, from 0 to 1.
    integration_functions_ : dict of party to LinearMap or KernelMap
        They can be sent as those of the integrator can, and are as large.

    Notes
    -----
    Where all parties' maps are isometries of all columns, as PCA without reduction is, `kept_variance_` is 1 and
    distances are those between raw rows.  The parties' representations count as they come: all should be made by one
    kind of obfuscator on columns in the same units, or the one with the largest numbers decides.

    W goes to every party as part of its map.  It tells the covariance of the anchor as all parties see it on average;
    with two parties, each can take out its own part and has the other's.  That concerns private rows as far as f_k was
    fitted on these.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"integrator": [BaseIntegrator, None]}

    def __init__(self, integrator: BaseIntegrator | None = None) -> None:
        self.integrator = integrator

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Fit the integrator, with the targets `y` of the anchor rows where it needs them, and scale its maps.

        Raise TypeError if the integrator's maps are neither linear nor of kernels, and the integrator's own errors.
        """
        self._validate_params()
        kept = check_parties(anchors, keep_library=True)
        checked = {party: to_numpy(A).astype(np.float64, copy=False) for party, A in kept.items()}
        integrator = self.integrator
        if integrator is None:
            centred = [centre_columns(A)[0] for A in checked.values()]
            # A constant representation is refused by name later.
            lowest = min((column_space(A).rank for A in centred if A.any()), default=1)
            integrator = LTI(lowest, fit_intercept=True)
        self.integrator_ = clone(integrator).fit(anchors, y)
        # The maps of all parties are scaled by one matrix, so their common view of the anchor decides it.
        mapped = [to_numpy(A) for A in self.integrator_.transform(anchors).values()]
        self.scaling_, self.kept_variance_ = metric_scaling(np.mean(mapped, axis=0), list(checked.values()))
        self.integration_functions_ = {
            party: _scale(g, self.scaling_) for party, g in self.integrator_.integration_functions_.items()
        }
        return self


def _scale(g: IntegrationFunction, W: FloatArray) -> IntegrationFunction:
    """Return the function x -> g(x) W."""
    if isinstance(g, LinearMap):
        intercept = None if g.intercept is None else g.intercept @ W
        return replace(g, coefficients=g.coefficients @ W, intercept=intercept)
    if isinstance(g, KernelMap):
        return replace(g, coefficients=g.coefficients @ like(W, g.coefficients))
    raise TypeError(
        f"The integration function of party {g.party!r} is a {type(g).__name__}; linear and kernel maps can be scaled."
    )
