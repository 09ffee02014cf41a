"""Commands and their parts: groups, plain help, options that all spell alike, and the steps from their table."""

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
from ..folder.step_table import STEPS, Input, Step, read_steps
from ._output import KeptReport, reported, warn

if TYPE_CHECKING:
    from ..bundle import KeyPair, PublicKey
    from ..remote import Remote, RemotePlace
    from ..steps.analyst import AnalystFolder
    from ..steps.party import PartyFolder

HERE = Path()
VARIABLE = "DATACOLLAB_PASSPHRASE"
_TABLE = Path(__file__).with_name("commands.toml")
COMMANDS = read_steps(_TABLE)
"""Commands that are no step of a party or the analyst."""
GROUPS: dict[str, str] = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["groups"]
"""A sentence on the commands of each group."""

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
Sql = Annotated[
    str | None,
    Option(
        "--sql",
        metavar="SELECT",
        help="Read the rows of this query, where the table is a database: .sqlite, .db, .duckdb or "
        "postgresql://host/name.",
    ),
]
Certificates = Annotated[
    Path | None, Option("--ca", exists=True, dir_okay=False, help="Certificates of the hub's own organisation (PEM).")
]


class _WholeHelp(TyperGroup):
    """A group of commands that lists the first paragraph of each in full, and keeps the lines of their examples."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for each in self.commands.values():
            paragraphs = (each.help or "").split("\n\n")
            each.short_help = " ".join(paragraphs[0].split())
            # Click wraps a paragraph anew unless a backspace stands before it.
            each.help = "\n\n".join("\b\n" + part if part.startswith("  ") else part for part in paragraphs)


_ROWS_ONLY = "Only if parties share rows"


class _Command(TyperCommand):
    """A command whose options for rows alone stand last, under a heading."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write all options, in their parts."""
        parameters = self.params
        of_rows = [each for each in parameters if getattr(each, "rich_help_panel", None) == _ROWS_ONLY]
        try:
            self.params = [each for each in parameters if each not in of_rows]
            super().format_options(ctx, formatter)
        finally:
            self.params = parameters
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
class WorkFolder:
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
        words = passphrase(self.passphrase_file)
        keys = self.path / "keys.json"
        if words is None and at_terminal() and keys.exists() and KeyFile.read(keys).encrypted:
            return ask()
        return words

    def check_public_key(self) -> None:
        """Warn if ``public.key`` is somebody else's, saved over the folder's own."""
        from ..bundle import KeyFile, PublicKey

        public = self.path / "public.key"
        keys = self.path / "keys.json"
        if not (public.is_file() and keys.is_file()):
            return
        # A file that cannot be read is the command's to refuse, in its own words.
        with suppress(ExchangeError):
            found = PublicKey.load(public)
            own = KeyFile.read(keys).public
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
        from ..steps.party import PartyFolder

        self.check_public_key()
        return PartyFolder(self.path, passphrase=self.passphrase)

    def analyst(self) -> AnalystFolder:
        """Open it as the analyst's."""
        from ..steps.analyst import AnalystFolder

        self.check_public_key()
        return AnalystFolder(self.path, passphrase=self.passphrase)


