"""Where a number comes from: the commit, and whether anything of the packages was changed since."""

import shutil
import subprocess
from pathlib import Path

import pytest

import datacollab
import datacollab_experiments
from datacollab_experiments.harness import source_state

PACKAGES = {module.__name__: Path(module.__file__).parent for module in (datacollab, datacollab_experiments)}
MODULE = "datacollab_experiments.harness._carried"


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """Both packages in a repository of its own, all of it committed."""
    folder = tmp_path_factory.mktemp("repository")
    for name, package in PACKAGES.items():
        shutil.copytree(package, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--no-gpg-sign", "--message", "all"],
    ):
        subprocess.run(["git", "-C", folder, *command], check=True)
    return folder


@pytest.fixture
def repository(committed, tmp_path, monkeypatch):
    """A copy of it, from which the packages are taken."""
    shutil.copytree(committed, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(f"{MODULE}.__file__", str(tmp_path / "datacollab_experiments" / "harness" / "_carried.py"))
    monkeypatch.setattr(datacollab, "__file__", str(tmp_path / "datacollab" / "__init__.py"))
    return tmp_path


@pytest.mark.parametrize(
    "changed", ["datacollab/analyst/_kti.py", "datacollab_experiments/paper/_run.py", "datacollab/__init__.py"]
)
def test_a_change_anywhere_in_the_packages_shows(repository, changed):
    committed = source_state()
    assert len(committed) == 12
    (repository / changed).write_text("# changed")
    assert source_state() == f"{committed}+"


def test_what_is_not_of_the_packages_does_not_show(repository):
    (repository / "notes.txt").write_text("new")
    assert "+" not in source_state()


def test_outside_of_a_repository_there_is_none(repository):
    shutil.rmtree(repository / ".git")
    assert source_state() == ""
