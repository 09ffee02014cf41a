"""Coming into a hub's project: keys, invitations, browsers; and a database and blobs that belong together."""

import os
import shutil

import pytest
from sqlalchemy import delete
from starlette.testclient import TestClient

from datacollab.agreement import project_text
from datacollab.bundle import KeyPair, digest, key_with_proof
from datacollab.sums import MaskKey, mask_card
from datacollab_hub.store import METADATA, Blobs, Store, backup, downgrade, restore, upgrade
from datacollab_hub.web import make_app
from hub_world import FINGERPRINTS, KEYS, NOW, PROJECT, World, agreed_world, bundle, make_project, refused
from party_world import refusal


@pytest.fixture
def opened(world):
    world.open_project()
    return world


def status_of(world, who):
    return world.ask(who, "GET", "/v1/projects/{p}").status_code


@pytest.mark.slow
def test_a_key_waits_until_the_owner_approves(opened):
    answer = opened.join("north", opened.invite("party", "Nordklinik"))
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    assert status_of(opened, "north") == 404
    assert opened.ask("north", "GET", "/v1/projects").json() == {"projects": []}
    assert opened.decide("north").json()["state"] == "approved"
    assert status_of(opened, "north") == 200
    refused(opened.ask("north", "GET", "/v1/projects/{p}/agreement"), "AGREEMENT_MISSING", 404)


def test_a_card_of_a_mask_key_reaches_the_owner(opened):
    key = key_with_proof(KEYS["north"])
    card = mask_card(MaskKey.generate(), KEYS["north"])
    for more, status in ((f"{card}\n{card}\n", 422), ("nonsense\n", 422), (f"{card}\n", 202)):
        body = {"secret": opened.invite("party"), "public_key": key + more}
        assert opened.ask("north", "POST", "/v1/projects/{p}/join", body).status_code == status
    (asked,) = opened.ask("owner", "GET", "/v1/projects/{p}/requests").json()["requests"]
    assert asked["public_key"] == f"{key}{card}\n"


def test_an_invitation_is_for_one_key_and_expires(opened):
    secret = opened.invite("party")
    assert opened.join("north", secret).status_code == 202
    assert opened.join("north", secret).status_code == 202  # its answer was lost
    refused(opened.join("south", secret), "INVITATION_INVALID", 404)
    assert len(opened.ask("owner", "GET", "/v1/projects/{p}/requests").json()["requests"]) == 1
    secret = opened.invite("party", days=2)
    opened.now += 2 * 86_400 + 1
    refused(opened.join("north", secret), "INVITATION_INVALID", 404)


def test_a_secret_is_of_one_project_and_tells_nothing_of_others(opened):
    secret, first = opened.invite("party"), opened.project
    opened.open_project("second")
    wrong = opened.join("north", secret)
    refused(wrong, "INVITATION_INVALID", 404)
    for project in ("f" * 32, "x", "%00"):
        opened.project = project
        none = opened.join("north", secret)
        assert (none.status_code, none.content) == (wrong.status_code, wrong.content)
    # Nothing is left of whoever has no invitation.
    opened.project = first
    refused(opened.ask("north", "GET", "/v1/projects"), "KEY_UNKNOWN", 401)
    assert opened.join("north", secret).status_code == 202


def test_only_the_hash_of_a_secret_is_kept(opened):
    secret = opened.invite("party")
    opened.join("north", secret)
    opened.store.close()
    for path in opened.folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()


def test_a_refused_key_is_no_member(opened):
    opened.join("north", opened.invite("party"))
    assert opened.decide("north", approve=False).json()["state"] == "refused"
    assert status_of(opened, "north") == 404
    opened.decide("north")
    assert status_of(opened, "north") == 200
    opened.decide("north", approve=False)
    assert status_of(opened, "north") == 404


def test_a_refused_key_is_invited_anew(opened):
    def actions():
        return [entry["action"] for entry in opened.log() if entry["who"] == FINGERPRINTS["north"]]

    first = opened.invite("party")
    opened.join("north", first)
    opened.decide("north", approve=False)
    # The invitation that was refused asks no second time, however often it is presented.
    assert opened.join("north", first).json()["state"] == "refused"
    assert actions() == ["asked"]
    second = opened.invite("party")
    assert opened.join("north", second).json()["state"] == "waiting"
    assert actions() == ["asked", "asked"]
    opened.decide("north", approve=False)
    assert opened.join("north", second).json()["state"] == "refused"
    assert opened.join("north", opened.invite("party")).json()["state"] == "waiting"
    opened.decide("north")
    assert status_of(opened, "north") == 200
    # Whoever waits or is approved does not ask again in the same role.
    assert opened.join("north", opened.invite("party")).json()["state"] == "approved"
    assert actions() == ["asked"] * 3


