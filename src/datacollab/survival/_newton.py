"""Newton's method for the partial likelihood with a ridge penalty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from .._typing import FloatArray
from ..errors import NotConvergedError, NumericalError
from ._partial_likelihood import PartialLikelihood, RiskSets, partial_likelihood

__all__ = ["maximised"]

_MOST_HALVINGS = 30
_LEAST_RCOND = 1e-11
"""Of the information, its columns scaled alike: a direction with less is rounding."""
_SLACK = 1e-12
"""Part of the likelihood by which it may fall in a step: rounding at the maximum."""


def maximised(
    strata: Sequence[RiskSets], penalty: FloatArray, *, max_iter: int, tol: float
) -> tuple[FloatArray, PartialLikelihood, int]:
    r"""Maximise :math:`\ell(\beta) - \tfrac12 \sum_j p_j \beta_j^2`, from 0.

    A step that makes it worse is halved.  It is at its end when no row's log risk changes by more than `tol`; where the
    likelihood grows for ever in some direction, log risks keep changing while the likelihood hardly does, so that a
    criterion on the latter would miss it.

    Parameters
    ----------
    strata : sequence of RiskSets
        Columns of about the same spread.
    penalty : ndarray of shape (n_features,)
        p.
    max_iter : int
    tol : float

    Returns
    -------
    beta : ndarray of shape (n_features,)
    at_beta : PartialLikelihood
        Without the penalty.
    n_iter : int

    Raises
    ------
    NotConvergedError
        When `max_iter` is reached.
    NumericalError
        When the information is singular.
    """
    beta = np.zeros(len(penalty))
    here = partial_likelihood(beta, strata)
    for n_iter in range(1, max_iter + 1):
        step = _solved(here.information + np.diag(penalty), here.gradient - penalty * beta)
        height = _penalised(here, beta, penalty)
        for _ in range(_MOST_HALVINGS):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                there = partial_likelihood(beta + step, strata)
            if _penalised(there, beta + step, penalty) >= height - _SLACK * max(1.0, abs(height)):
                break
            step = step / 2
        else:
            raise NotConvergedError(
                f"Cox regression: no step made the likelihood larger in iteration {n_iter}. Look for columns of very "
                "different scales, or set alpha above 0."
            )
        beta, here = beta + step, there
        if max(float(np.abs(sets.X @ step).max()) for sets in strata) <= tol:
            return beta, here, n_iter
    raise NotConvergedError(
        f"Cox regression did not converge in {max_iter} iterations. Likely, a combination of columns orders the "
        "events (separation), so that its coefficient has no end: set alpha above 0, or take fewer columns. "
        "Otherwise raise max_iter or tol."
    )


def _penalised(at: PartialLikelihood, beta: FloatArray, penalty: FloatArray) -> float:
    height = at.value - 0.5 * float(penalty @ beta**2)
    return height if np.isfinite(height) else -np.inf


def _solved(information: FloatArray, gradient: FloatArray) -> FloatArray:
    """The Newton step, by Cholesky factors of the information scaled to ones on its diagonal."""
    diagonal = np.diagonal(information)
    if not np.isfinite(information).all() or (diagonal <= 0).any():
        raise _singular()
    scale = 1.0 / np.sqrt(diagonal)
    scaled = information * scale * scale[:, None]
    if scipy.linalg.eigvalsh(scaled, subset_by_index=(0, 0))[0] < _LEAST_RCOND * len(scaled):
        raise _singular()
    return np.asarray(scale * scipy.linalg.cho_solve(scipy.linalg.cho_factor(scaled), scale * gradient))


def _singular() -> NumericalError:
    return NumericalError(
        "Cox regression: the information is singular. Columns are constant or nearly a combination of others within "
        "strata, or they separate the events. Set alpha above 0, or take fewer columns."
    )
