"""``datacollab remote``: files to a hub or a folder that all reach, and from it."""

from __future__ import annotations

import os
import time
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ..errors import ExchangeError
from ._help import group
from ._options import PassphraseFile
from ._output import Report, reported, warn
from ._progress import Say, shown_progress
from ._remote_next import next_commands
from ._remote_options import (
    HERE,
    AsJson,
    Certificates,
    InFolder,
    Named,
    keys_of,
    opened,
    show_refused,
    soon_locked,
    working,
)

if TYPE_CHECKING:
    from ..remote import Folder, Kept, Place, Pulled, Pushed, Remote, RemoteStatus

__all__ = ["app"]

app = group("Remotes: carry the files of an exchange through a hub, or a folder that all reach.")
File = partial(typer.Argument, exists=True, dir_okay=False)
_LONGEST_WAIT = 3600.0


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="What to call it here.")],
    url: Annotated[str, typer.Argument(help="https://... of a hub; or a folder, sftp://..., s3://...")],
    ca: Certificates = None,
    folder: InFolder = HERE,
    as_json: AsJson = False,
) -> None:
    """Note where the folder's files go and come from.

    Example: datacollab remote add store /mnt/exchange -C hospital-a
    """
    with reported(as_json) as report, working(folder):
        from ..remote import Place, check_kind, is_store, read_places, write_places

        if is_store(url) and "://" not in url:
            url = str(Path(url).absolute())
        certificates = None if ca is None else os.path.relpath(ca, folder)
        place = Place(name=name, url=url if is_store(url) else url.rstrip("/"), ca=certificates)
        check_kind(url)
        places = read_places(folder)
        if name in places:
            raise ExchangeError(
                "ALREADY_THERE", f"{folder} has a remote {name!r}. Remove it first: datacollab remote remove {name}"
            )
        write_places(folder, places | {name: place})
        report.facts = {"remote": name, "url": place.url}
        report.line(f"{folder}: remote {name} is {place.url}")


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="Which remote.")], folder: InFolder = HERE, as_json: AsJson = False
) -> None:
    """Forget a remote; what lies there stays.

    Example: datacollab remote remove store -C hospital-a
    """
    with reported(as_json) as report, working(folder):
        from ..remote import chosen, forget, read_places, write_places

        place = chosen(folder, name)
        write_places(folder, {each: there for each, there in read_places(folder).items() if each != name})
        forget(folder, name)
        report.facts = {"removed": name, "url": place.url}
        report.line(f"{folder}: remote {name} is forgotten. What lies at {place.url} stays there.")


