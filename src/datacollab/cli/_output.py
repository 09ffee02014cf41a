"""What a command of the exchange prints: lines for people, or one JSON object; and how it ends."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer

from ..errors import DataCollabError, DataCollabWarning, ExchangeError

__all__ = ["Report", "reported", "warn"]

FAILED, BUG, INTERRUPTED = 1, 70, 130

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What could steer a terminal: text in files from elsewhere is printed too."""


@dataclass
class Report:
    """Lines and facts of one command.

    Attributes
    ----------
    as_json : bool
        Whether the facts are wanted instead of the lines.
    facts : dict of str to object
        What JSON can hold.
    unchanged : str
        What is said of the state after an interruption.
    """

    as_json: bool
    facts: dict[str, Any] = field(default_factory=dict)
    unchanged: str = "Nothing was changed."

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.as_json:
            typer.echo(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def warn(text: str) -> None:
    """Print a line to standard error, without what could steer a terminal."""
    typer.echo(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), err=True)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """The package's warnings as lines to people, who are told nothing by the place in our code that Python adds."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, DataCollabWarning):
                warn(f"warning: {message}")
            else:
                usual(message, category, *where)

        warnings.simplefilter("default", DataCollabWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def reported(as_json: bool, *, unchanged: str = "Nothing was changed.") -> Iterator[Report]:
    """Print the facts in the end, or a refusal with its code; a refusal exits with the code's number.

    Parameters
    ----------
    as_json : bool
    unchanged : str
        What is said of the state after an interruption.
    """
    report = Report(as_json, unchanged=unchanged)
    try:
        with _warnings_as_lines():
            yield report
    except ExchangeError as error:
        _fail(as_json, error.code, str(error), error.exit_code)
    except (DataCollabError, ValueError, OSError) as error:
        _fail(as_json, type(error).__name__, str(error), FAILED)
    except KeyboardInterrupt:
        _fail(as_json, "INTERRUPTED", f"Interrupted. {report.unchanged}", INTERRUPTED)
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if os.environ.get("DATACOLLAB_DEBUG"):
            raise
        # Words of an error that nobody foresaw may quote data.
        sentence = (
            f"A {type(error).__name__} that should not happen. {report.unchanged} DATACOLLAB_DEBUG=1 shows where."
        )
        _fail(as_json, "BUG", sentence, BUG)
    if as_json:
        typer.echo(json.dumps(report.facts, indent=2, allow_nan=False))


def _fail(as_json: bool, code: str, message: str, exit_code: int) -> None:
    if as_json:
        typer.echo(json.dumps({"error": {"code": code, "message": message}}, indent=2))
    warn(f"datacollab: {code}: {message}")
    raise typer.Exit(exit_code)