def test_whoever_asks_in_another_role_is_in_the_log(opened):
    party, auditor = opened.invite("party", "first"), opened.invite("auditor", "second")
    assert opened.join("north", party).json()["role"] == "party"
    assert opened.join("north", auditor).json()["role"] == "auditor"
    # The earlier invitation does not take the place of the later one.
    assert opened.join("north", party).json()["role"] == "auditor"
    asked = [entry["facts"] for entry in opened.log() if entry["action"] == "asked"]
    assert asked == [{"name": "first", "role": "party"}, {"name": "second", "role": "auditor"}]


def test_whoever_did_not_ask_is_not_approved(opened):
    refused(opened.decide("north"), "NOT_FOUND", 404)
    answer = opened.ask("owner", "POST", "/v1/projects/{p}/requests/%3Cb%3E", {"approve": True})
    refused(answer, "NOT_FOUND", 404)


@pytest.mark.parametrize(
    ("first", "second"),
    [("party", "analyst"), ("analyst", "party"), ("auditor", "analyst"), ("analyst", "auditor"), ("party", "auditor")],
)
def test_nobody_is_two_that_exclude_one_another(opened, first, second):
    opened.admit("north", first)
    refused(opened.join("north", opened.invite(second)), "NOT_ALLOWED", 403)


def test_the_owner_stays_the_same_and_may_be_a_party_and_not_the_analyst(opened):
    refused(opened.join("owner", opened.invite("analyst")), "NOT_ALLOWED", 403)
    opened.admit("owner", "party")
    other = make_project(owner=KEYS["other"].public)
    text = project_text(other, KEYS["other"]).encode()
    refused(opened.ask("owner", "PUT", "/v1/projects/{p}/agreement", text), "NOT_A_MEMBER", 403)


@pytest.mark.parametrize(
    "wrong",
    [{"role": "owner"}, {"role": "root"}, {"days": 0}, {"days": 10_000}, {"days": "7"}, {"name": ""}, {"name": "a\n"}],
)
def test_invitations_are_checked(opened, wrong):
    body = {"name": "x", "role": "party", "days": 7, **wrong}
    refused(opened.ask("owner", "POST", "/v1/projects/{p}/invitations", body), "REQUEST_MALFORMED", 400)


def test_members_are_those_of_the_project_file(opened):
    opened.admit("other", "party")
    opened.admit("auditor")
    opened.put_agreement()
    assert [status_of(opened, who) for who in ("north", "south", "analyst", "auditor", "other")] == [200] * 4 + [404]
    # Approved later, they wait for a project file that names them.
    opened.join("other", opened.invite("party"))
    opened.decide("other")
    assert status_of(opened, "other") == 404
    parties = {**PROJECT.parties, "other": KEYS["other"].public}
    opened.put_agreement(make_project(parties=parties, revision=2))
    assert status_of(opened, "other") == 200


def test_an_auditor_whom_the_file_names_is_that_alone(opened):
    opened.admit("analyst", "auditor")
    opened.put_agreement()
    opened.send("owner", "anchor", bundle("anchor", "owner"))
    assert opened.ask("analyst", "GET", "/v1/projects/{p}").json()["roles"] == ["analyst"]
    assert opened.files("analyst") == []


def put(world, project, who="owner", key=None):
    text = project_text(project, KEYS[key or who]).encode()
    return world.ask(who, "PUT", "/v1/projects/{p}/agreement", text)


def test_the_revision_goes_up_and_is_a_number_that_every_database_holds(opened):
    assert put(opened, PROJECT).status_code == 201
    assert put(opened, PROJECT).status_code == 200
    refused(put(opened, make_project(min_rows=30)), "PROJECT_OLDER", 409)
    assert put(opened, make_project(min_rows=30, revision=3)).status_code == 201
    refused(put(opened, make_project(revision=2)), "PROJECT_OLDER", 409)
    assert [entry["facts"].get("revision") for entry in opened.log() if entry["action"] == "agreement"] == [1, 3]
    told = refused(put(opened, make_project(revision=2**31)), "REQUEST_MALFORMED", 400)
    assert "revision: 2147483648 was found; a number up to 2147483647 is wanted" in told
    assert put(opened, make_project(revision=2**31 - 1)).status_code == 201


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.replace(b"min_rows = 20", b"min_rows = 21"), "SIGNATURE_INVALID"),
        (lambda text: text[: text.index(b"[signature]")], "SIGNATURE_MISSING"),
        (lambda text: b"\x40" + bytes(7) + b'{"__metadata__":{"digest":"' + text, "WRONG_KIND"),
        (lambda text: b"\xff" + text, "SPEC_INVALID"),
        (lambda text: b"", "SPEC_INVALID"),
        (lambda text: text.replace(b"[rules]", b"[[rules]]"), "SPEC_INVALID"),
    ],
)
def test_a_project_file_that_is_none_is_refused(opened, change, code):
    text = change(project_text(PROJECT, KEYS["owner"]).encode())
    message = refused(opened.ask("owner", "PUT", "/v1/projects/{p}/agreement", text), code, 422)
    assert "/tmp" not in message
    refused(opened.ask("owner", "GET", "/v1/projects/{p}/agreement"), "AGREEMENT_MISSING", 404)


