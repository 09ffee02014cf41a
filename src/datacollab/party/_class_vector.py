"""What a table adds up to, class by class, and how far one record can move that."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ._gaussian_noise import clipped

__all__ = ["ADDED", "REPLACED", "class_vector"]

REPLACED = 2.0
"""Largest move when one record is replaced by any other, in multiples of C; see `class_vector`."""
ADDED = math.sqrt(2)
"""Largest move when one record is added or left out, in multiples of C."""


def class_vector(
    X: FloatArray, codes: NDArray[np.intp], n_classes: int, center: FloatArray, radius: float
) -> FloatArray:
    r"""Sums of clipped rows by class, and C times how many there are, shape (n_classes, n_columns + 1).

    .. math:: s(D) = \sum_i u(x_i, y_i), \qquad u(x, c) = e_c \otimes (v(x), C), \qquad
              v(x) = (x - m) \min(1, C / \|x - m\|)

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    codes : ndarray of shape (n_rows,)
        Number of each row's class; rows of a negative one add nothing.
    n_classes : int
    center : ndarray of shape (n_columns,)
        m, which must not depend on the rows.
    radius : float
        C, which must not either.

    Notes
    -----
    **Replacing a record** (x, c) by any other (x', c') moves s by :math:`u(x', c') - u(x, c)`.

    * Same class, :math:`c = c'`: the counts stay, and the sum moves by :math:`v' - v`, where both are in a ball of
      radius C: at most :math:`2C`, attained by opposite points of the sphere.
    * Other class: the two parts lie in different blocks, at right angles, each of length at most
      :math:`\sqrt{C^2 + C^2}`.  Together :math:`\sqrt{4 C^2} = 2C` at most, attained by any two points of the sphere.
    * A record of none of the classes adds zero: at most :math:`\sqrt 2 C`, from or to one of a class.

    So the sensitivity is exactly 2C, and counts in multiples of C cost nothing beyond the sums.  Counts in multiples
    of less save nothing either: the first case remains.

    **Adding or leaving out** a record moves s by :math:`\|u\| \le \sqrt 2 C`, attained on the sphere.

    Neither depends on the number of classes or of columns.
    """
    contributions = np.column_stack([clipped(X - center, np.zeros_like(center), radius), np.full(len(X), radius)])
    vector = np.zeros((n_classes, contributions.shape[1]))
    counted = codes >= 0
    np.add.at(vector, codes[counted], contributions[counted])
    return vector
