"""Files of sums that came in, each checked against the project and its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ...agreement import Project
from ...bundle import KeyPair, time_of, unpack
from ...errors import AgreementError, ExchangeError, ShareError
from ...folder.analyst import ReceivedFile, check_anchors, sender_of
from ...sums import MASKED_SUM_KIND, read_message
from ..plan import plan_of
from ..rounds import ROUND_FILE, NextRound

_DIGITS = set("0123456789abcdef")
_HASH_DIGITS = 64


@dataclass(frozen=True, kw_only=True)
class SumsFacts:
    """The facts outside of a file of a party's sums."""

    project_digest: str
    anchor_commitment: str
    """Of the party's anchor (`Anchor.commitment`); equal in all files of one sum, and empty if it has no anchor."""
    n_components: int
    """Columns of the common map: those of the project, or fewer if the anchor's rank is smaller; 0 without anchor."""
    created: str
    """In ISO 8601."""

    def facts(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        return asdict(self)


def read_sums_facts(facts: Mapping[str, Any], project: Project, party: str, where: str) -> SumsFacts:
    """Read the facts outside of a party's file of sums, and check them against the project and its deadline."""
    try:
        said = SumsFacts(**{each.name: facts[each.name] for each in fields(SumsFacts)})
        n_digits = _HASH_DIGITS
        least = 1
        most = project.most_components
        if not project.has_anchor:
            # Of a study, which has no common map.
            n_digits = least = most = 0
        if not (set(said.anchor_commitment) <= _DIGITS and len(said.anchor_commitment) == n_digits):
            raise ValueError
        if type(said.n_components) is not int or not least <= said.n_components <= most:
            raise ValueError
        # One spelling of a time, so that a deadline cannot be passed by another.
        created = time_of(said.created)
    except (KeyError, TypeError, ValueError):
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} does not say what it should of project, anchor, columns and time. Have it "
            "sent again.",
        ) from None
    if said.project_digest != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"Party {party!r} made {where} for another version of project {project.name!r}, or another run. Compare "
            "what `datacollab project show` prints on both sides.",
        )
    project.check_deadline(created.date())
    return said


def receive_sums(
    source: bytes, project: Project, key: KeyPair, *, where: str, next_round: NextRound | None = None
) -> ReceivedFile:
    """Read and check a party's file of sums; refuse one of another run or round, or of another length.

    `key` is the analyst's, to which it is sealed, `next_round` the round that is being collected, if it is not the
    first, and `where` the name of the file in errors.  An ExchangeError is
    raised if the file is damaged, is not signed by the party that it names, belongs to another version of the project
    or another run, was made after the deadline, or holds something else than it says or the project allows.
    """
    bundle = unpack(source, kind=MASKED_SUM_KIND, what=where)
    party = sender_of(bundle, project, where)
    outside = read_sums_facts(bundle.facts, project, party, where)
    try:
        message = read_message(source, key, signed_by=project.parties[party])
        plan = plan_of(
            project,
            anchor_commitment=outside.anchor_commitment,
            n_components=outside.n_components,
            next_round=next_round,
        )
        if project.sums.rounds is not None and message.context != plan.agreed.context:
            raise ExchangeError("SHARE_MALFORMED", _explain_round(next_round))
        # Masks cancel among messages of the same run alone.
        plan.agreed.check(message)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{where} of party {party!r}: {error}") from None
    except (AgreementError, ShareError) as error:
        raise ExchangeError("SHARE_MALFORMED", f"{where}: {error}") from None
    return ReceivedFile(party=party, share=message, facts=outside.facts(), digest=bundle.digest)


def _explain_round(next_round: NextRound | None) -> str:
    """Say which round is being collected, to a party whose file is of another."""
    if next_round is None:
        return "it is not of the first round, which is being collected. Take the party's first file."
    return (
        f"it is not of round {next_round.number}, which is being collected, or answers another request. Send the party "
        f"{ROUND_FILE} from the outbox."
    )


def check_sums_fit(received: ReceivedFile, present: Mapping[str, ReceivedFile], *, where: str) -> None:
    """Refuse a second file of a party, and one of another anchor or another number of columns than the others'."""
    party = received.party
    known = present.get(party)
    if known is not None and known.digest != received.digest:
        raise ExchangeError(
            "ALREADY_THERE",
            f"Party {party!r} has sent its sums already, and {where} is another file. The difference of two tells "
            "rows: remove this one, and tell the party.",
        )
    check_anchors(
        received,
        present,
        "Ledgers refuse a new run over the same rows, so a party with the wrong anchor leaves (`datacollab party "
        "withdraw`), and the others share again.",
    )
    n_components = received.facts["n_components"]
    if differing := [name for name, each in present.items() if each.facts["n_components"] != n_components]:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} has {n_components} columns in the common map; those of {differing!r} have "
            "another number. Have all parties compare their versions of datacollab.",
        )
