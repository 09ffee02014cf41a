"""Orthogonal data collaboration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, UnknownPartyError
from ..linalg import fix_signs
from ._linear import LinearIntegrator, residual

__all__ = ["ODC"]

_MOST_TURNS = 100
_LITTLE = 1e-9
"""Part of the sum of squares below which another turn is in vain."""


class ODC(LinearIntegrator):
    r"""Orthogonal data collaboration [1]_: an orthogonal Procrustes map of each party onto a reference.

    :math:`G^{(k)} = U V^\top` from the singular value decomposition of :math:`\tilde A^{(k)\top} Z`, where the target Z
    is the anchor representation of a reference party, or the mean of all.  The dimension is that of the
    representations, which must agree.

    Parameters
    ----------
    reference : party, "mean" or "consensus", default=None
        Whose anchor representation the others are turned onto.  None takes the first party, and "mean" the average
        of all.  "consensus" takes the average of all once they are turned onto it (generalised Procrustes analysis
        [2]_), in its principal axes: the same wherever the parties' secret rotations point.

    Attributes
    ----------
    target_ : ndarray of shape (n_anchors, n_intermediate)
        Z.
    objective_ : float
        :math:`\sum_k \|\tilde A^{(k)} G^{(k)} - Z\|_F^2`.
    integration_functions_ : dict of party to LinearMap

    Notes
    -----
    Whoever is the reference gives something away: the other parties learn maps onto its anchor representation, and
    hold the anchor.  With "mean" and "consensus" it is an average of all that they learn about.  Where parties rotate
    their representations in secret, "mean" averages what does not belong together, and "consensus" does not.

    `fit` raises `AgreementError` also where the dimensions differ, and `UnknownPartyError` where the reference is none
    of the parties.

    References
    ----------
    .. [1] Nosaka, Suetake, Takano and Yoshise (2026). Data collaboration analysis with orthonormal basis selection and
       alignment. Computers and Electrical Engineering 135, 111192.
    .. [2] Gower (1975). Generalized Procrustes analysis. Psychometrika 40, 33-51.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import ODC
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3))
    >>> rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    >>> integrator = ODC().fit({"a": A, "b": A @ rotation})
    >>> bool(np.allclose(integrator.transform({"b": A @ rotation})["b"], A))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"reference": [str, int, None]}

    target_: FloatArray
    objective_: float

    def __init__(self, *, reference: PartyName | None = None) -> None:
        self.reference = reference

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        columns = {party: A.shape[1] for party, A in anchors.items()}
        if len(set(columns.values())) > 1:
            raise AgreementError(
                f"ODC turns representations by orthogonal maps, so their dimensions must agree; got {columns}. "
                "Use LTI, GEP, MPP or KTI, or ask the parties for one dimension."
            )
        target = self._target(anchors)
        matrices = {party: _procrustes(A, target) for party, A in anchors.items()}
        self.target_ = target
        self.objective_ = residual((A @ matrices[party] for party, A in anchors.items()), target)
        return matrices

    def _target(self, anchors: dict[PartyName, FloatArray]) -> FloatArray:
        if self.reference is None:
            return next(iter(anchors.values())).copy()
        if self.reference in anchors:
            return anchors[self.reference].copy()
        if self.reference == "mean":
            return np.asarray(np.mean(list(anchors.values()), axis=0))
        if self.reference == "consensus":
            return _consensus(list(anchors.values()))
        raise UnknownPartyError(
            f"reference={self.reference!r} is none of the parties {list(anchors)!r}; name one of them, or use 'mean' "
            "or 'consensus'."
        )


def _procrustes(A: FloatArray, Z: FloatArray) -> FloatArray:
    r"""The orthogonal G that minimises :math:`\|A G - Z\|_F`."""
    U, _, Vt = scipy.linalg.svd(A.T @ Z, full_matrices=False, check_finite=False)
    return np.asarray(U @ Vt)


def _consensus(anchors: Sequence[FloatArray]) -> FloatArray:
    """The mean of all, turned onto it by turns, in its principal axes, shape (n_anchors, n_intermediate)."""
    Z, previous = anchors[0], np.inf
    for _ in range(_MOST_TURNS):
        turned = [A @ _procrustes(A, Z) for A in anchors]
        Z = np.mean(turned, axis=0)
        # Neither step raises the sum of squares, so it converges.
        residual = sum(float(np.sum((each - Z) ** 2)) for each in turned)
        if residual >= previous * (1 - _LITTLE):
            break
        previous = residual
    _, _, Vt = scipy.linalg.svd(Z, full_matrices=False, check_finite=False)
    in_axes = Z @ Vt.T
    return np.asarray(in_axes * fix_signs(in_axes))
