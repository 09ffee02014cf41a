"""What a party can make of other parties' collaboration representations."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.base import clone

from ..._validation import FloatArray
from ...errors import AgreementError
from ._attack import ReconstructionAttack
from ._checks import check_rows
from ._kernel_ridge import KernelRidgeAttack

__all__ = ["invert_collaboration"]


def invert_collaboration(
    own_collaboration: ArrayLike,
    own_original: ArrayLike,
    collaboration: ArrayLike,
    *,
    own_target: ArrayLike | None = None,
    target: ArrayLike | None = None,
    attack: ReconstructionAttack | None = None,
) -> FloatArray:
    r"""Reconstruct other parties' rows from the common feature space, without the analyst's help.

    A party j knows the anchor A, its own rows and its own g_j and f_j, so it holds pairs of originals and points of the
    common feature space: A with :math:`g_j(\tilde A^{(j)})`, and its rows with :math:`\hat X^{(j)}`.  The integration
    makes :math:`\hat X^{(k)}` of any other party comparable with them.  What undoes the party's own pairs therefore
    undoes the other's, without a single row of :math:`\tilde A^{(k)}`.

    Parameters
    ----------
    own_collaboration : array-like of shape (n_pairs, n_components)
        :math:`g_j(\tilde A^{(j)})`, and the like for own rows, below one another.
    own_original : array-like of shape (n_pairs, n_features)
        The rows these come from.
    collaboration : array-like of shape (n_rows, n_components)
        :math:`\hat X^{(k)}` of the party under attack, as a model that stores its training rows would carry it.
    own_target, target : array-like of shapes (n_pairs,) and (n_rows,), optional
        Targets of the pairs and of the rows under attack: both or neither.
    attack : ReconstructionAttack, optional
        One that needs no public rows; by default `KernelRidgeAttack`.

    Returns
    -------
    ndarray of shape (n_rows, n_features)

    Raises
    ------
    AgreementError
        When rows or columns do not fit together.
    RepresentationError
        When a table is not finite, two-dimensional and numeric, or there are too few pairs.

    Notes
    -----
    This is why collaboration representations, and models that contain them, never go to parties: see
    `find_training_rows` for a test of a model.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import LinearRegressionAttack, invert_collaboration
    >>> anchor, private = np.random.default_rng(0).normal(size=(2, 30, 4))
    >>> common = np.random.default_rng(1).normal(size=(4, 4))
    >>> guesses = invert_collaboration(anchor @ common, anchor, private @ common, attack=LinearRegressionAttack())
    >>> np.allclose(guesses, private)
    True
    """
    if (own_target is None) != (target is None):
        raise AgreementError("Give targets of the own pairs and of the rows under attack, or neither.")
    own, others = (
        check_rows(own_collaboration, "The own pairs' collaboration representation"),
        check_rows(collaboration, "The collaboration representation"),
    )
    if own.shape[1] != others.shape[1]:
        raise AgreementError(
            f"The own pairs have {own.shape[1]} columns but the rows under attack have {others.shape[1]}; both must "
            "lie in the common feature space of one integration."
        )
    inverse = KernelRidgeAttack() if attack is None else clone(attack)
    return inverse.fit(own, own_original, target=own_target).reconstruct(others, target=target)
