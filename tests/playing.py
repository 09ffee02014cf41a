"""Plays the examples by files in this process, where each command would be a process that loads everything anew."""

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from datacollab.cli._app import app

EXAMPLES = Path(__file__).parents[1] / "examples"


def command_here(command, *, cwd, env, check, umask=0o077):
    """Do what ``subprocess.run`` would, for ``python -m datacollab`` and what follows."""
    words = [str(word) for word in command]
    assert (words[:3], check) == ([sys.executable, "-m", "datacollab"], True)
    mask = os.umask(umask)
    try:
        with contextlib.chdir(cwd):
            done = CliRunner().invoke(app, words[3:])
    finally:
        os.umask(mask)
    assert done.exit_code == 0, f"{words[3:]}\n{done.output}\n{done.exception!r}"
    sys.stdout.write(done.stdout)


def play_here(name, output, *options):
    """Play an example, and return what it and its commands print."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", [name, "--output", str(output), *map(str, options)])
        patch.setattr(subprocess, "run", command_here)
        example.main()
    return printed.getvalue()
