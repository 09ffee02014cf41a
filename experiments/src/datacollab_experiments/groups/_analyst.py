"""The analyst of one group of parties, where several such groups share a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from datacollab._threads import one_thread_if_small
from datacollab._typing import FloatArray, PartyName
from datacollab.analyst import BaseIntegrator, Collaboration
from datacollab.analyst._analyst import by_party
from datacollab.analyst._linear import check_anchors
from datacollab.analyst._training import TrainingRows, common_kind, training_rows
from datacollab.errors import AgreementError
from datacollab.model import LinearMap, PartyModel
from datacollab.share import Share
from datacollab.targets import TargetKind

from ._additive import check_additive, settings_of
from ._heads import moments_of
from ._messages import GroupMessage, GroupMoments, GroupTarget
from ._sums import fitted_onto, sums_of

__all__ = ["GroupAnalyst", "behind_identity"]

_ALONE = "its group's message to the centre is then about its anchor representation alone"


class GroupAnalyst:
    """Integrates one group of parties into a space that it has in common with other groups [1]_.

    Shares stay with their group's analyst.  The centre gets sums over the group's parties of functions of the anchor's
    representations, and returns the target that one analyst with all shares would have found; there is no
    approximation in it.  Each group then maps its parties onto it, and trains on its own rows.

    Parameters
    ----------
    name : str
        The group's.
    integrator : LTI, GEP, MPP or KTI
        With the same settings in all groups.  Widths of kernels are found by each party's anchor representation, as
        ever.
    estimator : estimator
        Any scikit-learn classifier or regressor; cloned before it is fitted.
    anchor_weight : float, default=0.0
        Weight of an anchor row beside a party's row in the training of h, where the anchor has targets.
    class_weight : "balanced", dict of class to float, or None, default=None
        Weights of classes in training.

    Notes
    -----
    Leaves the group: what `message`, `head` and `moments` return, when someone sends it.  Stays: shares, collaboration
    representations, targets.  A message is a sum, which is no encryption: of a group of one party it is that party's
    own term, and two parties' terms can often be told apart.  The page on groups says what the centre can learn.

    The published method has federated learning between groups.  How its groups find a common space was not followed
    here: the sums are exact.

    References
    ----------
    .. [1] Imakura and Sakurai (2024). FedDCL: a federated data collaboration learning as a hybrid-type
       privacy-preserving framework based on federated learning and data collaboration. arXiv:2409.18356.

    Examples
    --------
    >>> import datacollab as dc
    >>> from datacollab_experiments.groups import Centre, GroupAnalyst
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = dc.datasets.load("digits")
    >>> anchor = X[600:900]
    >>> def share(name, rows):
    ...     return dc.Party(name, dc.obfuscator("pca", n_components=16)).fit(X[rows], y[rows]).share(anchor)
    >>> north = GroupAnalyst("north", dc.LTI(12), LogisticRegression(max_iter=2000))
    >>> south = GroupAnalyst("south", dc.LTI(12), LogisticRegression(max_iter=2000))
    >>> messages = [
    ...     north.message([share("a", slice(0, 150)), share("b", slice(150, 300))]),
    ...     south.message([share("c", slice(300, 450)), share("d", slice(450, 600))]),
    ... ]
    >>> target = Centre().target(messages)
    >>> target
    GroupTarget(method='LTI', groups=['north', 'south'], n_parties=4, target=(300, 12))
    >>> collaboration = north.finish(target)
    >>> collaboration.parties
    ['a', 'b']
    """

    def __init__(
        self,
        name: str,
        integrator: BaseIntegrator,
        estimator: Any,
        *,
        anchor_weight: float = 0.0,
        class_weight: str | Mapping[Any, float] | None = None,
    ) -> None:
        self.name = name
        self.integrator = integrator
        self.estimator = estimator
        self.anchor_weight = anchor_weight
        self.class_weight = class_weight
        self._shares: dict[PartyName, Share] = {}
        self._rows: TrainingRows | None = None
        self._finished: tuple[BaseIntegrator, str] | None = None

    def message(self, shares: Iterable[Share]) -> GroupMessage:
        """What the centre gets; the shares are kept for `finish`.

        Parameters
        ----------
        shares : iterable of Share
            One from each of the group's parties.

        Returns
        -------
        GroupMessage

        Raises
        ------
        TypeError
            When the integrator or a share is something else.
        ValueError
            When the method, or a setting of it, cannot be split between groups; the message says why.
        AgreementError, RepresentationError, NumericalError, NotEnoughMemoryError
            As in the integrator's `fit`.

        Warns
        -----
        SinglePartyWarning
            When there is one party only, about which the message then is.
        """
        check_additive(self.integrator)
        named = by_party(shares)
        if (kind := common_kind(named)) is not TargetKind.SINGLE:
            raise AgreementError(
                f"Targets are of kind {kind.value!r}, of which groups of parties have no model yet. Let one analyst "
                "have all shares, or share classes or numbers."
            )
        training = training_rows(named)
        anchors = check_anchors(_anchors_of(named), alone=_ALONE)
        with self._few_threads(anchors):
            arrays = sums_of(self.integrator, anchors, training.anchor_target)
        message = GroupMessage(
            group=self.name,
            settings=settings_of(self.integrator, training.anchor_target),
            n_anchors=len(next(iter(anchors.values()))),
            n_parties=len(named),
            n_rows=sum(len(share.target) for share in named.values()),
            arrays=arrays,
        )
        self._shares, self._rows = named, training
        return message

    def finish(self, target: GroupTarget) -> Collaboration:
        """Map the group's parties onto the target of all groups, and train h on the group's rows.

        Parameters
        ----------
        target : GroupTarget
            From the centre, made of the message that `message` returned and others.

        Returns
        -------
        Collaboration
            Of the group's own parties.  Its model h is the group's; with `adopt` it becomes that of all groups.

        Raises
        ------
        AgreementError
            When the target is for other settings, another anchor or without this group, or `message` was not called.
        """
        shares, training = self._training()
        self._check_target(target, shares, training)
        anchors = _anchors_of(shares)
        with self._few_threads(anchors):
            fitted = fitted_onto(self.integrator, anchors, target)
        class_weight = self.class_weight if is_classifier(self.estimator) else None
        weights = training.weights(self.anchor_weight, class_weight)
        with one_thread_if_small(max(len(training.target), target.n_anchors)):
            estimator, representations = training.train(self.estimator, fitted, shares, weights)
        self._finished = fitted, target.digest
        return Collaboration(fitted, estimator, representations, anchors=anchors)

    def head(self, collaboration: Collaboration) -> PartyModel:
        """The group's h alone, for a vote: a model of the group, behind the identity, that can be saved and sent.

        Parameters
        ----------
        collaboration : Collaboration
            From `finish`.
        """
        return behind_identity(self.name, collaboration.estimator_, _n_components(collaboration))

    def adopt(self, collaboration: Collaboration, model: PartyModel) -> Collaboration:
        """The same collaboration with the model h of all groups.

        Parameters
        ----------
        collaboration : Collaboration
            From `finish`.
        model : PartyModel
            From the centre, for this group.

        Raises
        ------
        AgreementError
            When the model is another group's, or takes rows of another width.
        """
        n_components = _n_components(collaboration)
        if model.party != self.name or model.integration_function.n_intermediate != n_components:
            raise AgreementError(
                f"Group {self.name!r}: the model is for {model.party!r}, and takes rows of "
                f"{model.integration_function.n_intermediate} columns, where {n_components} are wanted. Ask the centre "
                "for the group's own."
            )
        return Collaboration(
            collaboration.integrator_,
            model.estimator,
            collaboration.representations_,
            anchors=collaboration.anchors_,
        )

    def moments(self, collaboration: Collaboration, *, least: int = 5) -> GroupMoments:
        """Sums over the group's rows, from which the centre trains a linear model as if it had all groups' rows.

        They tell how many rows each class has, and their mean and covariance in the common space.

        Parameters
        ----------
        collaboration : Collaboration
            From the last call of `finish`.
        least : int, default=5
            Rows that each class must have, of numbers the group: a sum over one row is that row.

        Raises
        ------
        AgreementError
            When there are fewer, or the collaboration is from elsewhere.
        """
        _, training = self._training()
        if self._finished is None or collaboration.integrator_ is not self._finished[0]:
            raise AgreementError(
                f"Group {self.name!r}: the collaboration is not from the last call of finish, so that it is not known "
                "onto which target it maps. Give the one that finish returned."
            )
        rows = np.vstack([collaboration.representations_[party] for party in training.parties])
        own = training.target[: len(rows)]
        as_classes = bool(is_classifier(self.estimator))
        fewest = int(np.unique(own, return_counts=True)[1].min()) if as_classes else len(own)
        if fewest < least:
            what = "a class has" if as_classes else "the group has"
            raise AgreementError(
                f"Group {self.name!r}: {what} {fewest} rows, and at least {least} are wanted, since sums over few rows "
                "tell of each. Merge groups or classes, or send the model of `head`."
            )
        classes, gram = moments_of(rows, own, as_classes=as_classes)
        return GroupMoments(group=self.name, space=self._finished[1], classes=classes, gram=gram)

    def _training(self) -> tuple[dict[PartyName, Share], TrainingRows]:
        if self._rows is None:
            raise AgreementError(f"Group {self.name!r}: call message(shares) first; it keeps the shares.")
        return self._shares, self._rows

    def _check_target(self, target: GroupTarget, shares: Mapping[PartyName, Share], training: TrainingRows) -> None:
        if self.name not in target.groups:
            raise AgreementError(
                f"Group {self.name!r}: the target is of the groups {list(target.groups)!r}. Send the group's message, "
                "and ask the centre for a new target."
            )
        n_anchors = len(next(iter(shares.values())).anchor_representation)
        if target.n_anchors != n_anchors:
            raise AgreementError(
                f"Group {self.name!r}: the target has {target.n_anchors} anchor rows, the group's shares {n_anchors}. "
                "Use the same anchor in all groups."
            )
        own = settings_of(self.integrator, training.anchor_target)
        differing = sorted(name for name in own.keys() | target.settings.keys() if not _alike(own, target, name))
        if differing:
            raise AgreementError(
                f"Group {self.name!r}: the target is for other settings than the group's own: {differing!r} differ. "
                "Agree on one integration method with the same parameters, and send messages anew."
            )

    def _few_threads(self, anchors: Mapping[PartyName, FloatArray]) -> Any:
        return one_thread_if_small(len(next(iter(anchors.values()))))

    def __repr__(self) -> str:
        return f"GroupAnalyst({self.name!r}, integrator={self.integrator!r}, estimator={self.estimator!r})"


def _anchors_of(shares: Mapping[PartyName, Share]) -> dict[PartyName, FloatArray]:
    return {party: share.anchor_representation for party, share in shares.items()}


def behind_identity(group: str, estimator: Any, n_components: int) -> PartyModel:
    """A model h as one of a group, whose rows are collaboration representations already."""
    return PartyModel(party=group, integration_function=LinearMap(group, np.eye(n_components)), estimator=estimator)


def _n_components(collaboration: Collaboration) -> int:
    return next(iter(collaboration.integrator_.integration_functions_.values())).n_components


def _alike(own: Mapping[str, Any], target: GroupTarget, name: str) -> bool:
    return name in own and name in target.settings and bool(own[name] == target.settings[name])
