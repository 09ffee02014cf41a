"""``datacollab hub``: running a mailbox for the files of an exchange."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollab.cli.kit import OutputArgument, choose_path, group, reported
from datacollab.errors import ExchangeError

from .._require import require
from ._demo import demo

if TYPE_CHECKING:
    from ..store import Store


app = group("The hub: a mailbox for signed files of many projects; it opens none of them.")
database_app = group("The hub's database: which version it is of.")
log_app = group("The hub's logs, one for each project.")
app.command("demo")(demo)
app.add_typer(database_app, name="db")
app.add_typer(log_app, name="log")

FOLDER = partial(typer.Option, "--folder", "-C", "--data", metavar="DIR")
Data = Annotated[Path, FOLDER(help="The hub's folder.")]
NewData = Annotated[Path, FOLDER(help="The hub's folder, made where there is none.")]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="DATACOLLAB_HUB_DATABASE",
        show_envvar=False,
        help="A PostgreSQL server; may be in DATACOLLAB_HUB_DATABASE instead. Default: a file in the folder.",
    ),
]
Blobs = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="DATACOLLAB_HUB_BLOBS",
        show_envvar=False,
        help="Where files lie, as fsspec has it; may be in DATACOLLAB_HUB_BLOBS instead. Default: in the folder.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "fsspec", "jinja2", "prometheus_client")
_KIB = 2**10
_MIB = 2**20
_GIB = 2**30


@app.command("serve")
def serve(  # noqa: PLR0913
    data: NewData,
    database: Database = None,
    blobs: Blobs = None,
    url: Annotated[
        str | None, typer.Option(help="The address by which all know the hub. Default: http, host and port.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    file_mib: Annotated[int, typer.Option("--file-mib", min=1, help="The most that a file may have.")] = 2048,
    sender_gib: Annotated[int, typer.Option("--sender-gib", min=1, help="And all of a key in a project.")] = 50,
    projects: Annotated[int, typer.Option(min=1, help="The most projects that a key may open.")] = 100,
    agreement_mib: Annotated[
        int, typer.Option("--agreement-mib", min=1, help="All revisions of project files of a key's projects.")
    ] = 64,
    least_kib: Annotated[
        int, typer.Option("--least-kib", min=0, help="A second: requests with slower bodies are ended.")
    ] = 8,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests of a key in a second.")] = 50.0,
    workers: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Processes that answer; at most one for each core.")
    ] = 1,
    metrics_token_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics-token", metavar="FILE", help="Holds what /metrics asks for. Default: this machine alone."
        ),
    ] = None,
) -> None:
    """Answer requests, until it is told to end.

    Put a server in front that speaks TLS (docs/hub.md shows one), and give the address by which all know it as --url:
    each signature covers it. Lines of log, in JSON, go to standard error.

    Example: datacollab hub serve -C hub --url https://hub.example
    """
    with (
        reported(False, unchanged="What was accepted is whole; uploads go on where they ended.") as report,
        _opened(data, database, blobs, pair=True, make=True) as store,
    ):
        from ..rules import Settings
        from ..service import Hub
        from ..web import serve as run
        from ..web import serve_together

        token = None
        if metrics_token_file is not None:
            # From a file, as others can list a command's words.
            token = metrics_token_file.read_text(encoding="ascii").strip()
        settings = Settings(
            url=url or f"http://{host}:{port}",
            file_bytes=file_mib * _MIB,
            sender_bytes=sender_gib * _GIB,
            projects_per_key=projects,
            agreement_bytes=agreement_mib * _MIB,
            least_bytes_per_second=least_kib * _KIB,
            requests_per_second=rate,
            # An empty file holds no token, or everybody would know it.
            metrics_token=token or None,
        )
        report.line(f"The hub {settings.url} listens on {host}, port {port}. Ctrl-C ends it.")
        if workers == 1:
            run(Hub(store, settings), host=host, port=port)
        else:
            serve_together(
                settings, data=data, database=database, blobs=blobs, host=host, port=port, n_processes=workers
            )


@app.command("allow")
def allow(
    key: Annotated[Path, typer.Argument(metavar="KEYFILE", help="The public.key of who may open projects.")],
    data: NewData,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Let a key open projects. Compare its fingerprint by another way first.

    Example: datacollab hub allow owner.key -C hub
    """
    with reported(as_json) as report:
        import time

        from datacollab.bundle import PublicKey

        # Its proof too, as halves of two people's keys must not open anything.
        public = PublicKey.load(key, proven=True)
        with _opened(data, database, make=True) as store:
            from ..store import allow_key

            with store.writing() as connection:
                allow_key(connection, public, time.time())
        report.facts = {"allowed": public.fingerprint}
        report.line(f"{public.fingerprint} may open projects.")


