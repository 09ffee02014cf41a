r"""Readings of KTI itself that public code of the authors' laboratory suggests, and what they leave of printed numbers.

The code (takano-lab/data-collaboration-analysis, September 2025) minimises
:math:`\sum_k \|(P_k - I) Z\|_F^2` with :math:`P_k = K_k (K_k + \lambda I)^{-1}`, the residual without the penalty; it
divides kernel matrices by their largest eigenvalue where told; and it takes another gamma than 1 by default.

The lists below were fixed before anything was run.  `tries` runs them, all of a seed before the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import NearestNeighbors

from datacollab.analyst import TargetSimilarityGraph
from datacollab.linalg import Kernel, add_sparse_to_lower, fix_signs, ridge_inverse, smallest_eigenpairs
from datacollab.model import KernelMap

from ..harness import markdown
from ..paper import Trial

if TYPE_CHECKING:
    from .printed import Compared

__all__ = ["CELLS", "READINGS", "Cell", "KernelReading", "functions_by_reading", "summary"]

Cell = tuple[str, str, int | None, str]
"""Data set, obfuscator, columns where the table varies them, and method."""
TABLE = "tab:rq4-integration-accuracy-wide"
OBJECTIVES = ("paper", "residual")
SCALINGS = ("none", "largest eigenvalue")
GAMMAS = ("1", "1/2", "1/d̃", "third neighbour")
METHODS = ("KTI", "KTI+TSL")

OUTSIDE: tuple[Cell, ...] = (
    ("mnist", "pca", 16, "KTI"),
    ("mnist", "pca", 64, "KTI"),
    ("mnist", "pca", 64, "KTI+TSL"),
    ("fashion-mnist", "pca", 4, "KTI"),
    ("fashion-mnist", "pca", 4, "KTI+TSL"),
    ("fashion-mnist", "pca", 16, "KTI"),
    ("fashion-mnist", "pca", 64, "KTI"),
    ("mnist", "kernel-pca", 4, "KTI"),
)
"""Cells outside with ten seeds that a reading of KTI can move.  The other seven are LTI's."""
CONTROLS: tuple[Cell, ...] = (
    ("mnist", "pca", 4, "KTI"),
    ("mnist", "pca", 16, "KTI+TSL"),
    ("fashion-mnist", "pca", 16, "KTI+TSL"),
    ("fashion-mnist", "pca", 64, "KTI+TSL"),
    ("mnist", "kernel-pca", 4, "KTI+TSL"),
    ("mnist", "kernel-pca", 16, "KTI"),
    ("fashion-mnist", "kernel-pca", 4, "KTI"),
    ("fashion-mnist", "kernel-pca", 4, "KTI+TSL"),
)
"""As many cells inside, which a reading must not lose."""
CELLS = (*OUTSIDE, *CONTROLS)
PENALTY = 1.0
"""The paper's lambda."""


@dataclass(frozen=True)
class KernelReading:
    """One reading of KTI: what it minimises, what divides the kernel matrices, and gamma."""

    objective: str
    scaling: str
    gamma: str

    def __str__(self) -> str:
        return f"{self.objective}; {self.scaling}; γ = {self.gamma}"


READINGS = tuple(KernelReading(*each) for each in product(OBJECTIVES, SCALINGS, GAMMAS))


def find_gamma(name: str, rows: np.ndarray) -> float:
    """Return a party's gamma, given its own rows' representation."""
    if name == "third neighbour":
        # The nearest row of all is the row itself.
        distances, _ = NearestNeighbors(n_neighbors=4).fit(rows).kneighbors(rows)
        return float(np.median(1.0 / distances[:, 3] ** 2))
    return 1.0 / float({"1": 1, "1/2": 2, "1/d̃": rows.shape[1]}[name])


