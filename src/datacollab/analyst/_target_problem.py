"""What KTI minimises, and what a solver returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._validation import Array, FloatArray, PartyName, array_namespace, to_numpy
from ..errors import NumericalError
from ..linalg import Kernel, like
from ..model import KernelMap

__all__ = ["Solution", "TargetOperator", "TargetProblem", "centred", "kernel_rank", "maps_of", "not_definite"]


VANISHING = 1e-8
"""Part of a target column, relative to the best one's, that all kernel maps together must reproduce."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetProblem:
    r"""Minimise :math:`\mathrm{tr}(Z^\top M_\lambda Z)` over targets Z (eq. reduced_KNI), or with graphs."""

    anchors: dict[PartyName, Array]
    kernels: dict[PartyName, Kernel]
    alpha: float
    n_components: int
    intrinsic: sparse.csr_array | None = None
    graph_weight: float = 1.0
    penalty: sparse.csr_array | None = None
    center: bool = False

    @property
    def n_anchors(self) -> int:
        """Rows of every anchor representation."""
        return int(next(iter(self.anchors.values())).shape[0])

    @property
    def normalised(self) -> bool:
        """Whether both terms are divided by their traces (eq. kernel-graph-gep)."""
        return self.intrinsic is not None or self.penalty is not None

    def on(self, sample: NDArray[np.intp]) -> TargetProblem:
        """The problem without its graphs, on some of the anchor rows, in NumPy."""
        anchors = {party: to_numpy(A)[sample] for party, A in self.anchors.items()}
        return replace(self, anchors=anchors, intrinsic=None, penalty=None)

    def operator(self, trace: float | None) -> TargetOperator:
        r"""The symmetric operator whose largest eigenvectors solve the problem without a penalty graph."""
        n_parties = len(self.anchors)
        unit = 1.0 / trace if trace is not None else 1.0
        if self.intrinsic is None:
            return TargetOperator(unit * n_parties, unit, self.alpha, n_parties, None)
        B = self.intrinsic * (self.graph_weight / self.intrinsic.trace())
        # No eigenvalue of a Laplacian exceeds twice its largest degree.
        return TargetOperator(unit * n_parties + 2.0 * float(B.diagonal().max()), unit, self.alpha, n_parties, B)

    @property
    def project(self) -> Callable[[Array], Array] | None:
        """Projection onto the feasible subspace, where that is not the whole space."""
        return centred if self.center else None


@dataclass(frozen=True, eq=False)
class TargetOperator:
    r"""``offset`` times the identity less the matrix N that KTI minimises, positive semidefinite.

    :math:`N = c M_\lambda + \beta B` with :math:`M_\lambda = \lambda \sum_k S_k = \sum_k (I - P_k)`.
    """

    offset: float
    unit: float
    alpha: float
    n_parties: int
    laplacian: sparse.csr_array | None

    def of_inverses(self, X: Array, total: Array) -> Array:
        r"""The image of ``X``, given :math:`\sum_k S_k X`."""
        return self._less_graph(self.offset * X - (self.unit * self.alpha) * total, X)

    def of_smoothers(self, X: Array, total: Array) -> Array:
        r"""The image of ``X``, given :math:`\sum_k P_k X`."""
        return self._less_graph((self.offset - self.unit * self.n_parties) * X + self.unit * total, X)

    def on_span(self, Z: Array, smoothed: FloatArray) -> FloatArray:
        r"""What it is between orthonormal columns, given :math:`Z^\top \sum_k P_k Z`; small, and NumPy's."""
        between = (self.offset - self.unit * self.n_parties) * np.eye(Z.shape[1]) + self.unit * smoothed
        if self.laplacian is None:
            return between
        here = to_numpy(Z)
        return np.asarray(between - here.T @ (self.laplacian @ here))

    def _less_graph(self, image: Array, X: Array) -> Array:
        # The few columns of X travel to the sparse matrix, which the array API does not know.
        return image if self.laplacian is None else image - like(self.laplacian @ to_numpy(X), X)


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """A target and the functions that lead to it."""

    solver: str
    eigenvalues: FloatArray
    target: Array
    maps: dict[PartyName, KernelMap]
    angle: float | None = None
    gap: float | None = None
    rank: int | None = None
    error: float | None = None


def centred(X: Array) -> Array:
    """``X`` with the mean of each column taken off."""
    return X - array_namespace(X).mean(X, axis=0)


def maps_of(
    problem: TargetProblem, centres: Mapping[PartyName, Array], coefficients: Iterable[Array]
) -> dict[PartyName, KernelMap]:
    """Kernel expansions around ``centres``, one for each party, in the order of the parties, where the anchors are."""
    return {
        party: KernelMap(party, like(centres[party], A), like(Gamma, A), problem.kernels[party])
        for (party, A), Gamma in zip(problem.anchors.items(), coefficients, strict=True)
    }


def kernel_rank(eigenvalues: FloatArray, n_parties: int, tolerance: float = VANISHING) -> int:
    r"""Components that some kernel map reproduces, by the eigenvalues of :math:`M_\lambda`.

    A direction on which all kernels vanish has the eigenvalue K, and maps every row to zero.  What rounding leaves of
    it is small beside what the best direction has.
    """
    reproduced = n_parties - eigenvalues
    return int((reproduced > tolerance * max(float(reproduced.max()), 0.0)).sum())


def not_definite(party: PartyName, alpha: float) -> NumericalError:
    """What is wrong with a kernel that has no Cholesky factor."""
    return NumericalError(
        f"Party {party!r}: the kernel matrix plus alpha={alpha:g} is not positive definite. Choose a positive "
        "semidefinite kernel, or raise alpha."
    )
