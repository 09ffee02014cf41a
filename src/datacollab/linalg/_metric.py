"""A common space in which distances mean something again, after orthonormal columns took their lengths away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from .._validation import FloatArray
from ._column_space import centred_columns, column_space
from ._eigen import fix_signs

__all__ = ["metric_scaling"]


def metric_scaling(common: FloatArray, representations: Sequence[FloatArray]) -> tuple[FloatArray, float]:
    r"""Matrix W for which distances between rows of ``common @ W`` are those that the representations have on average.

    With :math:`C = [\tilde A_1 - \bar a_1, \ldots, \tilde A_K - \bar a_K] / \sqrt K`, squared distances between rows
    of C are the means over the representations.  W is the least-squares map from the centred common space to C, turned
    to its principal axes, which no distance sees: with :math:`Z - \bar z = QR` and :math:`Q^\top C = U \Sigma V^\top`,
    :math:`W = R^+ U \Sigma` and :math:`(Z - \bar z) W = Q Q^\top C V`.

    Parameters
    ----------
    common : ndarray of shape (n, m)
        Z, rows in the common space; not all equal.
    representations : sequence of ndarray of shape (n, d_k)
        The same rows as each party sees them; not all zero once centred.

    Returns
    -------
    W : ndarray of shape (m, rank)
        Columns by descending length of those of ``common @ W``; the entry of largest magnitude in each of these is
        positive.
    kept : float
        Part of the sum of squares of C that the common space keeps, from 0 to 1.  At 1 all distances are kept.

    Notes
    -----
    It is classical scaling (principal coordinates) of the parties' mean squared distances [1]_, confined to what is
    linear in the common space.

    References
    ----------
    .. [1] Gower (1966). Some distance properties of latent root and vector methods used in multivariate analysis.
       Biometrika 53(3-4), 325-338.
    """
    space = column_space(centred_columns(common)[0])
    C = np.hstack([centred_columns(A)[0] for A in representations]) / np.sqrt(len(representations))
    U, lengths, _ = scipy.linalg.svd(space.basis.T @ C, full_matrices=False, check_finite=False)
    # Directions that are rounding error only; one is kept in any case, for a map has to have a column.
    seen = lengths > max(C.shape) * np.finfo(np.float64).eps * lengths[0]
    seen[0] = True
    coordinates = U[:, seen] * lengths[seen]
    coordinates *= fix_signs(space.basis @ coordinates)
    return space.coefficients(coordinates), float(np.sum(lengths**2) / np.sum(C**2))
