"""The command line.  One file per command; nothing heavy is imported before a command runs."""

from __future__ import annotations

import json
import sys

__all__ = ["main"]


def main() -> None:
    """Run ``datacollab``; the entry point of the installed program."""
    try:
        try:
            from ._app import app
        except ModuleNotFoundError as error:
            sys.exit(f"datacollab: {error.name} is missing; install the commands with: pip install 'datacollab[cli]'")
        app()
    except KeyboardInterrupt:
        # Later on, commands say what they leave behind; here nothing has begun.
        sys.stderr.write("datacollab: interrupted. Nothing was changed.\n")
        sys.exit(130)
    except SystemExit as end:
        if end.code == 2 and "--json" in sys.argv:
            told = {"code": "USAGE", "message": "The command was not understood; standard error says why."}
            sys.stdout.write(json.dumps({"error": told}, indent=2) + "\n")
        raise