def add_step(app: typer.Typer, name: str) -> None:
    """Add the command of a step, such as ``party install``, to its group; it ends as `reported` says.

    Its module, here ``_party_commands``, is imported when the command runs. The function of its verb takes the report,
    the folder if the step has one, and the inputs by their names.
    """
    step = (STEPS | COMMANDS)[name]
    role, verb = _role_and_verb(name)
    tables = [each for each in step.inputs if each.may_be_query]
    # Steps of a role work in its folder; others say in the table whether they need one.
    whose = step.folder or {"party": "The party's folder.", "analyst": "The analyst's folder."}.get(role, "")

    def run(**inputs: Any) -> None:
        as_json = inputs.pop("as_json", False)
        sql = inputs.pop("sql", None)
        place = []
        if whose:
            place.append(WorkFolder(inputs.pop("folder"), inputs.pop("passphrase_file", None)))
        with reported(as_json, unchanged=step.unchanged) as report:
            for each in tables:
                inputs[each.name] = choose_table(inputs[each.name], sql)
            _find_function(name)(report, *place, **inputs)

    parameters = [_make_parameter(each) for each in step.inputs]
    if tables:
        parameters.append(_keyword("sql", Sql, None))
    if whose:
        in_folder = Annotated[Path, Option("--folder", "-C", metavar="DIR", help=whose)]
        parameters.append(_keyword("folder", in_folder, HERE))
    if whose and step.has_keys:
        parameters.append(_keyword("passphrase_file", PassphraseFile, None))
    if step.has_json:
        parameters.append(_keyword("as_json", AsJson, False))
    # Typer reads options off a signature: it is made of the table, so that no step is written down twice.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    app.command(verb, help=_write_help(step), cls=_Command)(run)


def _role_and_verb(name: str) -> tuple[str, str]:
    words = name.split()
    return words[0], words[-1]


def _write_help(step: Step) -> str:
    closing = []
    if step.writes:
        closing.append(f"Writes {' and '.join(step.writes)}.")
    if step.asks:
        closing.append(f"Asks: {step.asks}")
    if step.takes:
        closing.append(f"Takes {step.takes}.")
    paragraphs = [step.does.strip(), " ".join(closing)]
    if step.example:
        paragraphs.append(f"Example: {step.example}")
    return "\n\n".join(filter(None, paragraphs))


def _find_function(name: str) -> Callable[..., None]:
    role, verb = _role_and_verb(name)
    if hasattr(builtins, verb):
        # `data list`: a function of that name would hide Python's own.
        verb += "_"
    function: Callable[..., None] = getattr(import_module(f"._{role}_commands", __package__), verb)
    return function


def lines_of(folder: WorkFolder, name: str, /, **given: Any) -> list[str]:
    """Run a command in a folder, with inputs by their names, and return the lines that it prints.

    It raises the errors of the command, and a ValueError in place of a wrong use.
    """
    step = (STEPS | COMMANDS)[name]
    # The desk shows the very lines of the command: both say the same of the same step.
    report = KeptReport()
    place = []
    if step.folder or _role_and_verb(name)[0] in ("party", "analyst"):
        place.append(folder)
    try:
        _find_function(name)(report, *place, **{each.name: each.default for each in step.inputs} | given)
    except typer.BadParameter as error:
        raise ValueError(error.format_message()) from None
    return report.lines


