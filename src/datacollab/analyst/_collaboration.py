"""What the analyst holds after the integration, and what goes back from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._notebooks import card, chain, class_names, table
from .._validation import FloatArray, PartyName
from ..errors import UnknownPartyError
from ..model import AnchorPredictions, PartyModel, anchor_predictions
from ..survival import SurvivalModel
from ._base import BaseIntegrator
from ._candidates import Selection

__all__ = ["Collaboration"]

_MOST_SHOWN = 10
"""Parties that a notebook lists."""


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
    selection_ : Selection or None
        All candidates that were tried, with their losses on rows left out, where there was a choice.
    left_out_ : dict of party to ndarray of shape (n_samples,) or (n_samples, n_classes)
        What h says of each row of a share, in its order, with that row left out; of parties whose rows are their own.
    without_ : dict of party to estimator
        h trained without a party, for those whose shared rows are not their own rows one by one.
    anchors_ : dict of party to ndarray of shape (n_anchors, n_intermediate)
        Anchor representations as they were shared, of which `anchor_predictions` are made.
    """

    def __init__(
        self,
        integrator: BaseIntegrator,
        estimator: Any,
        representations: Mapping[PartyName, FloatArray],
        *,
        selection: Selection | None = None,
        left_out: Mapping[PartyName, FloatArray] | None = None,
        without: Mapping[PartyName, Any] | None = None,
        anchors: Mapping[PartyName, FloatArray] | None = None,
    ) -> None:
        self.integrator_ = integrator
        self.estimator_ = estimator
        self.representations_ = dict(representations)
        self.selection_ = selection
        self.left_out_ = dict(left_out or {})
        self.without_ = dict(without or {})
        self.anchors_ = dict(anchors or {})

    @property
    def parties(self) -> list[PartyName]:
        """Names of the parties, in the order of their shares."""
        return list(self.integrator_.integration_functions_)

    def party_model(self, party: PartyName) -> PartyModel:
        """What goes back to one party: its own g_k, h, and what h says of its rows left out.

        Raises
        ------
        UnknownPartyError
            When the party took no part.
        """
        if party not in self.integrator_.integration_functions_:
            raise UnknownPartyError(f"Party {party!r} took no part; the parties are {self.parties!r}.")
        estimator = self.estimator_
        return PartyModel(
            party=party,
            integration_function=self.integrator_.integration_functions_[party],
            # Of a model with strata, a party gets its own.
            estimator=estimator.for_party(party) if isinstance(estimator, SurvivalModel) else estimator,
            left_out=self.left_out_.get(party),
            without_party=self.without_.get(party),
        )

    def anchor_predictions(self, party: PartyName) -> AnchorPredictions:
        """What goes back to one party in place of a model: what h says of the anchor's rows by the party's own g_k.

        Raises
        ------
        UnknownPartyError
            When the party took no part, or its share is not at hand.
        """
        model = self.party_model(party)
        if party not in self.anchors_:
            raise UnknownPartyError(
                f"The anchor representation of party {party!r} is not at hand; fit the analyst anew."
            )
        return anchor_predictions(model, self.anchors_[party])

    def _repr_html_(self) -> str:
        functions = self.integrator_.integration_functions_
        first = next(iter(functions.values()))
        rows = [
            (str(party), f"{len(X)} rows", f"{functions[party].n_intermediate} columns in, {X.shape[1]} out")
            for party, X in list(self.representations_.items())[:_MOST_SHOWN]
        ]
        more = len(functions) - len(rows)
        return card(
            f"Collaboration of {len(functions)} parties",
            chain(
                held=["g", "common", "h"],
                f="secret, of each party",
                shared="from each party",
                g=f"{class_names(self.integrator_)}, one for each",
                common=f"{sum(map(len, self.representations_.values()))} \u00d7 {first.n_components}",
                h=class_names(self.estimator_),
            ),
            table([*rows, *([(f"and {more} more",)] if more > 0 else [])]),
        )

    def __repr__(self) -> str:
        return (
            f"Collaboration(parties={self.parties!r}, integrator={type(self.integrator_).__name__}, "
            f"estimator={type(self.estimator_).__name__})"
        )