def test_a_member_that_the_next_file_leaves_out_is_none(opened):
    opened.put_agreement()
    share = bundle("share", "south", party="south")
    opened.send("south", "share", share)
    new = {"north": KEYS["north"].public, "third": KeyPair.generate().public}
    opened.put_agreement(make_project(parties=new, revision=2))
    assert status_of(opened, "south") == 404
    status = opened.ask("north", "GET", "/v1/projects/{p}").json()
    assert (status["shared"], status["missing"]) == ([], ["north", "third"])
    assert FINGERPRINTS["south"] in {file["sender"] for file in opened.files("owner")}


CHANGING = ["a\r\nSet-Cookie: x=1", "a\nb", "a\x00", "a\x1b[2J", "\N{RIGHT-TO-LEFT OVERRIDE}a", "\N{LINE SEPARATOR}"]
CHANGING += [" a", "", "x" * 201]
TEXTS = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "../../etc/passwd", "{{7*7}}", "a%0d%0ab"]
TEXTS += ["a'; DROP TABLE keys; --", 'x"y\\z', "Herz – 心臓"]
PATHS = [
    "%00",
    "%ff%fe",
    "..%2f..%2fhub.sqlite",
    "%2e%2e",
    "a%0d%0aX-Injected:%20yes",
    "%3Cscript%3E",
    "0" * 64 + "%20",
]
PATHS += ["x" * 64, "A" * 64, "'%20OR%201=1--"]


@pytest.mark.parametrize("name", CHANGING)
def test_a_name_is_one_line_without_controls(world, name):
    world.open_project()
    for path, body in (("", {}), ("/{p}/invitations", {"role": "party", "days": 1})):
        answer = world.ask("owner", "POST", f"/v1/projects{path}", {"name": name, **body})
        assert refused(answer, "REQUEST_MALFORMED", 400).isprintable()


@pytest.mark.parametrize("name", TEXTS)
def test_what_means_something_elsewhere_is_text_here(world, name):
    world.open_project(name)
    for answer in (world.ask("owner", "GET", "/v1/projects/{p}"), world.ask("owner", "GET", "/v1/projects")):
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/json"
        (found,) = answer.json().get("projects", [answer.json()])
        assert found["name"] == name
    world.admit("auditor")
    assert world.invite("party", name)


@pytest.mark.parametrize("name", ["con", "NUL.a", "com1"])
def test_no_party_is_invited_by_the_name_of_a_device(world, name):
    world.open_project()
    body = {"name": name, "role": "party", "days": 1}
    refused(world.ask("owner", "POST", "/v1/projects/{p}/invitations", body), "REQUEST_MALFORMED", 400)


@pytest.mark.parametrize("part", PATHS)
@pytest.mark.parametrize("place", ["files/{}", "uploads/{}", "requests/{}"])
@pytest.mark.slow
def test_paths_lead_nowhere_else(agreed, part, place):
    method, body = {"f": ("GET", None), "u": ("DELETE", None), "r": ("POST", {"approve": True})}[place[0]]
    answer = agreed.ask("owner", method, "/v1/projects/{p}/" + place.format(part), body)
    assert answer.status_code in (401, 404)  # a client may have put the path otherwise than it was signed
    assert "X-Injected" not in answer.headers
    assert part not in answer.text


SHARE = bundle("share", "north", party="north")


@pytest.fixture
def sent(agreed):
    """A hub with a file that was there for a year."""
    agreed.send("north", "share", SHARE)
    for path in agreed.blobs():
        os.utime(path, (NOW - 366 * 86_400,) * 2)
    return agreed


