"""Both distributions as wheels: each holds its files, and the hub's commands are there once it is installed."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.nightly


def run(*words, code=0, cwd=None):
    """A command without what this session's environment says of paths."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, cwd=cwd, env=kept)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A folder with the wheels of `datacollab` and `datacollab-hub`."""
    pytest.importorskip("hatchling", reason="the extra test is not installed")
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, ROOT / "hub"):
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, source)
    return folder


@pytest.fixture(scope="module")
def clean(tmp_path_factory, wheels):
    """An environment that has what both need, linked from this one, and installs nothing but from the folder."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "env", symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "env")}))
    (folder / "others").mkdir()
    for place in {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}:
        for each in Path(place).iterdir():
            link = folder / "others" / each.name
            if not each.name.startswith(("datacollab", "__editable__", "_datacollab")) and not link.exists():
                link.symlink_to(each)
    (site / "others.pth").write_text(f"{folder / 'others'}\n")
    python = folder / "env" / "bin" / "python"

    def install(name):
        options = ("--no-index", "--find-links", wheels, "--no-deps", "-q")
        run(sys.executable, "-m", "pip", "--python", python, "install", *options, name)

    return folder / "env" / "bin", install


def test_a_wheel_holds_all_files_of_its_package(wheels):
    [wheel] = wheels.glob("datacollab_hub-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("datacollab_hub/")}
        others = {name.partition("/")[2]: archive.read(name).decode() for name in set(archive.namelist()) - held}
    assert others["licenses/LICENSE"] == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "](https://github.com/datacollab/datacollab/blob/main/hub/docs/hub.md)" in others["METADATA"]
    source = ROOT / "hub" / "src"
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert held == {path.relative_to(source).as_posix() for path in files}
    assert {"datacollab_hub/py.typed", "datacollab_hub/pages/templates/overview.html"} <= held


def test_the_hubs_commands_come_with_its_wheel_and_without_it_are_said_to_be_missing(clean, tmp_path):
    bin, install = clean
    install("datacollab")
    assert "hub" not in run(bin / "datacollab", "--help").stdout.partition("Commands:")[2].split()
    adding = ("remote", "add", "hub", "https://hub.example", "-C", tmp_path)
    for words in (("hub", "--help"), ("hub", "serve", "-C", "x"), ("remote", "join", "LINK"), adding):
        told = run(bin / "datacollab", *words, code=1)
        assert told.stdout == ""
        assert told.stderr.endswith("run: pip install ./hub\n")
        assert len(told.stderr.splitlines()) == 1
    install("datacollab-hub")
    assert "serve" in run(bin / "datacollab", "hub", "--help").stdout
    assert "join" in run(bin / "datacollab", "remote", "--help").stdout
    assert "hub.example" in run(bin / "datacollab", *adding).stdout
    light = (
        "import sys; sys.argv = ['datacollab', '--help']; from datacollab.cli import main\n"
        "try: main()\n"
        "finally: assert not {'httpx', 'fastapi', 'numpy'} & {*sys.modules}"
    )
    run(bin / "python", "-W", "error", "-c", light)
