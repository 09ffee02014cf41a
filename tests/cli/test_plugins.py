"""Commands of other distributions: found by entry points, and none of them can break the rest."""

import sys

import pytest
import typer
from typer.testing import CliRunner

from datacollab.cli._app import add_plugins
from datacollab.cli.kit import group

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
def run(tmp_path, monkeypatch):
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


def test_a_plugin_s_commands_are_in_the_help_and_run(run):
    assert "What the weather is." in run("--help", module=GOOD).stdout
    assert run("weather", "today", module=GOOD).stdout == "rain\n"
    assert run("remote", "forecast", module=GOOD).stdout == "rain\n"


@pytest.mark.parametrize("module", ["import nothing_of_this_name", HALF, TAKING, "register = 3"])
def test_a_broken_plugin_is_named_and_breaks_nothing(run, module, capsys):
    told = run("party", "join", module=module)
    assert told.exit_code == 0
    assert told.stdout == "joined\n"
    line = capsys.readouterr().err
    assert line.startswith("datacollab: the plugin weather (weather_of_a_test:register) was left out: ")
    assert len(line.splitlines()) == 1
    assert run("weather", "today", module=module).exit_code == 2
    assert run("remote", "forecast", module=module).exit_code == 2