def test_another_database_begins_nothing_and_removes_nothing(sent, tmp_path):
    blobs = str(sent.folder / "blobs")
    refusal("STORE_MISMATCH", Store.opened, tmp_path / "other", blobs=blobs)
    other = Store.located(tmp_path / "other", blobs=blobs)
    refusal("STORE_MISMATCH", other.tidy, NOW)
    other.close()
    assert [path.read_bytes() for path in sent.blobs()] == [SHARE]


def test_a_database_that_is_swapped_while_the_hub_runs_removes_nothing(sent, tmp_path):
    other = World(tmp_path / "other")
    swapped = Store(other.store.engine, sent.store.blobs)
    refusal("STORE_MISMATCH", swapped.tidy, NOW)
    other.store.close()
    assert len(sent.blobs()) == 1


def test_lost_blobs_are_told_at_the_start_and_to_whoever_asks(sent, tmp_path, database):
    for lost in (sent.folder / "blobs" / "hub-id", *sent.blobs()):
        lost.unlink()
    with TestClient(make_app(sent.hub)) as client:
        assert client.get("/readyz").status_code == 503
    refusal("STORE_MISMATCH", Store.opened, sent.folder, database=database)


def test_the_mark_alone_may_be_lost(sent, database):
    """As with a hub from before there was one: all that the database names lies there, so it is made again."""
    mark = sent.folder / "blobs" / "hub-id"
    said = mark.read_text()
    mark.unlink()
    Store.opened(sent.folder, database=database).close()
    assert mark.read_text() == said


@pytest.mark.slow
def test_a_hub_from_before_there_were_marks_goes_on(sent, database):
    downgrade(sent.store.engine, "0001")
    (sent.folder / "blobs" / "hub-id").unlink()
    upgrade(sent.store.engine)
    store = Store.opened(sent.folder, database=database)
    store.tidy(NOW)
    store.close()
    assert [path.read_bytes() for path in sent.blobs()] == [SHARE]


def test_blobs_that_an_empty_database_does_not_name_are_not_its_own(tmp_path):
    Blobs(str(tmp_path / "blobs")).write("files", [b"somebody's"])
    refusal("STORE_MISMATCH", Store.opened, tmp_path)


def test_a_restored_hub_has_an_id_of_its_own(sent, tmp_path, database):
    backup(sent.store, tmp_path / "copy")
    new = Store.opened(tmp_path / "new")
    before = (tmp_path / "new" / "blobs" / "hub-id").read_text()
    restore(new, tmp_path / "copy")
    new.check()
    new.close()
    after = (tmp_path / "new" / "blobs" / "hub-id").read_text()
    assert len({before, after, (sent.folder / "blobs" / "hub-id").read_text()}) == 3
    refusal("STORE_MISMATCH", Store.opened, tmp_path / "x", database=database, blobs=str(tmp_path / "new" / "blobs"))


@pytest.mark.parametrize(
    ("name", "goes"),
    [(f"files/{'a' * 32}", True), (f"files/.{'a' * 32}.part", True), (f"uploads/{'b' * 32}/{'a' * 32}", True),
     (f"uploads/{'b' * 32}/.{'a' * 32}.part", True), ("hub-id", False), ("notes.txt", False), ("files/notes", False),
     (f"other/{'a' * 32}", False), (f"files/{'A' * 32}", False), (f"files/deeper/{'a' * 32}", False)],
)  # fmt: skip
def test_only_what_the_hub_calls_blobs_is_swept(tmp_path, name, goes):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (NOW, NOW))
    assert Blobs(str(tmp_path)).sweep(set(), older_than=NOW) == 0
    assert Blobs(str(tmp_path)).sweep(set(), older_than=NOW + 1) == goes
    assert path.exists() != goes


def test_the_place_is_marked_wherever_it_is(tmp_path):
    with World(tmp_path, blobs="memory://hub-with-a-mark") as world:
        world.store.check()
        refused(world.ask("stranger", "GET", "/v1/projects"), "KEY_UNKNOWN", 401)
    refusal("STORE_MISMATCH", Store.opened, tmp_path / "other", blobs="memory://hub-with-a-mark")


ANCHOR = bundle("anchor", "owner")


def back_up(world, copy):
    """Some of everything, of which a backup is made."""
    world.send("owner", "anchor", ANCHOR)
    world.send("north", "share", SHARE)
    world.send("south", "share", bundle("share", "south", party="south"))
    world.ask("south", "DELETE", f"/v1/projects/{{p}}/files/{digest(bundle('share', 'south', party='south'))}")
    world.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}")
    world.join("other", world.invite())
    started = bundle("sums", "south", party="south")
    world.part("south", world.start("south", "sums", started).json()["upload"], 0, started[:100])
    assert backup(world.store, copy) == 2


