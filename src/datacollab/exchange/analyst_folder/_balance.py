"""Whether arms are alike in raw columns: propensity models to the parties, and their sums added up."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...bundle import Bundle, canonical_json, pack, seal, unpack, unseal, write_atomically
from ...errors import AgreementError, EffectWarning, ExchangeError
from ...model import MODEL_KIND, model_contents
from ...share import BALANCE_KIND, BalanceSums, balance_from
from ..log import AuditLog, locked
from ._folder import AnalystFolder
from ._shares import SEALED, ReceivedShare, check_signer

if TYPE_CHECKING:
    from ...effects import Balance, Effect

__all__ = ["BALANCE_FILE", "balance_of", "write_propensities"]

BALANCE_FILE = "balance.json"
"""What `balance_of` writes into the folder."""


def write_propensities(folder: AnalystFolder, found: Effect, received: Sequence[ReceivedShare]) -> list[Path]:
    """Put the propensity of an effect into the outbox, sealed to each party; the folder must be locked.

    Parameters
    ----------
    folder : AnalystFolder
    found : Effect
    received : sequence of ReceivedShare
        That it was estimated from.
    """
    project, written = folder.project, []
    for each in received:
        with warnings.catch_warnings():
            # `balance_of` says so when there is a balance.
            warnings.simplefilter("ignore", EffectWarning)
            inner, members = model_contents(found.party_model(each.party))
        purpose = f"propensity of {each.party} in {project.digest}"
        sealed = seal(pack(MODEL_KIND, inner, members), [project.parties[each.party]], purpose=purpose)
        facts: dict[str, Any] = {
            "party": each.party,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "project": project.name,
            "project_digest": project.digest,
            "share_digest": each.digest,
            "target": found.target,
        }
        data = pack(MODEL_KIND, facts, {SEALED: sealed}, key=folder._key)
        written.append((folder.path / "outbox" / f"{each.party}.dcpropensity", data))
    AuditLog(folder.path / "log.jsonl").append("export", parties=[each.party for each in received], propensity=True)
    (folder.path / "outbox").mkdir(mode=0o700, exist_ok=True)
    for path, data in written:
        write_atomically(path, data, mode=0o600)
    return [path for path, _ in written]


def balance_of(folder: AnalystFolder, files: Iterable[Path]) -> Balance:
    """Check the sums of parties, add them up, and write the differences between arms into the folder.

    Parameters
    ----------
    folder : AnalystFolder
    files : iterable of Path
        `.dcbalance` files, one of each party that sent one.

    Raises
    ------
    AgreementError
        When a party is there twice, or sums are for different effects.
    ExchangeError
        When a file is damaged, not signed by its party, of another project or share, or not what was agreed.
    """
    from ...effects import pooled_balance

    with locked(folder.path):
        received = folder.shares()
        digests = {each.party: each.digest for each in received}
        bundles = [(Path(file), unpack(Path(file), kind=BALANCE_KIND, what=str(file))) for file in files]
        sums = [_sums_of(folder, bundle, digests, str(file)) for file, bundle in bundles]
        with warnings.catch_warnings():
            # What was lost of each column is in the result.
            warnings.simplefilter("ignore", EffectWarning)
            found = pooled_balance(sums, of_means=not all(each.share.one_to_one for each in received))
        facts = found.to_dict() | {"project": folder.project.name, "project_digest": folder.project.digest}
        write_atomically(folder.path / BALANCE_FILE, canonical_json(_with_none(facts)), mode=0o600)
        told = {bundle.facts["party"]: bundle.digest for _, bundle in bundles}
        AuditLog(folder.path / "log.jsonl").append("balance", target=found.target, sums=told)
    return found


def _sums_of(folder: AnalystFolder, bundle: Bundle, digests: dict[str, str], where: str) -> BalanceSums:
    project, party = folder.project, bundle.facts.get("party")
    if not isinstance(party, str) or party not in project.parties:
        raise ExchangeError("NOT_A_MEMBER", f"{where} comes from a party that is not in project {project.name!r}.")
    check_signer(bundle, project.parties[party], party, where)
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH", f"Party {party!r} made {where} for another version of project {project.name!r}."
        )
    if party not in digests or bundle.facts.get("share_digest") != digests[party]:
        raise ExchangeError(
            "WRONG_SHARE",
            f"{where} is of another share of party {party!r} than the one in this folder. Take the party's last share "
            "first.",
        )
    opened = bundle
    if project.seal_shares:
        if bundle.members.keys() != {SEALED}:
            raise ExchangeError("SHARE_MALFORMED", f"{where} is not sealed, as the project wants. Ask party {party!r}.")
        inner = unseal(bundle.members[SEALED], folder._key, purpose=f"balance of {party} in {project.digest}")
        opened = unpack(inner, kind=BALANCE_KIND, what=f"What is sealed in {where}")
    sums = balance_from(opened)
    if sums.party != party or sums.columns != project.feature_names:
        raise AgreementError(f"{where} holds sums of another party or of other columns than project {project.name!r}.")
    return sums


def _with_none(facts: dict[str, Any]) -> dict[str, Any]:
    """Differences that are infinite, of a column that each arm has another value of, as None."""
    columns = {
        name: {key: value if abs(value) < float("inf") else None for key, value in each.items()}
        for name, each in facts["columns"].items()
    }
    return facts | {"columns": columns}
