"""The hub keeps to its map."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import datacollab_hub
from datacollab.agreement import project_text
from datacollab.bundle import digest, key_with_proof
from datacollab_hub import CODES
from datacollab_hub.requests import check_hub_log
from hub_world import FINGERPRINTS, KEYS, PROJECT, bundle, refused

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


def test_from_opening_to_the_model_and_back(world):
    project = world.open_project()
    for who, role in (("north", "party"), ("south", "party"), ("analyst", "analyst"), ("auditor", "auditor")):
        world.admit(who, role)
    asked = world.ask("owner", "GET", "/v1/projects/{p}/requests").json()["requests"]
    assert {each["public_key"] for each in asked} >= {key_with_proof(KEYS[who]) for who in ("north", "analyst")}
    text = project_text(PROJECT, KEYS["owner"]).encode()
    assert world.put_agreement().status_code == 201
    assert world.ask("south", "GET", "/v1/projects/{p}/agreement").content == text
    anchor = bundle("anchor", "owner")
    assert world.send("owner", "anchor", anchor).status_code == 201
    for party in ("north", "south"):
        assert world.ask(party, "GET", f"/v1/projects/{{p}}/files/{digest(anchor)}").content == anchor
        share = bundle("share", party, party=party)
        assert world.send(party, "share", share).status_code == 201
        assert world.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(share)}").content == share
    model = bundle("model", "analyst", party="north")
    assert world.send("analyst", "model", model, "north").json() == {"file": digest(model)}
    status = world.ask("north", "GET", "/v1/projects/{p}").json()
    assert status["shared"] == ["north", "south"]
    assert status["missing"] == []
    assert status["waiting"] == ["north"]
    assert (status["digest"], status["fingerprint"]) == (PROJECT.digest, PROJECT.fingerprint)
    assert (status["revision"], status["deadline"], status["quorum"]) == (1, "2027-01-31", 2)
    assert status["now"] == "2027-01-15T08:00:00Z"
    assert world.ask("north", "GET", f"/v1/projects/{{p}}/files/{digest(model)}").content == model
    assert world.ask("north", "GET", "/v1/projects/{p}").json()["waiting"] == []
    entries = world.log("north")
    status = world.ask("north", "GET", "/v1/projects/{p}").json()
    assert check_hub_log(project, entries) == status["head"]["digest"]
    assert status["head"]["seq"] == len(entries)
    told = [(entry["action"], entry["who"]) for entry in entries]
    assert told[0] == ("opened", FINGERPRINTS["owner"])
    assert told[-2:] == [("received", FINGERPRINTS["analyst"]), ("fetched", FINGERPRINTS["north"])]
    assert told.count(("fetched", FINGERPRINTS["analyst"])) == 2


def test_own_projects_are_listed(agreed):
    (mine,) = agreed.ask("analyst", "GET", "/v1/projects").json()["projects"]
    assert mine == {
        "project": agreed.project,
        "name": "heart",
        "roles": ["analyst"],
        "revision": 1,
        "digest": PROJECT.digest,
    }


def test_the_log_is_read_in_parts(agreed):
    for number in range(6):
        agreed.invite(name=f"n{number}")
    entries = agreed.log()
    assert check_hub_log(agreed.project, entries[:3]) == entries[2]["digest"]
    assert agreed.log(after=3) == entries[3:]
    refused(agreed.ask("owner", "GET", "/v1/projects/{p}/log?after=-1"), "REQUEST_MALFORMED", 400)
    refused(agreed.ask("owner", "GET", "/v1/projects/{p}/log?after=x"), "REQUEST_MALFORMED", 400)
