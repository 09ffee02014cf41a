"""Where a number comes from: the commit, and whether anything of the package was changed since."""

import shutil
import subprocess
from pathlib import Path

import pytest

import datacollab
from datacollab_experiments.harness import _provenance as provenance

SOURCE = Path(datacollab.__file__).parent


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The package in a repository of its own, all of it committed."""
    package = tmp_path / "src" / "datacollab"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--no-gpg-sign", "--message", "all"],
    ):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    monkeypatch.setattr(provenance, "__file__", str(package / Path(provenance.__file__).relative_to(SOURCE)))
    return package


@pytest.mark.parametrize("changed", ["analyst/_kti.py", "paper/experiments/_run.py", "__init__.py"])
def test_a_change_anywhere_in_the_package_shows(repository, changed):
    committed = provenance.source_state()
    assert len(committed) == 12
    (repository / changed).write_text("# changed")
    assert provenance.source_state() == f"{committed}+"


def test_what_is_not_of_the_package_does_not_show(repository):
    (repository.parents[1] / "notes.txt").write_text("new")
    assert "+" not in provenance.source_state()


def test_outside_of_a_repository_there_is_none(repository):
    shutil.rmtree(repository.parents[1] / ".git")
    assert provenance.source_state() == ""