def functions_by_reading(trial: Trial) -> Iterator[tuple[tuple[KernelReading, str], dict[Any, KernelMap]]]:
    """Yield the parties' functions by reading and method, which is "KTI" or "KTI+TSL"."""
    anchors = {share.party: share.anchor_representation for share in trial.shares}
    width = trial.shares[0].representation.shape[1]
    graph = TargetSimilarityGraph(10, scale="std").laplacian(anchors, trial.shares[0].anchor_target)
    for gamma, scaling in product(GAMMAS, SCALINGS):
        solvers = {
            share.party: _Party.prepare(share.anchor_representation, find_gamma(gamma, share.representation), scaling)
            for share in trial.shares
        }
        for objective in OBJECTIVES:
            total = np.zeros(graph.shape, order="F")
            for party in solvers.values():
                party.add_to(total, objective)
            for method in METHODS:
                M = total / np.trace(total)
                if method == "KTI+TSL":
                    add_sparse_to_lower(M, graph, 1.0 / graph.trace())
                Z = smallest_eigenpairs(M, width)[1]
                Z = Z * fix_signs(Z)
                functions = {name: KernelMap(name, *party.expand(Z)) for name, party in solvers.items()}
                yield (KernelReading(objective, scaling, gamma), method), functions


@dataclass(frozen=True, eq=False)
class _Party:
    """One party's kernel, what its matrix is divided by, and the inverse of that plus the penalty."""

    A: np.ndarray
    kernel: Kernel
    divisor: float
    inverse: np.ndarray

    @classmethod
    def prepare(cls, A: np.ndarray, gamma: float, scaling: str) -> _Party:
        kernel = Kernel(metric="rbf", parameters={"gamma": gamma})
        gram = kernel.gram(A)
        divisor = 1.0 if scaling == "none" else float(eigsh(gram, k=1)[0][0])
        lower = np.tril(ridge_inverse(gram / divisor, PENALTY))
        return cls(A, kernel, divisor, np.asfortranarray(lower + np.tril(lower, -1).T))

    def add_to(self, M: np.ndarray, objective: str) -> None:
        """Add its part to the lower triangle: I - P_k is lambda times the inverse, the residual's matrix its square."""
        if objective == "paper":
            M += PENALTY * self.inverse
        else:
            dsyrk(PENALTY**2, self.inverse, beta=1.0, c=M, lower=1, overwrite_c=1)

    def expand(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, Kernel]:
        """Return anchors, coefficients and kernel of its function."""
        return self.A, self.inverse @ Z / self.divisor, self.kernel


def summary(scores: Mapping[str, Mapping[Cell, Mapping[int, float]]], compared: Iterable[Compared]) -> str:
    """Return the table: of cells outside as run and of controls, how many a reading has inside, and mean differences.

    Parameters
    ----------
    scores : mapping
        Scores by reading, cell and seed, as `tries.read` returns them.
    compared : iterable of Compared
        Printed numbers beside ours as run, to whose means the mean changes on the seeds that were tried are added.
    """
    if not scores:
        return "Nothing was tried."
    known = {
        (each.printed.dataset, each.printed.obfuscator, each.printed.n_components, each.printed.name): each
        for each in compared
        if each.printed.table == TABLE
    }

    def judge(reading: KernelReading, cells: Sequence[Cell]) -> str:
        n_inside, away = 0, []
        for cell in cells:
            as_run = known[cell]
            assert as_run.ours is not None
            tried, printed = scores[str(reading)][cell], scores[str(READINGS[0])][cell]
            change = np.mean([tried[seed] - printed[seed] for seed in printed])
            ours = replace(as_run.ours, mean=as_run.ours.mean + float(change))
            n_inside += as_run.is_inside(ours)
            away.append(abs(ours.mean - as_run.printed.mean))
        return f"{n_inside} ({np.mean(away):.3f})"

    versions = list(product(OBJECTIVES, SCALINGS))
    head = ["γ", *(f"{objective}, {scaling}" for objective, scaling in versions)]
    lines = [
        [
            gamma,
            *(
                "; ".join(judge(KernelReading(*each, gamma), cells) for cells in (OUTSIDE, CONTROLS))
                for each in versions
            ),
        ]
        for gamma in GAMMAS
    ]
    return markdown(head, lines, numbers=True)
