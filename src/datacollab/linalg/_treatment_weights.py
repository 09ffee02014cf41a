"""Weights that make the arms of a study alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray

__all__ = ["PROPENSITY_CLIP", "treatment_weights"]

PROPENSITY_CLIP = 0.02
"""Propensities are taken to be this far from 0 and 1, so that no row weighs more than 50."""


def treatment_weights(treatment: NDArray[np.int64], propensity: FloatArray, target: str) -> FloatArray:
    r"""Weights under which both arms look like all rows, or like the treated ones.

    .. math:: T / e + (1 - T) / (1 - e), \qquad T + (1 - T)\, e / (1 - e)

    Parameters
    ----------
    treatment : ndarray of shape (n_rows,)
        0 or 1.
    propensity : ndarray of shape (n_rows,)
        Probability of treatment, between 0 and 1, both excluded.
    target : {"ATE", "ATT"}
        The first formula, or the second.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    if target == "ATT":
        return np.where(treatment == 1, 1.0, propensity / (1.0 - propensity))
    return np.where(treatment == 1, 1.0 / propensity, 1.0 / (1.0 - propensity))
