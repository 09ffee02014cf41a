"""Who sees and gets which file; ranges; withdrawal; projects apart."""

import itertools
import re

import pytest

from datacollab.bundle import digest
from datacollab_hub.rules import KINDS
from hub_world import FINGERPRINTS, KEYS, World, bundle, make_project, refused

ALL = {
    "anchor": ("owner", None),
    "share": ("north", None),
    "sums": ("north", None),
    "round": ("analyst", None),
    "model": ("analyst", "north"),
    "answers": ("analyst", "north"),
}
FILES = {kind: bundle(kind, who, party=None if KINDS[kind].to_all else "north") for kind, (who, _) in ALL.items()}
GETS = {
    "anchor": {"owner", "north", "south"},
    "round": {"analyst", "north", "south"},
    **{kind: {"north", "analyst"} for kind in ("share", "sums", "model", "answers")},
}
SEES_ALL = {"owner", "auditor"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    with World(tmp_path_factory.mktemp("hub")) as world:
        world.open_project("others")
        world.admit("other", "party")
        world.open_project()
        world.put_agreement()
        world.admit("auditor")
        for kind, (who, recipient) in ALL.items():
            assert world.send(who, kind, FILES[kind], recipient).status_code == 201
        yield world


@pytest.mark.parametrize(("kind", "who"), [*itertools.product(ALL, ["owner", "north", "south", "analyst", "auditor"])])
def test_files_are_for_their_recipients_and_sender(filled, kind, who):
    answer = filled.ask(who, "GET", f"/v1/projects/{{p}}/files/{digest(FILES[kind])}")
    listed = {file["kind"] for file in filled.files(who)}
    if who in GETS[kind]:
        assert (answer.status_code, answer.content) == (200, FILES[kind])
        assert kind in listed
    elif who in SEES_ALL:
        refused(answer, "NOT_ALLOWED", 403)
        assert kind in listed
    else:
        refused(answer, "NOT_FOUND", 404)
        assert kind not in listed


def test_the_analyst_finds_no_trace_of_the_anchors_size(filled):
    size = re.compile(rf"(?<![0-9a-f]){len(FILES['anchor'])}(?![0-9a-f])")  # not by chance within a digest
    assert size.search(filled.ask("owner", "GET", "/v1/projects/{p}/files").text)
    for path in ("", "/files", "/log"):
        assert not size.search(filled.ask("analyst", "GET", "/v1/projects/{p}" + path).text)
    path = f"/v1/projects/{{p}}/files/{digest(FILES['anchor'])}"
    missing = filled.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{'0' * 64}")
    for headers in ({}, {"Range": "bytes=0-1"}, {"Range": "bytes=99999999-"}):
        there = filled.ask("analyst", "GET", path, headers=headers)
        assert (there.status_code, there.content) == (missing.status_code, missing.content)
    assert filled.ask("analyst", "DELETE", path).content == missing.content


def test_what_is_said_of_a_file(filled):
    (file,) = [file for file in filled.files("auditor") if file["kind"] == "model"]
    assert file == {
        "sha256": digest(FILES["model"]), "kind": "model", "sender": FINGERPRINTS["analyst"],
        "sender_name": "analyst", "recipient": FINGERPRINTS["north"], "recipient_name": "north",
        "size": len(FILES["model"]), "current": True, "received": int(filled.now), "fetched": file["fetched"],
        "withdrawn": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "status", "first", "last"),
    [("bytes=0-0", 206, 0, 1), ("bytes=5-", 206, 5, None), ("bytes=-7", 206, -7, None),
     ("bytes=0-99999999", 200, 0, None),
     ("bytes=3-1", 200, 0, None), ("bytes=0-1,4-5", 200, 0, None), ("lines=1-2", 200, 0, None),
     ("bytes=-", 200, 0, None)],
)  # fmt: skip
def test_ranges(filled, said, status, first, last):
    data = FILES["share"]
    answer = filled.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(data)}", headers={"Range": said})
    assert (answer.status_code, answer.content) == (status, data[first:last])
    assert answer.headers["Content-Length"] == str(len(answer.content))
    assert answer.headers["ETag"] == f'"{digest(data)}"'
    if status == 206:
        start = first % len(data)
        assert answer.headers["Content-Range"] == f"bytes {start}-{start + len(answer.content) - 1}/{len(data)}"


