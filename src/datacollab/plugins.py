"""Plugins: commands and kinds of remote that other distributions bring, found by their entry points.

A distribution names them in its ``pyproject.toml``:

.. code-block:: toml

    [project.entry-points."datacollab.commands"]
    weather = "datacollab_weather.commands:register"

    [project.entry-points."datacollab.remotes"]
    pigeon = "datacollab_weather.remote:PigeonKind"

An entry of ``datacollab.commands`` is a function ``register(app: typer.Typer) -> None`` that adds commands to the
program. It is called before each command, so the module that holds it imports nothing heavy. An entry of
``datacollab.remotes`` is a class of `datacollab.remote.RemoteKind`; its name is the scheme of the URLs that it takes.

Codes of refusals that only a plugin knows are added with `add_codes`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from .errors import Code, MissingExtraError, add_codes, all_codes

__all__ = ["COMMANDS", "PAGE", "REMOTES", "Code", "add_codes", "all_codes", "find_plugin", "missing", "plugins"]

COMMANDS = "datacollab.commands"
REMOTES = "datacollab.remotes"
"""Groups of entry points."""

PAGE = "https://github.com/datacollab/datacollab"
"""Where the project lives; `pyproject.toml` names the same."""


def plugins(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, by their names; none of them is loaded yet."""
    return sorted(entry_points(group=group), key=lambda entry: entry.name)


def find_plugin(group: str, name: str) -> EntryPoint | None:
    """Return the entry point of a name, or None if no distribution brings it."""
    return next(iter(entry_points(group=group, name=name)), None)


def missing(what: str, folder: str) -> MissingExtraError:
    """Return an error that says how to get a distribution of this repository, in the given folder of it.

    Examples
    --------
    >>> "pip install ./hub" in str(missing("datacollab hub", "hub"))
    True
    """
    # No release has it: a name without a path would be looked up in a public registry.
    return MissingExtraError(
        f"{what} comes with a distribution of its own, which is not installed. In a copy of {PAGE}, run: "
        f"pip install ./{folder}"
    )
