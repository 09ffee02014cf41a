"""A folder's way into a project at the desk, and the owner's pages."""

import re
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from desk_world import finished, opened, plain, send, worked
from desk_world import opened_by_anybody as at

from datacollab.agreement import load_project
from datacollab.errors import ExchangeError
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from party_world import made_up_table, new_world


@pytest.fixture
def world(tmp_path):
    return new_world(tmp_path)


def look(place, world, anchor="anchor.dcanchor", **changes):
    form = {"path": str(world.root / "project.toml")}
    form |= {"anchor_path": str(world.root / anchor)} if anchor else {}
    return send(place, "/join", form | changes)


def accept(place, **changes):
    found = re.search(r'name="offer" value="(\w+)"', place.client.get("/join").text)
    form = {"offer": found[1] if found else "", "compared": "yes"} | changes
    return send(place, "/join/accept", form)


def test_a_folder_with_keys_alone_leads_to_joining(world, place):
    assert place.client.get("/").url.path == "/join"
    page = place.client.get("/join")
    assert world.keys["a"].public.fingerprint in plain(page)
    steps = re.findall(r'<li class="(?:open|done)"><a href="(.*?)"', page.text)
    assert steps == ["/keys", "/join", "/project", "/anchor"]
    assert "FOLDER_MISSING" in place.client.get("/predict").text


def test_what_the_file_says_is_shown_and_nothing_is_joined_before_a_yes(world, place):
    shown = plain(look(place, world))
    keys = [world.keys[name].public for name in ("a", "b", "analyst")]
    for each in (world.project, *keys):
        assert each.fingerprint in shown
    assert "your key is party a" in shown
    assert not (world.root / "a" / "project.toml").exists()
    assert "compared" in plain(accept(place, compared=""))
    assert not (world.root / "a" / "project.toml").exists()
    accept(place)
    assert "Party a of project wards" in finished(place).text
    by_command = PartyFolder.join(world.root / "b", world.root / "project.toml", world.root / "anchor.dcanchor")
    folder = PartyFolder(world.root / "a")
    assert folder.project.digest == by_command.project.digest
    assert (folder.anchor.rows == by_command.anchor.rows).all()
    assert not list((world.root / "a" / "desk").iterdir())
    assert place.client.get("/table").status_code == 200


def test_the_files_may_lie_in_the_inbox_or_be_uploaded(world, place):
    inbox = world.root / "a" / "inbox"
    inbox.mkdir()
    for name in ("project.toml", "anchor.dcanchor"):
        (world.root / name).replace(inbox / name)
    (inbox / "link.toml").symlink_to("/etc/hostname")
    assert "link.toml" not in place.client.get("/join").text
    assert send(place, "/join", {"inbox": "../keys.json"}).status_code == 422
    send(place, "/join", {"inbox": "project.toml", "anchor_inbox": "anchor.dcanchor"})
    accept(place)
    finished(place)
    assert PartyFolder(world.root / "a").anchor.rows.shape == (60, 5)
    other = opened(world.root / "b")
    files = {"upload": ("p.toml", (inbox / "project.toml").read_bytes())}
    files |= {"anchor_upload": ("x.dcanchor", (inbox / "anchor.dcanchor").read_bytes())}
    send(other, "/join", files=files)
    accept(other)
    finished(other)
    assert PartyFolder(world.root / "b").anchor.rows.shape == (60, 5)


def test_what_is_joined_is_what_was_looked_at(world, place):
    look(place, world, anchor="")
    world.write_project(replace(world.project, purpose="Something else."))
    accept(place)
    finished(place)
    assert PartyFolder(world.root / "a").project.purpose == "Tests."


@pytest.mark.slow
def test_a_second_click_disturbs_nothing(world, place, monkeypatch):
    """Neither while the first is at work, nor while something else is."""
    gate, joining = threading.Event(), place.desk.join

    def slow(*files, **options):
        gate.wait(60)
        joining(*files, **options)

    monkeypatch.setattr(place.desk, "join", slow)
    busy = threading.Event()
    place.desk.jobs.start("Something else", "/", lambda job: busy.wait(60))
    look(place, world)
    assert "BUSY" in accept(place).text
    assert place.desk.offer is not None
    busy.set()
    assert place.desk.jobs.last.wait(60)
    while place.desk.jobs.running:
        time.sleep(0.01)
    found = re.search(r'name="offer" value="(\w+)"', place.client.get("/join").text)[1]
    accept(place)
    assert accept(place, offer=found).status_code == 422
    look(place, world)
    gate.set()
    assert "Party a of project wards" in finished(place).text
    send(place, "/join/decline")


