"""The program: its commands, spelt alike and with worked examples, plugins, progress, and life without dependencies."""

import io
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from functools import cache
from pathlib import Path

import pytest
import rich.console
import typer
from typer.testing import CliRunner

from datacollab import __version__, cli
from datacollab.cli._app import add_plugins
from datacollab.cli.kit import group, shown_progress
from playing import app, commands_below, run
from sums_world import rows_of

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


RUNNING = """
import contextlib, io, sys, typer
from datacollab.cli._app import app
program = typer.main.get_command(app)
for line in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()):
        code = program.main(line.split(), standalone_mode=False)
    heavy = {"sklearn", "scipy.stats", "matplotlib"} & {*sys.modules}
    print(line.strip(), code or 0, sorted(heavy))
"""
"""Runs each line as a command, and says which of the large packages are loaded by then."""
QUICK = """
keys new clinic north south east analyst
keys mask -C north
keys show -C north
keys public -o north.key -C north
project new wards --like public.csv --target ill --purpose Beds --analyst analyst/public.key PARTIES -C clinic -o p.toml
project show p.toml
project verify p.toml
project revise p.toml -C clinic
party join p.toml -C north
analyst init p.toml --owner clinic/public.key -C analyst
analyst status -C analyst
log show -C north
remote add carried carrier -C north
remote status -C north
""".replace("PARTIES", " ".join(f"--party {name}={name}/public.key" for name in ("north", "south", "east")))


