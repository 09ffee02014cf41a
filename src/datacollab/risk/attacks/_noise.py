"""How far an estimated forward map is off."""

from __future__ import annotations

import numpy as np
from sklearn.covariance import ledoit_wolf

from ..._validation import FloatArray

__all__ = ["noise_covariance"]

FLOOR = 1e-10
"""Least variance of the noise, as a part of the representation's."""


def noise_covariance(residuals: FloatArray, Z: FloatArray) -> FloatArray:
    """Covariance of the errors of a forward map, shrunk towards a multiple of the identity, positive definite.

    Parameters
    ----------
    residuals : ndarray of shape (n_rows, n_intermediate)
        Errors for rows that the map was not fitted to.
    Z : ndarray of shape (n_leaked, n_intermediate)
        Centred representations, which give the scale.

    Returns
    -------
    ndarray of shape (n_intermediate, n_intermediate)
    """
    # Ledoit and Wolf's shrinkage turns with the representation, so attacks do not depend on its axes.
    covariance: FloatArray = ledoit_wolf(residuals, assume_centered=True)[0]
    floor = FLOOR * float((Z**2).mean())
    covariance[np.diag_indices_from(covariance)] += floor if floor > 0 else 1.0
    return covariance
