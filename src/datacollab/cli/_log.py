"""``datacollab log``: reading, checking and copying a folder's log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ExchangeError
from ._command import Folder, OutputArgument, command, group, named_once
from ._output import Report, shown

if TYPE_CHECKING:
    from ..exchange.log import AuditLog

__all__ = ["app"]

app = group(
    "The log: what was done in a folder, in a chain that shows changes to single entries; a log rewritten as a "
    "whole is shown by the heads that others hold."
)

LogFile = Annotated[Path | None, typer.Argument(metavar="[LOG]", help="An exported log instead of the folder's own.")]
_FOLDER = "The folder whose log it is."


@command(app, keys=False, folder=_FOLDER)
def show(
    report: Report,
    folder: Folder,
    log: LogFile = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only so many entries, the latest.")] = None,
) -> None:
    """Show the entries, the latest in the end.

    Example: datacollab log show -C hospital-a --last 5
    """
    entries = _opened(log, folder.path).entries()
    report.facts = {"entries": entries[-last:] if last else entries}
    for entry in report.facts["entries"]:
        facts = ", ".join(f"{name} {shown(value)}" for name, value in entry["facts"].items())
        report.line(f"{entry['number']:>5}  {shown(entry['time'])}  {shown(entry['event'])}  {facts}".rstrip())


@command(app, keys=False, folder=_FOLDER)
def verify(
    report: Report,
    folder: Folder,
    log: LogFile = None,
    head: Annotated[
        str | None, typer.Option(help="A head that a file or another person names; must be in the log.")
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="A share or model that others have kept. Repeatable."),
    ] = None,
) -> None:
    """Check that no entry was changed, moved, inserted or removed; exit with 11 otherwise.

    That the latest entries were cut off, or all were written anew, can only be seen against a head that
    others have: each share names one (`datacollab bundle inspect` shows it), and each model its share. Those in the
    folder are compared; ask the others for theirs, and give them with --against.

    Example: datacollab log verify -C hospital-a --against a.dcshare
    """
    from ..exchange.log import check_log_against, log_witnesses

    opened = _opened(log, folder.path)
    found, number = opened.verify(), len(opened.entries())
    if head is not None and not opened.contains(head):
        raise ExchangeError(
            "LOG_BROKEN",
            f"{opened.path}: no entry has the head that was given. Entries are missing; compare copies.",
        )
    files = [*(log_witnesses(folder.path) if log is None else ()), *(against or ())]
    check_log_against(opened, files, keys=folder.path / "keys.json" if log is None else None)
    report.facts = {"entries": number, "head": found, "compared": [str(file) for file in files]}
    report.line(f"{opened.path}: {number} entries, none changed. Head {found}")
    if files:
        report.line(f"It knows of what was sent and came back: {', '.join(map(str, files))}")


@command(app, keys=False, folder=_FOLDER)
def export(
    report: Report,
    folder: Folder,
    there: OutputArgument = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A .jsonl file (can be verified) or a .csv file (a table)."
        ),
    ] = None,
) -> None:
    """Check the log, and copy it for others to read.

    Example: datacollab log export -o hospital-a-log.csv -C hospital-a
    """
    target, opened = named_once(output, there, "--output / -o"), _opened(None, folder.path)
    opened.export(target)
    number = len(opened.entries())
    report.facts = {"written": str(target), "entries": number, "head": opened.head}
    report.line(f"{target}: {number} entries")


def _opened(log: Path | None, folder: Path) -> AuditLog:
    from ..exchange.log import AuditLog

    path = folder / "log.jsonl" if log is None else log
    if not path.is_file():
        raise ExchangeError("FOLDER_MISSING", f"There is no log at {path}. Give the folder that was set up, with -C.")
    return AuditLog(path)
