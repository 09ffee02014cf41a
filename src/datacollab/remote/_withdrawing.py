"""Which file of one's own is meant to be taken back."""

from __future__ import annotations

from pathlib import Path

from ..errors import ExchangeError
from ._base import Remote
from ._entry import Entry
from ._folder import Folder
from ._sha256 import sha256_of

__all__ = ["withdrawable"]

_FEWEST = 16


def withdrawable(folder: Folder, remote: Remote, file: str) -> Entry:
    """The entry of a file that this folder sent and has not taken back.

    Parameters
    ----------
    folder : Folder
    remote : Remote
    file : str
        A path, or the first 16 letters or more of the SHA-256.

    Raises
    ------
    ExchangeError
        NOT_SENT.
    """
    wanted = sha256_of(Path(file)) if Path(file).is_file() else file.lower()
    own = [each for each in remote.list(folder) if each.sender == folder.key.fingerprint and not each.withdrawn]
    found = [each for each in own if len(wanted) >= _FEWEST and each.sha256.startswith(wanted)]
    if len(found) != 1:
        there = ", ".join(f"{each.kind} {each.sha256[:_FEWEST]}" for each in own) or "nothing"
        raise ExchangeError(
            "NOT_SENT", f"{remote.url} has no such file of this folder; it has {there}. Name one of these."
        )
    return found[0]
