"""Orthogonal data collaboration."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, UnknownPartyError
from ..model import IntegrationFunction, LinearMap
from ._base import BaseIntegrator, Representations

__all__ = ["ODC"]


class ODC(BaseIntegrator):
    r"""Orthogonal data collaboration [1]_: an orthogonal Procrustes map of each party onto a reference.

    :math:`G^{(k)} = U V^\top` from the singular value decomposition of :math:`\tilde A^{(k)\top} Z`, where the target Z
    is the anchor representation of a reference party, or the mean of all.  The dimension is that of the
    representations, which must agree.

    Parameters
    ----------
    reference : party or "mean", default=None
        Whose anchor representation the others are turned onto.  None takes the first party, and "mean" the average
        of all.

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
    hold the anchor.  With "mean" it is an average of all that they learn about.

    References
    ----------
    .. [1] Nosaka, Suetake, Takano and Yoshise (2026). Data collaboration analysis with orthonormal basis selection and
       alignment. Computers and Electrical Engineering 135, 111192.

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

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Learn one orthogonal map per party.

        Parameters
        ----------
        anchors : mapping of party to array-like of shape (n_anchors, n_intermediate)
            The parties' representations of the same anchor rows, all with the same number of columns.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        AgreementError, RepresentationError
            When row counts differ, or a representation is not finite, empty, or the same in every row; the message
            names the party.  Also when their dimensions differ.
        UnknownPartyError
            When the reference is none of the parties.
        """
        checked = self._start_fit(anchors)
        columns = {party: A.shape[1] for party, A in checked.items()}
        if len(set(columns.values())) > 1:
            raise AgreementError(
                f"ODC turns representations by orthogonal maps, so their dimensions must agree; got {columns}. "
                "Use LTI, GEP, MPP or KTI, or ask the parties for one dimension."
            )
        target = self._target(checked)
        functions: dict[PartyName, IntegrationFunction] = {}
        for party, A in checked.items():
            U, _, Vt = scipy.linalg.svd(A.T @ target, full_matrices=False, check_finite=False)
            functions[party] = LinearMap(party, U @ Vt)
        self.target_ = target
        self.integration_functions_ = functions
        self.objective_ = self._residual({party: functions[party](A) for party, A in checked.items()}, target)
        return self

    def _target(self, anchors: dict[PartyName, FloatArray]) -> FloatArray:
        if self.reference is None:
            return next(iter(anchors.values())).copy()
        if self.reference in anchors:
            return anchors[self.reference].copy()
        if self.reference == "mean":
            return np.asarray(np.mean(list(anchors.values()), axis=0))
        raise UnknownPartyError(
            f"reference={self.reference!r} is none of the parties {list(anchors)!r}; name one of them, or use 'mean'."
        )
