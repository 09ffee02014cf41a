"""Files of an SFTP server, which has to be the one that it was."""

from __future__ import annotations

import stat
from typing import Any

from .._require import require
from ..errors import ExchangeError

__all__ = ["SFTP", "sftp_files"]

SFTP = ("sftp://", "ssh://")
_CONNECT = 15.0


def sftp_files(url: str) -> tuple[Any, str]:
    """A file system of fsspec, and the folder in it.

    fsspec would take any server for the one that is meant; passwords would go to whoever stands in between.  This one
    knows servers by ``known_hosts``, as ssh does.

    Parameters
    ----------
    url : str

    Raises
    ------
    MissingExtraError
    OSError, paramiko.SSHException
        When the server cannot be reached, or is not known.
    """
    paramiko = require("paramiko", "sftp")
    base = require("fsspec.implementations.sftp", "sftp").SFTPFileSystem

    class KnownServers(base):  # type: ignore[misc, valid-type]
        def _connect(self) -> None:
            self.client = paramiko.SSHClient()
            self.client.load_system_host_keys()
            self.client.set_missing_host_key_policy(paramiko.RejectPolicy())
            self.client.connect(self.host, **{"timeout": _CONNECT} | self.ssh_kwargs)
            self.ftp = self.client.open_sftp()

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            # A server waits at a FIFO as a plain `open` does.
            kind = self.ftp.lstat(path).st_mode if mode == "rb" else None
            if kind is not None and not stat.S_ISREG(kind):
                raise ExchangeError(
                    "BUNDLE_MALFORMED", f"{path} is no regular file. Remove it, and find out who put it there."
                )
            return super()._open(path, mode, **options)

    files = KnownServers(skip_instance_cache=True, **KnownServers._get_kwargs_from_urls(url))
    return files, KnownServers._strip_protocol(url)
