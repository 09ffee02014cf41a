"""A hub by the notes of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from datacollab.bundle import KeyPair
from datacollab.remote import RemoteKind, invalid

from ._hub import HubRemote

__all__ = ["HubKind"]

_PROJECT = re.compile(r"[0-9a-f]{32}")
# What is sent to these leaves no machine, so that nobody reads along.
_HOSTS_OF_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class HubKind(RemoteKind):
    """Remotes at ``https://...``; on this machine alone, at ``http://...`` too."""

    def check(self, url: str, project: str | None) -> None:
        """As of `RemoteKind`.

        Raises
        ------
        ExchangeError
            REMOTE_INVALID.
        """
        parts = urlsplit(url)
        if project is not None and not _PROJECT.fullmatch(project):
            raise invalid(f"the project of {url} is no 32 hexadecimal letters")
        # A name or password in the address would end in notes and in errors.
        if not parts.hostname or parts.query or parts.fragment or parts.username:
            raise invalid("a hub's URL is https:// and the name of a machine, perhaps a port and a path")
        if parts.scheme == "http" and parts.hostname not in _HOSTS_OF_THIS_MACHINE:
            raise invalid(f"{url} is not encrypted on its way; https:// is wanted")

    def open(
        self,
        url: str,
        key: Callable[[], KeyPair],
        *,
        project: str | None,
        ca: Path | None,
        found: Callable[[str], None],
        **options: Any,
    ) -> HubRemote:
        """As of `RemoteKind`; further options are those of `HubRemote`."""
        return HubRemote(url, key(), project, ca=ca, found=found, **options)
