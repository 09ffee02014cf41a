"""What a group of parties sends to the centre."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ..bundle import Bundle, SignedFile
from ..errors import ShareError
from ._group_file import arrays_of, contents_of, frozen, malformed, too_large
from ._group_settings import MOST_ROWS, check_settings, is_name
from ._group_sums import arrays_wanted, check_sums

__all__ = ["GROUP_KIND", "GroupMessage", "group_message_contents", "group_message_from"]

GROUP_KIND = "datacollab.group"

_FACTS = ("group", "settings", "n_anchors", "n_parties", "n_rows")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GroupMessage(SignedFile):
    r"""What the centre gets from one group: every field here, and nothing else.

    The arrays are functions of what the group's parties made of the anchor, and of nobody's own rows.

    Attributes
    ----------
    group : str
        The group's name.
    settings : dict of str to object
        The integration method and its parameters; groups have to agree on them.
    n_anchors : int
    n_parties : int
        Of the group.
    n_rows : int
        Of all its parties together, by which the group counts in a vote.
    arrays : dict of str to ndarray
        Sums over the group's parties.  Of `LTI` and `GEP` ``factor`` F of shape (n_anchors, rank) with
        :math:`F F^\top = \sum_k Q_k Q_k^\top`, of `MPP` with
        :math:`F F^\top = \sum_k \tilde A^{(k)} \tilde A^{(k)\top}`.
        Of `KTI` ``triangle`` of shape (n_anchors (n_anchors + 1) / 2,), the lower triangle of
        :math:`\lambda \sum_k (\Sigma_k + \lambda I)^{-1}`, column by column; with a graph also ``edges`` of shape
        (n_edges, 2), each from an anchor row to an earlier one, and ``edge_weights`` of shape (n_edges,), summed over
        the parties.

    Raises
    ------
    ShareError
        When the fields do not fit together, or no sum over so many parties can be like that.
    """

    kind = GROUP_KIND

    group: str
    settings: Mapping[str, Any]
    n_anchors: int
    n_parties: int
    n_rows: int
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)

    def __post_init__(self) -> None:
        if not is_name(self.group):
            raise ShareError("A group's name must be a text of 1 to 200 characters.")
        counts = (self.n_anchors, self.n_parties, self.n_rows)
        if any(type(count) is not int or not 1 <= count <= MOST_ROWS for count in counts) or self.n_anchors < 2:
            raise ShareError(f"Group {self.group!r}: its numbers of anchor rows, parties and rows are impossible.")
        try:
            settings = check_settings(self.settings)
            check_sums(settings, self.arrays, self.n_anchors, self.n_parties)
        except ShareError as error:
            raise ShareError(f"Group {self.group!r}: {error}. Have the message made again.") from None
        object.__setattr__(self, "settings", settings)
        object.__setattr__(self, "arrays", {name: frozen(array) for name, array in self.arrays.items()})

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return group_message_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> GroupMessage:
        return group_message_from(bundle)

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        return sum(array.nbytes for array in self.arrays.values())

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        return (
            f"GroupMessage(group={self.group!r}, method={self.settings['method']!r}, n_anchors={self.n_anchors}, "
            f"n_parties={self.n_parties}, n_rows={self.n_rows}, arrays={shapes})"
        )


def group_message_contents(message: GroupMessage) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of the bundle of a message."""
    return contents_of({name: getattr(message, name) for name in _FACTS}, message.arrays)


def group_message_from(bundle: Bundle) -> GroupMessage:
    """The message in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or GROUP_MALFORMED where the parts do not fit together.
    """
    try:
        settings = check_settings(bundle.facts.get("settings")) if bundle.kind == GROUP_KIND else {}
        arrays = arrays_of(bundle, GROUP_KIND, _FACTS, [arrays_wanted(settings)] if settings else [])
        return GroupMessage(**{name: bundle.facts[name] for name in _FACTS}, arrays=arrays)
    except ShareError as error:
        raise malformed(str(error).partition(". Have")[0].rstrip(".")) from None
    except MemoryError:
        raise too_large() from None
