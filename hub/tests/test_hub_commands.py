"""Commands of an operator: which of them make a hub, and what they say of logs."""

import pytest
from sqlalchemy import update
from typer.testing import CliRunner

from datacollab.cli._app import app
from datacollab_hub.store._schema import log
from hub_world import World


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    "command",
    [
        ("backup", "-o", "{tmp}/copy"),
        ("db", "current"),
        ("db", "downgrade", "base"),
        ("log", "verify"),
        ("log", "export", "f" * 32, "-o", "{tmp}/log.jsonl"),
    ],
)
def test_who_only_looks_makes_no_hub(tmp_path, command):
    arguments = ["hub", *(word.format(tmp=tmp_path) for word in command), "--data"]
    told = run(*arguments, tmp_path / "mistyped", code=14).stderr
    assert "FOLDER_MISSING" in told
    assert "mistyped is no hub's folder" in told
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "others").mkdir()
    assert "FOLDER_MISSING" in run(*arguments, tmp_path / "others", code=14).stderr
    assert list((tmp_path / "others").iterdir()) == []


def test_a_database_without_tables_is_no_hub(tmp_path, database):
    more = ["--database", database or f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"]
    for _ in range(2):
        for command in (("db", "current"), ("log", "verify")):
            assert "FOLDER_MISSING" in run("hub", *command, "--data", tmp_path, *more, code=14).stderr
    run("hub", "db", "upgrade", "--data", tmp_path, *more)
    run("hub", "db", "current", "--data", tmp_path, *more)
    told = run("hub", "log", "verify", "--data", tmp_path, *more).stdout
    assert told == "The hub has no project yet, and so no log.\n"


def test_a_hub_takes_its_folder_by_any_spelling(tmp_path):
    assert run("hub", "db", "upgrade", "-C", tmp_path / "hub").exit_code == 0
    told = [run("hub", "db", "current", spelt, tmp_path / "hub") for spelt in ("-C", "--folder", "--data")]
    assert {each.exit_code for each in told} == {0}
    assert len({each.stdout for each in told}) == 1


def test_every_broken_log_is_named(tmp_path):
    with World(tmp_path / "hub") as world:
        first, whole, second = (world.open_project(name) for name in ("one", "two", "three"))
        with world.store.writing() as connection:
            connection.execute(update(log).where(log.c.project.in_([first, second])).values(who="somebody else"))
    result = run("hub", "log", "verify", "--data", tmp_path / "hub", code=11)
    assert "LOG_BROKEN: 2 of 3 logs are broken." in result.stderr
    for project in (first, second):
        assert f"Entry 1 of the hub's log does not follow from the one before it, in the project {project}" in (
            result.stderr
        )
    assert f"{whole}: 1 entries, none changed" in result.stdout
    assert whole not in result.stderr
