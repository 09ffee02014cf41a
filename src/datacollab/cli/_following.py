"""Follow a regression by rounds over a remote, unattended: carry files, answer what was approved, stop when done."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ..errors import ExchangeError
from . import _remote_commands
from ._command import WorkFolder
from ._output import KeptReport, Report

_SHORTEST = 1.0
_LONGEST = 60.0
"""Seconds between two looks: few while files come, more while nothing does."""
_LONGER = 1.3


def follow_rounds(report: Report, folder: WorkFolder, remote: str | None, take: Callable[[Path], bool]) -> None:
    """Fetch files, have them taken, and send the outcome, until `take`, called with the inbox, says that all is done.

    A remote that cannot be reached is asked again later; all other errors end it, as nobody is there to decide.
    """
    wait = _SHORTEST
    while True:
        moved = _carry(report, folder, remote, _fetch)
        is_done = take(folder.path / "inbox")
        moved |= _carry(report, folder, remote, _send)
        if is_done:
            return
        wait = _SHORTEST if moved else min(_LONGER * wait, _LONGEST)
        time.sleep(wait)


def _fetch(quiet: Report, folder: WorkFolder, remote: str | None) -> list[str]:
    _remote_commands.pull(quiet, folder, remote)
    return [f"{path}: came" for path in quiet.facts["came"]]


def _send(quiet: Report, folder: WorkFolder, remote: str | None) -> list[str]:
    _remote_commands.push(quiet, folder, None, remote)
    # Files of others that are refused may be mended by these; one of one's own is not.
    for error in quiet.facts["refused"].values():
        raise ExchangeError(error["code"], error["message"])
    return [f"{path}: sent" for path in quiet.facts["sent"]]


def _carry(
    report: Report,
    folder: WorkFolder,
    remote: str | None,
    carry: Callable[[Report, WorkFolder, str | None], list[str]],
) -> bool:
    """Carry files one way, say which, and return whether there were any."""
    # The lines of the commands would come again with each look.
    quiet = KeptReport()
    try:
        lines = carry(quiet, folder, remote)
    except ExchangeError as error:
        if error.code != "REMOTE_UNREACHABLE":
            raise
        report.note(f"{error} Trying again.")
        return False
    for line in lines:
        report.line(line)
    return bool(lines)
