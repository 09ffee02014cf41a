"""Pages of the commands, made from the program itself: what `--help` says, with an anchor for each option."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from datacollab.cli._app import app as program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

LINES = "=-~^"
"""Characters that underline headings, from the page's own downwards."""


def as_text(said: str) -> str:
    """Return words of the program as reStructuredText, in which only `code` has a meaning."""
    pieces = re.split(r"`([^`\n]+)`", said)
    shown = [
        f"``{piece}``" if number % 2 else re.sub(r"([\\*_|`<>])", r"\\\1", piece) for number, piece in enumerate(pieces)
    ]
    return "".join(shown)


def help_of(command: Any) -> list[str]:
    """Return the help, paragraph by paragraph, with its example as something to copy."""
    lines: list[str] = []
    for paragraph in (command.help or "").replace("\b", "").strip().split("\n\n"):
        words = " ".join(paragraph.split())
        example = re.match(r"(?:Example: |For example: )(datacollab .+)", words)
        lines += [".. code-block:: console", "", f"   $ {example[1]}", ""] if example else [as_text(words), ""]
    return lines


def parameters_of(command: Any, context: typer.Context) -> list[str]:
    """Return arguments and options with their defaults, as the help has them."""
    lines: list[str] = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            spelt, said = record
            if parameter.param_type_name == "argument":
                lines += [f"``{spelt}``", f"   {as_text(said)}", ""]
            else:
                lines += [f".. option:: {spelt.replace(' / ', ', ')}", "", f"   {as_text(said)}", ""]
    return lines


def section(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a command, and of those below it."""
    name = " ".join(path)
    context = typer.Context(command, info_name=name)
    yield from (f".. _{'-'.join(path)}:", "", name, LINES[len(path) - 2] * len(name), "")
    yield from help_of(command)
    below = getattr(command, "commands", {})
    if not below:
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        yield from (".. code-block:: text", "", f"   {usage}", "", f".. program:: {name}", "")
    yield from parameters_of(command, context)
    for each, subcommand in shown(below).items():
        yield from section(subcommand, (*path, each))


def shown(commands: dict[str, Any]) -> dict[str, Any]:
    """Return the commands that the program lists: not those of distributions that are not installed."""
    return {name: command for name, command in commands.items() if not command.hidden}


def write_pages(app: Sphinx) -> None:
    """Write a page for each command, or group of commands, into the folder ``commands``."""
    folder = Path(app.srcdir) / "commands"
    folder.mkdir(exist_ok=True)
    commands = shown(typer.main.get_command(program).commands)
    index = ["Commands", "========", "", "What ``datacollab --help`` and the help of every command say.", ""]
    index += [".. list-table::", "   :class: names", "   :widths: auto", ""]
    for name, command in commands.items():
        first = as_text(" ".join((command.help or "").split("\n\n")[0].split()))
        index += [f"   * - :doc:`datacollab {name} <{name}>`", f"     - {first}"]
    index += ["", ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in commands), ""]
    sources = {"index": index}
    sources |= {name: list(section(command, ("datacollab", name))) for name, command in commands.items()}
    for name, lines in sources.items():
        path, source = folder / f"{name}.rst", "\n".join(lines)
        if not path.exists() or path.read_text(encoding="utf-8") != source:
            path.write_text(source, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
