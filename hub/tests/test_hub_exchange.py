"""A whole exchange through the hub, and what everybody sees of it."""

from datacollab.agreement import project_text
from datacollab.bundle import digest, key_with_proof
from datacollab_hub.requests import check_hub_log
from hub_world import FINGERPRINTS, KEYS, PROJECT, bundle, refused


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
