"""The program: what it lists, help with worked examples, and what it says without its dependencies."""

import os
import re
import subprocess
import sys

import pytest
import typer

from datacollab import __version__
from playing import app, commands_below, run

BELOW = {" ".join(path): each for path, each in commands_below(typer.main.get_command(app))}
EVERY = {name: each for name, each in BELOW.items() if not (hasattr(each, "commands") or each.hidden)}
"""Commands of the program: those of plugins too, where these are installed."""


@pytest.mark.parametrize("command", EVERY)
def test_help_shows_a_worked_example_that_fits_a_line(command):
    result = run(*command.split(), "--help", COLUMNS="80", NO_COLOR="1")
    assert result.exit_code == 0
    examples = [line for line in result.stdout.splitlines() if f"datacollab {command}" in line and "Usage" not in line]
    assert examples
    assert "\b" not in result.stdout
    for line in examples:
        assert_parses(line.partition("datacollab ")[2].partition(" > ")[0].split())


def assert_parses(arguments):
    """Options and their number of values are known to the command; files need not exist."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[arguments[0]]
        arguments = arguments[1:]
    left = command.make_context("example", arguments, resilient_parsing=True).args
    # Click leaves the values of an argument that takes any number of them.
    assert not left or any(parameter.nargs == -1 for parameter in command.params)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in arguments if word.startswith("--")} <= known


def datacollab(*arguments):
    return subprocess.run(
        [sys.executable, "-c", "from datacollab.cli import main; main()", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip


def test_the_program_lists_its_commands_and_its_version():
    told = datacollab("--help")
    assert told.returncode == 0
    for command in ("demo", "data", "anchor"):
        assert f"\n  {command} " in told.stdout
    version = datacollab("--version")
    assert (version.returncode, version.stdout) == (0, f"datacollab {__version__}\n")


def test_the_commands_load_nothing_heavy():
    code = """
import sys
sys.argv = ["datacollab", "--help"]
from datacollab.cli import main
try:
    main()
finally:
    sys.stderr.write(", ".join({"numpy", "sklearn", "scipy", "umap", "matplotlib", "pandas"} & set(sys.modules)))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stderr.strip() == ""


def without_typer(*arguments):
    code = """
import sys
sys.modules["typer"] = None
from datacollab.cli import main
main()
"""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_version_and_help_need_no_dependencies_of_the_commands():
    version = without_typer("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"datacollab {__version__}\n", "")
    for spelt in ("-h", "--help"):
        told = without_typer(spelt)
        assert told.returncode == 0
        assert "pip install 'datacollab[cli]'" in told.stdout


@pytest.mark.parametrize("arguments", [(), ("demo",), ("demo", "--help")])
def test_commands_without_their_dependencies_say_how_to_install_them(arguments):
    told = without_typer(*arguments)
    assert told.returncode == 1
    assert "pip install 'datacollab[cli]'" in told.stderr
    assert "Traceback" not in told.stderr


OF_ROWS_ALONE = re.compile(r"[Oo]bfuscat|[Aa]lign the shares|representation")


def test_what_a_step_does_is_true_where_sums_are_shared():
    """Steps of both ways do not speak of rows alone; options of rows stand in a part of their own."""
    for name in (each for each in EVERY if each.split()[0] in ("party", "analyst", "keys", "project", "anchor")):
        does = EVERY[name].help
        first = does.strip().partition("\n\n")[0]
        assert not OF_ROWS_ALONE.search(does), name
        if name in ("party explain", "party distil", "party forget"):
            assert "shares rows" in first or "share rows" in first
    for name in ("anchor", "party", "analyst"):
        assert not OF_ROWS_ALONE.search(BELOW[name].help)
    for command, option in (("project new", "--quorum"), ("project new", "--max-components")):
        told = run(*command.split(), "--help").stdout
        assert option in told.partition("Only if parties share rows")[2]
        assert option not in told.partition("Only if parties share rows")[0].partition("Options")[2]