@app.command("backup")
def backup(
    data: Data,
    there: OutputArgument = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="A folder that does not exist yet.")
    ] = None,
    database: Database = None,
    blobs: Blobs = None,
    as_json: AsJson = False,
) -> None:
    """Copy all that the hub keeps; it may go on meanwhile. The copy is as secret as the hub.

    Example: datacollab hub backup -C hub -o hub-2027-01-31
    """
    target = choose_path(output, there, "--output / -o")
    with reported(as_json, unchanged="Remove the folder that was begun.") as report:
        with _opened(data, database, blobs, pair=True) as store:
            from ..store import backup as copy

            n_files = copy(store, target)
        report.facts = {"written": str(target), "files": n_files}
        report.line(f"{target}: {n_files} files")


@app.command("restore")
def restore(
    copy: Annotated[Path, typer.Argument(metavar="BACKUP", help="The folder that `hub backup` wrote.")],
    data: NewData,
    database: Database = None,
    blobs: Blobs = None,
    as_json: AsJson = False,
) -> None:
    """Fill an empty hub from a backup, on SQLite or PostgreSQL, whichever it came from.

    Example: datacollab hub restore hub-2027-01-31 -C hub
    """
    with reported(as_json) as report:
        with _opened(data, database, blobs, pair=True, make=True) as store:
            from ..store import restore as fill

            n_files = fill(store, copy)
        report.facts = {"restored": str(data), "files": n_files}
        report.line(f"{data}: {n_files} files")


@database_app.command("upgrade")
def upgrade(data: NewData, database: Database = None, as_json: AsJson = False) -> None:
    """Bring the database to this version of the program. Make a backup first.

    Example: datacollab hub db upgrade -C hub
    """
    _move(data, database, None, as_json)


@database_app.command("downgrade")
def downgrade(
    revision: Annotated[str, typer.Argument(help="As `hub db current` showed it before the upgrade.")],
    data: Data,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database back to an earlier version; base removes all that is in it.

    Example: datacollab hub db downgrade 0001 -C hub
    """
    _move(data, database, revision, as_json)


@database_app.command("current")
def current(data: Data, database: Database = None, as_json: AsJson = False) -> None:
    """Show which version the database is of, and which one this program works with.

    Example: datacollab hub db current -C hub
    """
    with reported(as_json) as report:
        with _opened(data, database, check=False) as store:
            from ..store import current as found
            from ..store import newest

            report.facts = {"current": found(store.engine), "newest": newest()}
        report.line(f"database {report.facts['current']}, program {report.facts['newest']}")


@log_app.command("export")
def export(
    project: Annotated[str, typer.Argument(help="Its id, as in its address.")],
    data: Data,
    there: OutputArgument = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Lines of JSON.")] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Copy a project's log for others to read, after checking its chain.

    Example: datacollab hub log export 00..ff -C hub -o log.jsonl
    """
    target = choose_path(output, there, "--output / -o")
    with reported(as_json) as report:
        from datacollab.bundle import canonical_json, write_atomically

        with _opened(data, database) as store:
            entries, head = _check_log(store, project)
        lines = [{"project": project}, *entries]
        # Closed to others, as a log names members and tells who fetched what.
        write_atomically(target, b"".join(canonical_json(line) + b"\n" for line in lines), mode=0o600)
        report.facts = {"written": str(target), "entries": len(entries), "head": head}
        report.line(f"{target}: {len(entries)} entries. Head {head}")


@log_app.command("verify")
def verify(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="An exported log. Default: all logs.")] = None,
    data: Annotated[Path | None, FOLDER(help="The hub's folder.")] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check the chain of an exported log, or of all logs of a hub; exit with 11 where it is broken.

    All logs are checked, and each that is broken is named. That entries at an end are missing shows against the heads
    that members have seen (`remote status`).

    Example: datacollab hub log verify -C hub
    """
    if (file is None) == (data is None):
        raise typer.BadParameter("Give a file, or the hub's folder.", param_hint="[FILE] / --folder")
    with reported(as_json) as report:
        broken: list[str] = []
        if data is not None:
            logs, broken = _all_logs(data, database)
        else:
            logs = [_export_log(file or Path())]
        for each in logs:
            report.line(f"{each['project']}: {each['entries']} entries, none changed. Head {each['head']}")
        if broken:
            raise ExchangeError(
                "LOG_BROKEN", f"{len(broken)} of {len(logs) + len(broken)} logs are broken. {' '.join(broken)}"
            )
        if not logs:
            report.line("The hub has no project yet, and so no log.")
        report.facts = {"logs": logs}


@contextmanager
def _opened(
    data: Path,
    database: str | None,
    blobs: str | None = None,
    *,
    check: bool = True,
    pair: bool = False,
    make: bool = False,
) -> Iterator[Store]:
    """The hub's store, let go of in the end; paired, where something is done with its blobs; made, if it may be."""
    # All at once: what is missing is named with the extra, and not by an import's error later.
    for module in _NEEDED:
        require(module, "server")
    if database is not None and not database.startswith("sqlite"):
        require("psycopg", "postgresql")
    from ..store import Store, check_current, is_empty

    # To look into a folder's database would make it.
    has_folder = (data / "hub.sqlite").is_file() or (bool(database) and data.is_dir())
    if not make and not has_folder:
        raise _no_hub(data)
    store = Store.located(data, database=database, blobs=blobs)
    try:
        # With a wrong --database one would see a hub without any project.
        if not make and is_empty(store.engine):
            raise _no_hub(data)
        if check:
            check_current(store.engine)
        if pair:
            store.pair()
        yield store
    finally:
        store.close()


