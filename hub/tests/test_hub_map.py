"""The hub keeps to its map, to public names of `datacollab`, and to its page of refusals."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import datacollab_hub
from datacollab_hub import CODES

SRC = Path(datacollab_hub.__file__).parent
FILES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SRC.rglob("*.py"))}
MAY_IMPORT = {
    "requests": set(),
    "rules": set(),
    "store": {"requests"},
    "service": {"requests", "rules", "store"},
    "pages": {"requests", "rules", "service"},
    "web": {"requests", "rules", "service", "store", "pages"},
    "remote": {"requests"},
    "commands": {"requests", "rules", "service", "store", "web", "remote"},
}
"""Rooms, and which others each may import, besides modules whose names begin with an underscore."""


def imported(path):
    """Names of modules that a file imports: at its top, in functions, and for types alone."""
    package = path.relative_to(SRC.parent).parts[:-1]
    for node in ast.walk(FILES[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_it_may(room):
    names = {name.split(".")[1] for path in (SRC / room).rglob("*.py") for name in imported(path) if own(name)}
    assert {name for name in names if name in MAY_IMPORT} - {room} <= MAY_IMPORT[room]


def own(name):
    return name.startswith("datacollab_hub.")


def test_all_rooms_are_in_the_map():
    assert {path.name for path in SRC.iterdir() if (path / "__init__.py").exists()} == set(MAY_IMPORT)


def test_the_hub_imports_public_names_of_the_package_alone_and_unpickles_nothing():
    names = {name for path in FILES for name in imported(path) if name.split(".")[0] == "datacollab"}
    assert "datacollab.remote.Remote" in names
    assert not [name for name in names if re.search(r"\._(?!_version__)", name)]
    assert not [name for path in FILES for name in imported(path) if "pickle" in name]


@pytest.mark.slow
def test_a_hub_loads_neither_side():
    code = "import sys, datacollab_hub.web; sys.exit(bool({'datacollab.party', 'datacollab.analyst'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_page_says_what_the_codes_say():
    page = (SRC.parents[1] / "docs" / "error-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    said = [(name, str(code.exit_code), code.meaning, code.remedy) for name, code in CODES.items()]
    assert rows == said
