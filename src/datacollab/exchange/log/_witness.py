"""What files that were sent or came back say of a log: its end cannot be cut off unseen while they are there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...bundle import Bundle, KeyFile, unpack
from ...errors import ExchangeError
from ._log import AuditLog

__all__ = ["check_log_against", "log_witnesses"]

_SHARE, _MODEL = "datacollab.share", "datacollab.model"
_ANSWERS = "datacollab.answers"
_SUFFIXES = (".dcshare", ".dcmodel", ".dcanswers")
_INSTALLED = "model.dcmodel"


def log_witnesses(folder: Path) -> list[Path]:
    """Files in a folder of which its log has to know."""
    there = [*folder.glob("outbox/*.dc*"), *folder.glob("shares/*.dc*"), folder / _INSTALLED]
    return sorted(path for path in there if path.is_file() and path.suffix in _SUFFIXES)


def check_log_against(log: AuditLog, files: Iterable[Path], *, keys: Path | None = None) -> None:
    """Refuse a log that lacks what files say was in it.

    A share names the log's head when it was made, and the log then names the share; a model, or answers in its place,
    name the share that they were made of.  What was done after the last of the files, nobody can miss.

    Parameters
    ----------
    log : AuditLog
    files : iterable of Path
        Shares, models and answers.
    keys : Path, optional
        Of the log's owner, where they are there: shares of others tell of other logs.

    Raises
    ------
    ExchangeError
        ``LOG_BROKEN``, or what reading a file may raise.
    """
    owner = KeyFile.read(keys).public if keys is not None and keys.is_file() else None
    known = {value for entry in log.entries() for value in entry["facts"].values() if isinstance(value, str)}
    for path in files:
        bundle = unpack(path)
        told = set(_digests(bundle, path))
        is_own = owner is None or bundle.signer == owner
        head = bundle.facts.get("log_head")
        lacks_head = bundle.kind == _SHARE and is_own and isinstance(head, str) and not log.contains(head)
        if lacks_head or not told <= known:
            raise ExchangeError(
                "LOG_BROKEN",
                f"{log.path} does not know of {path}, or of what was in the log when it was made: entries are missing. "
                "Keep the file, and compare it with a copy.",
            )


def _digests(bundle: Bundle, path: Path) -> Iterable[str]:
    """Of what has to be in the log."""
    if bundle.kind == _SHARE or path.name == _INSTALLED:
        yield bundle.digest
    if bundle.kind in (_MODEL, _ANSWERS) and isinstance(bundle.facts.get("share_digest"), str):
        yield bundle.facts["share_digest"]
