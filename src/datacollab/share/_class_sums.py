"""Noisy sums over a party's classes: what it sends instead of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..bundle import Bundle, SignedFile
from ._sums_codec import SUMS_KIND, decode_sums, sums_contents
from ._sums_fields import SumsFields

__all__ = ["ClassSums", "class_sums_from"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ClassSums(SumsFields, SignedFile):
    r"""What the analyst gets from one party instead of a `Share`: no row, and no row's label.

    `Party.class_sums` makes it.  The shapes of all arrays, and everything but `sums` and `counts`, are the same
    whatever the party's rows are.  Arrays are copied and made read-only.

    Attributes
    ----------
    party : str or int
        The party's name.
    classes : ndarray of shape (n_classes,)
        Agreed on, and public; also those that the party has no row of.
    sums : ndarray of shape (n_classes, n_intermediate)
        :math:`\sum_{i: y_i = c} v_i` with noise, where :math:`v_i` is the row's representation less the mean of the
        anchor's, moved towards zero until it is no longer than `clip`.
    counts : ndarray of shape (n_classes,)
        How many rows each class has, with noise: fractions, and numbers below zero, among them.
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        :math:`\tilde A^{(k)} = f_k(A)`, in the row order of the anchor.
    clip : float
        C, from the anchor's representation alone.
    noise : float
        Standard deviation of the noise in each entry of `sums`; in each entry of `counts` it is ``noise / clip``.
    anchor_target : ndarray of shape (n_anchors,) or None
        Targets of the anchor rows, where assigned.
    epsilon, delta : float or None
        What the party's guarantee states of this message, together with whatever it sent of the same rows before;
        None where it can state nothing, as in an experiment with a `random_state`.  It is the party's word: nothing in
        the message proves it.

    Raises
    ------
    ShareError
        When the parts do not fit together, or are not finite.

    Examples
    --------
    >>> ClassSums(
    ...     party="a", classes=["no", "yes"], sums=[[0.5], [-1.5]], counts=[10.2, 7.9],
    ...     anchor_representation=[[0.0], [1.0], [2.0]], clip=1.0, noise=2.2,
    ... )
    ClassSums(party='a', classes=2, sums=(2, 1), anchor_representation=(3, 1), anchor_target=None, epsilon=None)
    """

    kind = SUMS_KIND

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return sums_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> ClassSums:
        return class_sums_from(bundle)

    def __repr__(self) -> str:
        anchor_target = None if self.anchor_target is None else self.anchor_target.shape
        return (
            f"ClassSums(party={self.party!r}, classes={len(self.classes)}, sums={self.sums.shape}, "
            f"anchor_representation={self.anchor_representation.shape}, anchor_target={anchor_target}, "
            f"epsilon={self.epsilon!r})"
        )


def class_sums_from(bundle: Bundle) -> ClassSums:
    """The sums in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or SHARE_MALFORMED where the parts do not fit together, or the manifest says something
        else of them.
    """
    return decode_sums(bundle, ClassSums)