def _no_hub(data: Path) -> ExchangeError:
    return ExchangeError(
        "FOLDER_MISSING",
        f"{data} is no hub's folder, or the database has none of a hub's tables. Give the folder and the database that "
        "`datacollab hub serve` was started with, which makes a hub where there is none.",
    )


def _move(data: Path, database: str | None, revision: str | None, as_json: bool) -> None:
    with reported(as_json) as report:
        with _opened(data, database, check=False, make=revision is None) as store:
            from ..store import current as found
            from ..store import downgrade as down
            from ..store import upgrade as up

            before = found(store.engine)
            if revision is None:
                up(store.engine)
            else:
                down(store.engine, revision)
            report.facts = {"before": before, "current": found(store.engine)}
        report.line(f"The database was of revision {before}, and is of {report.facts['current']}.")


def _check_log(store: Store, project: str) -> tuple[list[dict[str, Any]], str]:
    """A log that holds together, and its head."""
    from ..requests import check_hub_log
    from ..store import log_entries, project_row

    with store.reading() as connection:
        if project_row(connection, project) is None:
            raise ExchangeError("NOT_FOUND", "The hub has no such project. Its id is in every address of it.")
        # All at once, so that no entry comes in between.
        entries = log_entries(connection, project, most=2**31)
    return entries, check_hub_log(project, entries)


def _all_logs(data: Path, database: str | None) -> tuple[list[dict[str, Any]], list[str]]:
    """Read all logs; return those that hold together, and the fault of each other one."""
    logs: list[dict[str, Any]] = []
    broken: list[str] = []
    with _opened(data, database) as store:
        from ..store import all_projects

        with store.reading() as connection:
            projects = all_projects(connection)
        for project in projects:
            try:
                entries, head = _check_log(store, project)
            except ExchangeError as error:
                # One broken log must not hide how the others are.
                if error.code != "LOG_BROKEN":
                    raise
                broken.append(str(error))
            else:
                logs.append({"project": project, "entries": len(entries), "head": head})
    return logs, broken


def _export_log(file: Path) -> dict[str, Any]:
    from datacollab.bundle import parse_json

    from ..requests import check_hub_log

    first, *lines = [parse_json(line, what=str(file)) for line in file.read_bytes().splitlines()] or [{}]
    if not isinstance(first, dict) or not isinstance(first.get("project"), str):
        raise ExchangeError("WRONG_KIND", f"{file} is no log that `datacollab hub log export` wrote.")
    return {"project": first["project"], "entries": len(lines), "head": check_hub_log(first["project"], lines)}
