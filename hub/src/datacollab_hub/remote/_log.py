"""The log of a hub: whether it continues the one seen last, and whether the hub gives a folder all that it names."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from datacollab.errors import ExchangeError
from datacollab.remote import AGREEMENT, Entry, Kept, MemberFolder, Remote, project_of

from ..requests import LOG_START, check_hub_log


def continue_log(
    kept: Kept, entries: Sequence[Mapping[str, Any]], project: str, url: str, folder: MemberFolder
) -> Kept:
    """Return the notes to remember once these entries were seen.

    Parameters
    ----------
    kept : Kept
    entries : sequence of mapping
        All of the log from the entry that was seen last, itself included; from the first one if there was none.
    project : str
        The hub's name of it.
    url : str
        Whom an error names.
    folder : MemberFolder

    Raises
    ------
    ExchangeError
        LOG_BROKEN, when an entry does not follow from the one before it, the one that was seen last is another now or
        missing, or a file that the hub said to have from here was not received by it.
    """
    previous = LOG_START
    if kept.seq:
        last = entries[0] if entries else {}
        # A log that was begun anew, or forks, has another entry in this place.
        if (last.get("seq"), last.get("digest")) != (kept.seq, kept.head):
            raise _broken(
                url, f"entry {kept.seq}, the last one that this folder saw, is another now, or is not there any more."
            )
        previous = kept.head
        entries = entries[1:]
    try:
        head = check_hub_log(project, entries, after=kept.seq, previous=previous)
    except ExchangeError as error:
        raise _broken(url, str(error)) from None
    received = [entry for entry in map(_read_received, entries) if entry is not None]
    own = (entry.sha256 for entry in received if entry.sender == folder.key.fingerprint)
    # Once each, in the log's order.
    shown = tuple(dict.fromkeys((*kept.shown, *own)))
    # The hub said that it took these files, so its log has to show them by now.
    missing = set(kept.expected).difference(shown)
    if missing:
        raise _broken(url, f"it does not show {len(missing)} of the files that the hub has from this folder.")
    seq = kept.seq + len(entries)
    owed, agreed = _replay(kept, entries, folder)
    if not seq:
        # An empty log has no end to remember.
        head = ""
    return replace(kept, seq=seq, head=head, expected=(), shown=shown, owed=tuple(owed), agreed=agreed)


def _replay(kept: Kept, entries: Sequence[Mapping[str, Any]], folder: MemberFolder) -> tuple[Sequence[str], str]:
    """Files for the folder, and the digest of the project file, after these entries."""
    owed = dict.fromkeys(kept.owed)
    agreed = kept.agreed
    for entry in entries:
        if entry["action"] == "agreement":
            # Files of earlier project files stay where they are.
            owed = {}
            agreed = str(entry["facts"].get("digest"))
        elif entry["action"] == "withdrawn":
            owed.pop(str(entry["facts"].get("sha256")), None)
        received = _read_received(entry)
        if received is not None and received.is_for(folder):
            owed[received.sha256] = None
    return list(owed), agreed


def _read_received(entry: Mapping[str, Any]) -> Entry | None:
    """The file that a hub took, if an entry says so; how large it is, logs do not say."""
    facts = entry["facts"]
    said = (facts.get("sha256"), facts.get("kind"), entry["who"], facts.get("recipient") or "")
    # A hub may write anything into its log, and what is no file's entry counts for nothing.
    if entry["action"] != "received" or not all(isinstance(each, str) for each in said):
        return None
    sha256, kind, sender, recipient = said
    return Entry(sha256=sha256, kind=kind, size=0, sender=sender, recipient=recipient)


def _broken(url: str, reason: str) -> ExchangeError:
    return ExchangeError(
        "LOG_BROKEN",
        f"The log of {url} is not what it was: {reason} Whoever runs the hub changed or lost entries. Compare its "
        "head with the other members' (`datacollab remote status`), and ask the operator.",
    )


def check_given(folder: MemberFolder, remote: Remote, before: Kept, seen: Kept, refused: Container[str]) -> None:
    """Check the files of a pull against the hub's log.

    Parameters
    ----------
    folder : MemberFolder
        After the pull.
    remote : Remote
        The hub.
    before, seen : Kept
        Notes from before the pull; and from after it and a look at the log.
    refused : container of str
        SHA-256 of each refused file, or "agreement": the caller says so.

    Raises
    ------
    ExchangeError
        WITHHELD, when the log names a file for this folder that is neither given nor withdrawn, or another project
        file than the one that is given.
    """
    missing = {each for each in seen.owed if each not in seen.fetched and each not in refused}
    is_other = AGREEMENT not in refused and not _is_given(seen.agreed, folder)
    if not (missing or is_other):
        return
    # Something may have been sent, or taken back, since; but not what was there the last time already.
    listed = {entry.sha256 for entry in remote.list(folder) if entry.is_current and not entry.withdrawn}
    text = remote.agreement(folder)
    # The log after the list, so that what was withdrawn in between is no longer owed.
    now = remote.witness(seen, folder)
    missing = missing.intersection(now.owed).difference(listed.difference(before.owed))
    if missing:
        raise _withheld(remote.url, f"{len(missing)} of the files for this folder")
    # The owner may have sent another project file meanwhile; then file and log agree on it.
    is_new = text is not None and project_of(text, remote.url).digest == now.agreed != before.agreed
    if is_other and not is_new:
        raise _withheld(remote.url, "the project file that it says holds")


def _is_given(digest: str, folder: MemberFolder) -> bool:
    """Whether the folder has the project file, joined or in its inbox; or there is none yet."""
    return not digest or digest in {each.digest for each in folder.versions}


def _withheld(url: str, what: str) -> ExchangeError:
    return ExchangeError(
        "WITHHELD",
        f"{url} does not give {what}, as its own log says that it should. Run the command again; if that does not "
        "help, have it sent another way, and ask the operator.",
    )
