"""What commands are made of: groups, plain help, options that all spell alike, and the steps from their table."""

from __future__ import annotations

import builtins
import inspect
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperGroup

from ..errors import ExchangeError
from ..exchange.steps import STEPS, Input, read_steps
from ._output import KeptReport, reported, warn

if TYPE_CHECKING:
    from ..bundle import KeyPair
    from ..exchange.analyst_folder import AnalystFolder
    from ..exchange.party_folder import PartyFolder
    from ..remote import Place, Remote

HERE = Path()
VARIABLE = "DATACOLLAB_PASSPHRASE"
_TABLE = Path(__file__).with_name("commands.toml")
COMMANDS = read_steps(_TABLE)
"""Commands that are no step of a party or the analyst."""
GROUPS: dict[str, str] = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["groups"]
"""What the commands of each group are about."""

AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]
OutputArgument = Annotated[Path | None, Argument(metavar="[OUTPUT]", help="The same as --output.")]
PassphraseFile = Annotated[
    Path | None,
    Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help=f"File with the passphrase. Without: {VARIABLE}, or the terminal asks.",
    ),
]


InFolder = Annotated[Path, Option("--folder", "-C", metavar="DIR", help=COMMANDS["remote pull"].folder)]
Named = Annotated[str | None, Option("--remote", metavar="NAME", help="Which remote. Default: the only one.")]
Certificates = Annotated[
    Path | None, Option("--ca", exists=True, dir_okay=False, help="Certificates of the hub's own organisation (PEM).")
]


class _WholeHelp(TyperGroup):
    """A group of commands that lists what each does in full, and keeps the lines of their examples."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for each in self.commands.values():
            paragraphs = (each.help or "").split("\n\n")
            each.short_help = " ".join(paragraphs[0].split())
            each.help = "\n\n".join("\b\n" + part if part.startswith("  ") else part for part in paragraphs)


_ROWS_ONLY = "Only if parties share rows"


class _Command(TyperCommand):
    """A command whose options for rows alone stand last, under a heading."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write all options, in their parts."""
        all_of_them = self.params
        of_rows = [each for each in all_of_them if getattr(each, "rich_help_panel", None) == _ROWS_ONLY]
        try:
            self.params = [each for each in all_of_them if each not in of_rows]
            super().format_options(ctx, formatter)
        finally:
            self.params = all_of_them
        if of_rows:
            with formatter.section(_ROWS_ONLY):
                formatter.write_dl([each.get_help_record(ctx) for each in of_rows])


def group(help: str, **settings: Any) -> typer.Typer:
    """Return a group of commands, whose help is wrapped and never cut; the settings are those of `typer.Typer`."""
    return typer.Typer(cls=_WholeHelp, help=help, no_args_is_help=True, rich_markup_mode=None, **settings)


def group_of(app: typer.Typer, *words: str) -> typer.Typer:
    """Return a group that was added before, by names of groups within one another; without any, ``app`` itself.

    It raises KeyError if there is no such group.
    """
    for word in words:
        app = {each.name: each.typer_instance for each in app.registered_groups if each.typer_instance}[word]
    return app


@dataclass(frozen=True)
class Folder:
    """The folder that a command works in, and the file with the passphrase of its keys."""

    path: Path
    passphrase_file: Path | None = None
    known: str | None = field(default=None, repr=False)
    """The passphrase, if it was given before."""

    @property
    def passphrase(self) -> str | None:
        """The passphrase; somebody at a terminal is asked if the keys need one and none was given."""
        from ..bundle import KeyFile

        if self.known is not None:
            return self.known
        given, keys = passphrase(self.passphrase_file), self.path / "keys.json"
        if given is None and at_terminal() and keys.exists() and KeyFile.read(keys).encrypted:
            return ask()
        return given

    def check_public_key(self) -> None:
        """Warn if ``public.key`` is somebody else's, saved over the folder's own."""
        from ..bundle import KeyFile, PublicKey

        public, keys = self.path / "public.key", self.path / "keys.json"
        if not (public.is_file() and keys.is_file()):
            return
        with suppress(ExchangeError):
            found, own = PublicKey.load(public), KeyFile.read(keys).public
            if found != own:
                warn(
                    f"warning: {public} is the key {found.fingerprint} of somebody else; this folder's is "
                    f"{own.fingerprint}. Rename it, and run: datacollab keys public -o {shlex.quote(str(public))} "
                    f"-C {shlex.quote(str(self.path))}"
                )

    def keys(self) -> KeyPair:
        """Open the keys."""
        from ..bundle import KeyPair

        self.check_public_key()
        return KeyPair.load(self.path / "keys.json", self.passphrase)

    def party(self) -> PartyFolder:
        """Open it as a party's."""
        from ..exchange.party_folder import PartyFolder

        self.check_public_key()
        return PartyFolder(self.path, passphrase=self.passphrase)

    def analyst(self) -> AnalystFolder:
        """Open it as the analyst's."""
        from ..exchange.analyst_folder import AnalystFolder

        self.check_public_key()
        return AnalystFolder(self.path, passphrase=self.passphrase)


