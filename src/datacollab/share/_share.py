"""What a party sends, once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .._notebooks import card, chain, table
from ..bundle import Bundle, KeyPair, PublicKey, pack, unpack, write_atomically
from ..targets import TargetKind
from ._codec import SHARE_KIND, decode_share, share_contents
from ._fields import ShareFields

__all__ = ["Share", "share_from"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Share(ShareFields):
    r"""What the analyst gets from one party: every field here, and nothing else.

    Row counts, and how often each target occurs, follow from the fields.  Arrays are copied and made read-only.

    Attributes
    ----------
    party : str or int
        The party's name.
    representation : ndarray of shape (n_samples, n_intermediate)
        :math:`\tilde X^{(k)} = f_k(X^{(k)})`, obfuscated, never raw.
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        :math:`\tilde A^{(k)} = f_k(A)`, in the row order of the anchor.
    target : ndarray of shape (n_samples,)
        :math:`y^{(k)}`.  Targets are disclosed to the analyst as they are.  Times to events and effects have fields,
        see `datacollab.targets`; where there are no targets, the array has none.
    anchor_target : ndarray of shape (n_anchors,) or None
        Targets of the anchor rows, where assigned.
    one_to_one : bool
        Whether each shared row is the representation of one own row, unchanged.  Where a defence was at work it is
        not, and what a model says of the shared rows is not what it says of the party's own.
    anchor_rows : ndarray of shape (n_samples,) or None
        Where the shared rows are made of the anchor's, as some defences do: which anchor row each is made of.  They
        are drawn at random, so this tells nothing of the own rows; it lets the analyst keep what comes from one anchor
        row together when it scores models.

    Raises
    ------
    ShareError
        When the arrays do not fit together, or are not finite.

    Examples
    --------
    >>> Share(party="a", representation=[[0.1], [0.2]], anchor_representation=[[0.0], [1.0], [2.0]], target=[0, 1])
    Share(party='a', representation=(2, 1), anchor_representation=(3, 1), target=(2,), anchor_target=None)
    """

    def save(self, path: str | Path, *, key: KeyPair | None = None) -> None:
        """Write the share to a `.dcshare` file (no pickle); whoever has the file can read it.

        Parameters
        ----------
        path : str or Path
            A file there is replaced.
        key : KeyPair, optional
            Whose signature it gets.

        Raises
        ------
        ExchangeError
            When targets are neither texts nor numbers.
        """
        facts, members = share_contents(self)
        write_atomically(Path(path), pack(SHARE_KIND, facts, members, key=key), mode=0o600)

    @staticmethod
    def load(path: str | Path, *, signed_by: PublicKey | None = None) -> Share:
        """Read a share that `save` wrote.

        Parameters
        ----------
        path : str or Path
        signed_by : PublicKey, optional
            Who has to have signed it.

        Raises
        ------
        ExchangeError
            When the file is damaged, not signed as wanted, or inconsistent.
        """
        return share_from(unpack(Path(path), kind=SHARE_KIND, signed_by=signed_by))

    def __repr__(self) -> str:
        anchor_target = None if self.anchor_target is None else self.anchor_target.shape
        kind = "" if self.target_kind is TargetKind.SINGLE else f", target_kind={self.target_kind.value!r}"
        return (
            f"Share(party={self.party!r}, representation={self.representation.shape}, "
            f"anchor_representation={self.anchor_representation.shape}, target={self.target.shape}, "
            f"anchor_target={anchor_target}{kind})"
        )

    def _repr_html_(self) -> str:
        n_rows, n_columns = self.representation.shape
        kind = "" if self.target_kind is TargetKind.SINGLE else f", {self.target_kind.value}"
        targets = "none" if self.target_kind is TargetKind.NONE else f"{len(self.target)}{kind}"
        anchor_targets = "without targets" if self.anchor_target is None else "with targets"
        each = "the map of one own row" if self.one_to_one else "no own row by itself: defences were at work"
        return card(
            f"Share of party {self.party}",
            chain(held=["shared"], f="stays at the party", shared=f"{n_rows} \u00d7 {n_columns}"),
            table(
                [
                    ("rows", f"{n_rows} of {n_columns} columns, each {each}"),
                    ("targets", targets),
                    ("anchor", f"{len(self.anchor_representation)} rows, {anchor_targets}"),
                    ("size", f"{self.nbytes:,} bytes"),
                ]
            ),
        )


def share_from(bundle: Bundle) -> Share:
    """The share in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or SHARE_MALFORMED where the arrays do not fit together, or the manifest says something
        else of them.
    """
    return decode_share(bundle, Share)
