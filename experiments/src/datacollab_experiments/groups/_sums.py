r"""Sums over a group's parties, the target of all groups' sums together, and functions onto it.

The target of an integration method is found from a sum of one matrix per party: of LTI and GEP
:math:`\sum_k Q_k Q_k^\top`, of MPP :math:`\sum_k \tilde A^{(k)} \tilde A^{(k)\top}`, of KTI :math:`M_\lambda` and,
where there is a graph, the sum of the parties' weights.  So it does not matter who adds up which terms: a group is to
the centre what a worker of a Dask cluster is to its scheduler, and the terms are those of the flat solvers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dtpttr, dtrttp
from sklearn.base import clone

from datacollab._typing import FloatArray, PartyName
from datacollab.analyst import KTI, MPP, BaseIntegrator
from datacollab.analyst._engine import Engine
from datacollab.analyst._kti import warn_if_undetermined
from datacollab.analyst._linear import check_n_components
from datacollab.analyst._solvers import Solution, dense_target, kernel_rank, maps_onto, normalise, sum_over_parties
from datacollab.linalg import column_space, fix_signs, leading_left_singular

from ._messages import GroupMessage, GroupTarget

__all__ = ["fitted_onto", "from_triangle", "sum_factor", "sums_of", "target_of", "to_triangle"]


def sums_of(integrator: Any, anchors: dict[PartyName, FloatArray], y: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Arrays of a `GroupMessage`.

    Parameters
    ----------
    integrator : LTI, GEP, MPP or KTI
    anchors : dict of party to ndarray of shape (n_anchors, n_intermediate)
        Of the group's parties, checked.
    y : ndarray of shape (n_anchors,) or None
        Targets of the anchor rows, where a graph needs them.
    """
    if isinstance(integrator, KTI):
        return _kernel_sums(integrator, anchors, y)
    centred, _ = integrator._without_means(anchors)
    of_parties = [A if isinstance(integrator, MPP) else column_space(A).basis for A in centred.values()]
    return {"factor": sum_factor(np.hstack(of_parties))}


