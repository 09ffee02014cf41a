"""Kinds of files: who sends each, to whom, and its required contents."""

from __future__ import annotations

from dataclasses import dataclass

from datacollab.bundle import Envelope
from datacollab.errors import ExchangeError

from ._person import Person, Role

__all__ = ["KINDS", "Kind", "check_envelope", "kind_of"]


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    name : str
    bundle : str
        The kind of bundle that it is.
    sender : Role
    to : Role
        PARTY where the sender names one, ANALYST, or MEMBERS' parties together: see `to_all`.
    to_all : bool
        Whether it is for all parties.
    facts : frozenset of str
        That such a bundle must have.
    """

    name: str
    bundle: str
    sender: Role
    to: Role
    to_all: bool = False
    facts: frozenset[str] = frozenset()

    @property
    def names_recipient(self) -> bool:
        """Whether the sender says which party it is for."""
        return self.to == Role.PARTY and not self.to_all


KINDS = {
    kind.name: kind
    for kind in (
        # Never for the analyst, who could use the anchor to undo parties' maps.
        Kind("anchor", "datacollab.anchor", Role.OWNER, Role.PARTY, to_all=True),
        Kind("share", "datacollab.share", Role.PARTY, Role.ANALYST),
        Kind("sums", "datacollab.masked-sum", Role.PARTY, Role.ANALYST),
        # Parties answer it with further sums over the same rows.
        Kind("round", "datacollab.round", Role.ANALYST, Role.PARTY, to_all=True, facts=frozenset({"number"})),
        # Each is for one party alone, and fits that party's map.
        Kind("model", "datacollab.model", Role.ANALYST, Role.PARTY, facts=frozenset({"n_components"})),
        Kind("sums-model", "datacollab.sums-model", Role.ANALYST, Role.PARTY),
        Kind("answers", "datacollab.answers", Role.ANALYST, Role.PARTY),
    )
}
"""By name."""


def kind_of(name: str, person: Person) -> Kind:
    """A kind that a person may send.

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``, ``NOT_ALLOWED``.
    """
    if name not in KINDS:
        raise ExchangeError("REQUEST_MALFORMED", f"kind: one of {', '.join(KINDS)} is wanted.")
    kind = KINDS[name]
    # The route is open to all senders; which kind comes from whom is decided here.
    if kind.sender not in person.roles:
        raise ExchangeError(
            "NOT_ALLOWED", f"A file of the kind {name} comes from the project's {kind.sender}. Send it from there."
        )
    return kind


def check_envelope(kind: Kind, envelope: Envelope, *, project_digest: str, party: str | None) -> None:
    """Refuse a bundle that differs from its sender's announcement.

    Parameters
    ----------
    kind : Kind
    envelope : Envelope
        Verified, and signed by the sender.
    project_digest : str
        Of the project file that holds now.
    party : str, optional
        Name of the party that sends it or is to get it.

    Raises
    ------
    ExchangeError
        ``WRONG_KIND``, ``PROJECT_HASH_MISMATCH``, ``WRONG_RECIPIENT``.
    """
    # By what the sender signed: a hub cannot read the contents, and need not.
    if envelope.kind != kind.bundle or not kind.facts <= envelope.facts.keys():
        raise ExchangeError(
            "WRONG_KIND", f"The file is no {kind.name}, but {envelope.kind}. Give the file that belongs to the kind."
        )
    # Under another project file it may be of other columns or other rules.
    if envelope.facts.get("project_digest") != project_digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            "The file was made for another version of the project file than the one that the hub has. Compare "
            "`datacollab project show` on both sides, and make the file again.",
        )
    # A file for all parties is about none of them.
    if party is not None and envelope.facts.get("party") != party:
        raise ExchangeError(
            "WRONG_RECIPIENT", f"The file says that it is about another party than {party}. Send the right file."
        )
