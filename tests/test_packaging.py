"""What is installed: extras, versions and licences, completion, and wheel and sdist in a clean environment."""

import os
import re
import subprocess
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import datacollab

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TREES = ("src", "hub/src", "experiments/src", "examples")
FOR_DEVELOPERS = {"test", "docs", "oracles", "all"}


def names(requirements):
    """Distributions, and extras of this one in backticks."""
    found = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement).groups()
        found |= {f"`{extra}`" for extra in extras.split(",")} if name == "datacollab" else {name}
    return found


def extras_table():
    """The documents' table of extras: which, whether it is among `all`, and what it brings."""
    pages = [path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]]
    [table] = [part for page in pages for part in page.split("| extra | for | brings |\n")[1:]]
    for line in table.split("\n\n")[0].splitlines()[1:]:
        named, _, brings = (cell.strip() for cell in line.strip("|").split(" | "))
        yield re.findall(r"`(\w+)`", named), "•" in named, set(re.split(r"[,;] ", brings))


def test_the_table_of_extras_is_true():
    rows = list(extras_table())
    offered = PROJECT["optional-dependencies"]
    assert sorted(extra for extras, _, _ in rows for extra in extras) == sorted(set(offered) - FOR_DEVELOPERS)
    for extras, _, brings in rows:
        needed = [offered[extra] for extra in extras] or [PROJECT["dependencies"]]
        assert brings == set().union(*map(names, needed)), extras
    assert {f"`{extra}`" for extras, is_in_all, _ in rows if is_in_all for extra in extras} == names(offered["all"])


def test_an_extra_that_an_error_names_is_one():
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r'require\("[\w.]+", "(\w+)"\)', source))
    named |= {extra for extras in re.findall(r"datacollab\[([a-z0-9,]+)\]", source) for extra in extras.split(",")}
    assert {"cli", "exchange", "plots"} <= named
    assert named <= set(PROJECT["optional-dependencies"])


def test_constraints_have_hashes_of_all_that_is_asked_for():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    hashes = r"(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+"
    entries = re.findall(rf"^([\w.-]+)==([^\s;]+).* \\\n{hashes}", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE)) > 150
    own = {"datacollab", "datacollab-hub"}
    for folder in ("", "hub", "experiments"):
        told = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
        extras = told["project"]["optional-dependencies"].values()
        for asked in map(Requirement, sum(extras, told["project"]["dependencies"] + told["build-system"]["requires"])):
            versions = [version for name, version in entries if name == canonicalize_name(asked.name)]
            assert asked.name in own or versions, asked
            assert all(asked.specifier.contains(version) for version in versions), asked


def licence(distribution):
    """What a distribution says of its licence: an expression, the first line of a text, classifiers."""
    told = metadata.metadata(distribution)
    lines = [*(told.get_all("License-Expression") or ()), *(told.get_all("License") or ("",))[0].splitlines()[:1]]
    return "; ".join([*lines, *(each for each in told.get_all("Classifier") or () if each.startswith("License ::"))])


def brought(distribution, extras, seen):
    """All distributions that one brings with these extras, by names."""
    for asked in map(Requirement, metadata.requires(distribution) or ()):
        wanted = asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in {"", *extras})
        if wanted and (asked.name, *sorted(asked.extras)) not in seen:
            seen.add((asked.name, *sorted(asked.extras)))
            brought(asked.name, asked.extras, seen)
    return {name for name, *_ in seen}