def test_a_page_that_is_out_of_date_joins_nothing(world, place):
    old = re.search(r'name="offer" value="(\w+)"', look(place, world).text)[1]
    look(place, world, anchor="")
    for stale in (old, ""):
        assert "NOT_APPROVED" in accept(place, offer=stale).text
    send(place, "/join/decline")
    assert "NOT_APPROVED" in accept(place).text
    assert not (world.root / "a" / "project.toml").exists()
    assert not list((world.root / "a" / "desk").iterdir())


def test_somebody_who_is_no_member_is_refused(world):
    answer = look(opened(world.root / "stranger"), world)
    assert "NOT_A_MEMBER" in answer.text
    assert "none of the parties" in plain(answer)


def test_an_anchor_that_comes_later(world, place):
    look(place, world, anchor="")
    assert "join again with it" in plain(place.client.get("/join"))
    accept(place)
    assert "ANCHOR_MISSING" in finished(place).text
    page = plain(look(place, world))
    assert page.count("the same") == 3
    accept(place)
    finished(place)
    assert PartyFolder(world.root / "a").anchor.rows.shape == (60, 5)


def test_another_owner_or_analyst_is_seen_and_refused(world, place):
    look(place, world)
    accept(place)
    finished(place)
    world.write_project(replace(world.project, analyst=world.keys["stranger"].public))
    page = plain(look(place, world))
    assert f"other : {world.keys['analyst'].public.fingerprint}" in page
    accept(place)
    assert "ALREADY_THERE" in finished(place).text
    assert PartyFolder(world.root / "a").project.analyst == world.keys["analyst"].public


NAMES = ("north", "south", "east", "analyst")