@app.command("push")
def push(
    files: Annotated[
        list[Path] | None, File(help="Only these; an owner names project file and anchor that lie elsewhere.")
    ] = None,
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Send what lies in the outbox and the remote has not; of an owner, project file and anchor too.

    What was interrupted goes on when the command is run again.

    Example: datacollab remote push -C hospital-a
    """
    unchanged = "What was sent by then stays; run the command again to go on."
    with reported(as_json, unchanged=unchanged) as report, working(folder):
        from ..remote import Folder
        from ..remote import push as push_all

        there = Folder.at(folder, files or ())
        with opened(folder, remote, passphrase_file) as (place, opened_remote):

            def remember(sha256: str) -> None:
                _kept(folder, place).expecting(sha256).write(folder, place.name)

            with shown_progress(quiet=as_json) as progress:
                back = _kept(folder, place).withdrawn
                done = push_all(there, opened_remote, files or (), withdrawn=back, has=remember, tell=progress)
            _record(folder, "push", place, done.sent)
            _show_pushed(done, folder, place, report)
            code = show_refused(done.refused, report)
            _witnessed(folder, there, place, opened_remote, _kept(folder, place), report)
    if code:
        raise typer.Exit(code)


@app.command("pull")
def pull(
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Fetch what is for this folder, check it, and put it into the inbox; nothing is joined, added or installed.

    What was interrupted goes on when the command is run again.

    Example: datacollab remote pull -C analyst
    """
    with reported(as_json, unchanged="What came by then stays; run the command again to go on.") as report:
        with (
            working(folder),
            opened(folder, remote, passphrase_file) as (place, opened_remote),
            shown_progress(quiet=as_json) as progress,
        ):
            code = _pull(folder, place, opened_remote, report, progress)
        if not (report.facts["came"] or report.facts["refused"]):
            if not (folder / "project.toml").is_file() and not (folder / "inbox" / "project.toml").is_file():
                report.line("There is no project file for this key yet: the owner lets it in, and sends the project.")
            report.line(f"{folder}: nothing new came.")
    if code:
        raise typer.Exit(code)


@app.command("status")
def status(
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """How the project stands at the remote, and whether a hub's log goes on from what was seen last.

    Example: datacollab remote status -C hospital-a
    """
    with reported(as_json) as report, working(folder):
        from ..remote import Folder

        there = Folder.at(folder)
        with opened(folder, remote, passphrase_file) as (place, opened_remote):
            found = opened_remote.status(there)
            report.facts = {"remote": place.name, "url": place.url, **_told(found)}
            _show_status(place, found, report)
            _witnessed(folder, there, place, opened_remote, _kept(folder, place), report)


@app.command("watch")
def watch(
    every: Annotated[float, Option(min=1.0, metavar="SECONDS", help="How long to wait between two looks.")] = 60.0,
    looks: Annotated[int | None, Option(min=1, help="Stop after so many. Default: go on until Ctrl-C.")] = None,
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Pull again and again, and say what came; a remote that cannot be reached is asked again later.

    Example: datacollab remote watch --every 300 -C analyst
    """
    came: dict[str, str] = {}
    # A passphrase is asked for once.
    keys = cache(lambda: keys_of(folder, passphrase_file))
    with reported(as_json, unchanged="What came stays.") as report:
        failed = done = 0
        while True:
            try:
                with working(folder), opened(folder, remote, passphrase_file, keys) as (place, opened_remote):
                    _pull(folder, place, opened_remote, report, lambda step, share=None: None)
                failed = 0
            except ExchangeError as error:
                if error.code not in ("REMOTE_UNREACHABLE", "BUSY"):
                    raise
                failed += 1
                warn(f"datacollab: {error.code}: {error}")
            came |= report.facts.pop("came", {})
            done += 1
            if looks is not None and done >= looks:
                break
            time.sleep(min(every * 2 ** min(failed, 10), max(every, _LONGEST_WAIT)))
        report.facts = {"came": came, "looks": done}


@app.command("withdraw")
def withdraw(
    file: Annotated[str, typer.Argument(help="The file in the outbox, or 16 letters or more of its SHA-256.")],
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Take back a file of your own; whoever has fetched it keeps it.

    Example: datacollab remote withdraw hospital-a/outbox/a.dcshare -C hospital-a
    """
    with reported(as_json, unchanged="Look with `datacollab remote status`.") as report, working(folder):
        from ..remote import Folder, withdrawable

        there = Folder.at(folder)
        with opened(folder, remote, passphrase_file) as (place, opened_remote):
            entry = withdrawable(there, opened_remote, file)
            opened_remote.withdraw(entry, folder=there)
            _kept(folder, place).without(entry.sha256).write(folder, place.name)
            _record(folder, "withdraw", place, {entry.sha256: entry.kind})
        report.facts = {"withdrawn": entry.sha256, "kind": entry.kind}
        report.line(f"The {entry.kind} {entry.sha256[:16]} was taken back from {place.name}.")
        report.line("Whoever has fetched it keeps it.")


def _pull(folder: Path, place: Place, remote: Remote, report: Report, progress: Say) -> int:
    """Pull, remember, and say what came; the exit code is returned."""
    from ..remote import Folder, Pulled
    from ..remote import pull as pull_all

    there, before, done = Folder.at(folder), _kept(folder, place), Pulled()

    def remember(kept: Kept) -> None:
        kept.write(folder, place.name)

    try:
        done, kept = pull_all(there, remote, before, keep=remember, done=done, tell=progress)
    finally:
        # What came before an interruption has come.
        _show_pulled(done, report)
        _record(folder, "pull", place, done.came)
    now = Folder.at(folder)
    commands = next_commands(folder, done.came, is_analyst=now.is_analyst)
    report.facts["next"] = commands
    for command in commands:
        report.line(f"Next: {command}")
    if "agreement" in done.came.values() and now.project is not None and there.project is None:
        report.line(f"Owner {now.project.owner.fingerprint}, project {now.project.fingerprint}:")
        report.line("compare them with the owner by telephone before you join.")
    code = show_refused(done.refused, report)
    if now.project is not None:
        seen = _witnessed(folder, now, place, remote, kept, report)
        remote.check_given(now, before, seen, done.refused)
    return code


def _kept(folder: Path, place: Place) -> Kept:
    from ..remote import Kept

    return Kept.read(folder, place.name)


def _witnessed(folder: Path, there: Folder, place: Place, remote: Remote, kept: Kept, report: Report) -> Kept:
    """Look whether the remote's log goes on, and remember its end; stores have none."""
    if not remote.has_log:
        return kept
    seen = remote.witness(kept, there).write(folder, place.name)
    report.facts["log"] = {"seq": seen.seq, "head": seen.head}
    report.line(f"The hub's log goes on: {seen.seq} entries, head {seen.head[:16]}.")
    return seen


def _record(folder: Path, event: str, place: Place, files: dict[str, str]) -> None:
    """Have the folder's own log know of it, where there is one."""
    from ..exchange.log import AuditLog

    if files and (folder / "log.jsonl").is_file():
        with soon_locked(folder):
            AuditLog(folder / "log.jsonl").append(
                event, remote=place.name, files={Path(path).name: kind for path, kind in files.items()}
            )


def _show_pulled(done: Pulled, report: Report) -> None:
    report.facts |= {"came": done.came, "older": done.older, "withdrawn": done.withdrawn}
    for path, kind in done.came.items():
        report.line(f"{path}: {kind}, {Path(path).stat().st_size:,} bytes, signature in order")
    for sha256 in done.older:
        report.line(f"{sha256[:16]}: made before the one in the inbox, and left out")
    for sha256 in done.withdrawn:
        report.line(f"{sha256[:16]}: its sender has taken it back. Ask what counts before you use it.")


def _show_pushed(done: Pushed, folder: Path, place: Place, report: Report) -> None:
    report.facts |= {"sent": done.sent, "there": done.there, "withdrawn": done.withdrawn, "unsealed": done.unsealed}
    for path, kind in done.sent.items():
        report.line(f"{path}: {kind}, sent to {place.name}")
    for path in done.there:
        report.line(f"{path}: was there already")
    for path in done.withdrawn:
        report.line(f"{path}: was taken back there, and is not sent again")
    for path in done.unsealed:
        report.line(f"{path} is not sealed: whoever runs {place.name} can read it (seal_shares in the project file).")
    if not (done.sent or done.there or done.withdrawn or done.refused):
        report.line(f"{folder}: there is nothing to send.")


def _told(found: RemoteStatus) -> dict[str, Any]:
    names = ("project", "digest", "revision", "deadline", "quorum", "shared", "missing", "waiting", "now")
    return {name: getattr(found, name) for name in names}


def _show_status(place: Place, found: RemoteStatus, report: Report) -> None:
    report.line(f"{place.name}: {place.url}")
    if found.digest is None:
        report.line("There is no project file yet.")
        return
    shared = f"shared: {', '.join(found.shared) or 'nobody yet'}"
    if found.revision is None:
        report.line(f"project {found.project}, digest {found.digest}: this project file is not here. Its deadline and")
        report.line("quorum are told when it is: datacollab remote pull")
        report.line(shared)
    else:
        report.line(f"project {found.project}, revision {found.revision}, digest {found.digest}")
        report.line(f"{shared}; {found.quorum} are wanted")
    if found.missing:
        report.line(f"missing: {', '.join(found.missing)}")
    if found.waiting:
        report.line(f"to be fetched by: {', '.join(found.waiting)}")
    if found.deadline:
        report.line(f"deadline: {found.deadline}{f', and it is {found.now} there' if found.now else ''}")
