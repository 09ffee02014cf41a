"""Options mean the same in all commands, and help shows them whole on a narrow terminal."""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from playing import app, commands_below, run

ROOT = typer.main.get_command(app)


BELOW = dict(commands_below(ROOT))
GROUPS = {path: each for path, each in BELOW.items() if hasattr(each, "commands")}
COMMANDS = {path: each for path, each in BELOW.items() if path not in GROUPS}
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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
    return [set(param.opts) for param in COMMANDS[path].params if param.param_type_name == "option"]


@pytest.mark.parametrize(
    ("names", "expected"), [({"--folder", "-C"}, IN_A_FOLDER), ({"--output", "-o"}, WRITE_WHERE_TOLD)]
)
def test_the_folder_and_what_is_written_are_spelt_alike(names, expected):
    assert {path for path in COMMANDS if names in [spelt - OLDER for spelt in options(path)]} == expected
    assert {path for path in COMMANDS for spelt in options(path) if spelt & names} == expected


def test_help_shows_the_folder_and_what_is_written_alike_and_a_letter_stands_for_one_word():
    for path, command in COMMANDS.items():
        for param in command.params:
            if "-C" in param.opts:
                assert param.metavar == "DIR", path
            if "-o" in param.opts:
                assert param.metavar in ("DIR", "FILE"), path
    for path in COMMANDS:
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
    for path, command in {**COMMANDS, **GROUPS}.items():
        shown = help_of(path)
        for line in shown.splitlines():
            assert len(line) <= (80 if re.match("    |.*://", line) else 60), path
        assert "…" not in shown, path
        assert not re.search(r"\w\.\.\.$", shown, re.MULTILINE), path
        names = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        words = set(shown.replace(",", " ").split())
        assert {name for name in names if name.startswith("-")} <= words, path


def test_a_group_says_of_each_command_in_full_what_it_does():
    for path, group in GROUPS.items():
        shown = " ".join(help_of(path).split())
        for name, command in group.commands.items():
            first = (command.help or "").split("\n\n")[0]
            assert f" {name} {' '.join(first.split())}" in shown, path


def test_an_example_has_a_line_of_its_own_however_narrow_the_terminal():
    lines = [line.strip() for line in help_of(("audit",)).splitlines()]
    assert "datacollab audit p.csv a.csv --public public.csv --target y --preset groups" in lines


def test_the_program_says_where_to_ask_and_where_to_report():
    shown = help_of(())
    for address in PROJECT["urls"].values():
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
