"""The command line: one file per group of commands. Nothing heavy is imported before a command runs.

`_command` makes commands, `_output` prints and ends them; `kit` is for commands of plugins.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING

from .._require import load_on_first_use

if TYPE_CHECKING:
    from ._app import app as app

__all__ = ["app", "main"]

__getattr__ = load_on_first_use(__name__, {"app": "._app"})

INSTALL = "pip install 'datacollab[cli]'"


def main() -> None:
    """Run ``datacollab``; the entry point of the installed program."""
    _no_core_dumps()
    # One thread of linear algebra unless the user says otherwise: more spin on a machine that does other work, too.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        try:
            # Everything that the extra brings is imported here, so that its absence is one sentence and no trace.
            from ._app import app
        except ModuleNotFoundError as error:
            sys.exit(_without_commands(f"{error.name} is missing; install the commands with: {INSTALL}"))
        app()
    except KeyboardInterrupt:
        # Later on, commands say what they leave behind; here nothing has begun.
        sys.stderr.write("datacollab: interrupted. Nothing was changed.\n")
        sys.exit(130)
    except SystemExit as end:
        # Typer has explained a wrong use in words; a program that reads JSON needs it there, too.
        if end.code == 2 and "--json" in sys.argv:
            message = "The command was not understood; standard error says why."
            sys.stdout.write(json.dumps({"error": {"code": "USAGE", "message": message}}, indent=2) + "\n")
        raise


def _without_commands(reason: str) -> str | None:
    """Answer without the extra; return an error unless only the version or the help was asked for."""
    asked = sys.argv[1:]
    if asked == ["--version"]:
        from .._version import __version__

        sys.stdout.write(f"datacollab {__version__}\n")
    elif asked in (["--help"], ["-h"]):
        sys.stdout.write(f"The library is installed without its commands: {reason}\n")
    else:
        return f"datacollab: {reason}"
    return None


def _no_core_dumps() -> None:
    """Keep a process that crashes from leaving its memory on the disk: keys, f_k and rows."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
