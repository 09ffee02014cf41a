"""Turn the library's errors, and an interruption, into one line and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ..errors import DataCollabError

__all__ = ["one_line_errors"]

FAILED, INTERRUPTED = 1, 130


@contextmanager
def one_line_errors(interrupted: str) -> Iterator[None]:
    """Exit with 1 and the message on an error the user can act on, and with 130 and ``interrupted`` on Ctrl-C."""
    try:
        yield
    except (DataCollabError, ValueError, OSError) as error:
        typer.echo(f"datacollab: {error}", err=True)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        typer.echo(f"\ndatacollab: interrupted. {interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None
