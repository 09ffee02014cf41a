"""The analyst: shares in, one model per party out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, UnknownPartyError
from ..model import PartyModel
from ..share import Share
from ._base import BaseIntegrator

__all__ = ["Analyst", "Collaboration"]


class Collaboration:
    """What the analyst holds after the integration.

    Attributes
    ----------
    integrator_ : BaseIntegrator
        The fitted integration method, with one g_k per party.
    estimator_ : estimator
        The model h, fitted on the collaboration representations of all parties.
    representations_ : dict of party to ndarray of shape (n_samples, n_components)
        Collaboration representations.  They stay with the analyst: a colluding party could invert them.
    """

    def __init__(
        self, integrator: BaseIntegrator, estimator: Any, representations: Mapping[PartyName, FloatArray]
    ) -> None:
        self.integrator_ = integrator
        self.estimator_ = estimator
        self.representations_ = dict(representations)

    @property
    def parties(self) -> list[PartyName]:
        """Names of the parties, in the order of their shares."""
        return list(self.integrator_.integration_functions_)

    def party_model(self, party: PartyName) -> PartyModel:
        """What goes back to one party: its own g_k, and h.

        Raises
        ------
        UnknownPartyError
            When the party took no part.
        """
        if party not in self.integrator_.integration_functions_:
            raise UnknownPartyError(f"Party {party!r} took no part; the parties are {self.parties!r}.")
        return PartyModel(
            party=party,
            integration_function=self.integrator_.integration_functions_[party],
            estimator=self.estimator_,
        )

    def __repr__(self) -> str:
        return (
            f"Collaboration(parties={self.parties!r}, integrator={type(self.integrator_).__name__}, "
            f"estimator={type(self.estimator_).__name__})"
        )


class Analyst:
    """Aligns the parties' shares and trains one model on all of them.

    Parameters
    ----------
    integrator : BaseIntegrator
        `KTI`, `LTI`, `GEP`, `MPP`, `ODC` or another; cloned before it is fitted.
    estimator : estimator
        Any scikit-learn classifier or regressor; cloned before it is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.linear_model import LogisticRegression
    >>> import datacollab as dc
    >>> X, y = dc.datasets.load("digits")
    >>> rows = {"clinic": slice(0, 150), "hospital": slice(150, 300)}
    >>> anchor, anchor_target = X[300:600], y[300:600]
    >>> parties = {name: dc.Party(name, PCA(8)).fit(X[own], y[own]) for name, own in rows.items()}
    >>> shares = [party.share(anchor, anchor_target) for party in parties.values()]
    >>> analyst = dc.Analyst(dc.LTI(n_components=8), LogisticRegression(max_iter=2000))
    >>> collaboration = analyst.fit(shares)
    >>> model = collaboration.party_model("clinic")
    >>> parties["clinic"].predict(X[600:605], model).shape
    (5,)
    """

    def __init__(self, integrator: BaseIntegrator, estimator: Any) -> None:
        self.integrator = integrator
        self.estimator = estimator

    def fit(self, shares: Iterable[Share]) -> Collaboration:
        """Integrate the shares, and fit the model on the pooled collaboration representations.

        Parameters
        ----------
        shares : iterable of Share
            One from each party.

        Returns
        -------
        Collaboration

        Raises
        ------
        TypeError
            When the integrator or a share is something else.
        AgreementError
            When two shares carry one name, their anchors differ in length, their anchor targets differ, or some
            targets are numbers and others text.
        RepresentationError
            When an anchor representation cannot be aligned; the message names the party.

        Notes
        -----
        That all parties transformed the same anchor in the same row order cannot be seen from the shares, but for the
        number of rows and, where sent, their targets.  Different orders give a model that is hardly better than
        guessing; parties should compare their anchors among themselves.
        """
        if not isinstance(self.integrator, BaseIntegrator):
            raise TypeError(
                f"integrator must be an integration method such as KTI(); got {type(self.integrator).__name__}."
            )
        named = _by_party(shares)
        anchors = {party: share.anchor_representation for party, share in named.items()}
        integrator = clone(self.integrator).fit(anchors, _common_anchor_target(named))
        representations = integrator.transform({party: share.representation for party, share in named.items()})
        estimator = clone(self.estimator).fit(np.vstack(list(representations.values())), _pooled_target(named))
        return Collaboration(integrator, estimator, representations)

    def __repr__(self) -> str:
        return f"Analyst(integrator={self.integrator!r}, estimator={self.estimator!r})"


def _by_party(shares: Iterable[Share]) -> dict[PartyName, Share]:
    if isinstance(shares, Share | Mapping):
        raise TypeError(f"A list of shares is wanted, one from each party; got one {type(shares).__name__}.")
    named: dict[PartyName, Share] = {}
    for share in shares:
        if not isinstance(share, Share):
            raise TypeError(f"Shares are wanted, as Party.share returns them; got {type(share).__name__}.")
        if share.party in named:
            raise AgreementError(f"Two shares carry the name {share.party!r}; keep the newer one, or rename a party.")
        named[share.party] = share
    if not named:
        raise AgreementError("No share was given; at least two are wanted.")
    return named


def _common_anchor_target(shares: Mapping[PartyName, Share]) -> NDArray[Any] | None:
    """The anchor targets, which every party that sends them must send alike."""
    senders = {party: share.anchor_target for party, share in shares.items() if share.anchor_target is not None}
    if not senders:
        return None
    first, reference = next(iter(senders.items()))
    for party, target in senders.items():
        if not np.array_equal(target, reference):
            raise AgreementError(
                f"Parties {first!r} and {party!r} sent different anchor targets, so they used different anchors or "
                "row orders. Send the same anchor to all parties and ask for new shares."
            )
    return reference


def _pooled_target(shares: Mapping[PartyName, Share]) -> NDArray[Any]:
    text = {party: share.target.dtype.kind in "OSU" for party, share in shares.items()}
    if len(set(text.values())) > 1:
        kinds = {party: "text" if is_text else "numbers" for party, is_text in text.items()}
        raise AgreementError(f"Some parties' targets are numbers and others' are text: {kinds}. Agree on one coding.")
    return np.concatenate([share.target for share in shares.values()])
