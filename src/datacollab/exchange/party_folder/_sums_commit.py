"""A message of sums, released in an order that lets a command be killed at any moment.

1. ``.sum.dcstate.next``: the message's bytes, signed by the party, and what belongs to them.
2. ``ledger.json``: the sum's entry.  **From here on the party has shared.**
3. ``sum.dcstate``: the file of step 1 under its final name, to be sent again.
4. ``mask.dcstate``: the mask key, renamed, written over and removed; ``public.key`` without its card.
5. ``log.jsonl``: the entry "share" with the message's digest.
6. ``outbox/NAME.dcsum``: the message; then the file of step 1 is removed.

Killed before 2, the ledger does not know the sum, and the file of step 1 is removed: nothing happened, and no byte of
it was where files to send are looked for.  Killed after 2, steps 3 to 6 follow, with the same bytes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...bundle import Bundle, sync_folder, unpack, write_atomically
from ...errors import ExchangeError
from ...sums import message_to_bytes
from ..ledger import Ledger
from ..log import AuditLog
from ..project import Project
from ..sums import withdrawal_to_bytes
from ._files import Files, OwnFiles
from ._mask_key import erase_file, load_mask_key, public_key_text
from ._outbox import open_outbox
from ._sums_share import PreparedSum, made_folder

__all__ = ["commit_sum", "kept_sum", "recover_sum", "send_again", "withdraw"]

_MEMBER = "message.bin"


def commit_sum(
    files: Files,
    own: OwnFiles,
    ledger: Ledger,
    prepared: PreparedSum,
    *,
    project: Project,
    entry: Mapping[str, Any],
) -> Path:
    """Make a party's message, and release it; the folder must be locked.

    Parameters
    ----------
    files : Files
    own : OwnFiles
    ledger : Ledger
    prepared : PreparedSum
        Its mask key is erased.
    project : Project
    entry : mapping of str to object
        What else the log says of it.

    Returns
    -------
    Path
        The file to be sent.

    Raises
    ------
    ExchangeError
        ALREADY_SHARED if the ledger refuses the sum, BUSY, POLICY_INVALID.  Nothing happened.
    """
    name, context = prepared.summary.party, prepared.plan.agreed.context.hex()
    made_folder(ledger.path.parent)
    open_outbox(files, files.sum_file(name))
    mask_public = prepared.mask_key.public.hex()
    message = prepared.plan.agreed.mask(name, prepared.part, prepared.mask_key)
    data = message_to_bytes(message, own.key, project.analyst, told=prepared.told.facts())
    facts = {
        "party": name,
        "project_digest": prepared.told.project_digest,
        "anchor_commitment": prepared.told.anchor_commitment,
        "n_components": prepared.told.n_components,
        "context": context,
        "mask_public": mask_public,
        "ledger": str(ledger.path.resolve()),
        "entry": {
            "digest": unpack(data).digest,
            "bytes": len(data),
            "context": context,
            "project_digest": prepared.told.project_digest,
            "n_rows": prepared.summary.n_rows,
            "n_numbers": prepared.summary.n_numbers,
            "noise": prepared.summary.noise,
            # Whoever knows the log's head before this entry could test guesses on the next one.
            "nonce": secrets.token_hex(16),
            **entry,
        },
    }
    own.write(files.next_sum, facts, {_MEMBER: data})
    try:
        ledger.enter(
            prepared.rows,
            context=context,
            purpose=f"{project.name}, run {project.sharing.run if project.sharing else 1}",
            noise=prepared.summary.noise,
            agreement=project.digest,
            parties={party: key.text for party, key in project.parties.items()},
            void=prepared.void,
        )
    except ExchangeError:
        files.next_sum.unlink()
        raise
    return _finish(files, own)


def recover_sum(files: Files, own: OwnFiles) -> None:
    """Finish or undo what a killed command left; the folder must be locked.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED if the ledger cannot be asked whether the sum is in it.
    """
    if not files.next_sum.exists():
        return
    facts = own.read(files.next_sum).facts
    kept = own.read(files.sum).facts if files.sum.exists() else {}
    ledger = Path(facts["ledger"])
    if not ledger.parent.is_dir():
        raise ExchangeError(
            "STATE_DAMAGED",
            f"A share was interrupted, and the folder of its ledger, {ledger.parent}, is not there: nobody can say "
            "whether it was made. Bring the folder back, then run the command again.",
        )
    # The ledger is read without its key: entries are known by their context.
    entries = Ledger(ledger, key=bytes(32)).entries
    if kept.get("context") == facts["context"] or any(entry.context == facts["context"] for entry in entries):
        _finish(files, own)
    else:
        files.next_sum.unlink()


def kept_sum(files: Files, own: OwnFiles, project: Project) -> Bundle | None:
    """Return what is kept of the message that was released in a project; None if there is none.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED or PASSPHRASE_WRONG.
    """
    if not files.sum.exists():
        return None
    bundle = own.read(files.sum)
    return bundle if bundle.facts.get("project_digest") == project.digest else None


def send_again(files: Files, own: OwnFiles, project: Project) -> Path | None:
    """Put the message that was released into the outbox once more: the same bytes, and nothing is computed.

    Returns
    -------
    Path or None
        The file to be sent; None if nothing was released in this project.
    """
    kept = kept_sum(files, own, project)
    if kept is None:
        return None
    path = files.sum_file(kept.facts["party"])
    if not path.exists() or path.read_bytes() != kept.members[_MEMBER]:
        open_outbox(files, path)
        AuditLog(files.log).append("share-again", digest=kept.facts["entry"]["digest"])
        write_atomically(path, kept.members[_MEMBER], mode=0o600)
    return path


def withdraw(files: Files, own: OwnFiles, ledger: Ledger, project: Project, name: str) -> Path:
    """Leave a run for good, and write the word that says so; the folder must be locked.

    The ledger is told first: from then on no message of this run is made or sent again.

    Returns
    -------
    Path
        The file for the other parties.

    Raises
    ------
    ExchangeError
        POLICY_INVALID or BUSY.  Nothing happened.
    """
    made_folder(ledger.path.parent)
    path = files.withdrawal(name)
    open_outbox(files, path)
    had_shared = kept_sum(files, own, project) is not None
    ledger.close(project.digest)
    files.sum_file(name).unlink(missing_ok=True)
    erase_file(files.mask)
    if files.public.exists():
        write_atomically(files.public, public_key_text(files.root, own.key, own.passphrase).encode())
    AuditLog(files.log).append("withdraw", project_digest=project.digest, had_shared=had_shared)
    data = withdrawal_to_bytes(name, project.name, project.digest, had_shared, own.key)
    write_atomically(path, data, mode=0o600)
    return path


def _finish(files: Files, own: OwnFiles) -> Path:
    """Do steps 3 to 6, or what is left of them."""
    bundle = own.read(files.next_sum)
    facts = bundle.facts
    write_atomically(files.sum, files.next_sum.read_bytes(), mode=0o600)
    mask_key = load_mask_key(files, own)
    if mask_key is not None and mask_key.public.hex() == facts["mask_public"]:
        mask_key.erase()
        os.replace(files.mask, files.spent_mask)
        sync_folder(files.root)
    erase_file(files.spent_mask)
    if files.public.exists() and not files.mask.exists():
        write_atomically(files.public, public_key_text(files.root, own.key, own.passphrase).encode())
    log = AuditLog(files.log)
    if facts["entry"]["digest"] not in (each["facts"].get("digest") for each in log.entries()):
        log.append("share", **facts["entry"])
    path = files.sum_file(facts["party"])
    open_outbox(files, path)
    write_atomically(path, bundle.members[_MEMBER], mode=0o600)
    files.next_sum.unlink()
    return path
