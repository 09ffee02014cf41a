"""The problem that parameters of `KTI` and anchors make, and what its data and its solution must allow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .._validation import Array, FloatArray, PartyName, array_library
from ..errors import UndeterminedTargetWarning
from ..linalg import ARRAY_KERNELS, Kernel
from ._base import check_n_components
from ._graphs import NeighborGraph
from ._target_problem import VANISHING, Solution, TargetProblem, kernel_rank

__all__ = ["check_library", "check_rank", "kernel_of", "regularised_penalty", "warn_if_undetermined"]

_UNDETERMINED = 1e-9
"""Eigengap, relative to the eigenvalues, that rounding may fill."""
_VANISHING_SINGLE = 1e-5
"""`VANISHING` where eigenvalues are rounded to single precision."""


def kernel_of(
    kernel: str | Callable[..., Any],
    gamma: float | None,
    *,
    degree: float,
    coef0: float,
    kernel_params: Mapping[str, Any] | None,
) -> Kernel:
    """One party's kernel; a function of two rows has parameters of its own."""
    if not isinstance(kernel, str):
        return Kernel(metric=kernel, parameters=kernel_params or {})
    return Kernel(metric=kernel, parameters={"gamma": gamma, "degree": degree, "coef0": coef0})


def regularised_penalty(
    graph: NeighborGraph,
    anchors: Mapping[PartyName, FloatArray],
    y: ArrayLike | None,
    *,
    n_components: int,
    epsilon: float,
    center: bool,
) -> sparse.csr_array:
    r"""Penalty Laplacian C, as :math:`C_\varepsilon` where it is singular on the feasible subspace.

    Raises
    ------
    ValueError
        When its rank is less than the number of components.
    """
    C = graph.laplacian(anchors, y)
    n_anchors = C.shape[0]
    # Weights are not negative, so the null space is spanned by the indicators of the connected components.
    components = connected_components(C, directed=False, return_labels=False)
    check_n_components(n_components, n_anchors - components, "that is the rank of the penalty graph's Laplacian")
    nullity = components - 1 if center else components
    if nullity > 0 and epsilon > 0:
        C = C + epsilon * C.trace() / n_anchors * sparse.eye_array(n_anchors, format="csr")
    return sparse.csr_array(C)


def check_library(
    A: Array, *, kernel: str | Callable[..., Any], penalty_graph: NeighborGraph | None, engine: Any
) -> None:
    """Refuse parameters that ask for what is done with NumPy arrays only.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    library = array_library(A)
    if library is None:
        return
    kernels = ["rbf", *ARRAY_KERNELS]
    wanted = {
        "kernel": (kernel, None if isinstance(kernel, str) and kernel in kernels else f"one of {kernels!r}"),
        "penalty_graph": (penalty_graph, None if penalty_graph is None else "None"),
        "engine": (engine, None if engine is None else "None"),
    }
    for name, (value, instead) in wanted.items():
        if instead is not None:
            raise ValueError(
                f"{name}={value!r} works with NumPy arrays only; for {library} arrays {name} must be {instead}. "
                "Change it, or convert the anchor representations."
            )


def check_rank(problem: TargetProblem, solution: Solution, *, single: bool, by_landmarks: bool) -> None:
    """Refuse more components than the kernels tell apart.

    Parameters
    ----------
    problem : TargetProblem
    solution : Solution
    single : bool
        Whether eigenvalues of a solver that iterates are rounded to single precision.
    by_landmarks : bool
        Whether a number of landmarks was asked for, by which the rank may be less.

    Raises
    ------
    ValueError
    """
    if problem.normalised:
        return
    rounded = single and solution.angle is not None
    rank = kernel_rank(solution.eigenvalues, len(problem.anchors), _VANISHING_SINGLE if rounded else VANISHING)
    what = "the rank with these landmarks" if by_landmarks else "the rank of the kernel matrices"
    check_n_components(problem.n_components, rank, f"that is {what} together")


def warn_if_undetermined(solution: Solution, n_components: int) -> None:
    """Say where the data leave open which target is the best."""
    if solution.gap is None:
        return
    # Landmarks blur eigengaps by more than their solver's angle tells.
    blurred = solution.solver == "exact" and solution.angle is not None and solution.angle >= 1.0
    if solution.gap > _UNDETERMINED * abs(solution.eigenvalues).max() and not blurred:
        return
    warnings.warn(
        f"KTI: eigenvalue {n_components} is within {solution.gap:.1e} of the next one, so other targets with "
        f"{n_components} components are as good as the one found. Change n_components by one or two; until "
        "then compare objectives, not targets.",
        UndeterminedTargetWarning,
        stacklevel=3,
    )
