"""``datacollab log``: reading, checking and copying a folder's log."""

from __future__ import annotations

from pathlib import Path

from ..errors import ExchangeError
from ..exchange.log import AuditLog, check_log_against, log_witnesses
from ._command import Folder, named_once
from ._output import Report, shown


def show(report: Report, folder: Folder, log: Path | None, last: int | None) -> None:
    entries = _opened(log, folder.path).entries()
    report.facts = {"entries": entries[-last:] if last else entries}
    for entry in report.facts["entries"]:
        facts = ", ".join(f"{name} {shown(value)}" for name, value in entry["facts"].items())
        report.line(f"{entry['number']:>5}  {shown(entry['time'])}  {shown(entry['event'])}  {facts}".rstrip())


def verify(report: Report, folder: Folder, log: Path | None, head: str | None, against: list[Path] | None) -> None:
    opened = _opened(log, folder.path)
    found, number = opened.verify(), len(opened.entries())
    if head is not None and not opened.contains(head):
        raise ExchangeError(
            "LOG_BROKEN", f"{opened.path}: no entry has the head that was given. Entries are missing; compare copies."
        )
    files = [*(log_witnesses(folder.path) if log is None else ()), *(against or ())]
    silent = check_log_against(opened, files, keys=folder.path / "keys.json" if log is None else None)
    compared = [str(file) for file in files if file not in silent]
    report.facts = {"entries": number, "head": found, "compared": compared}
    report.line(f"{opened.path}: {number} entries, none changed. Head {found}")
    if compared:
        report.line(f"Files that its entries name: {', '.join(compared)}")
    if silent:
        report.facts["not_compared"] = [str(file) for file in silent]
        report.line(
            f"Not compared, as such a file names no entry of a log: {', '.join(map(str, silent))}. Give a head of the "
            "log that somebody else has, with --head."
        )


def export(report: Report, folder: Folder, there: Path | None, output: Path | None) -> None:
    target, opened = named_once(output, there, "--output / -o"), _opened(None, folder.path)
    opened.export(target)
    number = len(opened.entries())
    report.facts = {"written": str(target), "entries": number, "head": opened.head}
    report.line(f"{target}: {number} entries")


def _opened(log: Path | None, folder: Path) -> AuditLog:
    path = folder / "log.jsonl" if log is None else log
    if not path.is_file():
        raise ExchangeError("FOLDER_MISSING", f"There is no log at {path}. Give the folder that was set up, with -C.")
    return AuditLog(path)