@pytest.mark.slow
def test_commands_that_compute_nothing_load_neither_scikit_learn_nor_statistics(tmp_path):
    """These packages take some three seconds to load, and everybody would wait for them at each step of an exchange."""
    rows_of(200, 1).to_csv(tmp_path / "public.csv", index=False)
    (tmp_path / "carrier").mkdir()
    lines = QUICK.strip()
    told = subprocess.run(
        [sys.executable, "-c", RUNNING], input=lines, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == [f"{line} 0 []" for line in lines.splitlines()]


@pytest.fixture
def program(monkeypatch, capsys):
    """The program as it is installed, run in this process: its exit code, and what it writes on both streams."""

    def ran(*arguments):
        monkeypatch.setattr(sys, "argv", ["datacollab", *arguments])
        # Shells ask the program by its name, which is another one below `python -m pytest`.
        monkeypatch.setattr(sys.modules["__main__"], "__package__", None)
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


@pytest.mark.slow
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


PATHS = dict(commands_below(PROGRAM))
GROUPS = {path: each for path, each in PATHS.items() if hasattr(each, "commands")}
ALL_COMMANDS = {path: each for path, each in PATHS.items() if path not in GROUPS}
METADATA = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IN_A_FOLDER = {
    *(("keys", name) for name in ("new", "mask", "public", "show")),
    *(("project", name) for name in ("new", "revise")),
    ("anchor", "seal"),
    *(("party", name) for name in ("join", "check", "share", "install", "predict", "evaluate")),
    *(("party", name) for name in ("distil", "forget", "explain", "withdraw", "follow")),
    *(("analyst", name) for name in ("init", "add", "status", "integrate", "effect", "export", "follow")),
    *(("log", name) for name in ("show", "verify", "export")),
    *(("remote", name) for name in ("add", "remove", "push", "pull", "status", "withdraw")),
    ("desk",),
    # of plugins in this repository
    *(("remote", name) for name in ("join", "open", "invite", "requests", "approve", "dashboard")),
    *(("hub", name) for name in ("serve", "allow", "backup", "restore")),
    *(("hub", "db", name) for name in ("upgrade", "downgrade", "current")),
    *(("hub", "log", name) for name in ("export", "verify")),
}
WRITE_WHERE_TOLD = {
    *(("demo",), ("trial",), ("compare",), ("audit",), ("project", "new"), ("project", "revise"), ("anchor", "seal")),
    *(("party", "predict"), ("party", "explain"), ("log", "export"), ("data", "deal"), ("keys", "public")),
    *(("experiment", "run"), ("experiment", "report"), ("hub", "backup"), ("hub", "demo"), ("hub", "log", "export")),
}
OLDER = {"--data"}  # of hubs, for --folder
SHORT = {"-C": "--folder", "-o": "--output", "-h": "--help", "-q": "--quiet", "-j": "--jobs"}


def options(path):
    return [set(param.opts) for param in ALL_COMMANDS[path].params if param.param_type_name == "option"]


@pytest.mark.parametrize(
    ("names", "expected"), [({"--folder", "-C"}, IN_A_FOLDER), ({"--output", "-o"}, WRITE_WHERE_TOLD)]
)
def test_the_folder_and_what_is_written_are_spelt_alike(names, expected):
    assert {path for path in ALL_COMMANDS if names in [spelt - OLDER for spelt in options(path)]} == expected
    assert {path for path in ALL_COMMANDS for spelt in options(path) if spelt & names} == expected


def test_help_shows_the_folder_and_what_is_written_alike_and_a_letter_stands_for_one_word():
    for path, command in ALL_COMMANDS.items():
        for param in command.params:
            if "-C" in param.opts:
                assert param.metavar == "DIR", path
            if "-o" in param.opts:
                assert param.metavar in ("DIR", "FILE"), path
    for path in ALL_COMMANDS:
        for spelt in options(path):
            for letter in (name for name in spelt if not name.startswith("--")):
                assert spelt - OLDER == {letter, SHORT[letter]}, path


@cache
def help_of(path):
    """Help on a narrow terminal, of 60 columns."""
    shown = CliRunner().invoke(app, [*path, "--help"], terminal_width=60)
    assert shown.exit_code == 0
    return shown.stdout


def test_help_is_not_cut():
    """A line is longer than the narrow terminal only if it is an example or an address, to be copied whole."""
    for path, command in {**ALL_COMMANDS, **GROUPS}.items():
        shown = help_of(path)
        for line in shown.splitlines():
            assert len(line) <= (80 if re.match("    |.*://", line) else 60), path
        assert "…" not in shown, path
        assert not re.search(r"\w\.\.\.$", shown, re.MULTILINE), path
        names = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        words = set(shown.replace(",", " ").split())
        assert {name for name in names if name.startswith("-")} <= words, path


def test_a_group_says_of_each_command_in_full_what_it_does():
    for path, below in GROUPS.items():
        shown = " ".join(help_of(path).split())
        for name, command in below.commands.items():
            first = (command.help or "").split("\n\n")[0]
            assert f" {name} {' '.join(first.split())}" in shown, path


def test_an_example_has_a_line_of_its_own_however_narrow_the_terminal():
    lines = [line.strip() for line in help_of(("audit",)).splitlines()]
    assert "datacollab audit p.csv a.csv --public public.csv --target y --preset groups" in lines


def test_the_program_says_where_to_ask_and_where_to_report():
    shown = help_of(())
    for address in METADATA["urls"].values():
        where = address.removesuffix("/blob/main/CHANGELOG.md").removesuffix("/tree/main/docs")
        assert where in shown
    assert "/security" in shown


def test_keys_are_made_and_shown_with_either_spelling(tmp_path):
    assert run("keys", "new", "-C", tmp_path / "a", "--folder", tmp_path / "b", tmp_path / "c").exit_code == 0
    assert sorted(path.parent.name for path in tmp_path.glob("*/keys.json")) == ["a", "b", "c"]
    shown = [run("keys", "show", *spelt) for spelt in ((tmp_path / "a",), ("-C", tmp_path / "a"))]
    assert shown[0].exit_code == 0
    assert shown[0].stdout == shown[1].stdout
    for wrong in (["keys", "new"], ["keys", "show", tmp_path / "a", "-C", tmp_path / "a"]):
        refused = run(*wrong)
        assert refused.exit_code == 2
        assert "--folder" in refused.stderr


def test_files_are_written_with_either_spelling(tmp_path):
    for spelt in (("-o", tmp_path / "0"), (tmp_path / "1",)):
        assert run("data", "deal", "digits", *spelt).exit_code == 0
    assert (tmp_path / "0" / "public.csv").read_bytes() == (tmp_path / "1" / "public.csv").read_bytes()
    for wrong in ((), ("-o", tmp_path / "0", tmp_path / "1")):
        refused = run("data", "deal", "digits", *wrong)
        assert refused.exit_code == 2
        assert "--output" in refused.stderr