@pytest.mark.slow
def test_nothing_that_is_brought_or_imported_is_under_the_gpl():
    found = brought("datacollab", {"all", "cluster", "sftp", "s3", "shap"}, set())
    found |= brought("datacollab-hub", {"server", "postgresql"}, set())
    texts = [path.read_text(encoding="utf-8") for tree in TREES for path in (ROOT / tree).rglob("*.py")]
    modules = {name for text in texts for name in re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)}
    known = metadata.packages_distributions()
    found |= {name for module in modules & set(known) for name in known[module]}
    assert {"numpy", "psycopg", "paramiko"} <= found
    gpl = re.compile("(?<!L)A?GPL|(?<!Lesser )General Public")
    assert gpl.search(licence("scikit-survival"))  # what it would look like
    assert not gpl.search(licence("psycopg"))
    assert [name for name in sorted(found) if gpl.search(licence(name))] == []


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """An environment with pip alone, and the wheel, made from the sdist as an index would get it."""
    folder = tmp_path_factory.mktemp("packaging")
    venv.create(folder / "tools", with_pip=True)
    tools = folder / "tools" / "bin" / "python"
    asked = subprocess.run([tools, "-m", "pip", "install", "-q", "build"], capture_output=True, text=True, check=False)
    if asked.returncode:
        pytest.skip(f"No package index can be reached: {asked.stderr.splitlines()[-1:]}")
    run(tools, "-m", "build", "--outdir", folder, ROOT)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return folder, wheel, sdist


def run(*words, cwd=None, code=0):
    """A command without what this session's environment says of paths."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    told = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, cwd=cwd, env=kept)
    assert told.returncode == code, told.stdout + told.stderr
    return told


@pytest.mark.slow
def test_the_wheel_holds_all_files_of_the_package_and_the_sdist_what_builds_it(built):
    _, wheel, sdist = built
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("datacollab/")}
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert held == {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert "datacollab/py.typed" in held
    for ending in (".html", ".css", ".toml", ".csv"):
        assert any(name.endswith(ending) for name in held), ending
    with zipfile.ZipFile(wheel) as archive:
        [told] = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA")]
    links, in_readme = (re.findall(r"\]\(([^)]*)\)", text) for text in (told, (ROOT / "README.md").read_text("utf-8")))
    assert len(links) == len(in_readme) > 0
    assert all(link.startswith(("https://", "#")) for link in links)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/datacollab/__init__.py", "tests/rooms.py"} <= inside
    assert not any(name.startswith(("experiments/", "hub/")) for name in inside)


@pytest.mark.nightly
def test_what_was_built_works_in_a_clean_environment_and_says_what_else_it_needs(built):
    folder, wheel, _ = built
    venv.create(folder / "clean", with_pip=True)
    bin = folder / "clean" / "bin"
    run(bin / "python", "-m", "pip", "install", "-q", "--no-compile", wheel)
    version = f"datacollab {datacollab.__version__}\n"
    assert run(bin / "datacollab", "--version").stdout == version
    assert "pip install 'datacollab[cli]'" in run(bin / "python", "-m", "datacollab", "--help").stdout
    assert "pip install 'datacollab[cli]'" in run(bin / "datacollab", "demo", code=1).stderr
    fit = """
import numpy as np, datacollab as dc
X = np.random.default_rng(0).normal(size=(90, 6))
y = (X[:60].sum(axis=1) > 0).astype(int)
parties = [dc.Party(name, dc.obfuscator("pca", n_components=3)).fit(X[rows], y[rows])
           for name, rows in (("a", slice(0, 30)), ("b", slice(30, 60)))]
print(dc.Analyst(dc.LTI(2)).fit([party.share(X[60:]) for party in parties]))
print(dc.DataCollaborationClassifier().fit(X[:60], y, groups=np.arange(60) % 3, anchor=X[60:]))
"""
    assert "Collaboration(parties=['a', 'b']" in run(bin / "python", "-W", "error", "-c", fit, cwd=folder).stdout
    run(bin / "python", "-m", "pip", "install", "-q", "--no-compile", f"datacollab[cli] @ {wheel.as_uri()}")
    assert "--install-completion" in run(bin / "datacollab", "--help").stdout
    small = ("--parties", 3, "--rows", 10, "--seeds", 1, "--jobs", 1, "--output", folder / "demo")
    assert "sums under masks" in run(bin / "datacollab", "demo", *small, cwd=folder).stdout
    assert (folder / "demo" / "index.html").is_file()
    refused = run(bin / "python", "-c", "from datacollab.bundle import arrays_to_bytes; arrays_to_bytes({})", code=1)
    assert "pip install 'datacollab[exchange]'" in refused.stderr
