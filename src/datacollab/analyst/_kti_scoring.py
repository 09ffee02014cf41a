"""Candidates for KTI, fitted on some anchor rows and scored on others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._validation import FloatArray, PartyName
from ..errors import NumericalError
from ..linalg import (
    Kernel,
    RidgePath,
    add_sparse_to_lower,
    fix_signs,
    ridge_path,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)
from ._target_problem import kernel_rank

__all__ = ["Fold", "View", "concordance", "default_predictor", "halves", "held_out_views", "prediction_score"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Fold:
    """Anchor rows that candidates are fitted to, and others that they are scored on."""

    train: dict[PartyName, FloatArray]
    train_target: NDArray[Any] | None
    laplacian: sparse.csr_array | None
    held_out: dict[PartyName, FloatArray]
    held_out_target: NDArray[Any] | None
    parts: tuple[NDArray[np.intp], NDArray[np.intp]] | None

    @property
    def n_train(self) -> int:
        """Rows that candidates are fitted to."""
        return int(next(iter(self.train.values())).shape[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """Held-out anchor rows under one candidate."""

    alpha: float
    graph_weight: float | None
    representations: FloatArray


def held_out_views(
    train: Mapping[PartyName, FloatArray],
    held_out: Mapping[PartyName, FloatArray],
    kernels: Mapping[PartyName, Kernel],
    *,
    alphas: Sequence[float],
    n_components: int,
    center: bool,
    laplacian: sparse.csr_array | None = None,
    graph_weights: Sequence[float] = (),
) -> Iterator[View]:
    r"""Fit KTI for all penalties and graph weights on some anchor rows, and map others.

    One eigendecomposition per party serves all candidates: with :math:`\Sigma_k = U_k \mathrm{diag}(s_k) U_k^\top`,
    :math:`M_\lambda = K I - \sum_k U_k \mathrm{diag}(s_k / (s_k + \lambda)) U_k^\top`.
    """
    paths = {party: _path(party, kernels[party].gram(A), min(alphas)) for party, A in train.items()}
    between = {party: kernels[party].between(held_out[party], A) for party, A in train.items()}
    for alpha in alphas:
        M = _problem_matrix(paths, alpha)
        for weight in (None,) if laplacian is None else graph_weights:
            Z = _target(M, laplacian, weight, n_parties=len(paths), n_components=n_components, center=center)
            mapped = [between[party] @ path.coefficients(alpha, Z) for party, path in paths.items()]
            yield View(alpha=alpha, graph_weight=weight, representations=np.stack(mapped))


def _path(party: PartyName, gram: FloatArray, smallest_alpha: float) -> RidgePath:
    try:
        return ridge_path(gram, smallest_alpha)
    except scipy.linalg.LinAlgError:
        raise NumericalError(
            f"Party {party!r}: the kernel matrix plus alpha={smallest_alpha:g} is not positive definite. Choose a "
            "positive semidefinite kernel, or raise alpha."
        ) from None


def _problem_matrix(paths: Mapping[PartyName, RidgePath], alpha: float) -> FloatArray:
    r"""Lower triangle of :math:`M_\lambda`."""
    n = next(iter(paths.values())).vectors.shape[0]
    M = np.zeros((n, n), order="F")
    for path in paths.values():
        path.add_smoother(M, alpha)
    np.negative(M, out=M)
    M[np.diag_indices(n)] += len(paths)
    return M


def _target(
    M: FloatArray,
    laplacian: sparse.csr_array | None,
    weight: float | None,
    *,
    n_parties: int,
    n_components: int,
    center: bool,
) -> FloatArray:
    """Z, with at most ``n_components`` columns."""
    problem = M.copy(order="F")
    graph = laplacian if weight else None
    if graph is not None and weight is not None:
        problem /= np.trace(M)
        add_sparse_to_lower(problem, graph, weight / graph.trace())
    eigenvalues, Z = (smallest_eigenpairs_centred if center else smallest_eigenpairs)(problem, n_components)
    if graph is None:
        # Directions on which all kernels vanish map every row to zero, and rounding errors are no components.
        Z = Z[:, : kernel_rank(eigenvalues, n_parties)]
    return Z * fix_signs(Z)


def halves(target: NDArray[Any], random_state: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split rows at random into two halves in which the target is distributed alike."""
    shuffled = random_state.permutation(len(target))
    order = shuffled[np.argsort(target[shuffled], kind="stable")]
    return order[::2], order[1::2]


def default_predictor(
    target: NDArray[Any], parts: tuple[NDArray[np.intp], NDArray[np.intp]], is_classification: bool
) -> Any:
    """The model that scores candidates: it ranks them nearly as a random forest on the parties' rows does, and is fast.

    Linear discriminant analysis for classes, where either part has several classes; otherwise nearest neighbours.
    """
    if is_classification and all(np.unique(target[part]).size > 1 for part in parts):
        return make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1))
    neighbors = KNeighborsClassifier if is_classification else KNeighborsRegressor
    return make_pipeline(StandardScaler(), neighbors(n_neighbors=min(10, *map(len, parts))))


def prediction_score(
    representations: FloatArray,
    target: NDArray[Any],
    parts: tuple[NDArray[np.intp], NDArray[np.intp]],
    estimator: Any,
) -> float:
    """How well targets of one part of the rows are predicted by a model trained on the other; the mean of both ways.

    Both parts are new to the integration functions, as the parties' own rows are that the model is trained on later.
    """
    n_parties, _, n_components = representations.shape

    def combined(rows: NDArray[np.intp]) -> tuple[FloatArray, NDArray[Any]]:
        return representations[:, rows].reshape(-1, n_components), np.tile(target[rows], n_parties)

    first, second = combined(parts[0]), combined(parts[1])
    scores = [clone(estimator).fit(*seen).score(*new) for seen, new in ((first, second), (second, first))]
    return float(np.mean(scores))


def concordance(representations: Iterable[FloatArray]) -> float:
    """Share of each component's variance on which all parties agree (eq. anchor-concordance), averaged."""
    stacked = np.stack(list(representations))
    total = stacked.reshape(-1, stacked.shape[2]).var(axis=0)
    agreed = stacked.mean(axis=0).var(axis=0)
    # A component that is constant for everybody tells nothing, so agreeing on it earns nothing.
    return float(np.mean(np.divide(agreed, total, out=np.zeros_like(agreed), where=total > 0)))
