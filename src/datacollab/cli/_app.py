"""The commands, put together: ours from their table, then those that other distributions bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from .. import plugins
from .._version import __version__
from ..folder.step_table import STEPS
from ..plugins import PAGE, missing
from ._command import COMMANDS, GROUPS, add_step, group, group_of
from ._output import warn

KNOWN = {"hub": "hub", "remote join": "hub", "experiment": "experiments", "compare": "experiments"}
"""Commands of this repository's other distributions, and the folders that these lie in."""


def add_plugins(app: typer.Typer) -> None:
    """Add the commands of all plugins; one that cannot be loaded is named on standard error, and left out."""
    for plugin in plugins.plugins(plugins.COMMANDS):
        before = [(each, list(each.registered_commands), list(each.registered_groups)) for _, each in _groups(app)]
        try:
            plugin.load()(app)
            names = _names(app)
            if len(set(names)) < len(names):
                raise ValueError("it gives a name that is taken to another command")
        except Exception as error:
            # A plugin that fails half-way must not leave half of its commands.
            for each, commands, groups in before:
                each.registered_commands[:] = commands
                each.registered_groups[:] = groups
            warn(f"datacollab: the plugin {plugin.name} ({plugin.value}) was left out: {error}")
    there = _names(app)
    for words, folder in KNOWN.items():
        *parents, name = words.split()
        if words not in there:
            add = group_of(app, *parents).command
            add(name, hidden=True, add_help_option=False, context_settings=_TAKES_ALL)(_refuse(words, folder))


_TAKES_ALL = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Any options are taken: the answer is how to install the command, whatever was asked of it."""


def _refuse(words: str, folder: str) -> Callable[[], None]:
    """Return a command that says how to install the true one."""

    def refuse() -> None:
        warn(f"datacollab: {missing(f'`datacollab {words}`', folder)}")
        raise typer.Exit(1)

    return refuse


def _groups(app: typer.Typer, words: str = "") -> Iterator[tuple[str, typer.Typer]]:
    """Yield all groups with their words, the program itself first."""
    yield words, app
    for each in app.registered_groups:
        if each.typer_instance is not None:
            yield from _groups(each.typer_instance, f"{words}{each.name} ")


def _names(app: typer.Typer) -> list[str]:
    """Return the words of all commands and groups."""
    names = [words.strip() for words, _ in _groups(app)]
    for words, each in _groups(app):
        for command in each.registered_commands:
            own = str(getattr(command.callback, "__name__", "")).replace("_", "-")
            names.append(f"{words}{command.name or own}")
    return names


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
