"""Files on a hub: who sends, sees and fetches each, and the view of a project that polls read."""

import itertools
import re
import threading
from dataclasses import replace

import pytest
from sqlalchemy import event, text

from datacollab.agreement import project_text
from datacollab.bundle import digest, pack, read_envelope
from datacollab_hub.rules import KINDS, ROUTES, Person, Role
from datacollab_hub.service import Views, list_files, project_status
from datacollab_hub.store import roles_of
from hub_world import FINGERPRINTS, KEYS, PROJECT, World, bundle, make_project, refused

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


WHO = {
    "owner": {Role.OWNER, Role.OPENER, Role.KNOWN},
    "north": {Role.PARTY, Role.KNOWN},
    "analyst": {Role.ANALYST, Role.KNOWN},
    "auditor": {Role.AUDITOR, Role.KNOWN},
    "other": {Role.KNOWN},
    "stranger": set(),
}
SHARE = bundle("share", "north", party="north")
BODIES = {
    "/v1/projects": {"name": "second"},
    "/v1/projects/{project}/invitations": {"name": "x", "role": "party", "days": 1},
    "/v1/projects/{project}/requests/{fingerprint}": {"approve": True},
    "/v1/projects/{project}/agreement": project_text(PROJECT, KEYS["owner"]).encode(),
    "/v1/projects/{project}/uploads": {"kind": "share", "sha256": digest(SHARE), "size": len(SHARE)},
}
GUARDED = [route for route in ROUTES if Role.ANYBODY not in route.roles and Role.INVITED not in route.roles]
SIGNED = [route for route in GUARDED if not route.is_page]
PAGES = [route for route in GUARDED if route.is_page]


@pytest.fixture(scope="module")
def table_world(tmp_path_factory):
    """One world for the whole table: what a route changes here is none of the others' business."""
    with World(tmp_path_factory.mktemp("hub")) as world:
        world.open_project("others")
        world.admit("other", "party")  # known here, and of no business in the project below
        world.open_project()
        world.put_agreement()
        world.admit("auditor")
        yield world


@pytest.fixture(scope="module")
def browsers(table_world):
    """One for each, signed in where the hub knows the key."""
    return {who: table_world.browser(who if roles else None) for who, roles in WHO.items()}


def path_of(route, project):
    path = route.path.replace("{project}", project).replace("{fingerprint}", FINGERPRINTS["auditor"])
    return path.replace("{upload}", "0" * 32).replace("{sha256}", "0" * 64)


def asked(world, who, route, project):
    path = path_of(route, project)
    body = BODIES.get(route.path) if route.method in ("POST", "PUT") else None
    return world.ask(who, route.method, path, body)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("route", SIGNED, ids=lambda route: f"{route.method} {route.path}")
def test_each_route_is_for_its_roles(table_world, who, route):
    answer = asked(table_world, who, route, table_world.project)
    if not WHO[who]:
        assert answer.status_code == 401
    elif WHO[who] & route.roles:
        # What is asked for may not be there, or not be this sender's; that is said after the role is known.
        assert answer.status_code not in (401, 405)
        if answer.status_code == 403:
            assert refused(answer, "NOT_ALLOWED").startswith("A file of the kind share")
    elif who == "other" and route.of_project:
        assert answer.status_code == 404
    else:
        assert answer.status_code == 403


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("route", PAGES, ids=lambda route: f"{route.method} {route.path}")
def test_each_page_is_for_its_roles(table_world, browsers, who, route):
    answer = browsers[who].request(route.method, path_of(route, table_world.project))
    assert answer.headers["content-type"].startswith("text/html")
    if not WHO[who]:
        assert answer.status_code == 401
        assert "NOT_SIGNED_IN" in answer.text
    elif route.method == "POST":
        assert answer.status_code == 403  # a form without its page's token
    elif WHO[who] & route.roles:
        # The file is not there for anybody.
        assert answer.status_code == (404 if "{sha256}" in route.path else 200)
    elif who == "other" and route.of_project:
        assert answer.status_code == 404
    else:
        assert answer.status_code == 403


@pytest.mark.parametrize("route", [route for route in PAGES if route.of_project], ids=lambda route: route.path)
def test_a_browser_of_no_member_cannot_tell_a_project_from_none(table_world, browsers, route):
    there = browsers["other"].get(path_of(route, table_world.project))
    assert there.status_code == 404
    for project in ("f" * 32, "nothing", "0" * 33, "%00"):
        none = browsers["other"].get(path_of(route, project))
        assert (none.status_code, none.content) == (there.status_code, there.content)