@pytest.mark.parametrize("said", ["bytes=99999999-", "bytes=-0"])
def test_ranges_that_are_not_there(filled, said):
    path = f"/v1/projects/{{p}}/files/{digest(FILES['share'])}"
    answer = filled.ask("analyst", "GET", path, headers={"Range": said})
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == f"bytes */{len(FILES['share'])}"


@pytest.mark.parametrize("said", ["bytes=0-0", "bytes=0-{last}", "bytes=-1", None])
def test_a_file_counts_as_fetched_with_any_byte(agreed, said):
    data = bundle("share", "north", party="north")
    agreed.send("north", "share", data)
    path = f"/v1/projects/{{p}}/files/{digest(data)}"
    assert agreed.ask("analyst", "GET", path, headers={"Range": "bytes=99999999-"}).status_code == 416
    assert agreed.files("north")[0]["fetched"] == {}
    headers = {"Range": said.format(last=len(data) - 2)} if said else {}
    first = agreed.now
    for _ in range(2):
        assert agreed.ask("analyst", "GET", path, headers=headers).status_code in (200, 206)
        agreed.now += 10
    assert agreed.files("north")[0]["fetched"] == {FINGERPRINTS["analyst"]: int(first)}
    assert [entry["action"] for entry in agreed.log()].count("fetched") == 1


@pytest.mark.slow
def test_withdrawal_leaves_facts_and_no_bytes(agreed):
    data = bundle("share", "north", party="north")
    agreed.send("north", "share", data)
    path = f"/v1/projects/{{p}}/files/{digest(data)}"
    refused(agreed.ask("analyst", "DELETE", path), "NOT_ALLOWED", 403)
    refused(agreed.ask("owner", "DELETE", path), "NOT_ALLOWED", 403)
    refused(agreed.ask("south", "DELETE", path), "NOT_FOUND", 404)
    agreed.now += 5
    for _ in range(2):
        assert agreed.ask("north", "DELETE", path).json() == {"file": digest(data), "withdrawn": True}
    assert agreed.blobs() == []
    refused(agreed.ask("analyst", "GET", path), "NOT_FOUND", 404)
    (file,) = agreed.files("analyst")
    assert (file["withdrawn"], file["kind"]) == (int(agreed.now), "share")
    entries = agreed.log()
    assert [entry["action"] for entry in entries].count("withdrawn") == 1
    assert entries[-1]["facts"] == {"kind": "share", "sha256": digest(data)}
    assert agreed.ask("north", "GET", "/v1/projects/{p}").json()["missing"] == ["north", "south"]
    assert agreed.send("north", "share", data).status_code == 201
    assert agreed.ask("analyst", "GET", path).content == data


def test_an_anchor_is_for_the_parties_of_its_own_agreement(agreed):
    """Who was a party may be the analyst of the next one, and the reverse."""
    agreed.send("owner", "anchor", FILES["anchor"])
    changed = make_project(
        revision=2,
        analyst=KEYS["south"].public,
        parties={"north": KEYS["north"].public, "was-analyst": KEYS["analyst"].public},
    )
    agreed.put_agreement(changed)
    for who in ("south", "analyst"):
        refused(agreed.ask(who, "GET", f"/v1/projects/{{p}}/files/{digest(FILES['anchor'])}"), "NOT_FOUND", 404)
        assert agreed.files(who) == []


@pytest.mark.slow
def test_the_next_analyst_gets_no_share_that_was_for_the_last(agreed):
    data = bundle("share", "north", party="north")
    agreed.send("north", "share", data)
    agreed.put_agreement(make_project(revision=2, analyst=KEYS["other"].public))
    refused(agreed.ask("other", "GET", f"/v1/projects/{{p}}/files/{digest(data)}"), "NOT_FOUND", 404)


def test_projects_are_apart(filled):
    """The same people in two projects: what is in one is not in the other."""
    first = filled.project
    try:
        filled.open_project("second")
        filled.put_agreement()
        for who in ("owner", "north", "analyst"):
            assert filled.files(who) == []
            for data in FILES.values():
                refused(filled.ask(who, "GET", f"/v1/projects/{{p}}/files/{digest(data)}"), "NOT_FOUND", 404)
        refused(filled.ask("auditor", "GET", "/v1/projects/{p}"), "NOT_FOUND", 404)
        assert len(filled.log()) == 2
    finally:
        filled.project = first
