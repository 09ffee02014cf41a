"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from .._version import __version__
from ..folder.step_table import STEPS
from ..plugins import PAGE
from ._command import COMMANDS, GROUPS, add_step, group
from ._plugins import add_plugins

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
add_step(app, "demo")
add_step(app, "trial")
add_step(app, "audit")
add_step(app, "desk")
# One loop over the table: a step that is added there has a command, a page and its help at once.
for name, about in GROUPS.items():
    below = group(about)
    for each in STEPS | COMMANDS:
        if each.startswith(f"{name} "):
            add_step(below, each)
    app.add_typer(below, name=name)
# Last, so that no plugin can take the name of a command of ours.
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
