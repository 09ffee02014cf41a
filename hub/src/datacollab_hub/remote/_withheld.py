"""Whether a hub gives a folder all that its own log says is there for it."""

from __future__ import annotations

from collections.abc import Container

from datacollab.errors import ExchangeError
from datacollab.remote import AGREEMENT, Kept, MemberFolder, Remote, project_of

__all__ = ["check_given"]


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
