"""The centre, which makes one target of groups' messages, and one model of their models or sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from datacollab.errors import AgreementError
from datacollab.model import AveragedClassifier, AveragedRegressor, PartyModel

from ._analyst import behind_identity
from ._heads import linear_from_moments, voted
from ._messages import GroupMessage, GroupMoments, GroupTarget
from ._sums import target_of

__all__ = ["Centre"]

M = TypeVar("M", GroupMessage, GroupMoments)


class Centre:
    """Finds the target that all groups of parties share.

    It sees no share: of each group a sum of functions of the anchor's representations, how many parties and rows there
    are, and, where there is to be one model for all groups, each group's model or the second moments of its rows.

    Parameters
    ----------
    groups : sequence of str, default=None
        Names of the groups that have to take part, all of them and no others.  None takes whoever sends.

    Examples
    --------
    >>> from datacollab_experiments.groups import Centre
    >>> Centre(["north", "south"]).target([])
    Traceback (most recent call last):
        ...
    datacollab.errors.AgreementError: Messages are missing from the groups ['north', 'south']. Wait for them.
    """

    def __init__(self, groups: Sequence[str] | None = None) -> None:
        self.groups = groups

    def target(self, messages: Iterable[GroupMessage]) -> GroupTarget:
        """The target of all groups together, the same in whatever order messages come.

        Parameters
        ----------
        messages : iterable of GroupMessage
            One from each group.

        Returns
        -------
        GroupTarget
            For all groups alike.

        Raises
        ------
        AgreementError
            When two messages carry one name, a group is missing or unknown, or groups have different settings or
            numbers of anchor rows.
        ValueError
            When the parties together do not allow so many components.

        Warns
        -----
        UndeterminedTargetWarning
            Of KTI, when other targets are as good.
        """
        ordered = self._ordered(messages, GroupMessage)
        first = ordered[0]
        for message in ordered[1:]:
            names = first.settings.keys() | message.settings.keys()
            differing = {name: each for name in sorted(names) if len(each := _set(name, first, message)) > 1}
            if first.settings["method"] != message.settings["method"]:
                differing = {"method": differing["method"]}
            if first.n_anchors != message.n_anchors:
                differing["n_anchors"] = [first.n_anchors, message.n_anchors]
            if differing:
                raise AgreementError(
                    f"Groups {first.group!r} and {message.group!r} do not integrate alike; they differ in "
                    f"{differing!r}. Agree on one anchor and one integration method with the same parameters, and "
                    "send messages anew."
                )
        return target_of(first.settings, ordered)

    def vote(self, models: Iterable[PartyModel], messages: Iterable[GroupMessage]) -> dict[str, PartyModel]:
        """The mean of groups' models, each as much as its group has rows: for each group the same.

        Parameters
        ----------
        models : iterable of PartyModel
            From `GroupAnalyst.head`.
        messages : iterable of GroupMessage
            Of the same groups.

        Returns
        -------
        dict of group to PartyModel
            For `GroupAnalyst.adopt`.  Their `estimator` is an `AveragedClassifier` or `AveragedRegressor`.

        Raises
        ------
        AgreementError
            When models and messages are of different groups, models are for different tasks or give no probabilities,
            or take rows of different widths.
        """
        ordered = self._ordered(messages, GroupMessage)
        named = {str(model.party): model for model in models}
        if named.keys() != {message.group for message in ordered}:
            raise AgreementError(
                f"Models are of the groups {sorted(named)!r}, and messages of "
                f"{[message.group for message in ordered]!r}; one of each is wanted from every group."
            )
        in_order = {message.group: named[message.group] for message in ordered}
        widths = {model.integration_function.n_intermediate for model in in_order.values()}
        if len(widths) > 1:
            raise AgreementError(f"Groups' models take rows of different widths: {sorted(widths)!r}.")
        average: AveragedClassifier | AveragedRegressor = voted(in_order, {each.group: each.n_rows for each in ordered})
        return _for_all(list(in_order), average, widths.pop())

    def linear_model(self, moments: Iterable[GroupMoments], *, shrinkage: float = 0.01) -> dict[str, PartyModel]:
        """The linear model that all groups' rows together would give, from their sums: for each group the same.

        Parameters
        ----------
        moments : iterable of GroupMoments
            From `GroupAnalyst.moments`.
        shrinkage : float, default=0.01
            Of a linear discriminant's covariance towards a multiple of the identity, from 0 to 1.

        Returns
        -------
        dict of group to PartyModel
            For `GroupAnalyst.adopt`.  Their `estimator` is a `LinearDiscriminantAnalysis` for classes, and for numbers
            a `Ridge` with the penalty of the least generalised cross-validation score.

        Raises
        ------
        AgreementError
            When moments are of different targets, or of targets of different kinds.
        ValueError
            When `shrinkage` is not between 0 and 1.
        """
        if not 0 <= shrinkage <= 1:
            raise ValueError(f"shrinkage must be from 0 to 1; got {shrinkage!r}.")
        ordered = self._ordered(moments, GroupMoments)
        apart = sorted(each.group for each in ordered if each.space != ordered[0].space)
        if apart:
            raise AgreementError(
                f"The moments of the groups {apart!r} are in another space than those of {ordered[0].group!r}: they "
                "are not onto the same target. Send all groups one target, and ask for moments anew."
            )
        model: LinearDiscriminantAnalysis | Ridge = linear_from_moments(ordered, shrinkage=shrinkage)
        width = len(ordered[0].gram) - ordered[0].n_outputs
        return _for_all([each.group for each in ordered], model, width)

    def _ordered(self, sent: Iterable[M], kind: type[M]) -> list[M]:
        """By name, so that sums are rounded alike in whatever order they come."""
        given = list(sent)
        if not all(isinstance(each, kind) for each in given):
            raise TypeError(f"A {kind.__name__} from each group is wanted; got something else.")
        ordered = sorted(given, key=lambda each: each.group)
        names: list[str] = [each.group for each in ordered]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise AgreementError(f"Several messages carry the names {twice!r}; keep the newest of each group.")
        wanted = set(names) if self.groups is None else set(self.groups)
        missing, unknown = sorted(wanted.difference(names)), sorted(set(names) - wanted)
        if missing:
            raise AgreementError(f"Messages are missing from the groups {missing!r}. Wait for them.")
        if unknown:
            raise AgreementError(f"The groups {unknown!r} take no part; the groups are {sorted(wanted)!r}.")
        if not ordered:
            raise AgreementError("No group sent anything; at least one is wanted.")
        return ordered

    def __repr__(self) -> str:
        return f"Centre(groups={self.groups!r})"


def _set(name: str, first: GroupMessage, second: GroupMessage) -> list[Any]:
    """What two groups have set, once where it is the same."""
    values = [each.settings.get(name) for each in (first, second)]
    return values[:1] if values[0] == values[1] else values


def _for_all(groups: Sequence[str], estimator: Any, n_components: int) -> dict[str, PartyModel]:
    return {group: behind_identity(group, estimator, n_components) for group in groups}
