"""The command line.  One file per command; nothing heavy is imported before a command runs.

Files by what they are for:

* The program: `_app`.
* The exchange: `_keys`, `_project`, `_anchor`, `_party`, `_release`, `_learning`, `_explaining`, `_analyst`,
  `_balance`, `_bundle`, `_log`; as pages, `_desk`.
* Between machines: `_hub`, `_remote`, `_remote_members`, `_remote_options`, `_remote_next`, `_remote_dashboard`.
* In one process: `_audit`, `_compare`, `_experiment`, `_data`, `_deal`.
* Played for show: `_demo`, `_roles`, `_hub_play`, `_stage`.
* What commands share: `_options`, `_party_options`, `_passphrase`, `_output`, `_errors`, `_progress`, `_adjusted`,
  `_scores_shown`, `_shown`, `_tables`, `_features`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run ``datacollab``; the entry point of the installed program."""
    _no_core_dumps()
    _one_thread()
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


def _no_core_dumps() -> None:
    """A process that crashes would leave its memory on the disk: keys, f_k and rows among it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _one_thread() -> None:
    """One thread of linear algebra unless the user says otherwise: more spin on a machine that does other work, too."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
