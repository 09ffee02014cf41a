"""The program: what it lists, help with worked examples, and what it says without its dependencies."""

import json
import os
import re
import subprocess
import sys

import pytest
import typer

from datacollab import __version__, cli
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


LOADING = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (4096, resource.RLIM_INFINITY))
sys.argv = ["datacollab", "--help"]
from datacollab.cli import main
try:
    main()
finally:
    heavy = {"numpy", "sklearn", "scipy", "umap", "matplotlib", "pandas"} & {*sys.modules}
    print(sorted(heavy), resource.getrlimit(resource.RLIMIT_CORE), file=sys.stderr)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no core dumps elsewhere")
def test_the_program_lists_its_commands_loads_nothing_heavy_and_leaves_no_core_dump():
    """A process that crashes would write keys and rows into a core dump where the machine allows one."""
    told = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "[] (0, 0)\n")
    for command in ("demo", "data", "anchor"):
        assert f"\n  {command} " in told.stdout


@pytest.fixture
def program(monkeypatch, capsys):
    """The program as it is installed, run in this process: its exit code, and what it writes on both streams."""

    def ran(*arguments):
        monkeypatch.setattr(sys, "argv", ["datacollab", *arguments])
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        # This process goes on, and may leave what it likes.
        monkeypatch.setattr(cli, "_no_core_dumps", lambda: None)
        monkeypatch.setenv("MKL_NUM_THREADS", "1")
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        # Python writes a text that a program ends with, and makes it a 1.
        return (1, out, end.value.code) if isinstance(end.value.code, str) else (end.value.code or 0, out, err)

    return ran


def test_wrong_usage_is_json_too_where_that_is_expected(program):
    code, out, err = program("analyst", "add", "nowhere.dcshare", "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "USAGE"
    assert "nowhere.dcshare" in err


@pytest.fixture
def without_typer(program, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "datacollab.cli._app")
    return program


def test_version_and_help_need_no_dependencies_of_the_commands(program, request):
    version = (0, f"datacollab {__version__}\n", "")
    assert program("--version") == version
    without_typer = request.getfixturevalue("without_typer")
    assert without_typer("--version") == version
    for spelt in ("-h", "--help"):
        code, out, _ = without_typer(spelt)
        assert code == 0
        assert "pip install 'datacollab[cli]'" in out


@pytest.mark.parametrize("arguments", [(), ("demo",), ("demo", "--help")])
def test_commands_without_their_dependencies_say_how_to_install_them(without_typer, arguments):
    code, _, err = without_typer(*arguments)
    assert code == 1
    assert "pip install 'datacollab[cli]'" in err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["datacollab", "pa"], "party"),
        (["datacollab", "party", "ev"], "evaluate"),
        (["datacollab", "audit", "--attr"], "--attribute"),
        (["datacollab", "log", "show", "--fo"], "--folder"),
    ],
)
def test_a_shell_completes_commands_and_options(program, monkeypatch, shell, words, offered):
    typed = " ".join(words)
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": typed}
    for name, value in {"_DATACOLLAB_COMPLETE": f"complete_{shell}", **asked}.items():
        monkeypatch.setenv(name, value)
    _, out, err = program()
    assert err == ""
    assert out.split() == [offered] if shell == "bash" else f'"{offered}"' in out


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
