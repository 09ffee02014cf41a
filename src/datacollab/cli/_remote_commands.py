"""``datacollab remote``: files to a hub or a folder that all reach, and from it; and following rounds, unattended."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import remote as remotes
from ..errors import ExchangeError
from ..folder.log import AuditLog, locked
from ._command import WorkFolder, folder_words, opened, working
from ._output import KeptReport, Report, warn
from ._progress import shown_progress

_PATIENCE = 10.0
"""Seconds to wait for another command in the folder."""


def add(report: Report, folder: WorkFolder, name: str, url: str, ca: Path | None) -> None:
    with working(folder.path):
        if not remotes.is_store(url):
            url = url.rstrip("/")
            remotes.kind_of_remote(url)  # refuses an address that no installed kind serves
        elif "://" not in url:
            # Commands may run in any directory later.
            url = str(Path(url).absolute())
        certificates = None
        if ca is not None:
            certificates = os.path.relpath(ca, folder.path)
        place = remotes.RemotePlace(name=name, url=url, ca=certificates)
        places = remotes.read_places(folder.path)
        # A second remote under the name of the first would take over its memory.
        if name in places:
            raise ExchangeError(
                "ALREADY_THERE",
                f"{folder.path} has a remote {name!r}. Remove it first: datacollab remote remove {name}",
            )
        remotes.write_places(folder.path, places | {name: place})
    report.facts = {"remote": name, "url": place.url}
    report.line(f"{folder.path}: remote {name} is {place.url}")


def remove(report: Report, folder: WorkFolder, name: str) -> None:
    with working(folder.path):
        place = remotes.choose_place(folder.path, name)
        others = {each: there for each, there in remotes.read_places(folder.path).items() if each != name}
        remotes.write_places(folder.path, others)
        # Its memory goes with it: a remote that is added again under this name starts anew.
        remotes.forget(folder.path, name)
    report.facts = {"removed": name, "url": place.url}
    report.line(f"{folder.path}: remote {name} is forgotten. What lies at {place.url} stays there.")


def push(report: Report, folder: WorkFolder, files: list[Path] | None, remote: str | None) -> None:
    with _at_work(folder, remote, report, files or ()) as work:
        # Remembered at once, as later steps may be interrupted: a hub that denies the file later is found out.
        def remember(sha256: str) -> None:
            work.keep(work.memory().expecting(sha256))

        with shown_progress(quiet=report.as_json) as progress:
            back = work.memory().withdrawn
            done = remotes.push(work.there, work.remote, files or (), withdrawn=back, has=remember, tell=progress)
        work.record("push", done.sent)
        _show_pushed(done, folder.path, work.place, report)
        _show_refused(done.refused, report)
        work.witness(work.there, work.memory())


def pull(report: Report, folder: WorkFolder, remote: str | None) -> None:
    at = folder.path
    done = remotes.Pulled()
    with _at_work(folder, remote, report) as work, shown_progress(quiet=report.as_json) as progress:
        before = work.memory()
        try:
            done, kept = remotes.pull(work.there, work.remote, before, keep=work.keep, done=done, tell=progress)
        finally:
            # What came before an interruption has come.
            _show_pulled(done, report)
            work.record("pull", done.came)
        now = remotes.MemberFolder.at(at)
        report.facts["next"] = next_commands(at, done.came, is_analyst=now.is_analyst)
        for line in report.facts["next"]:
            report.line(f"Next: {line}")
        # The first project file: whose it is, only the telephone can tell.
        if "agreement" in done.came.values() and now.project is not None and work.there.project is None:
            report.line(f"Owner {now.project.owner.fingerprint}, project {now.project.fingerprint}:")
            report.line("compare them with the owner by telephone before you join.")
        _show_refused(done.refused, report)
        if now.project is not None:
            work.remote.check_given(now, before, work.witness(now, kept), done.refused)
    if not (done.came or done.refused):
        if not (at / "project.toml").is_file() and not (at / "inbox" / "project.toml").is_file():
            report.line("There is no project file for this key yet: the owner lets it in, and sends the project.")
        report.line(f"{at}: nothing new came.")


def status(report: Report, folder: WorkFolder, remote: str | None) -> None:
    with _at_work(folder, remote, report) as work:
        state = work.remote.status(work.there)
        names = ("project", "digest", "revision", "deadline", "quorum", "shared", "missing", "waiting", "rounds", "now")
        report.facts = {"remote": work.place.name, "url": work.place.url}
        report.facts |= {name: getattr(state, name) for name in names}
        _show_status(work.place, state, report)
        work.witness(work.there, work.memory())


def withdraw(report: Report, folder: WorkFolder, file: str, remote: str | None) -> None:
    with _at_work(folder, remote, report) as work:
        entry = remotes.withdrawable(work.there, work.remote, file)
        work.remote.withdraw(entry, folder=work.there)
        work.keep(work.memory().without(entry.sha256))
        work.record("withdraw", {entry.sha256: entry.kind})
    report.facts = {"withdrawn": entry.sha256, "kind": entry.kind}
    report.line(f"The {entry.kind} {entry.sha256[:16]} was taken back from {work.place.name}.")
    report.line("Anyone who has fetched it keeps it.")


def next_commands(folder: Path, lying: Mapping[str, str], *, is_analyst: bool) -> list[str]:
    """Return the commands that take the files of an inbox: kinds by paths.

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
        # An anchor may come alone: the project is then the one that the folder has.
        project = by_kind.get("agreement", [str(folder / "project.toml")])[0]
        verb = ("analyst", "init") if is_analyst else ("party", "join")
        commands.append((*verb, project, *by_kind.get("anchor", ())))
    commands += [("analyst", "integrate", *by_kind[kind]) for kind in ("share", "sums") if kind in by_kind]
    # The table is the party's own: the same as in the first round.
    commands += [("party", "share", "TABLE", "--round", path) for path in by_kind.get("round", ())]
    alone = {"model": "install", "sums-model": "install", "answers": "distil"}
    commands += [("party", verb, path) for kind, verb in alone.items() for path in by_kind.get(kind, ())]
    return [shlex.join(["datacollab", *words, *folder_words(folder)]) for words in commands]


