"""Kinds of files: who sends, sees and is given each, and until when; and project files that may follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from datacollab.bundle import Envelope
from datacollab.errors import ExchangeError

from ._person import Person, Role


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    bundle : str
        The kind of bundle that it is.
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


@dataclass(frozen=True)
class FileFacts:
    """Facts that decide who may fetch a file.

    Attributes
    ----------
    sender : str
        Fingerprint.
    recipient : str
        Fingerprint; empty where it is for all parties.
    is_current : bool
        Whether it belongs to the project file that holds now.
    """

    kind: str
    sender: str
    recipient: str
    is_current: bool


def may_fetch(person: Person, file: FileFacts) -> bool:
    """Whether a file is this person's to have: its sender's and its recipients', nobody else's.

    Files for all parties are for those of the project file that it belongs to: a new one may name others, an analyst
    among them who was a party.
    """
    # An empty recipient stands for all parties, and is no key's fingerprint.
    if person.fingerprint in (file.sender, file.recipient):
        return True
    return KINDS[file.kind].to_all and file.is_current and Role.PARTY in person.roles


def may_see(person: Person, file: FileFacts) -> bool:
    """Whether a person sees that a file is there, and how large it is."""
    # Owner and auditor watch over the exchange: that a file came, and never its bytes.
    return may_fetch(person, file) or bool({Role.OWNER, Role.AUDITOR} & person.roles)


def check_follows(revision: int, digest: str, there: tuple[int, str] | None) -> bool:
    """Refuse a project file that does not follow the one that is there; whether it is another one.

    Parameters
    ----------
    revision, digest
        Of the new one.
    there : (int, str), optional
        Revision and digest of the one that holds.

    Raises
    ------
    ExchangeError
        ``PROJECT_OLDER``.
    """
    if there is None:
        return True
    # The very file once more, after an answer that was lost: no fault, and no entry of the log.
    if digest == there[1]:
        return False
    # An equal number with other words would be a fork that members cannot order.
    if revision <= there[0]:
        raise ExchangeError(
            "PROJECT_OLDER",
            f"The file is revision {revision} of the project; the hub has {there[0]}. If the new one is meant, sign it "
            "again with a higher revision.",
        )
    return True


def check_open(deadline: date | None, now: float) -> None:
    """Refuse a share after the last day, which ends at midnight in UTC.

    Raises
    ------
    ExchangeError
        ``DEADLINE_PASSED``.
    """
    # One clock and one zone for all: by local times the day would end at several moments.
    if deadline is not None and datetime.fromtimestamp(now, UTC).date() > deadline:
        raise ExchangeError(
            "DEADLINE_PASSED",
            f"The project's deadline was the end of {deadline.isoformat()} (UTC), by the hub's clock. Ask its owner "
            "for a project file with a later one.",
        )
