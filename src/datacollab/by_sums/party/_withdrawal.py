"""A party's signed statement that it has left a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...agreement import Project
from ...bundle import KeyPair, now, pack, unpack
from ...errors import ExchangeError
from ...folder.ledger import Ledger

_WITHDRAWAL = "datacollab.withdrawal"
_TYPES = {"party": str, "project": str, "project_digest": str, "had_shared": bool, "created": str}


@dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """A party's signed statement that it has left a run; without it, a run of the others could reveal its sums."""

    party: str
    project: str
    project_digest: str
    """Another run is another digest."""
    had_shared: bool
    """Whether the party's message had been released."""
    created: str
    """In ISO 8601."""
    signer: str
    """The party's public key as text."""


def withdrawal_to_bytes(party: str, project: str, project_digest: str, had_shared: bool, key: KeyPair) -> bytes:
    """Return the bytes of a `.dcwithdrawal` file, signed with the party's key."""
    facts = {"party": party, "project": project, "project_digest": project_digest, "had_shared": had_shared}
    return pack(_WITHDRAWAL, {**facts, "created": now()}, {}, key=key)


def read_withdrawal(data: bytes, *, where: str) -> Withdrawal:
    """Read a withdrawal of unknown origin; the caller compares its signer with the run's key of that party."""
    bundle = unpack(data, kind=_WITHDRAWAL, what=where)
    facts = bundle.facts
    # Every entry and its type, as the file may come from anybody.
    whole = facts.keys() == _TYPES.keys() and all(type(facts[name]) is kind for name, kind in _TYPES.items())
    if bundle.signer is None or bundle.members or not whole:
        raise ExchangeError(
            "SHARE_MALFORMED", f"{where} is no signed withdrawal. Ask the party to run `datacollab party withdraw`."
        )
    return Withdrawal(**facts, signer=bundle.signer.text)


def words_on_left(name: str, withdrawal: Withdrawal | None) -> str:
    """Return the warning about a party that left an earlier run, with or without a withdrawal."""
    who = "gave no withdrawal"
    if withdrawal is not None:
        if not withdrawal.had_shared:
            return f"Party {name} left an earlier run over these rows before it shared: no total of it can be made."
        who = "says that it shared before it left"
    return (
        f"Party {name} left an earlier run over these rows and {who}. If its file arrived, the totals of both runs "
        f"together tell what {name} added."
    )


def leave_out_runs(
    ledger: Ledger, project: Project, withdrawals: Sequence[Withdrawal], without: Sequence[str]
) -> tuple[frozenset[str], list[str]]:
    """Return the agreements that all missing parties have left, and warnings about that for the approver."""
    here = {key.text for key in project.parties.values()}
    void: set[str] = set()
    used: set[object] = set()
    sentences: dict[str, str] = {}
    for entry in ledger.entries:
        gone = {name: key for name, key in entry.parties.items() if key not in here}
        # A withdrawal counts for the run and the key that it names.
        signed = {
            name: each
            for name, key in gone.items()
            for each in withdrawals
            if (each.project_digest, each.signer) == (entry.agreement, key)
        }
        used.update(signed.values(), gone.keys() & set(without))
        # Without one of its parties a total is never made; all that are missing must have left, or one may come back.
        if gone and gone.keys() <= {*signed, *without}:
            void.add(entry.agreement)
            sentences |= {name: words_on_left(name, signed.get(name)) for name in gone}
    unused = [each.party for each in withdrawals if each not in used] + [each for each in without if each not in used]
    if unused:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"Project {project.name!r}: {unused} left no earlier run into which these rows went, or are in this one "
            "again. Leave the withdrawal or the name out.",
        )
    return frozenset(void), list(sentences.values())