def add_step(app: typer.Typer, name: str) -> None:
    """Add the command of a step, such as ``party install``, to its group; it ends as `reported` says.

    Its module, here ``_party``, is imported when the command runs. The function of its verb there takes the report,
    the folder if the step has one, and the inputs by their names.
    """
    of = (STEPS | COMMANDS)[name]
    role, verb = name.split()[0], name.split()[-1]
    whose = of.folder or {"party": "The party's folder.", "analyst": "The analyst's folder."}.get(role, "")
    closing = [f"Writes {' and '.join(of.writes)}." if of.writes else "", f"Asks: {of.asks}" if of.asks else ""]
    closing = [*filter(None, closing), f"Takes {of.takes}." if of.takes else ""]
    example = f"Example: {of.example}" if of.example else ""
    help = "\n\n".join(filter(None, [of.does.strip(), " ".join(closing).strip(), example]))

    def run(**given: Any) -> None:
        as_json = given.pop("as_json", False)
        place = (Folder(given.pop("folder"), given.pop("passphrase_file", None)),) if whose else ()
        with reported(as_json, unchanged=of.unchanged) as report:
            _function(name)(report, *place, **given)

    parameters = [_parameter(each) for each in of.inputs]
    if whose:
        in_folder = Annotated[Path, Option("--folder", "-C", metavar="DIR", help=whose)]
        parameters.append(_keyword("folder", in_folder, HERE))
        parameters += [_keyword("passphrase_file", PassphraseFile, None)] if of.has_keys else []
    parameters += [_keyword("as_json", AsJson, False)] if of.has_json else []
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    app.command(verb, help=help, cls=_Command)(run)


def _function(name: str) -> Callable[..., None]:
    role, verb = name.split()[0], name.split()[-1]
    module = import_module(f"._{role}", __package__)
    found: Callable[..., None] = getattr(module, f"{verb}_" if hasattr(builtins, verb) else verb)
    return found


def lines_of(folder: Folder, name: str, /, **given: Any) -> list[str]:
    """Run a command in a folder, with inputs by their names, and return the lines that it prints.

    It raises the errors of the command, and a ValueError in place of a wrong use.
    """
    of, report = (STEPS | COMMANDS)[name], KeptReport()
    place = (folder,) if of.folder or name.split()[0] in ("party", "analyst") else ()
    try:
        _function(name)(report, *place, **{each.name: each.default for each in of.inputs} | given)
    except typer.BadParameter as error:
        raise ValueError(error.format_message()) from None
    return report.lines


def _keyword(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _parameter(of: Input) -> Parameter:
    kind: Any = list[of.kind] if of.is_many else of.kind  # type: ignore[name-defined]
    facts: dict[str, Any] = {
        "help": of.help,
        "rich_help_panel": _ROWS_ONLY if of.is_of_rows else None,
        "metavar": of.metavar,
        "min": of.least,
        "max": of.most,
    }
    facts |= {"exists": True, "dir_okay": False} if of.is_there else {}
    if of.known:

        def checked(value: str | None) -> str | None:
            if value is not None and value not in (known := of.names()):
                raise typer.BadParameter(f"Expected one of {', '.join(known)}, got {value!r}.")
            return value

        facts["callback"] = checked
    spelt = ["--output", "-o"] if of.option == "--output" else of.option.split(",")
    # What is on by default gets its second spelling, which turns it off, from typer.
    info = Argument(**facts) if not of.option else Option(*(() if of.default is True else spelt), **facts)
    if not (of.required or of.default is not None):
        kind |= None
    return _keyword(of.name, Annotated[kind, info], Parameter.empty if of.required else of.default)


def named_once(option: Path | None, argument: Path | None, hint: str) -> Path:
    """Return a path that is given as an option or as an argument."""
    if option is not None and argument is not None:
        raise typer.BadParameter("It is given twice, as an option and as an argument.", param_hint=hint)
    given = option or argument
    if given is None:
        raise typer.BadParameter("It is missing.", param_hint=hint)
    return given


def passphrase(given_file: Path | None) -> str | None:
    """Return the passphrase from a file or else from the environment; None if neither holds one."""
    if given_file is None:
        return os.environ.get(VARIABLE) or None
    try:
        text = given_file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError):
        text = ""
    if not text:
        raise ExchangeError("PASSPHRASE_WRONG", f"{given_file} holds no passphrase. Write it there as a line of text.")
    return text


def at_terminal() -> bool:
    """Return whether somebody can be asked."""
    return sys.stdin.isatty()


def ask(*, twice: bool = False) -> str:
    """Ask at the terminal, without showing what is typed."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def says_yes(question: str, *, as_json: bool) -> bool:
    """Ask somebody at the terminal; return False if nobody is there."""
    return not as_json and at_terminal() and bool(typer.confirm(question, err=True))


def sending(folder: Path, to: str, by_hand: str = "Send it to {}.") -> str:
    """Say how to send what lies in the outbox: by the folder's remote, or by hand."""
    if (folder / "remotes.toml").is_file():
        return f"Send it: {shlex.join(['datacollab', 'remote', 'push', *folder_words(folder)])}"
    return by_hand.format(to)


def folder_words(folder: Path) -> tuple[str, ...]:
    """Return the option that names a folder."""
    return () if folder == Path() else ("-C", str(folder))


def keys_of(folder: Path, passphrase_file: Path | None) -> KeyPair:
    """Open the keys of a folder."""
    return Folder(folder, passphrase_file).keys()


@contextmanager
def opened(folder: Path, name: str | None, passphrase_file: Path | None) -> Iterator[tuple[Place, Remote]]:
    """Open the remote of a name, or the only one."""
    from ..remote import chosen, open_remote

    place = chosen(folder, name)
    remote = open_remote(folder, place, lambda: keys_of(folder, passphrase_file))
    try:
        yield place, remote
    finally:
        remote.close()


@contextmanager
def working(folder: Path) -> Iterator[None]:
    """Let one command at a time carry files of a folder; others may work in it meanwhile."""
    from ..exchange.log import locked
    from ..remote import KEPT

    if not folder.is_dir():
        raise ExchangeError("FOLDER_MISSING", f"{folder} is no folder. Give the one with the keys, with -C.")
    (folder / KEPT).mkdir(mode=0o700, exist_ok=True)
    with locked(folder / KEPT):
        yield
