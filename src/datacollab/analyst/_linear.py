"""Integration methods whose maps are matrices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .._validation import FloatArray, PartyName
from ..linalg import ColumnSpace, centred_columns, column_space, leading_left_singular
from ..model import IntegrationFunction, LinearMap
from ._base import BaseIntegrator, Representations, check_n_components

__all__ = ["LinearIntegrator", "common_directions", "residual"]


class LinearIntegrator(BaseIntegrator):
    r"""Base of the methods with :math:`g_k(x) = x G^{(k)}`: a subclass says in `_align` which matrices.

    A subclass with a parameter `fit_intercept` that is true gets representations less the means of the party's anchor,
    and its maps intercepts: :math:`g_k(x) = (x - \bar a_k) G^{(k)}`.

    Attributes
    ----------
    integration_functions_ : dict of party to LinearMap
    """

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Learn one linear map per party.

        Parameters
        ----------
        anchors : mapping of party to array-like of shape (n_anchors, n_intermediate)
            The parties' representations of the same anchor rows; row counts agree.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        AgreementError, RepresentationError
            When row counts differ, or a representation is not finite, empty, or the same in every row; the message
            names the party.
        ValueError
            When the representations together do not allow so many components.  What else a method refuses is said at
            its class.
        """
        checked = self._start_fit(anchors)
        centred, means = self._without_means(checked)
        with self._few_threads(checked):
            self.integration_functions_ = self._maps(self._align(centred), means)
        return self

    def _without_means(
        self, anchors: dict[PartyName, FloatArray]
    ) -> tuple[dict[PartyName, FloatArray], dict[PartyName, FloatArray]]:
        """Representations as `_align` takes them, and what was taken off them, where maps are affine."""
        if not getattr(self, "fit_intercept", False):
            return anchors, {}
        centred = {party: centred_columns(A) for party, A in anchors.items()}
        return {party: A for party, (A, _) in centred.items()}, {party: mean for party, (_, mean) in centred.items()}

    @staticmethod
    def _maps(
        matrices: Mapping[PartyName, FloatArray], means: Mapping[PartyName, FloatArray]
    ) -> dict[PartyName, IntegrationFunction]:
        return {
            party: LinearMap(party, G, -means[party] @ G if party in means else None) for party, G in matrices.items()
        }

    @abstractmethod
    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        """Compute every party's matrix, of shape (n_intermediate, n_components), and set the other learnt attributes.

        Parameters
        ----------
        anchors : dict of party to ndarray of shape (n_anchors, n_intermediate)
            Checked.
        """


def common_directions(
    anchors: Mapping[PartyName, FloatArray], n_components: int
) -> tuple[dict[PartyName, ColumnSpace], FloatArray, FloatArray, FloatArray]:
    """The column space of every party's anchor, and the leading singular triplets of all bases side by side.

    Returns
    -------
    spaces : dict of party to ColumnSpace
    U, singular_values, V : ndarray
        All of them; there are at least `n_components`.

    Raises
    ------
    ValueError
        When the spaces span fewer dimensions together.
    """
    spaces = {party: column_space(A) for party, A in anchors.items()}
    U, singular_values, V = leading_left_singular(np.hstack([space.basis for space in spaces.values()]))
    check_n_components(n_components, U.shape[1], "that is the dimension the representations span together")
    return spaces, U, singular_values, V


def residual(fitted: Iterable[FloatArray], target: FloatArray) -> float:
    r""":math:`\sum_k \|g_k(\tilde A^{(k)}) - Z\|_F^2` (eq. linear-naive-formulation)."""
    return float(sum(np.sum((A - target) ** 2) for A in fitted))