def _kernel_sums(
    integrator: KTI, anchors: dict[PartyName, FloatArray], y: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    first = next(iter(anchors.values()))
    integrator._check_parameters(first)
    problem = integrator._problem(anchors, y)
    # As much memory as with a penalty graph: the sum, its packed triangle, and one party's matrix.
    replace(integrator._size(problem), has_penalty=True).choose(integrator.solver, integrator.memory_limit)
    arrays = {"triangle": to_triangle(sum_over_parties(problem, Engine(integrator.n_jobs)))}
    if problem.intrinsic is None:
        return arrays
    weights = sparse.coo_array(sparse.tril(-len(anchors) * problem.intrinsic, k=-1))
    weights.eliminate_zeros()
    order = np.lexsort((weights.col, weights.row))
    edges = np.column_stack([weights.row, weights.col])[order].astype(np.int64)
    return arrays | {"edges": edges, "edge_weights": weights.data[order]}


def target_of(settings: Mapping[str, Any], messages: Sequence[GroupMessage]) -> GroupTarget:
    """The target of all groups together.

    Parameters
    ----------
    settings : mapping
        Which all messages have.
    messages : sequence of GroupMessage
        In the order in which they are added up.

    Raises
    ------
    ValueError
        When the parties together do not allow so many components.
    """
    solve = _kernel_target if settings["method"] == "KTI" else _linear_target
    n_parties = sum(message.n_parties for message in messages)
    Z, eigenvalues, gap = solve(settings, messages, n_parties)
    return GroupTarget(
        settings=settings,
        groups=sorted(message.group for message in messages),
        n_parties=n_parties,
        target=Z * fix_signs(Z),
        eigenvalues=eigenvalues,
        gap=gap,
    )


def _linear_target(
    settings: Mapping[str, Any], messages: Sequence[GroupMessage], n_parties: int
) -> tuple[FloatArray, FloatArray, None]:
    U, singular_values, _ = leading_left_singular(np.hstack([message.arrays["factor"] for message in messages]))
    k = settings["n_components"]
    check_n_components(k, U.shape[1], f"that is the dimension that {n_parties} parties' representations span together")
    return U[:, :k], singular_values[:k] ** 2, None


def _kernel_target(
    settings: Mapping[str, Any], messages: Sequence[GroupMessage], n_parties: int
) -> tuple[FloatArray, FloatArray, float | None]:
    n, k, center = messages[0].n_anchors, settings["n_components"], settings["center"]
    check_n_components(k, n - 1 if center else n, f"there are {n} anchor rows")
    M = np.zeros((n, n), order="F")
    for message in messages:
        M += from_triangle(message.arrays["triangle"], n)
    if settings["graph"] is not None:
        weights = sum(_adjacency_of(message.arrays, n) for message in messages)
        laplacian = sparse.csr_array(sparse.diags_array(weights.sum(axis=1)) - weights)
        normalise(M, laplacian, settings["graph_weight"])
    eigenvalues, Z, gap, angle = dense_target(M, k, center=center)
    if settings["graph"] is None:
        rank = kernel_rank(eigenvalues, n_parties)
        check_n_components(k, rank, "that is the rank of the kernel matrices together")
    found = Solution(solver="exact", eigenvalues=eigenvalues, target=Z, maps={}, gap=gap, angle=angle)
    warn_if_undetermined(found, k)
    return Z, eigenvalues, gap


def fitted_onto(integrator: Any, anchors: dict[PartyName, FloatArray], target: GroupTarget) -> BaseIntegrator:
    """A fitted clone that maps a group's parties onto the target of all groups.

    What it has learnt of the target is as after a fit of all parties together; `objective_` of a linear method counts
    the group's own parties.

    Parameters
    ----------
    integrator : LTI, GEP, MPP or KTI
    anchors : dict of party to ndarray of shape (n_anchors, n_intermediate)
        Of the group's parties, checked.
    target : GroupTarget
        With the same settings.
    """
    fitted: Any = clone(integrator)
    if isinstance(fitted, KTI):
        # The graph has done its part.
        problem = clone(integrator).set_params(graph=None)._problem(anchors, None)
        Z = np.asfortranarray(target.target)
        maps = maps_onto(problem, Z, Engine(fitted.n_jobs))
        solution = Solution(solver="exact", eigenvalues=target.eigenvalues, target=Z, maps=maps, gap=target.gap)
        fitted._keep(problem, solution)
    else:
        _keep_linear(fitted, anchors, target)
    result: BaseIntegrator = fitted
    return result


def _keep_linear(fitted: Any, anchors: dict[PartyName, FloatArray], target: GroupTarget) -> None:
    centred, means = fitted._without_means(anchors)
    spaces = {party: column_space(A) for party, A in centred.items()}
    matrices = fitted._onto(spaces, target.target, np.sqrt(target.eigenvalues))
    fitted.integration_functions_ = fitted._maps(matrices, means)


def to_triangle(M: FloatArray) -> FloatArray:
    """The lower triangle of a symmetric matrix, column by column, shape (n (n + 1) / 2,).

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Its lower triangle is read.
    """
    packed, _ = dtrttp(M, uplo="L")
    return np.asarray(packed)


def from_triangle(packed: FloatArray, n: int) -> FloatArray:
    """The matrix of `to_triangle`, in its lower triangle, Fortran-ordered; the upper one is zero."""
    M, _ = dtpttr(n, packed, uplo="L")
    return np.asarray(M)


def _adjacency_of(arrays: Mapping[str, NDArray[Any]], n_anchors: int) -> sparse.csr_array:
    """Symmetric weights of a graph from its edges."""
    first, second = arrays["edges"].T
    half = sparse.csr_array((arrays["edge_weights"], (first, second)), shape=(n_anchors, n_anchors))
    return sparse.csr_array(half + half.T)


def sum_factor(W: FloatArray) -> FloatArray:
    r"""The F of few columns with :math:`F F^\top = W W^\top` that the product determines, whatever W it is made of.

    It is the pivoted Cholesky factor of :math:`W W^\top`, found without that matrix, through the QR decomposition of
    :math:`W^\top` with column pivoting.  So it says of W what the product says, but for rounding, and nothing of which
    columns W had.

    Parameters
    ----------
    W : ndarray of shape (n, m)
        Not all zero.

    Returns
    -------
    ndarray of shape (n, rank)
    """
    R, pivots = scipy.linalg.qr(W.T, mode="r", pivoting=True, check_finite=False)
    diagonal = R.diagonal()
    rank = int((np.abs(diagonal) > max(W.shape) * np.finfo(np.float64).eps * abs(diagonal[0])).sum())
    F: FloatArray = np.empty((W.shape[0], rank))
    F[pivots] = (R[:rank] * np.sign(diagonal[:rank])[:, None]).T
    return F