def _keyword(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _make_parameter(of: Input) -> Parameter:
    facts: dict[str, Any] = {"help": of.help, "metavar": of.metavar, "min": of.least, "max": of.most}
    if of.is_of_rows:
        facts["rich_help_panel"] = _ROWS_ONLY
    if of.may_be_query:
        facts |= {"parser": _check_table, "metavar": of.metavar or ("FILE" if of.option else of.name.upper())}
    elif of.is_there:
        facts |= {"exists": True, "dir_okay": False}
    if of.known:
        facts["callback"] = _make_check(of)
    if not of.option:
        info = Argument(**facts)
    elif of.default is True:
        # An option that is on by default gets its spelling, and the one that turns it off, from typer.
        info = Option(**facts)
    elif of.option == "--output":
        info = Option("--output", "-o", **facts)
    else:
        info = Option(*of.option.split(","), **facts)
    kind: Any = of.kind
    if of.is_many:
        kind = list[kind]
    if not of.required and of.default is None:
        kind |= None
    return _keyword(of.name, Annotated[kind, info], Parameter.empty if of.required else of.default)


def _make_check(of: Input) -> Callable[[str | None], str | None]:
    """Return a function that raises BadParameter for a value that is none of an input's names."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in (names := of.names()):
            raise typer.BadParameter(f"Expected one of {', '.join(names)}, got {value!r}.")
        return value

    return check


def _check_table(text: str) -> str:
    """Return a table's place; raise BadParameter unless it is a file that is there, or an address."""
    if "://" not in text and not Path(text).is_file():
        fault = "is a directory" if Path(text).is_dir() else "does not exist"
        raise typer.BadParameter(f"File {text!r} {fault}.")
    return text


def choose_table(place: str, sql: str | None) -> Any:
    """Return the file of a table, or the query of a database."""
    from ..table import Query

    if sql is None and "://" not in place:
        return Path(place)
    return Query(place, sql or "")


def choose_path(option: Path | None, argument: Path | None, hint: str) -> Path:
    """Return a path that is given as an option or as an argument, and not as both."""
    # Both spellings are allowed, so that nobody has to remember which one a command takes.
    if option is not None and argument is not None:
        raise typer.BadParameter("It is given twice, as an option and as an argument.", param_hint=hint)
    path = option or argument
    if path is None:
        raise typer.BadParameter("It is missing.", param_hint=hint)
    return path


def passphrase(given_file: Path | None) -> str | None:
    """Return the passphrase from a file or else from the environment; None if neither holds one."""
    if given_file is None:
        return os.environ.get(VARIABLE) or None
    try:
        text = given_file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError):
        text = ""
    # An empty passphrase would encrypt nothing, and nobody would notice.
    if not text:
        raise ExchangeError("PASSPHRASE_WRONG", f"{given_file} holds no passphrase. Write it there as a line of text.")
    return text


def at_terminal() -> bool:
    """Return whether somebody can be asked."""
    return sys.stdin.isatty()


def ask(*, twice: bool = False) -> str:
    """Ask for the passphrase at the terminal, which does not show it."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def says_yes(question: str, *, as_json: bool) -> bool:
    """Ask somebody at the terminal; return False if nobody is there."""
    return not as_json and at_terminal() and bool(typer.confirm(question, err=True))


def sending(folder: Path, to: str, by_hand: str = "Send it to {}.") -> str:
    """Say how to send the files of the outbox: by the folder's remote, or by hand."""
    if (folder / "remotes.toml").is_file():
        return f"Send it: {shlex.join(['datacollab', 'remote', 'push', *folder_words(folder)])}"
    return by_hand.format(to)


def folder_words(folder: Path) -> tuple[str, ...]:
    """Return the option that names a folder; the present one needs none."""
    if folder == Path():
        return ()
    return "-C", str(folder)


def load_key(file: Path | None) -> PublicKey | None:
    """Read a public key, if a file is named."""
    from ..bundle import PublicKey

    if file is None:
        return None
    return PublicKey.load(file)


def keys_of(folder: Path, passphrase_file: Path | None) -> KeyPair:
    """Open the keys of a folder."""
    return WorkFolder(folder, passphrase_file).keys()


@contextmanager
def opened(folder: Path, name: str | None, passphrase_file: Path | None) -> Iterator[tuple[RemotePlace, Remote]]:
    """Open the remote of a name, or the only one."""
    from ..remote import choose_place, open_remote

    place = choose_place(folder, name)
    # A store needs no keys: nobody is asked for a passphrase before a hub wants a signature.
    remote = open_remote(folder, place, lambda: keys_of(folder, passphrase_file))
    try:
        yield place, remote
    finally:
        remote.close()


@contextmanager
def working(folder: Path) -> Iterator[None]:
    """Let one command at a time carry files of a folder; others may work in it meanwhile."""
    from ..folder.log import locked
    from ..remote import KEPT

    if not folder.is_dir():
        raise ExchangeError("FOLDER_MISSING", f"{folder} is no folder. Give the one with the keys, with -C.")
    (folder / KEPT).mkdir(mode=0o700, exist_ok=True)
    # A lock of its own: a transfer may take minutes, in which the party goes on with the folder's.
    with locked(folder / KEPT):
        yield
