"""The agreement as everybody refers to it: by a digest of all its entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...bundle import canonical_json, digest, spelt
from ._agreement import Agreement
from ._content import project_content

__all__ = ["Project"]


@dataclass(frozen=True, kw_only=True)
class Project(Agreement):
    """The agreement: columns, task, anchor, rules and members.

    Attributes
    ----------
    name : str
    purpose : str
        What the model is for, in words.
    revision : int
        Raised whenever a signed agreement is changed, so that an older one is not taken for a newer.
    columns : tuple of Column
        In the order of the columns of the matrix.
    task : Task
    anchor : AnchorRecipe
    max_components : int
        The most columns that a party's representation may have.
    min_rows, min_class_rows : int
        The fewest rows of a party, and of each class that it has.
    quorum : int
        The fewest parties for an integration.
    deadline : date or None
        The last day on which shares are made.
    seal_shares : bool
        Whether shares can be read by the analyst alone, and not by whoever carries them.
    owner, analyst : PublicKey
        Who signs this and makes the anchor; who integrates.  They differ, as the analyst must not know the anchor.
    parties : dict of str to PublicKey
        In the order of their names.

    Raises
    ------
    ExchangeError
        When the entries contradict one another.
    """

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the agreement itself: neither comments, layout, the order of entries nor the signature count."""
        return digest(canonical_json(project_content(self)))

    @property
    def fingerprint(self) -> str:
        """Twenty letters and digits, that is 100 bits, of the digest, to compare on the telephone."""
        return spelt(bytes.fromhex(self.digest), 20)
