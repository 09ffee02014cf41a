"""Output of a command: lines for people, or one JSON object; and its end.

Text of other people is printed in one line, without characters that could steer the terminal.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from .._notices import notices_to
from ..errors import DataCollabError, DataCollabWarning, ExchangeError

FAILED = 1
BUG = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells say it
WIDTH = 100
_MOST_NAMES = 10
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
# Control characters but tab and newline, line separators, and marks that turn the direction of writing.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that could steer a terminal: text in files from elsewhere is printed too."""


@dataclass
class Report:
    """Lines and facts of one command."""

    as_json: bool
    """Whether the facts are printed instead of the lines."""
    facts: Any = field(default_factory=dict)
    """Anything that JSON can hold."""
    unchanged: str = "Nothing was changed."
    """State that an interruption leaves behind, in words."""
    tables: list[str] = field(default_factory=list)
    """A line on how each table was read."""
    exit_code: int = 0
    """Exit code of a command that has printed its findings."""

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.as_json:
            typer.echo(_CONTROL.sub(_UNKNOWN, text))

    def note_table(self, line: str, is_plain: bool) -> None:
        """Print once how a table was read, unless it is the plain case."""
        if line not in self.tables:
            self.tables.append(line)
            if not is_plain:
                warn(line)

    def note(self, text: str) -> None:
        """Print a line that is said beside the result, to standard error."""
        warn(text)


class KeptReport(Report):
    """A report whose lines are kept, and not printed."""

    def __init__(self) -> None:
        super().__init__(as_json=False)
        self.lines: list[str] = []

    def line(self, text: str = "") -> None:
        """Keep a line."""
        self.lines.append(text)

    note = line


def warn(text: str) -> None:
    """Print a line to standard error, without characters that could steer a terminal."""
    typer.echo(_CONTROL.sub(_UNKNOWN, text), err=True)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print the package's warnings without the place in the code that Python adds."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, DataCollabWarning):
                warn(f"warning: {message}")
            else:
                usual(message, category, *where)

        # Once for each place, as Python does; a batch of a table may warn many times.
        warnings.simplefilter("default", DataCollabWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def reported(as_json: bool, *, unchanged: str = "Nothing was changed.") -> Iterator[Report]:
    """Print the facts at the end, or a refusal with its code; a refusal exits with the code's number.

    `unchanged` says in which state an interruption leaves things.
    """
    report = Report(as_json, unchanged=unchanged)
    try:
        with _warnings_as_lines(), notices_to(report.note_table):
            yield report
    except ExchangeError as error:
        _fail(as_json, error.code, str(error), error.exit_code)
    except (DataCollabError, ValueError, OSError) as error:
        _fail(as_json, type(error).__name__, str(error), FAILED)
    except KeyboardInterrupt:
        _fail(as_json, "INTERRUPTED", f"Interrupted. {report.unchanged}", INTERRUPTED)
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise  # The program that runs the command ends it, or explains the wrong use.
    except Exception as error:
        if os.environ.get("DATACOLLAB_DEBUG"):
            raise
        # Words of an error that nobody foresaw may quote data.
        sentence = (
            f"A {type(error).__name__} that should not happen. {report.unchanged} DATACOLLAB_DEBUG=1 shows where."
        )
        _fail(as_json, "BUG", sentence, BUG)
    if as_json:
        # A list of facts, as `data list` prints it, has no room for more.
        if report.tables and isinstance(report.facts, dict):
            report.facts["tables"] = report.tables
        # NaN is no JSON: a program that reads the facts would fail later, and say less.
        typer.echo(json.dumps(report.facts, indent=2, allow_nan=False))
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _fail(as_json: bool, code: str, message: str, exit_code: int) -> None:
    if as_json:
        typer.echo(json.dumps({"error": {"code": code, "message": message}}, indent=2))
    warn(f"datacollab: {code}: {message}")
    raise typer.Exit(exit_code)


@contextmanager
def one_line_errors(interrupted: str) -> Iterator[None]:
    """Exit with 1 and the message after an error that the user can act on; with 130 after Ctrl-C."""
    try:
        with notices_to(Report(as_json=False).note_table):
            yield
    except (DataCollabError, ValueError, OSError) as error:
        typer.echo(f"datacollab: {error}", err=True)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        typer.echo(f"\ndatacollab: interrupted. {interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def one_line(value: Any) -> str:
    """Write a value of JSON in one line of at most 100 characters.

    Examples
    --------
    >>> one_line("an ordinary text"), one_line(0.5), one_line(["a", 1])
    ('an ordinary text', '0.5', '["a", 1]')
    >>> one_line(f"red: {chr(27)}[31m")
    'red: ?[31m'
    """
    text = value
    if not isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    safe = _replace_control(text, "?")
    if len(safe) > WIDTH:
        return safe[: WIDTH - 1] + "…"
    return safe


def _replace_control(text: str, by: str) -> str:
    return "".join(letter if letter.isprintable() else by for letter in text)


def show_adjusted(adjusted: Mapping[str, Any], report: Report, *, is_summarised: bool = False) -> None:
    """Print how the project's rules changed entries, for each column in which they changed one."""
    from ..table import adjustments_lines, adjustments_text

    if not adjusted["columns"]:
        return
    # A summary on the screen has the sentence already.
    report.line("Adjusted entries, by column" if is_summarised else f"Adjusted entries: {adjustments_text(adjusted)}")
    for line in adjustments_lines(adjusted):
        report.line(f"  {line}")


def show_rows(rows: Sequence[tuple[str, str]], report: Report) -> None:
    """Print figures by their names."""
    # Two spaces after the longest name.
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, figure in rows:
        report.line(f"  {name:<{width}}{figure}")


def list_names(names: Iterable[object]) -> str:
    """Return the first ten names, with commas between, and no character that could steer a terminal."""
    texts = [_replace_control(str(name), _UNKNOWN) for name in names]
    if len(texts) > _MOST_NAMES:
        texts = [*texts[:_MOST_NAMES], "..."]
    return ", ".join(texts)


def make_private_file(path: Path) -> Path:
    """Make an empty file that its owner alone can read; a file that is there already is closed to others."""
    path.touch(mode=0o600)
    path.chmod(0o600)  # `touch` leaves the mode of an older file as it is.
    return path
