"""The program: what it lists, help with worked examples, plugins, progress, and life without its dependencies."""

import io
import json
import os
import re
import subprocess
import sys
import time

import pytest
import rich.console
import typer
from typer.testing import CliRunner

from datacollab import __version__, cli
from datacollab.cli._app import add_plugins
from datacollab.cli.kit import group, shown_progress
from playing import app, commands_below, run

PROGRAM = typer.main.get_command(app)
BELOW = {" ".join(path): each for path, each in commands_below(PROGRAM)}
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
    command = PROGRAM
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


GOOD = """
import typer
from datacollab.cli.kit import group_of

app = typer.Typer(help="What the weather is.")

@app.command("today")
def today() -> None:
    "Tell today's weather."
    print("rain")

@app.command("tomorrow")
def tomorrow() -> None:
    "Tell tomorrow's."

def register(root: typer.Typer) -> None:
    root.add_typer(app, name="weather")
    group_of(root, "remote").command("forecast")(today)
"""
HALF = GOOD + '\n    raise RuntimeError("no clouds")\n'
TAKING = GOOD.replace('name="weather"', 'name="party"')


@pytest.fixture
def run_beside(tmp_path, monkeypatch):
    """Run a small program beside a distribution whose module holds a text."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "weather_of_a_test", raising=False)

    def ran(*words, module):
        (tmp_path / "weather_of_a_test.py").write_text(module)
        facts = tmp_path / "weather_of_a_test-1.0.dist-info"
        facts.mkdir(exist_ok=True)
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: weather_of_a_test\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text("[datacollab.commands]\nweather = weather_of_a_test:register\n")
        app, party, remote = (group(help) for help in ("The program.", "A party.", "Remotes."))
        party.command("join")(lambda: typer.echo("joined"))
        party.command("share")(lambda: None)
        remote.command("push")(lambda: None)
        remote.command("pull")(lambda: None)
        app.add_typer(party, name="party")
        app.add_typer(remote, name="remote")
        add_plugins(app)
        return CliRunner().invoke(app, words)

    return ran


def test_a_plugin_s_commands_are_in_the_help_and_run(run_beside):
    assert "What the weather is." in run_beside("--help", module=GOOD).stdout
    assert run_beside("weather", "today", module=GOOD).stdout == "rain\n"
    assert run_beside("remote", "forecast", module=GOOD).stdout == "rain\n"


@pytest.mark.parametrize("module", ["import nothing_of_this_name", HALF, TAKING, "register = 3"])
def test_a_broken_plugin_is_named_and_breaks_nothing(run_beside, module, capsys):
    told = run_beside("party", "join", module=module)
    assert told.exit_code == 0
    assert told.stdout == "joined\n"
    line = capsys.readouterr().err
    assert line.startswith("datacollab: the plugin weather (weather_of_a_test:register) was left out: ")
    assert len(line.splitlines()) == 1
    assert run_beside("weather", "today", module=module).exit_code == 2
    assert run_beside("remote", "forecast", module=module).exit_code == 2


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    seconds = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])

    def forward(by):
        seconds[0] += by

    return forward


def test_without_a_terminal_long_work_prints_a_line_now_and_then(clock, capsys):
    with shown_progress(steps=4) as say:
        say("loading")
        assert capsys.readouterr() == ("", "")
        clock(30)
        say("first draw")
        assert capsys.readouterr() == ("", "30 s: first draw (about 90 s left)\n")
        clock(5)
        say("second draw")
        assert capsys.readouterr() == ("", "")
        clock(1000)
        say("drawing")
        assert capsys.readouterr() == ("", "1035 s: drawing (about 6 min left)\n")


def test_where_the_end_is_not_known_no_time_is_told_unless_a_share_is(clock, capsys):
    with shown_progress() as say:
        clock(25)
        say("T0: Procrustes")
    assert capsys.readouterr().err == "25 s: T0: Procrustes\n"
    with shown_progress() as say:
        clock(40)
        say("3 of 12: LTI", 0.2)
    assert capsys.readouterr().err == "40 s: 3 of 12: LTI (about 160 s left)\n"
    with shown_progress(quiet=True) as say:
        clock(1000)
        say("anything")
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_step_that_takes_long_is_named_once_and_then_how_long_it_takes(clock, capsys):
    with shown_progress(first="predicting") as say:
        clock(12)
        time.sleep(1.2)
        clock(12)
        time.sleep(1.2)
        say("writing")
    assert capsys.readouterr().err == "12 s: predicting\n24 s: the same\n"


def test_a_terminal_has_one_line_with_the_time_left(clock, monkeypatch):
    shown = io.StringIO()
    terminal = rich.console.Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr(rich.console, "Console", lambda stderr: terminal)
    with shown_progress(steps=4, first="loading") as say:
        say("first draw")
        clock(60)
        say("second draw")
    assert "loading" in shown.getvalue()
    assert "second draw" in shown.getvalue()
    assert "about 3 min left" in shown.getvalue()
