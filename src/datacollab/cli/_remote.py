"""``datacollab remote``: files to a hub or a folder that all reach, and from it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import remote as remotes
from ..errors import ExchangeError
from ..exchange.log import AuditLog, locked
from ._command import Folder, folder_words, opened, working
from ._output import Report, warn
from ._progress import shown_progress

_PATIENCE = 10.0
"""Seconds to wait for another command in the folder."""


def add(report: Report, folder: Folder, name: str, url: str, ca: Path | None) -> None:
    with working(folder.path):
        if remotes.is_store(url) and "://" not in url:
            url = str(Path(url).absolute())
        certificates = None if ca is None else os.path.relpath(ca, folder.path)
        place = remotes.Place(name=name, url=url if remotes.is_store(url) else url.rstrip("/"), ca=certificates)
        if not remotes.is_store(url):
            remotes.kind_of_remote(url)
        places = remotes.read_places(folder.path)
        if name in places:
            raise ExchangeError(
                "ALREADY_THERE",
                f"{folder.path} has a remote {name!r}. Remove it first: datacollab remote remove {name}",
            )
        remotes.write_places(folder.path, places | {name: place})
    report.facts = {"remote": name, "url": place.url}
    report.line(f"{folder.path}: remote {name} is {place.url}")


def remove(report: Report, folder: Folder, name: str) -> None:
    with working(folder.path):
        place = remotes.chosen(folder.path, name)
        left = {each: there for each, there in remotes.read_places(folder.path).items() if each != name}
        remotes.write_places(folder.path, left)
        remotes.forget(folder.path, name)
    report.facts = {"removed": name, "url": place.url}
    report.line(f"{folder.path}: remote {name} is forgotten. What lies at {place.url} stays there.")


def push(report: Report, folder: Folder, files: list[Path] | None, remote: str | None) -> None:
    with _at_work(folder, remote, report, files or ()) as work:

        def remember(sha256: str) -> None:
            work.keep(work.kept().expecting(sha256))

        with shown_progress(quiet=report.as_json) as progress:
            back = work.kept().withdrawn
            done = remotes.push(work.there, work.remote, files or (), withdrawn=back, has=remember, tell=progress)
        work.record("push", done.sent)
        _show_pushed(done, folder.path, work.place, report)
        _show_refused(done.refused, report)
        work.witnessed(work.there, work.kept())


def pull(report: Report, folder: Folder, remote: str | None) -> None:
    at, done = folder.path, remotes.Pulled()
    with _at_work(folder, remote, report) as work, shown_progress(quiet=report.as_json) as progress:
        before = work.kept()
        try:
            done, kept = remotes.pull(work.there, work.remote, before, keep=work.keep, done=done, tell=progress)
        finally:
            # What came before an interruption has come.
            _show_pulled(done, report)
            work.record("pull", done.came)
        now = remotes.Folder.at(at)
        report.facts["next"] = next_commands(at, done.came, is_analyst=now.is_analyst)
        for line in report.facts["next"]:
            report.line(f"Next: {line}")
        if "agreement" in done.came.values() and now.project is not None and work.there.project is None:
            report.line(f"Owner {now.project.owner.fingerprint}, project {now.project.fingerprint}:")
            report.line("compare them with the owner by telephone before you join.")
        _show_refused(done.refused, report)
        if now.project is not None:
            work.remote.check_given(now, before, work.witnessed(now, kept), done.refused)
    if not (done.came or done.refused):
        if not (at / "project.toml").is_file() and not (at / "inbox" / "project.toml").is_file():
            report.line("There is no project file for this key yet: the owner lets it in, and sends the project.")
        report.line(f"{at}: nothing new came.")


def status(report: Report, folder: Folder, remote: str | None) -> None:
    with _at_work(folder, remote, report) as work:
        found = work.remote.status(work.there)
        names = ("project", "digest", "revision", "deadline", "quorum", "shared", "missing", "waiting", "now")
        report.facts = {"remote": work.place.name, "url": work.place.url}
        report.facts |= {name: getattr(found, name) for name in names}
        _show_status(work.place, found, report)
        work.witnessed(work.there, work.kept())


def withdraw(report: Report, folder: Folder, file: str, remote: str | None) -> None:
    with _at_work(folder, remote, report) as work:
        entry = remotes.withdrawable(work.there, work.remote, file)
        work.remote.withdraw(entry, folder=work.there)
        work.keep(work.kept().without(entry.sha256))
        work.record("withdraw", {entry.sha256: entry.kind})
    report.facts = {"withdrawn": entry.sha256, "kind": entry.kind}
    report.line(f"The {entry.kind} {entry.sha256[:16]} was taken back from {work.place.name}.")
    report.line("Anyone who has fetched it keeps it.")


def next_commands(folder: Path, lying: Mapping[str, str], *, is_analyst: bool) -> list[str]:
    """Return the commands that take what lies in an inbox: kinds by paths.

    Examples
    --------
    >>> next_commands(Path("a"), {"a/inbox/a.dcmodel": "model"}, is_analyst=False)
    ['datacollab party install a/inbox/a.dcmodel -C a']
    """
    by_kind: dict[str, list[str]] = {}
    for path, kind in sorted(lying.items()):
        by_kind.setdefault(kind, []).append(path)
    commands: list[tuple[str, ...]] = []
    if "agreement" in by_kind or "anchor" in by_kind:
        project = by_kind.get("agreement", [str(folder / "project.toml")])[0]
        verb = ("analyst", "init") if is_analyst else ("party", "join")
        commands.append((*verb, project, *by_kind.get("anchor", ())))
    commands += [("analyst", "integrate", *by_kind[kind]) for kind in ("share", "sums") if kind in by_kind]
    alone = {"model": "install", "sums-model": "install", "answers": "distil"}
    commands += [("party", verb, path) for kind, verb in alone.items() for path in by_kind.get(kind, ())]
    return [shlex.join(["datacollab", *words, *folder_words(folder)]) for words in commands]


@dataclass(frozen=True)
class _Work:
    """A remote that a command uses: where it works, and what it remembers."""

    at: Path
    there: remotes.Folder
    place: remotes.Place
    remote: remotes.Remote
    report: Report

    def kept(self) -> remotes.Kept:
        """Return what the folder remembers of the remote."""
        return remotes.Kept.read(self.at, self.place.name)

    def keep(self, kept: remotes.Kept) -> remotes.Kept:
        """Remember it."""
        return kept.write(self.at, self.place.name)

    def witnessed(self, there: remotes.Folder, kept: remotes.Kept) -> remotes.Kept:
        """Look whether the remote's log goes on, and remember its end; stores have none."""
        if not self.remote.has_log:
            return kept
        seen = self.keep(self.remote.witness(kept, there))
        self.report.facts["log"] = {"seq": seen.seq, "head": seen.head}
        self.report.line(f"The hub's log goes on: {seen.seq} entries, head {seen.head[:16]}.")
        return seen

    def record(self, event: str, files: dict[str, str]) -> None:
        """Write it into the folder's own log, if there is one; wait for another command that holds the lock."""
        log = self.at / "log.jsonl"
        if not (files and log.is_file()):
            return
        with locked(self.at, patience=_PATIENCE):
            named = {Path(path).name: kind for path, kind in files.items()}
            AuditLog(log).append(event, remote=self.place.name, files=named)