@pytest.mark.parametrize("route", [route for route in SIGNED if route.of_project], ids=lambda route: route.path)
def test_whoever_is_no_member_cannot_tell_a_project_from_none(table_world, route):
    there = asked(table_world, "other", route, table_world.project)
    for project in ("f" * 32, "nothing", "..", "%2e%2e", "0" * 33):
        none = asked(table_world, "other", route, project)
        if project not in ("..",):  # clients take these two dots out of a path themselves
            assert (none.status_code, none.content) == (there.status_code, there.content)
        assert none.status_code in (403, 404, 405)


@pytest.mark.slow
def test_the_app_answers_the_table_and_nothing_else(table_world):
    """Whatever a method and a path are not in the table together, is not there: unsigned, and so without a role."""
    paths = {route.path for route in ROUTES} | {"/projects", "/docs", "/openapi.json", "/v1", "/redoc", "/static/x"}
    table = {(route.method, route.path) for route in ROUTES}
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        for path in paths - {"/metrics"}:
            filled = path.replace("{project}", table_world.project)
            for name in ("fingerprint", "upload", "sha256"):
                filled = filled.replace(f"{{{name}}}", "x")
            status = table_world.client.request(method, filled).status_code
            assert (status not in (404, 405)) == ((method, path) in table), (method, path, status)


def test_every_signed_route_asks_for_a_signature(table_world):
    for route in SIGNED:
        answer = asked(table_world, None, route, table_world.project)
        assert answer.status_code == 401
        if route.method != "HEAD":
            refused(answer, "SIGNATURE_MISSING", 401)


def test_only_keys_that_were_allowed_open_projects(table_world):
    message = refused(table_world.ask("north", "POST", "/v1/projects", {"name": "x"}), "NOT_ALLOWED", 403)
    assert "datacollab hub allow" in message


READING = "datacollab_hub.service._uploading.read_envelope"


def sums(who="north", number=1, project=PROJECT):
    """Sums of a party, others for each number."""
    return bundle("sums", who, party=who, project=project, size=1000 + number)


def request(number=2, project=PROJECT):
    """The analyst's request for a round."""
    return bundle("round", "analyst", project=project, more={"number": number})


def taken(answer):
    assert answer.status_code == 201, answer.text


def withdraw(world, who, data):
    assert world.ask(who, "DELETE", f"/v1/projects/{{p}}/files/{digest(data)}").status_code == 200


def standing(world):
    """Who has shared and has not, for whom a file waits, and how many rounds were asked for."""
    said = world.ask("south", "GET", "/v1/projects/{p}").json()
    return said["shared"], said["missing"], said["waiting"], said["rounds"]


@pytest.mark.slow
def test_further_sums_are_taken_once_after_each_request(agreed):
    taken(agreed.send("north", "sums", sums()))
    for number in (2, 3):
        message = refused(agreed.start("north", "sums", sums(number=number)), "ALREADY_SHARED", 409)
        assert "ask the analyst to push it" in message
        assert "withdraw these first" in message
        # The very file of before may be sent again, whenever that is.
        assert agreed.start("north", "sums", sums(number=number - 1)).status_code == 200
        taken(agreed.send("analyst", "round", request(number)))
        # Of whoever has sent none, the first ones are taken.
        taken(agreed.send("south", "sums", sums("south", number)))
        taken(agreed.send("north", "sums", sums(number=number)))
    refused(agreed.start("north", "sums", sums(number=4)), "ALREADY_SHARED", 409)
    refused(agreed.start("south", "sums", sums("south", 4)), "ALREADY_SHARED", 409)