def join(place, project, anchor=None):
    files = {"upload": ("project.toml", project)} | ({"anchor_upload": ("a.dcanchor", anchor)} if anchor else {})
    shown = plain(send(place, "/join", files=files))
    offer = re.search(r'name="offer" value="(\w+)"', place.client.get("/join").text)[1]
    worked(place, "/join/accept", {"offer": offer, "compared": "yes"})
    return shown


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Four folders whose keys the desk made; north has drafted the project."""
    root = tmp_path_factory.mktemp("empty")
    made = {}
    for name in NAMES:
        (root / name).mkdir()
        made[name] = at(root / name)
        assert made[name].client.get("/").url.path == "/keys"
        assert "First this folder gets keys" in plain(made[name].client.get("/keys"))
        assert 'href="/join"' not in made[name].client.get("/keys").text
        assert "Fingerprint" in plain(send(made[name], "/keys"))
    owner = made["north"]
    for name in NAMES:
        key = made[name].client.get("/keys/public.key").content
        role = {"role": "analyst"} if name == "analyst" else {"role": "party", "member": name}
        send(owner, "/project/member", role, files={} if name == "north" else {"member_upload": ("public.key", key)})
    public = made_up_table(80, seed=7).drop(columns=["id"], errors="ignore")
    public.to_csv(root / "public.csv", index=False)
    shown = owner.client.get("/project").text
    assert 'accept=".csv,' in shown
    assert "--" not in plain(owner.client.get("/project")).partition("The same as a command")[0]
    draft = {"name": "wards", "target": "ill", "purpose": "Tests.", "missing": "pulse=-9\nnone"}
    with (root / "public.csv").open("rb") as file:
        assert "TABLE" not in send(owner, "/project", draft, files={"upload": ("public.csv", file)}).text
    shown = plain(finished(owner))
    assert "3 parties" in shown
    assert "Signed as it was drafted" in shown
    return SimpleNamespace(root=root, **made)


def test_an_empty_folder_says_that_keys_come_first(tmp_path):
    with pytest.raises(ExchangeError, match="keys new") as refused:
        PartyFolder(tmp_path)
    assert refused.value.code == "KEY_MISSING"


@pytest.mark.slow
def test_an_edit_is_signed_and_a_wrong_one_stays_to_be_mended(places):
    owner, file = places.north, places.root / "north" / "owner" / "project.toml"
    written = file.read_text()
    assert "CHECK" in plain(owner.client.get("/project"))
    number = written.splitlines().index("# CHECK: these are names of keys. Which institution stands behind each?") + 1
    assert f"{number} [sharing.entities] these are names of keys" in plain(owner.client.get("/project"))
    wrong = send(owner, "/project/sign", {"text": written.replace("[task]", "[tusk]")})
    assert wrong.status_code == 422
    assert "Not signed." in plain(owner.client.get("/project"))
    shown = plain(send(owner, "/project/sign", {"text": written.replace("Tests.", "Other tests.")}))
    assert "Signed, revision 2." in shown
    assert "Next: make the anchor" in shown
    assert "joins again" not in shown
    assert load_project(file).purpose == "Other tests."
    assert "name" in plain(send(owner, "/project/member", {"role": "party", "member": "../x"})).lower()
    again = owner.client.get("/project").text
    assert 'value="../x"' in again
    assert "ValueError" not in again
    assert len(list((places.root / "north" / "owner").glob("*.key"))) == 4


@pytest.mark.slow
def test_all_join_by_pages_and_the_analyst_gets_the_analysts_pages(places):
    owner = places.north
    filled_in = re.search(r'name="filled_in" value="(.*?)"', owner.client.get("/anchor").text)[1]
    with (places.root / "public.csv").open("rb") as file:
        send(owner, "/anchor", {"path": filled_in, "filled_in": filled_in}, files={"upload": ("public.csv", file)})
    assert "The anchor is sealed." in plain(finished(owner))
    project = owner.client.get("/project/project.toml").content
    anchor = owner.client.get("/anchor/anchor.dcanchor").content
    assert "your key is party south" in join(places.south, project, anchor)
    assert PartyFolder(places.root / "south").anchor is not None
    assert "/project" not in re.findall(r'href="(.*?)"', places.south.client.get("/").text)
    assert "Draft" not in plain(places.analyst.client.get("/"))
    given = {"upload": ("project.toml", project), "anchor_upload": ("a.dcanchor", anchor)}
    assert "must not have the anchor" in plain(send(places.analyst, "/join", files=given))
    shown = join(places.analyst, project)
    assert "the analyst’s." in shown
    assert "the analyst must not have it" in shown
    assert "datacollab analyst init project.toml" in shown
    assert "dcanchor" not in shown
    assert AnalystFolder(places.root / "analyst").project.name == "wards"
    assert "Analyst of project wards" in places.analyst.client.get("/").text


def test_a_refused_draft_comes_back_as_it_was_written_and_speaks_of_fields(places):
    """Browsers end lines with two marks; a name that comes back spoilt would be signed."""
    owner = places.north
    classes = "ja\r\nnein\r\nvielleicht"
    draft = {"name": "wards", "target": "elsewhere", "purpose": "Tests.", "class": classes, "without": "no\r\nsuch"}
    with (places.root / "public.csv").open("rb") as file:
        send(owner, "/project", draft, files={"upload": ("public.csv", file)})
    refused = finished(owner)
    assert "no column no, such" in plain(refused)
    back = owner.client.get("/project").text
    assert ">ja\nnein\nvielleicht</textarea>" in back
    assert "\ufffd" not in back
    again = re.search(r'name="class"[^>]*>(.*?)</textarea>', back, re.DOTALL)[1]
    assert again.split("\n") == classes.split("\r\n")


def test_what_a_draft_asks_and_says_names_the_fields_of_the_page(places):
    owner, table = places.north, made_up_table(80, seed=7)
    draft = {"name": "wards", "target": "ill", "purpose": "Tests."}
    for changes, label in (
        ({"visits": [row // 2 for row in range(500, 580)]}, "Columns to leave out"),
        ({"ill": ["ja", "nein"] * 40}, "The sought one of two classes"),
        ({"ill": [0, 1] * 40}, "Kind of task"),
        ({"ill": ["a", "b", "b", "b"] * 20}, "The sought one of two classes"),
    ):
        table.drop(columns="id").assign(**changes).to_csv(places.root / "odd.csv", index=False)
        with (places.root / "odd.csv").open("rb") as file:
            send(owner, "/project", draft, files={"upload": ("odd.csv", file)})
        shown = plain(finished(owner)).partition("The same as a command")[0].partition("CHECK")[0]
        assert f"“{label}”" in shown
        assert "--" not in shown


def test_a_draft_is_offered_once_its_members_are_there(tmp_path):
    place = at(tmp_path)
    send(place, "/keys")
    page = place.client.get("/project")
    assert "public keys of the analyst and of two parties" in plain(page)
    assert 'action="/project" ' not in page.text
    assert "analyst and of two parties" in plain(send(place, "/project", {"name": "x"}))
