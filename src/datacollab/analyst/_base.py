"""What all integration methods share: checking the anchors, applying the integration functions.

* What parameters may be that several integration methods have.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._threads import one_thread_if_small
from .._validation import (
    FloatArray,
    Interval,
    PartyName,
    StrOptions,
    array_namespace,
    check_parties,
    in_frame,
    name_parties,
)
from ..errors import AgreementError, RepresentationError, SinglePartyWarning, UnknownPartyError
from ..model import IntegrationFunction
from ._graphs import NeighborGraph

__all__ = [
    "N_COMPONENTS",
    "SHARED_CONSTRAINTS",
    "BaseIntegrator",
    "Representations",
    "check_anchors",
    "check_n_components",
]


_OUTPUTS = ("default", "pandas", "polars")

Representations = Mapping[Any, ArrayLike] | Sequence[ArrayLike]
"""Several parties' arrays: keyed by party, or a plain sequence that is keyed 0..K-1."""


def check_anchors(
    anchors: Representations, *, keep_library: bool = False, alone: str = "there is nothing to align"
) -> dict[PartyName, FloatArray]:
    """Check what all parties sent for the same anchor rows."""
    checked = check_parties(anchors, keep_library=keep_library)
    rows = {party: A.shape[0] for party, A in checked.items()}
    if len(set(rows.values())) > 1:
        raise AgreementError(
            f"Every party must transform the same anchor dataset, but the numbers of anchor rows differ: {rows}. "
            "Send the same anchor to all parties and ask for new shares."
        )
    for party, A in checked.items():
        if A.shape[0] < 2:
            raise RepresentationError(f"Party {party!r}: one anchor row cannot be aligned; at least two are wanted.")
        if array_namespace(A).all(A[:1, :] == A):
            raise RepresentationError(
                f"Party {party!r}: all {A.shape[0]} rows of the anchor representation are equal, so it carries no "
                "information. The party should check its obfuscator against the anchor."
            )
    if len(checked) == 1:
        warnings.warn(
            f"Only party {next(iter(checked))!r} takes part: {alone}.",
            SinglePartyWarning,
            stacklevel=4,
        )
    return checked


def check_n_components(n_components: int, largest: int, reason: str) -> None:
    """Refuse more components than the data allow."""
    if n_components > largest:
        raise ValueError(
            f"n_components={n_components} is more than the data allow: at most {largest}, because {reason}. "
            "Lower n_components, or ask the parties for richer representations."
        )


class BaseIntegrator(BaseEstimator, ABC):
    """Base of the integration methods: estimators over several parties at once.

    A subclass implements `fit`: it begins with ``anchors = self._start_fit(anchors)``, which checks parameters against
    the subclass's ``_parameter_constraints`` (as scikit-learn's estimators have them; none by default) and returns
    the parties' arrays by name, and it ends by setting `integration_functions_`.  `datacollab.testing.check_integrator`
    checks the result.

    Attributes
    ----------
    integration_functions_ : dict of party to IntegrationFunction
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _keeps_library: ClassVar[bool] = False
    """Whether `fit` computes with arrays of torch or CuPy where they lie."""

    _output: str = "default"
    """No parameter: `clone` leaves it behind, so that whoever works with a clone gets arrays."""

    integration_functions_: dict[PartyName, IntegrationFunction]

    @abstractmethod
    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Learn one integration function per party."""

    def transform(self, representations: Representations) -> dict[PartyName, FloatArray]:
        """Map each party's intermediate representation into the common feature space.

        Parameters
        ----------
        representations : mapping of party to array-like of shape (n_rows, n_intermediate)
            Any subset of the parties.  A plain sequence stands for the parties ``0..K-1``.

        Returns
        -------
        dict of party to ndarray of shape (n_rows, n_components)
            After a fit on torch or CuPy arrays, such arrays; after `set_output`, data frames.

        Raises
        ------
        UnknownPartyError
            When a party took no part in `fit`.
        RepresentationError
            When the rows cannot be used; the message names the party.
        """
        check_is_fitted(self)
        named = name_parties(representations, what="representation")
        unknown = [party for party in named if party not in self.integration_functions_]
        if unknown:
            raise UnknownPartyError(
                f"No integration function for {unknown!r}; known parties: {list(self.integration_functions_)!r}. "
                "A new party needs a new integration with its share included."
            )
        mapped = {party: self.integration_functions_[party](rows) for party, rows in named.items()}
        if self._output == "default":
            return mapped
        names = self.get_feature_names_out()
        return {party: in_frame(self._output, rows, names, named[party]) for party, rows in mapped.items()}

    def set_output(self, *, transform: str | None = None) -> Self:
        """Say in what `transform` gives the rows of each party, as scikit-learn's transformers have it.

        It holds for this object: a clone, and the analyst, who fits one, give and take arrays.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
            Arrays, or data frames with the index of the table given; None changes nothing.

        Raises
        ------
        ValueError
            When it is something else.

        Examples
        --------
        >>> from datacollab import LTI
        >>> anchors = {"a": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], "b": [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]}
        >>> integrator = LTI(2).fit(anchors).set_output(transform="pandas")
        >>> list(integrator.transform(anchors)["a"].columns)
        ['lti0', 'lti1']
        """
        if transform is not None:
            if transform not in _OUTPUTS:
                raise ValueError(f"transform must be one of {_OUTPUTS}, or None; got {transform!r}.")
            self._output = transform
        return self

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the common columns: the method's, in small letters, and a number.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        n_components = next(iter(self.integration_functions_.values())).n_components
        return np.array([f"{type(self).__name__.lower()}{number}" for number in range(n_components)], dtype=object)

    def fit_transform(self, anchors: Representations, y: ArrayLike | None = None) -> dict[PartyName, FloatArray]:
        """Fit, and return the collaboration representations of the anchors."""
        return self.fit(anchors, y).transform(anchors)

    def _start_fit(self, anchors: Representations) -> dict[PartyName, FloatArray]:
        self._validate_params()
        return check_anchors(anchors, keep_library=self._keeps_library)

    @staticmethod
    def _few_threads(anchors: Mapping[PartyName, FloatArray]) -> AbstractContextManager[Any]:
        """A context with one thread of linear algebra where there are too few anchor rows for more to help."""
        return one_thread_if_small(next(iter(anchors.values())).shape[0])


N_COMPONENTS: list[Any] = [Interval(Integral, 1, None, closed="left")]

SHARED_CONSTRAINTS: dict[str, Any] = {
    "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median", "scale"}), callable, Mapping],
    "graph": [NeighborGraph, None],
    "penalty_graph": [NeighborGraph, None],
    "penalty_epsilon": [Interval(Real, 0, None, closed="left")],
    "center": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}
"""Of `KTI` and `KTICV`."""
