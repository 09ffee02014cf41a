"""Whether a hub gives a folder all that its own log says is there for it."""

from __future__ import annotations

from ..errors import ExchangeError
from ._folder import Folder
from ._hub import HubRemote
from ._kept import Kept
from ._kinds import AGREEMENT
from ._project_text import project_of
from ._pull import Pulled

__all__ = ["check_given"]


def check_given(folder: Folder, remote: HubRemote, before: Kept, seen: Kept, done: Pulled) -> None:
    """Check what a pull brought against the hub's log.

    Parameters
    ----------
    folder : Folder
        After the pull.
    remote : HubRemote
    before, seen : Kept
        What was remembered before the pull; and after it and a look at the log.
    done : Pulled
        What was refused has been told.

    Raises
    ------
    ExchangeError
        WITHHELD, when the log names a file for this folder that is neither given nor withdrawn, or another project
        file than the one that is given.
    """
    missing = set(seen.owed).difference(seen.fetched, done.refused)
    is_other = AGREEMENT not in done.refused and not _is_given(seen.agreed, folder)
    if not (missing or is_other):
        return
    # Something may have been sent, or taken back, since; but not what was there the last time already.
    listed = {entry.sha256 for entry in remote.list(folder) if entry.is_current and not entry.withdrawn}
    text = remote.agreement(folder)
    now = remote.witness(seen, folder)
    missing = missing.intersection(now.owed).difference(listed.difference(before.owed))
    if missing:
        raise _withheld(remote.url, f"{len(missing)} of the files for this folder")
    is_new = text is not None and project_of(text, remote.url).digest == now.agreed != before.agreed
    if is_other and not is_new:
        raise _withheld(remote.url, "the project file that it says holds")


def _is_given(digest: str, folder: Folder) -> bool:
    """Whether the folder has the project file, joined or in its inbox; or there is none yet."""
    return not digest or digest in {each.digest for each in folder.versions}


def _withheld(url: str, what: str) -> ExchangeError:
    return ExchangeError(
        "WITHHELD",
        f"{url} does not give {what}, as its own log says that it should. Run the command again; if that does not "
        "help, have it sent another way, and ask the operator.",
    )
