"""``datacollab log``: reading, checking and copying a folder's log."""

from __future__ import annotations

from pathlib import Path

from ..errors import ExchangeError
from ..folder.log import AuditLog, check_log_against, log_witnesses
from ._command import WorkFolder, choose_path
from ._output import Report, one_line


def show(report: Report, folder: WorkFolder, log: Path | None, last: int | None) -> None:
    entries = _open_log(log, folder.path).entries()
    if last:
        entries = entries[-last:]
    report.facts = {"entries": entries}
    for entry in entries:
        facts = ", ".join(f"{name} {one_line(value)}" for name, value in entry["facts"].items())
        report.line(f"{entry['number']:>5}  {one_line(entry['time'])}  {one_line(entry['event'])}  {facts}".rstrip())


def verify(report: Report, folder: WorkFolder, log: Path | None, head: str | None, against: list[Path] | None) -> None:
    opened = _open_log(log, folder.path)
    last_head = opened.verify()
    number = len(opened.entries())
    # A chain that was written anew from the start is whole, too: only a head that others hold shows it.
    if head is not None and not opened.contains(head):
        raise ExchangeError(
            "LOG_BROKEN", f"{opened.path}: no entry has the head that was given. Entries are missing; compare copies."
        )
    files = list(against or ())
    keys = None
    if log is None:
        # The folder's own files name heads, and its keys show which of them it has signed.
        files = [*log_witnesses(folder.path), *files]
        keys = folder.path / "keys.json"
    silent = check_log_against(opened, files, keys=keys)
    compared = [str(file) for file in files if file not in silent]
    report.facts = {"entries": number, "head": last_head, "compared": compared}
    report.line(f"{opened.path}: {number} entries, none changed. Head {last_head}")
    if compared:
        report.line(f"Files that its entries name: {', '.join(compared)}")
    if silent:
        report.facts["not_compared"] = [str(file) for file in silent]
        report.line(
            f"Not compared, as such a file names no entry of a log: {', '.join(map(str, silent))}. Give a head of the "
            "log that somebody else has, with --head."
        )


def export(report: Report, folder: WorkFolder, there: Path | None, output: Path | None) -> None:
    target = choose_path(output, there, "--output / -o")
    opened = _open_log(None, folder.path)
    opened.export(target)
    number = len(opened.entries())
    report.facts = {"written": str(target), "entries": number, "head": opened.head}
    report.line(f"{target}: {number} entries")


def _open_log(log: Path | None, folder: Path) -> AuditLog:
    path = log or folder / "log.jsonl"
    if not path.is_file():
        raise ExchangeError("FOLDER_MISSING", f"There is no log at {path}. Give the folder that was set up, with -C.")
    return AuditLog(path)
