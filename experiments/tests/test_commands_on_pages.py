"""Each program of this distribution that a page names exists, and takes the options that are named with it."""

import argparse
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "Makefile", *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/**/*.md")]
COMMAND = r"python -m (datacollab_experiments[\w.]*\w)((?: +[^\s`#|]+)*)"


def list_commands(page):
    """Modules and their options; lines of the Makefile are joined, and its one variable has a value."""
    text = page.read_text(encoding="utf-8").replace("\\\n\t\t", "")
    text = text.replace("$(if $(DATA),--data-dir $(DATA))", "--data-dir DIR")
    return re.findall(COMMAND, text)


NAMED = sorted({(module, " ".join(options.split())) for page in PAGES for module, options in list_commands(page)})


def test_pages_name_programs_of_every_room():
    rooms = {module.split(".")[1] for module, _ in NAMED}
    assert {"downstream", "family", "oneshot", "pays", "readings", "risks", "solvers", "study", "sums"} <= rooms


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # by another test, which loaded it
@pytest.mark.parametrize(("module", "options"), NAMED, ids=[" ".join(each) for each in NAMED])
def test_a_program_that_is_named_takes_these_options(module, options, monkeypatch):
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser, *arguments):
        parse(parser, *arguments)
        sys.exit(0)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.setattr(sys, "argv", [module, *shlex.split(options)])
    try:
        with pytest.raises(SystemExit) as end:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        # A module of ours that is gone fails; what an extra brings may be missing.
        if (error.name or "datacollab").startswith("datacollab"):
            raise
        pytest.skip(f"needs {error.name}")
    assert end.value.code == 0
