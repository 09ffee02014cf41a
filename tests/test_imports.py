"""The rooms of the package, and what each may import.  The trust boundary is a row of this table."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import datacollab

SRC = Path(datacollab.__file__).parent

EVERYWHERE = {"errors", "_validation", "_codes", "_require", "_secrets", "_threads", "_typing"}
MAY_IMPORT = {
    "linalg": set(),
    "bundle": set(),
    "share": {"bundle"},
    "datasets": set(),
    "anchor": {"linalg"},
    "model": {"linalg", "share", "bundle"},
    "party": {"linalg", "share", "model", "bundle"},
    "analyst": {"linalg", "share", "model"},
    "project": {"bundle", "anchor"},
    "party_folder": {
        *("linalg", "bundle", "share", "anchor", "model", "project", "party", "privacy", "auditing", "testing"),
    },
    "analyst_folder": {"linalg", "bundle", "share", "model", "project", "analyst", "privacy"},
    "collaboration": {"anchor", "share", "model", "party", "analyst"},
    "privacy": {"linalg", "share", "anchor"},
    "auditing": {"linalg", "share", "model", "anchor", "party", "analyst", "privacy"},
    "experiments": {
        *("datasets", "linalg", "anchor", "share", "model", "party", "analyst", "collaboration"),
        *("privacy", "auditing"),
    },
    "claims": {"experiments"},
    "reports": {"datasets", "experiments", "claims"},
    "cli": {
        *("datasets", "anchor", "share", "model", "party", "analyst", "collaboration"),
        *("auditing", "experiments", "reports"),
        *("bundle", "project", "party_folder", "analyst_folder"),
    },
    "__main__": {"cli"},
    "testing": set(),
    "_codes": set(),
    "_require": set(),
    "_secrets": set(),
    "_threads": set(),
    "_typing": set(),
    "errors": set(),
    "_validation": set(),
}


def modules_of(room):
    return [SRC / f"{room}.py"] if (SRC / f"{room}.py").exists() else sorted((SRC / room).glob("**/*.py"))


def rooms_imported_by(path):
    """Names of the package's rooms that a module imports, at its top or inside its functions."""
    package = path.relative_to(SRC.parent).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            targets = [[*module, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == "datacollab" and len(target) > 1:
                yield target[1]


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_room_imports_only_what_it_may(room):
    allowed = MAY_IMPORT[room] | EVERYWHERE | {room, "__version__"}
    for path in modules_of(room):
        assert set(rooms_imported_by(path)) <= allowed, path


def test_every_room_is_in_the_table():
    rooms = {path.parent.name for path in SRC.glob("*/__init__.py")}
    modules = {path.stem for path in SRC.glob("*.py")} - {"__init__"}
    assert rooms | modules == set(MAY_IMPORT)


@pytest.mark.parametrize(("room", "never"), [("analyst", "party"), ("party", "analyst"), ("analyst_folder", "party")])
def test_the_trust_boundary_holds_at_run_time(room, never):
    """Importing one side does not load the other, by whatever way."""
    code = f"import sys, datacollab.{room}; sys.exit('datacollab.{never}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_reader_of_imports_sees_them():
    """The check above rests on this: relative, absolute and nested imports are all found."""
    found = set(rooms_imported_by(SRC / "collaboration" / "_base.py"))
    assert {"analyst", "party", "errors"} <= found
    assert "experiments" in set(rooms_imported_by(SRC / "cli" / "_demo.py"))


def test_the_package_loads_nothing_heavy():
    code = "import sys, datacollab; sys.exit(any(m in sys.modules for m in ('numpy', 'sklearn', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_unpickles():
    for path in SRC.glob("**/*.py"):
        text = path.read_text(encoding="utf-8")
        assert "pickle" not in text.replace("no pickle", "").replace("allow_pickle=False", ""), path