@dataclass(frozen=True)
class _Work:
    """A remote that a command uses, the folder that it works in, and its memory there."""

    at: Path
    there: remotes.MemberFolder
    place: remotes.RemotePlace
    remote: remotes.Remote
    report: Report

    def memory(self) -> remotes.Kept:
        """Return the folder's memory of the remote."""
        return remotes.Kept.read(self.at, self.place.name)

    def keep(self, kept: remotes.Kept) -> remotes.Kept:
        """Remember it."""
        return kept.write(self.at, self.place.name)

    def witness(self, there: remotes.MemberFolder, kept: remotes.Kept) -> remotes.Kept:
        """Check whether the remote's log goes on, and remember its end; stores have none."""
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
def _at_work(folder: WorkFolder, name: str | None, report: Report, files: Sequence[Path] = ()) -> Iterator[_Work]:
    with working(folder.path):
        there = remotes.MemberFolder.at(folder.path, files)
        with opened(folder.path, name, folder.passphrase_file) as (place, remote):
            yield _Work(folder.path, there, place, remote, report)


def _show_refused(refused: Mapping[str, ExchangeError], report: Report) -> None:
    """Name the files that were refused; the highest exit code of these follows."""
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


def _show_pushed(done: remotes.Pushed, folder: Path, place: remotes.RemotePlace, report: Report) -> None:
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


def _show_status(place: remotes.RemotePlace, state: remotes.RemoteStatus, report: Report) -> None:
    report.line(f"{place.name}: {place.url}")
    if state.digest is None:
        report.line("There is no project file yet.")
        return
    shared = f"shared: {', '.join(state.shared) or 'nobody yet'}"
    if state.rounds:
        report.line("The analyst has asked for a further round: who has answered the last request counts as shared.")
    if state.revision is None:
        # The hub names a digest, and not what it stands for: only a signed file can say that.
        report.line(f"project {state.project}, digest {state.digest}: this project file is not here. Its deadline and")
        report.line("quorum are known when it is: datacollab remote pull")
        report.line(shared)
    else:
        report.line(f"project {state.project}, revision {state.revision}, digest {state.digest}")
        report.line(f"{shared}; {state.quorum} are needed")
    if state.missing:
        report.line(f"missing: {', '.join(state.missing)}")
    if state.waiting:
        report.line(f"to be fetched by: {', '.join(state.waiting)}")
    if state.deadline:
        clock = f", and it is {state.now} there" if state.now else ""
        report.line(f"deadline: {state.deadline}{clock}")


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
    pull(quiet, folder, remote)
    return [f"{path}: came" for path in quiet.facts["came"]]


def _send(quiet: Report, folder: WorkFolder, remote: str | None) -> list[str]:
    push(quiet, folder, None, remote)
    # Files of others that are refused may be mended by these; one of one's own is not.
    for error in quiet.facts["refused"].values():
        raise ExchangeError(error["code"], error["message"])
    return [f"{path}: sent" for path in quiet.facts["sent"]]


def _carry(
    report: Report, folder: WorkFolder, remote: str | None, carry: Callable[[Report, WorkFolder, str | None], list[str]]
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
