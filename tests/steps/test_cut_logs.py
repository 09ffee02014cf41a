"""A log whose end was cut off is found out by the files that were sent and came back."""

import shutil

import pytest
from typer.testing import CliRunner

from datacollab.cli._app import app
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from party_world import events, new_world, refused


def verify(*arguments):
    return CliRunner().invoke(app, ["log", "verify", *map(str, arguments)])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    world = new_world(tmp_path_factory.mktemp("world"))
    a, b = world.shared("a"), world.shared("b")
    shutil.copy(a.path / "outbox" / "a.dcshare", world.root / "first.dcshare")
    a.record("looked")
    world.share(a, again=True)
    a.install(world.model_file(a, b))
    assert events(a)[-3:] == ["looked", "share", "install"]
    return world.root


def cut(folder, n_entries):
    log = folder / "log.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-n_entries]))


@pytest.fixture
def folder(root, tmp_path):
    return shutil.copytree(root / "a", tmp_path / "a")


def test_a_whole_log_knows_of_all_files(root, folder):
    files = [folder / "model.dcmodel", folder / "outbox" / "a.dcshare"]
    result = verify("-C", folder, "--against", root / "first.dcshare", "--against", root / "a.dcmodel")
    assert result.exit_code == 0, result.output
    for file in files:
        assert str(file) in result.stdout
    assert verify(folder / "log.jsonl", "--against", root / "first.dcshare").exit_code == 0


@pytest.mark.parametrize("n_entries", [1, 2, 3, 4])
def test_a_log_that_was_cut_off_is_found_by_the_files_beside_it(folder, n_entries):
    cut(folder, n_entries)
    result = verify("-C", folder)
    assert result.exit_code == 11
    assert "LOG_BROKEN" in result.stderr
    assert "entries are missing" in result.stderr


def test_where_these_are_gone_by_the_files_of_others(root, folder):
    (folder / "model.dcmodel").unlink()
    (folder / "outbox" / "a.dcshare").unlink()
    cut(folder, 2)
    assert verify("-C", folder).exit_code == 0
    assert verify("-C", folder, "--against", root / "first.dcshare").exit_code == 0
    assert verify("-C", folder, "--against", root / "a" / "outbox" / "a.dcshare").exit_code == 11
    # A model says which share the analyst has.
    assert verify("-C", folder, "--against", root / "a.dcmodel").exit_code == 11
    cut(folder, 1)
    assert verify(folder / "log.jsonl", "--against", root / "a" / "outbox" / "a.dcshare").exit_code == 11


def test_a_log_that_was_written_anew_is_found(folder):
    """The share is noted again, as the party has to know of it; the head that it names stays away."""
    (folder / "log.jsonl").unlink()
    PartyFolder(folder).record("looked")
    assert verify("-C", folder).exit_code == 11


def test_an_analysts_log_knows_of_the_shares_that_are_there(root, tmp_path):
    """Their heads are of the parties' logs, though."""
    analyst = AnalystFolder.init(shutil.copytree(root / "analyst", tmp_path / "analyst"), root / "project.toml")
    analyst.add(root / name / "outbox" / f"{name}.dcshare" for name in ("a", "b"))
    result = verify("-C", analyst.path)
    assert result.exit_code == 0, result.output
    assert str(analyst.path / "shares" / "b.dcshare") in result.stdout
    cut(analyst.path, 1)
    assert verify("-C", analyst.path).exit_code == 11


def test_no_model_is_installed_over_a_log_that_lacks_its_share(tmp_path):
    world = new_world(tmp_path)
    a, b = world.shared("a"), world.shared("b")
    world.share(a, again=True)
    model = world.model_file(a, b)
    cut(a.path, 1)
    with refused("LOG_BROKEN"):
        a.install(model)
    assert not (a.path / "model.dcmodel").exists()
