"""Options that the commands of members share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from datacollab.cli.kit import opened
from datacollab.errors import ExchangeError

if TYPE_CHECKING:
    from datacollab.remote import RemotePlace

    from ..remote import HubRemote

__all__ = ["hub_of"]


@contextmanager
def hub_of(folder: Path, name: str | None, passphrase_file: Path | None) -> Iterator[tuple[RemotePlace, HubRemote]]:
    """The remote of a name, or the only one, which has to be a hub: stores have no members.

    Raises
    ------
    ExchangeError
        REMOTE_INVALID, where it is none.
    """
    from ..remote import HubRemote

    with opened(folder, name, passphrase_file) as (place, remote):
        if not isinstance(remote, HubRemote):
            raise ExchangeError(
                "REMOTE_INVALID",
                f"Remote {place.name!r} is a store ({place.url}), which has no members: the project file says who "
                "takes part. Invitations are of hubs.",
            )
        yield place, remote
