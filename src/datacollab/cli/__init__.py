"""The command line.  One file per command; nothing heavy is imported before a command runs.

Files by what they are for:

* The program: `_app`.
* The exchange: `_keys`, `_project`, `_anchor`, `_party`, `_release`, `_distilling`, `_explaining`, `_analyst`,
  `_bundle`, `_log`; as pages, `_desk`.
* Between machines: `_remote`, `_remote_options`, `_remote_next`.
* In one process: `_audit`, `_data`.
* Played for show: `_demo`, `_demonstration`, `_roles`, `_stage`.
* Brought by others: `_plugins`; `kit` has what their commands are made of.
* What commands share: `_help`, `_options`, `_party_options`, `_output`, `_errors`, `_progress`, `_tables`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

__all__ = ["main"]

INSTALL = "pip install 'datacollab[cli]'"


def main() -> None:
    """Run ``datacollab``; the entry point of the installed program."""
    _no_core_dumps()
    _one_thread()
    try:
        try:
            from ._app import app
        except ModuleNotFoundError as error:
            sys.exit(_without_commands(f"{error.name} is missing; install the commands with: {INSTALL}"))
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


def _without_commands(reason: str) -> str | None:
    """What there is to say where the extra is not installed; an error unless only that was asked."""
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
    """A process that crashes would leave its memory on the disk: keys, f_k and rows among it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _one_thread() -> None:
    """One thread of linear algebra unless the user says otherwise: more spin on a machine that does other work, too."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