@contextmanager
def _at_work(folder: Folder, name: str | None, report: Report, files: Sequence[Path] = ()) -> Iterator[_Work]:
    with working(folder.path):
        there = remotes.Folder.at(folder.path, files)
        with opened(folder.path, name, folder.passphrase_file) as (place, remote):
            yield _Work(folder.path, there, place, remote, report)


def _show_refused(refused: Mapping[str, ExchangeError], report: Report) -> None:
    """Say what was refused; the highest exit code of these follows."""
    report.facts["refused"] = {name: {"code": error.code, "message": str(error)} for name, error in refused.items()}
    for error in refused.values():
        warn(f"datacollab: {error.code}: {error}")
    report.exit_code = max((error.exit_code for error in refused.values()), default=0)


def _show_pulled(done: remotes.Pulled, report: Report) -> None:
    report.facts |= {"came": done.came, "older": done.older, "withdrawn": done.withdrawn}
    for path, kind in done.came.items():
        report.line(f"{path}: {kind}, {Path(path).stat().st_size:,} bytes, signature in order")
    for sha256 in done.older:
        report.line(f"{sha256[:16]}: made before the one in the inbox, and left out")
    for sha256 in done.withdrawn:
        report.line(f"{sha256[:16]}: its sender has taken it back. Ask what counts before you use it.")


def _show_pushed(done: remotes.Pushed, folder: Path, place: remotes.Place, report: Report) -> None:
    report.facts |= {"sent": done.sent, "there": done.there, "withdrawn": done.withdrawn, "unsealed": done.unsealed}
    for path, kind in done.sent.items():
        report.line(f"{path}: {kind}, sent to {place.name}")
    for path in done.there:
        report.line(f"{path}: was there already")
    for path in done.withdrawn:
        report.line(f"{path}: was taken back there, and is not sent again")
    for path in done.unsealed:
        report.line(f"{path} is not sealed: {place.name} can read it (seal_shares in the project file).")
    if not (done.sent or done.there or done.withdrawn or done.refused):
        report.line(f"{folder}: there is nothing to send.")


def _show_status(place: remotes.Place, found: remotes.RemoteStatus, report: Report) -> None:
    report.line(f"{place.name}: {place.url}")
    if found.digest is None:
        report.line("There is no project file yet.")
        return
    shared = f"shared: {', '.join(found.shared) or 'nobody yet'}"
    if found.revision is None:
        report.line(f"project {found.project}, digest {found.digest}: this project file is not here. Its deadline and")
        report.line("quorum are known when it is: datacollab remote pull")
        report.line(shared)
    else:
        report.line(f"project {found.project}, revision {found.revision}, digest {found.digest}")
        report.line(f"{shared}; {found.quorum} are needed")
    if found.missing:
        report.line(f"missing: {', '.join(found.missing)}")
    if found.waiting:
        report.line(f"to be fetched by: {', '.join(found.waiting)}")
    if found.deadline:
        report.line(f"deadline: {found.deadline}{f', and it is {found.now} there' if found.now else ''}")
