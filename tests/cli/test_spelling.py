"""Options mean the same in all commands, and help shows them whole on a terminal of 80 columns."""

import pytest
import typer
from typer.testing import CliRunner

from datacollab.cli._app import app

ROOT = typer.main.get_command(app)


def commands(command=ROOT, path=()):
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
    for name, each in (below or {}).items():
        yield from commands(each, (*path, name))


COMMANDS = dict(commands())
IN_A_FOLDER = {
    *(("keys", name) for name in ("new", "public", "show")),
    *(("project", name) for name in ("new", "sign")),
    *(("anchor", name) for name in ("seal", "open")),
    *(("party", name) for name in ("join", "check", "tune", "share", "install", "predict", "evaluate")),
    *(("party", name) for name in ("learn", "forget", "explain", "columns", "balance")),
    *(("analyst", name) for name in ("init", "add", "status", "integrate", "effect", "balance", "export")),
    *(("log", name) for name in ("show", "verify", "export")),
    *(("remote", name) for name in ("add", "remove", "push", "pull", "status", "watch", "withdraw")),
    *(("remote", name) for name in ("join", "open", "invite", "requests", "approve", "dashboard")),
    ("desk",),
}
WRITE_WHERE_TOLD = {
    *(("demo",), ("compare",), ("audit",), ("project", "new"), ("anchor", "make"), ("anchor", "seal")),
    *(
        ("party", "predict"),
        ("party", "explain"),
        ("log", "export"),
        ("data", "deal"),
        ("experiment", "run"),
        ("experiment", "report"),
    ),
    ("keys", "public"),
    ("hub", "backup"),
    ("hub", "log", "export"),
}
SHORT = {"-C": "--folder", "-o": "--output", "-h": "--help", "-q": "--quiet", "-j": "--jobs"}


def options(path):
    return [set(param.opts) for param in COMMANDS[path].params if param.param_type_name == "option"]


@pytest.mark.parametrize(
    ("names", "expected"), [({"--folder", "-C"}, IN_A_FOLDER), ({"--output", "-o"}, WRITE_WHERE_TOLD)]
)
def test_the_folder_and_what_is_written_are_spelt_alike(names, expected):
    assert {path for path in COMMANDS if names in options(path)} == expected
    assert {path for path in COMMANDS for spelt in options(path) if spelt & names} == expected


def test_a_letter_stands_for_one_word():
    for path in COMMANDS:
        for spelt in options(path):
            for letter in (name for name in spelt if not name.startswith("--")):
                assert spelt == {letter, SHORT[letter]}, path


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_not_cut(path):
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert shown.exit_code == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "…" not in shown.stdout
    names = {name for param in COMMANDS[path].params for name in (*param.opts, *param.secondary_opts)}
    words = set(shown.stdout.replace(",", " ").split())
    assert {name for name in names if name.startswith("-")} <= words


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


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
    for number, spelt in enumerate([("-o", tmp_path / "0"), (tmp_path / "1",)]):
        assert run("data", "deal", "digits", *spelt).exit_code == 0
        public, made = tmp_path / str(number) / "public.csv", tmp_path / f"{number}.csv"
        target = (*spelt[:-1], made)
        assert run("anchor", "make", public, *target, "--seed", 0).exit_code == 0
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    for wrong in ((), ("-o", tmp_path / "0", tmp_path / "1")):
        refused = run("data", "deal", "digits", *wrong)
        assert refused.exit_code == 2
        assert "--output" in refused.stderr
