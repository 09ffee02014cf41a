"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from .._version import __version__
from ..plugins import PAGE
from . import (
    _analyst,
    _anchor,
    _audit,
    _bundle,
    _data,
    _demo,
    _desk,
    _keys,
    _log,
    _party,
    _project,
    _remote,
)
from ._command import group, step
from ._plugins import add_plugins

__all__ = ["app"]

app = group(
    "Data collaboration: one model over several parties' private tables, in a single exchange.",
    pretty_exceptions_enable=False,
    epilog=f"""\b
Documents and changes  {PAGE}
Questions and faults   {PAGE}/issues
Anything that may disclose private data, in private
                       {PAGE}/security""",
    context_settings={"help_option_names": ["-h", "--help"]},
)
step(app, "demo")(_demo.demo)
app.command("audit")(_audit.audit)
step(app, "desk")(_desk.desk)
app.add_typer(_keys.app, name="keys")
app.add_typer(_project.app, name="project")
app.add_typer(_anchor.app, name="anchor")
app.add_typer(_party.app, name="party")
app.add_typer(_analyst.app, name="analyst")
app.add_typer(_remote.app, name="remote")
app.add_typer(_bundle.app, name="bundle")
app.add_typer(_log.app, name="log")
app.add_typer(_data.app, name="data")
add_plugins(app)


def _show_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"datacollab {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass
