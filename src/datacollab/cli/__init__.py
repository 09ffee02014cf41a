"""The command line.  One file per command; nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run ``datacollab``; the entry point of the installed program."""
    try:
        from ._app import app
    except ModuleNotFoundError as error:
        sys.exit(f"datacollab: {error.name} is missing; install the commands with: pip install 'datacollab[cli]'")
    app()
