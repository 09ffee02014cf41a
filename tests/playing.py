"""Commands, and the examples by files, played in this process, where each would be one that loads everything anew."""

import contextlib
import functools
import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from datacollab.cli._app import app

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(*words, **environment):
    """Run a command of the program."""
    return CliRunner().invoke(app, [str(word) for word in words], env=environment or None)


def runs(group):
    """A function that runs commands of a group."""
    return functools.partial(run, group)


def done(*words, code=0):
    """Run a command that has to end with this code."""
    result = run(*words)
    assert result.exit_code == code, result.output
    return result


def told(*words, code=0):
    """What a command says in JSON."""
    return json.loads(done(*words, "--json", code=code).stdout)


def assert_one_line(result, *words, code=1):
    """Check that a command ended in one line on the stream of errors, with these words."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == "" or result.stdout.startswith("{")
    assert "Huber" not in result.output, "a name that stands for what nobody may read"
    assert result.stderr.startswith("datacollab: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def assert_refused(result, code, exit_code, *words):
    """Check that a command was refused with a code, in one line."""
    assert_one_line(result, f"datacollab: {code}: ", *words, code=exit_code)


def interrupted(*given, **options):
    """What somebody ends by pressing keys, in place of long work."""
    raise KeyboardInterrupt


def commands_below(command, path=()):
    """Paths and commands from a command on, groups among them."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands_below(each, (*path, name))


def command_here(command, *, cwd, env=None, check, stdout=None, umask=0o077):
    """Do what ``subprocess.run`` would, for ``python -m datacollab`` and what follows, which has to end well."""
    words = [str(word) for word in command]
    assert words[:3] == [sys.executable, "-m", "datacollab"]
    mask = os.umask(umask)
    try:
        with contextlib.chdir(cwd):
            done = CliRunner().invoke(app, words[3:])
    finally:
        os.umask(mask)
    assert done.exit_code == 0, f"{words[3:]}\n{done.output}\n{done.exception!r}"
    sys.stdout.write(done.stdout)
    return subprocess.CompletedProcess(words, 0)


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
