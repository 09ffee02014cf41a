"""What the documents tell to type is what the programs take."""

import re
import subprocess
import sys
import tomllib

import pytest
import typer
from blocks import ROOT, blocks, words

from datacollab.cli import app

LANGUAGES = {"console", "json", "pycon", "python", "text", "toml", "yaml"}
PROGRAM = typer.main.get_command(app)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
TYPED = sorted({line for block in blocks("console") for line in block.typed if words(line)})


def test_there_is_no_block_of_another_kind():
    """Doctests, commands, Python, pages of the site; and files that tests of their formats read."""
    found = {block.language for block in blocks() if not block.language.startswith("{")}
    assert found <= LANGUAGES


def typed_by(*programs):
    return [line for line in TYPED if words(line)[0].rpartition("/")[2] in programs]


def check_typed(line):
    """Commands, options and arguments are such as the program takes."""
    known = {"$H": "datacollab hub", "$D": "--data FOLDER", "$(date -I)": "DATE"}
    for variable, value in known.items():
        line = line.replace(variable, value)
    _, *arguments = words(line)
    command, path = PROGRAM, []
    while arguments and arguments[0] in getattr(command, "commands", {}):
        path.append(arguments.pop(0))
        command = command.commands[path[-1]]
    is_abbreviated = arguments[-1:] == ["..."]
    arguments = arguments[:-1] if is_abbreviated else arguments
    context = command.context_class(command, info_name=" ".join(path))
    given, left, _ = command.make_parser(context).parse_args(list(arguments))
    assert not left, f"{' '.join(path)} takes no {left}"
    if getattr(command, "commands", None) is None and not is_abbreviated:
        missing = [each.name for each in command.params if each.required and given.get(each.name) is None]
        assert not missing, f"{' '.join(path)} wants {missing} too"


def test_the_program_has_such_commands_and_options():
    for line in typed_by("datacollab", "$H"):
        try:
            check_typed(line)
        except Exception as error:
            error.add_note(line)
            raise


def test_extras_that_are_installed_and_targets_that_are_made_exist():
    for line in typed_by("pip"):
        for named in re.findall(r"(?:datacollab|\.)\[([\w,]+)\]", line):
            assert set(named.split(",")) <= EXTRAS.keys()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in typed_by("make"):
        for target in words(line)[1:]:
            assert re.search(rf"^{re.escape(target)}:", makefile, flags=re.MULTILINE), target


def options_by_program():
    """The options that are typed after each benchmark's name."""
    found = {}
    for line in typed_by("python"):
        _, *arguments = words(line)
        n_named = 2 if arguments[0] == "-m" else 1
        if arguments[:2] != ["-m", "datacollab"]:
            options = found.setdefault(tuple(arguments[:n_named]), set())
            options |= {each for each in arguments[n_named:] if each.startswith("-")}
    return found


OPTIONS = options_by_program()


@pytest.mark.slow
@pytest.mark.parametrize("named", OPTIONS, ids=" ".join)
def test_modules_and_scripts_have_such_options(named):
    environment = {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *named, "--help"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for option in sorted(OPTIONS[named]):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", done.stdout), option


def test_every_line_is_of_a_program_that_these_tests_know():
    elsewhere = {  # systems' own, and those of other projects, which tests of deployment have
        *("cd", "cp", "export", "for", "install", "python3", "rm", "sed"),
        *("systemctl", "useradd", "userdel", "(umask", "docker"),
    }
    known = {"datacollab", "$H", "pip", "make", "python", *elsewhere}
    assert {words(line)[0].rpartition("/")[2] for line in TYPED} <= known
