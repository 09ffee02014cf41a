"""What a party sends, once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName, check_representation, count_missing
from ..bundle import KeyPair, PublicKey, pack, unpack, write_atomically
from ..errors import RepresentationError, ShareError
from ._codec import SHARE_KIND, share_contents, share_from

__all__ = ["Share"]


_MOST_ENTRY = 1e30
"""Products of four are finite in double precision, and entries are in single."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Share:
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
        :math:`y^{(k)}`.  Targets are disclosed to the analyst as they are.
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

    party: PartyName
    representation: FloatArray
    anchor_representation: FloatArray
    target: NDArray[Any]
    anchor_target: NDArray[Any] | None = None
    one_to_one: bool = True
    anchor_rows: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        try:
            X = check_representation(self.representation, self.party)
            A = check_representation(self.anchor_representation, self.party, what="anchor representation")
        except RepresentationError as error:
            raise ShareError(str(error)) from None
        if X.shape[1] != A.shape[1]:
            raise ShareError(
                f"Party {self.party!r}: its rows have {X.shape[1]} columns but its anchor has {A.shape[1]}; transform "
                "both with the same fitted obfuscator."
            )
        for what, table in (("representation", X), ("anchor representation", A)):
            if np.abs(table).max() > _MOST_ENTRY:
                raise ShareError(
                    f"Party {self.party!r}: the {what} has entries beyond {_MOST_ENTRY:g}, with which nobody's "
                    "could be integrated. Scale the columns before or after the obfuscator."
                )
        self._freeze("representation", X)
        self._freeze("anchor_representation", A)
        self._freeze("target", self._checked_target(self.target, X.shape[0], "target"))
        if self.anchor_target is not None:
            self._freeze("anchor_target", self._checked_target(self.anchor_target, A.shape[0], "anchor_target"))
        if self.anchor_rows is not None:
            self._freeze("anchor_rows", self._checked_anchor_rows(X.shape[0], A.shape[0]))

    def _freeze(self, name: str, array: NDArray[Any]) -> None:
        copy = array.copy()
        copy.setflags(write=False)
        object.__setattr__(self, name, copy)

    def _checked_target(self, values: ArrayLike, n_rows: int, name: str) -> NDArray[Any]:
        target = np.asarray(values)
        if target.shape != (n_rows,):
            raise ShareError(
                f"Party {self.party!r}: {name} must have one entry per row, shape ({n_rows},); got {target.shape}."
            )
        if count_missing(target) or (target.dtype.kind == "f" and not np.isfinite(target).all()):
            raise ShareError(f"Party {self.party!r}: {name} contains NaN, None or infinity; drop such rows.")
        return target

    def _checked_anchor_rows(self, n_rows: int, n_anchors: int) -> NDArray[np.intp]:
        positions = np.asarray(self.anchor_rows)
        if positions.shape != (n_rows,) or positions.dtype.kind not in "iu" or self.one_to_one:
            raise ShareError(
                f"Party {self.party!r}: anchor_rows must be None, or {n_rows} whole numbers, one per shared row, and "
                f"one_to_one False; got shape {positions.shape} of {positions.dtype} and one_to_one={self.one_to_one}."
            )
        if positions.min() < 0 or positions.max() >= n_anchors:
            raise ShareError(f"Party {self.party!r}: anchor_rows must be positions among the {n_anchors} anchor rows.")
        return positions.astype(np.intp)

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        arrays = (self.representation, self.anchor_representation, self.target, self.anchor_target, self.anchor_rows)
        return sum(array.nbytes for array in arrays if array is not None)

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
        return (
            f"Share(party={self.party!r}, representation={self.representation.shape}, "
            f"anchor_representation={self.anchor_representation.shape}, target={self.target.shape}, "
            f"anchor_target={anchor_target})"
        )