@pytest.fixture
def copied(agreed, tmp_path):
    back_up(agreed, tmp_path / "copy")
    return agreed, tmp_path / "copy"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A backup alone, which is the same whatever database it was made of."""
    folder = tmp_path_factory.mktemp("whole")
    with agreed_world(folder / "hub") as world:
        back_up(world, folder / "copy")
    return folder / "copy"


@pytest.mark.slow
def test_all_is_there_again(copied, tmp_path):
    """From either database into SQLite."""
    before, copy = copied
    with World(tmp_path / "new") as after:
        with after.store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM keys")
        assert restore(after.store, copy) == 2
        after.project, after.now = before.project, before.now
        for who in ("owner", "north", "analyst", "south"):
            for path in ("", "/files", "/log"):
                address = "/v1/projects/{p}" + path
                assert after.ask(who, "GET", address).json() == before.ask(who, "GET", address).json()
            address = "/v1/projects/{p}/agreement"
            assert after.ask(who, "GET", address).content == before.ask(who, "GET", address).content
        assert after.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}").content == SHARE
        assert after.decide("other").status_code == 200
        assert after.ask("owner", "POST", "/v1/projects", {"name": "second"}).status_code == 201
        # Numbers of files go on after the last one.
        assert after.send("south", "share", bundle("share", "south", party="south")).status_code == 201


def test_into_the_database_that_it_came_from(copied, tmp_path):
    before, copy = copied
    project = before.project
    with before.store.writing() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(delete(table))
    assert restore(before.store, copy) == 2
    before.project = project
    assert before.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}").content == SHARE
    assert before.send("south", "share", bundle("share", "south", party="south")).status_code == 201


@pytest.mark.slow
def test_a_file_that_is_withdrawn_meanwhile_is_withdrawn_in_the_backup(agreed, tmp_path, monkeypatch):
    """Its row was read before, its bytes would have been after."""
    agreed.send("north", "share", SHARE)
    agreed.send("owner", "anchor", ANCHOR)
    read, path = Blobs.read, f"/v1/projects/{{p}}/files/{digest(SHARE)}"

    def withdrawn_first(self, *args):
        monkeypatch.setattr(Blobs, "read", read)
        assert agreed.ask("north", "DELETE", path).status_code == 200
        return read(self, *args)

    monkeypatch.setattr(Blobs, "read", withdrawn_first)
    assert backup(agreed.store, tmp_path / "copy") == 1
    with World(tmp_path / "new") as after:
        with after.store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM keys")
        assert restore(after.store, tmp_path / "copy") == 1
        after.project = agreed.project
        assert after.files("owner") == agreed.files("owner")
        refused(after.ask("analyst", "GET", path), "NOT_FOUND", 404)
        assert after.ask("north", "GET", path.replace(digest(SHARE), digest(ANCHOR))).content == ANCHOR


def test_only_an_empty_hub_is_filled(copied):
    before, copy = copied
    files = before.files("owner")
    refusal("ALREADY_THERE", restore, before.store, copy)
    refusal("ALREADY_THERE", backup, before.store, copy)
    assert before.files("owner") == files


def damaged_rows(copy):
    path = copy / "database.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"table":"files"', b'"table":"filez"', 1))


def cut_line(copy):
    path = copy / "database.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def missing_line(copy):
    path = copy / "database.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def changed_blob(copy):
    (copy / "blobs" / digest(SHARE)).write_bytes(SHARE[:-1] + b"x")


def missing_blob(copy):
    (copy / "blobs" / digest(SHARE)).unlink()


@pytest.mark.parametrize("damage", [damaged_rows, cut_line, missing_line, changed_blob, missing_blob])
def test_a_backup_that_is_not_whole_fills_nothing(whole, tmp_path, damage):
    copy = shutil.copytree(whole, tmp_path / "copy")
    damage(copy)
    with World(tmp_path / "new") as after:
        with after.store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM keys")
        refusal("STATE_DAMAGED", restore, after.store, copy)
        refused(after.ask("owner", "GET", "/v1/projects"), "KEY_UNKNOWN", 401)
        assert after.blobs() == []


def test_a_backup_is_closed_to_others(whole):
    for path in [whole, *whole.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert FINGERPRINTS["owner"] in (whole / "database.jsonl").read_text()


def test_a_missing_file_is_no_backup(agreed, tmp_path):
    agreed.send("north", "share", SHARE)
    (blob,) = agreed.blobs()
    blob.unlink()
    refusal("STATE_DAMAGED", backup, agreed.store, tmp_path / "copy")
    refusal("FOLDER_MISSING", restore, agreed.store, tmp_path / "nowhere")
