"""Any integration method, with distances that mean something."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._validation import FloatArray, check_parties, to_numpy
from ..linalg import centred_columns, column_space, like, metric_scaling
from ..model import IntegrationFunction, KernelMap, LinearMap
from ._base import BaseIntegrator, Representations
from ._linear import LTI

__all__ = ["AnchorScaled"]


class AnchorScaled(BaseIntegrator):
    r"""Another integration method, its common space stretched to the distances that parties see on the anchor.

    Targets with orthonormal columns give every direction the same length, so that what is hardly there counts as much
    as what all rows differ in.  Models with weights undo it; clusters, neighbours and scores of novelty cannot.  Here
    each :math:`g_k` is followed by one matrix W, the same for all parties, after which distances between anchor rows
    are, as nearly as the common space allows, the root mean square over the parties of those between the rows of
    :math:`\tilde A^{(k)}`.

    Parameters
    ----------
    integrator : BaseIntegrator or None, default=None
        Whose maps are linear or of kernels; cloned before it is fitted.  None takes `LTI` with intercepts, and as many
        components as the representation of lowest rank has.

    Attributes
    ----------
    integrator_ : BaseIntegrator
        Fitted.
    scaling_ : ndarray of shape (n_components, n_scaled)
        W.  Columns by descending variance of the anchor; fewer than the integrator's where parties' representations
        have fewer dimensions.
    kept_variance_ : float
        Part of the variance of the parties' anchors that is left, from 0 to 1; what is lost of it is lost of squared
        distances.
    integration_functions_ : dict of party to LinearMap or KernelMap
        They can be sent as those of the integrator can, and are as large.

    Notes
    -----
    Where all parties' maps are isometries of all columns, as PCA without reduction is, `kept_variance_` is 1 and
    distances are those between raw rows, whatever the parties' rotations and centres.  Standardised columns give
    distances between standardised rows, each party having its own standard; reduced ones leave out what was left out.

    The parties' representations count as they come: all should be made by one kind of obfuscator on columns in the same
    units, or the one with the largest numbers decides.

    Nothing is centred, for the parties' common shift is in no distance.

    W goes to every party as part of its map.  It tells what the covariance of the anchor is, as all parties see it on
    average; with two parties, each can take out its own part and has the other's.  That is a property of the other's
    f_k and of public rows, and concerns private rows as far as f_k was fitted on these.  The method inside tells
    directions; this one tells lengths as well.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from datacollab.analyst import AnchorScaled
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3)) * [10.0, 1.0, 0.1]
    >>> rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    >>> integrator = AnchorScaled().fit({"a": A, "b": A @ rotation + 5})
    >>> bool(np.allclose(pdist(integrator.transform({"b": A @ rotation + 5})["b"]), pdist(A)))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"integrator": [BaseIntegrator, None]}

    integrator_: BaseIntegrator
    scaling_: FloatArray
    kept_variance_: float

    def __init__(self, integrator: BaseIntegrator | None = None) -> None:
        self.integrator = integrator

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Fit the integrator, and scale its maps.

        Parameters
        ----------
        anchors : mapping of party to array-like of shape (n_anchors, n_intermediate)
            The parties' representations of the same anchor rows.
        y : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where the integrator needs them.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            When the integrator's maps are neither linear nor of kernels.
        AgreementError, RepresentationError, NumericalError, ValueError
            What the integrator raises.
        """
        self._validate_params()
        checked = {party: to_numpy(A) for party, A in check_parties(anchors, keep_library=True).items()}
        given = LTI(_lowest_rank(checked.values()), fit_intercept=True) if self.integrator is None else self.integrator
        self.integrator_ = clone(given).fit(anchors, y)
        mapped = [to_numpy(A) for A in self.integrator_.transform(anchors).values()]
        self.scaling_, self.kept_variance_ = metric_scaling(np.mean(mapped, axis=0), list(checked.values()))
        self.integration_functions_ = {
            party: _followed_by(g, self.scaling_) for party, g in self.integrator_.integration_functions_.items()
        }
        return self


def _lowest_rank(anchors: Any) -> int:
    """Of the centred representations; at least 1, for a constant one is refused by name later."""
    return max(1, min(_rank(A) for A in anchors))


def _rank(A: FloatArray) -> int:
    centred, _ = centred_columns(A)
    return column_space(centred).rank if centred.any() else 0


def _followed_by(g: IntegrationFunction, W: FloatArray) -> IntegrationFunction:
    if isinstance(g, LinearMap):
        intercept = None if g.intercept is None else g.intercept @ W
        return replace(g, coefficients=g.coefficients @ W, intercept=intercept)
    if isinstance(g, KernelMap):
        return replace(g, coefficients=g.coefficients @ like(W, g.coefficients))
    raise TypeError(
        f"The integration function of party {g.party!r} is a {type(g).__name__}; linear and kernel maps can be scaled."
    )