def test_of_two_uploads_at_once_one_wins(agreed, monkeypatch):
    """Both are whole and read before either is accepted."""
    for round_number in (1, 2):
        if round_number == 2:
            taken(agreed.send("analyst", "round", request()))
        files = [sums(number=10 * round_number + each) for each in range(2)]
        uploads = [agreed.start("north", "sums", data).json()["upload"] for data in files]
        both = threading.Barrier(2, timeout=60)

        def read(*args, both=both, **kwargs):
            found = read_envelope(*args, **kwargs)
            both.wait()
            return found

        answers = []

        def end(upload, data, answers=answers):
            answers.append(agreed.part("north", upload, 0, data))

        monkeypatch.setattr(READING, read)
        threads = [threading.Thread(target=end, args=each) for each in zip(uploads, files, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        monkeypatch.undo()
        assert sorted(each.status_code for each in answers) == [201, 409]
        refused(next(each for each in answers if each.status_code == 409), "ALREADY_SHARED")
        assert len([each for each in agreed.files("north") if each["kind"] == "sums"]) == round_number
    # Of what was refused nothing is left.
    assert len(agreed.blobs()) == 3


def test_an_upload_that_was_begun_before_the_other_one_ended_is_refused_at_its_end(agreed):
    first, late = sums(), sums(number=2)
    upload = agreed.start("north", "sums", late).json()["upload"]
    taken(agreed.send("north", "sums", first))
    refused(agreed.part("north", upload, 0, late), "ALREADY_SHARED", 409)
    upload = agreed.start("north", "sums", first)
    assert upload.json() == {"file": digest(first)}


@pytest.mark.slow
def test_what_was_taken_back_makes_room_and_a_request_that_was_asks_for_nothing(agreed):
    taken(agreed.send("north", "sums", sums()))
    taken(agreed.send("analyst", "round", request()))
    withdraw(agreed, "analyst", request())
    refused(agreed.start("north", "sums", sums(number=2)), "ALREADY_SHARED", 409)
    withdraw(agreed, "north", sums())
    taken(agreed.send("north", "sums", sums(number=2)))
    # Sent again it asks anew, and an answer in place of another needs no further request.
    taken(agreed.send("analyst", "round", request()))
    for number in (3, 4):
        taken(agreed.send("north", "sums", sums(number=number)))
        refused(agreed.start("north", "sums", sums(number=9)), "ALREADY_SHARED", 409)
        withdraw(agreed, "north", sums(number=number))


@pytest.mark.slow
def test_each_project_file_has_rounds_of_its_own(agreed):
    taken(agreed.send("analyst", "round", request()))
    taken(agreed.send("north", "sums", sums()))
    second = make_project(revision=2)
    agreed.put_agreement(second)
    assert standing(agreed) == ([], ["north", "south"], [], 0)
    # In a new run the party's last sums, and the last request, are those of the new project file.
    taken(agreed.send("north", "sums", sums(number=2, project=second)))
    refused(agreed.start("north", "sums", sums(number=3, project=second)), "ALREADY_SHARED", 409)
    refused(agreed.send("analyst", "round", request(3)), "PROJECT_HASH_MISMATCH", 422)
    taken(agreed.send("analyst", "round", request(project=second)))
    taken(agreed.send("north", "sums", sums(number=3, project=second)))


def test_a_request_comes_from_the_analyst_and_says_its_number(agreed):
    for who in ("north", "owner"):
        refused(agreed.start(who, "round", request()), "NOT_ALLOWED", 403)
    refused(agreed.start("analyst", "round", request(), "north"), "REQUEST_MALFORMED", 400)
    unnumbered = pack("datacollab.round", {"project_digest": PROJECT.digest}, {}, key=KEYS["analyst"])
    refused(agreed.send("analyst", "round", unnumbered), "WRONG_KIND", 422)


@pytest.mark.slow
def test_the_overview_says_who_has_answered_the_last_request(agreed):
    both = ["north", "south"]
    assert standing(agreed) == ([], both, [], 0)
    taken(agreed.send("north", "sums", sums()))
    assert standing(agreed) == (["north"], ["south"], [], 0)
    taken(agreed.send("south", "sums", sums("south")))
    assert standing(agreed) == (both, [], [], 0)
    taken(agreed.send("analyst", "round", request()))
    assert standing(agreed) == ([], both, both, 1)
    agreed.ask("north", "GET", f"/v1/projects/{{p}}/files/{digest(request())}")
    assert standing(agreed) == ([], both, ["south"], 1)
    taken(agreed.send("north", "sums", sums(number=2)))
    assert standing(agreed) == (["north"], ["south"], ["south"], 1)
    # South got the request by another way.
    taken(agreed.send("south", "sums", sums("south", 2)))
    assert standing(agreed) == (both, [], [], 1)
    taken(agreed.send("analyst", "round", request(3)))
    assert standing(agreed) == ([], both, both, 2)
    withdraw(agreed, "analyst", request(3))
    assert standing(agreed) == (both, [], [], 1)


@pytest.mark.slow
@pytest.mark.parametrize("is_fetched", [False, True])
def test_a_page_names_the_commands_that_answer(agreed, is_fetched):
    for name in ("north", "south"):
        taken(agreed.send(name, "sums", sums(name)))
    taken(agreed.send("analyst", "round", request()))
    taken(agreed.send("south", "sums", sums("south", 2)))
    if is_fetched:
        agreed.ask("north", "GET", f"/v1/projects/{{p}}/files/{digest(request())}")
    pages = {who: agreed.browser(who).get(f"/projects/{agreed.project}").text for who in ("north", "south", "analyst")}
    assert "datacollab party share TABLE --round inbox/round.dcround" in pages["north"]
    assert "last request for a round count" in pages["north"]
    assert "What the analyst made for you" not in pages["north"]
    assert "What waits for you" not in pages["south"]
    assert "1 of 2" in pages["analyst"]
    assert "Enough parties" not in pages["analyst"]


READERS = ("owner", "north", "south", "analyst", "auditor")


def shown(hub, project):
    """Answers of both routes to everybody."""
    answers = {}
    for who in READERS:
        with hub.store.reading() as connection:
            roles = frozenset(map(Role, roles_of(connection, project, FINGERPRINTS[who])))
        person = Person(KEYS[who].public, roles)
        answers[who] = project_status(hub, person, project), list_files(hub, person, project)
    return answers


@pytest.fixture
def same(world):
    """A check that what is kept is what a hub shows that keeps nothing."""
    before = []

    def check(*, changed=True):
        kept = shown(world.hub, world.project)
        assert kept == shown(replace(world.hub, views=Views()), world.project)
        assert not before or (kept != before[-1]) == changed
        before.append(kept)

    return check


@pytest.mark.slow
def test_what_is_kept_is_what_the_database_holds_after_each_step(world, same):
    world.open_project()
    same()
    world.admit("auditor")
    same()
    world.put_agreement()
    same()
    share, model = bundle("share", "north", party="north"), bundle("model", "analyst", party="north")
    world.start("north", "share", share)
    same(changed=False)
    assert world.send("north", "share", share).status_code == 201
    same()
    assert world.send("analyst", "model", model, "north").status_code == 201
    same()
    assert world.ask("north", "GET", f"/v1/projects/{{p}}/files/{digest(model)}").status_code == 200
    same()
    assert world.ask("north", "DELETE", f"/v1/projects/{{p}}/files/{digest(share)}").status_code == 200
    same()
    parties = {name: KEYS[name].public for name in ("south", "other")}
    world.put_agreement(make_project(revision=2, parties=parties))
    same()
    assert world.decide("auditor", approve=False).status_code == 200
    same()


def test_a_member_who_comes_back_is_in_the_log_and_is_shown(world, same):
    world.open_project()
    world.admit("auditor")
    parties = {name: KEYS[name].public for name in ("north", "auditor")}
    world.put_agreement(make_project(parties=parties))
    world.put_agreement(make_project(revision=2))
    same()
    n_entries = len(world.log())
    assert world.decide("auditor").status_code == 200
    assert [entry["action"] for entry in world.log()[n_entries:]] == ["approved"]
    same()
    assert world.decide("auditor").status_code == 200
    assert len(world.log()) == n_entries + 1


def test_a_poll_asks_the_database_twice(agreed):
    statements = []
    for engine in {agreed.store.engine, agreed.store.readers}:
        event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    for path in ("/v1/projects/{p}", "/v1/projects/{p}/files"):
        assert agreed.ask("north", "GET", path).status_code == 200
        del statements[:]
        assert agreed.ask("south", "GET", path).status_code == 200
        assert len([each for each in statements if each.startswith("SELECT")]) == 2


def test_what_is_kept_is_bounded(agreed):
    first, views = agreed.project, Views(most_rows=6)
    agreed.open_project("lung")
    with agreed.store.reading() as connection:
        kept = views.of(connection, first)
        assert kept.n_rows == 5  # the project, the owner, the analyst and two parties
        assert views.of(connection, first) is kept
        other = views.of(connection, agreed.project)
        assert views.of(connection, agreed.project) is other
        again = views.of(connection, first)
    assert again == kept
    assert again is not kept


def test_a_server_that_was_begun_again_is_found_again(agreed, monkeypatch):
    if agreed.store.engine.dialect.name != "postgresql":
        pytest.skip("a file needs no connection")
    monkeypatch.setattr("datacollab_hub.store._database._IDLE", 0.0)
    assert agreed.ask("north", "GET", "/v1/projects/{p}").status_code == 200
    with agreed.store.writing() as connection:
        mine = connection.execute(text("SELECT pg_backend_pid()")).scalar()
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> :mine AND usename = 'hub'"
        assert connection.execute(text(ended), {"mine": mine}).all()
    assert agreed.ask("north", "GET", "/v1/projects/{p}").status_code == 200
