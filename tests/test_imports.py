"""The package keeps to its map.  The trust boundary is a row of it."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import datacollab
from rooms import DESK, EVERYWHERE, LIBRARY, ROOMS, WINGS, WINGS_MAY_IMPORT, draw_house

SRC = Path(datacollab.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
MOST_LINES = 800
MANY_FILES = 30


def module_name(path):
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(SRC.rglob("*.py"))}


def imported_by(path):
    """Names of the package's modules that a file imports: at its top, in functions, and for types alone."""
    package = path.relative_to(SRC.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *(node.module.split(".") if node.module else ())])
            for alias in node.names:
                name = f"{module}.{alias.name}"
                if name in FILES or module in FILES:
                    yield name if name in FILES else module


@functools.cache
def imports():
    """What each file imports, read when the first test asks: each process collects this module."""
    return {name: set(imported_by(path)) - {name} for name, path in FILES.items()}


def room_of(module):
    """The room that a module belongs to; the package itself and its wings are none."""
    parts = module.split(".")[1:]
    return ".".join(parts[:2]) if parts and parts[0] in WINGS else "".join(parts[:1])


def imports_of(room):
    """Rooms and common modules that a room's files import."""
    files = [name for name in FILES if room_of(name) == room]
    return {room_of(target) for name in files for target in imports()[name]} - {room}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_it_may_and_may_import_no_more(room):
    may_import, does_import = {*ROOMS[room].may_import}, imports_of(room) - EVERYWHERE
    assert does_import <= may_import
    if room != "cli":
        assert may_import <= does_import, "permissions that no import uses"


@pytest.mark.parametrize("room", ROOMS)
def test_the_map_says_where_to_begin(room):
    module = importlib.import_module(f"datacollab.{room}")
    assert module.__doc__
    assert ROOMS[room].entry in module.__all__
    assert hasattr(module, ROOMS[room].entry)


def test_every_file_is_in_the_map():
    wings = {"", *WINGS}
    found = {room_of(name) for name in FILES} - wings - {"__main__"}
    assert found == {*ROOMS, *EVERYWHERE}


def test_what_every_room_may_import_imports_no_room():
    for room in EVERYWHERE:
        assert imports_of(room) <= EVERYWHERE, room


def test_the_wings_keep_apart():
    for room in LIBRARY:
        assert imports_of(room) <= {*LIBRARY, *EVERYWHERE}, room
    for wing, rooms in WINGS.items():
        others = {room.split(".")[0] for each in rooms for room in imports_of(each) if "." in room} - {wing}
        assert others <= WINGS_MAY_IMPORT[wing], wing
    importing_desk = {room for room in ROOMS if imports_of(room) & {*DESK}} - {*DESK}
    assert importing_desk == {"cli"}
    assert not {room for room in ROOMS if room != "cli" and "cli" in imports_of(room)}


def test_the_contributing_guide_shows_the_map():
    assert draw_house() in CONTRIBUTING.read_text(encoding="utf-8"), "print it with: python tests/rooms.py"


def circles(graph):
    """Sets of files that import one another, by whatever way (Tarjan's strongly connected components)."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in graph[file]:
            if other not in number:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], number[other])
        if low[file] == number[file]:
            component = {stack.pop()}
            while file not in component:
                component.add(stack.pop())
            found.append(component)

    for file in graph:
        if file not in number:
            visit(file)
    return [component for component in found if len(component) > 1]


def test_no_files_import_one_another_in_a_circle():
    assert circles(imports()) == []


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "e"}, "e": {"d"}, "f": set()}
    assert sorted(map(sorted, circles(graph))) == [["b", "c"], ["d", "e"]]


def test_files_can_be_held_in_the_head():
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert [name for name, count in lines.items() if count > MOST_LINES] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_many_files_says_what_each_is_for(room):
    files = sorted(path.stem for path in SRC.joinpath(*room.split(".")).glob("_[a-z]*.py"))
    if len(files) >= MANY_FILES:
        said = re.findall(r"`(_\w+)`", importlib.import_module(f"datacollab.{room}").__doc__)
        assert sorted(said) == files


SIDES = [("party", "analyst"), ("analyst", "party")]
HALVES = ("folder", "by_sums", "by_rows", "steps")
BOUNDARIES = [
    ("analyst", "party"),
    ("analyst", "own"),
    ("party", "analyst"),
    ("own", "analyst"),
    *((f"{room}.{side}", other) for room in HALVES for side, other in SIDES),
    *((f"{room}.{side}", f"{each}.{other}") for room in HALVES for each in HALVES for side, other in SIDES),
    *((f"{room}.analyst", "own") for room in HALVES),
    ("desk.party", "analyst"),
    ("desk.analyst", "party"),
    ("desk.analyst", "own"),
]
LOADING = """
import importlib, os, sys
for name in ("pandas", "scipy.linalg", "scipy.sparse.linalg", "sklearn.ensemble", "sklearn.linear_model"):
    importlib.import_module(name)
for line in sys.stdin:
    if os.fork() == 0:
        for name in line.split():
            importlib.import_module("datacollab." + name)
        print(*(name for name in sys.modules if name.startswith("datacollab.")), flush=True)
        os._exit(0)
    os.wait()
"""
"""Forks for each line of rooms a process that has loaded large packages, but nothing of this one."""


@pytest.fixture(scope="module")
def loaded():
    """What a process loads of the package that imports a room alone; under None, all of the library."""
    asked = {room: room for room, _ in BOUNDARIES} | {None: " ".join(LIBRARY)}
    given = "".join(f"{rooms}\n" for rooms in asked.values())
    answer = subprocess.run([sys.executable, "-c", LOADING], input=given, capture_output=True, text=True, check=True)
    found = dict(zip(asked, map(str.split, answer.stdout.splitlines()), strict=True))
    assert all(f"datacollab.{room}" in names for room, names in found.items() if room)
    return found


@pytest.mark.parametrize(("room", "never"), BOUNDARIES)
def test_the_trust_boundary_holds_at_run_time(loaded, room, never):
    """Importing one side does not load the other, by whatever way."""
    assert f"datacollab.{never}" not in loaded[room]


def test_the_library_loads_no_wing(loaded):
    assert {f"datacollab.{room}" for room in LIBRARY} <= {*loaded[None]}
    assert not {f"datacollab.{wing}" for wing in WINGS} & {*loaded[None]}


def test_the_reader_of_imports_sees_them():
    """The checks above rest on this: relative and nested imports, of files and of names, are all found."""
    base = imports()["datacollab.estimators._roles"]
    assert {"datacollab.analyst", "datacollab.party", "datacollab.errors"} <= base
    assert "datacollab.cli._data_commands" in imports()["datacollab.cli._demo_commands"]
    assert "datacollab.risk.audit._findings" in imports()["datacollab.risk.audit._result"]
    assert "datacollab.agreement" in imports()["datacollab.steps.party._party_folder"]


def test_nothing_unpickles():
    for path in FILES.values():
        text = path.read_text(encoding="utf-8")
        assert "pickle" not in text.replace("no pickle", "").replace("allow_pickle=False", ""), path


def test_modules_of_tests_have_names_of_their_own():
    """Otherwise pytest takes one for the other, once all are collected together; folders that are packages apart."""
    paths = [path for path in Path(__file__).parent.rglob("*.py") if not (path.parent / "__init__.py").exists()]
    names = [path.name for path in paths if path.name != "conftest.py"]
    assert {name for name in names if names.count(name) > 1} == set()
