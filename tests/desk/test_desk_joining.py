"""Joining a project on the desk: what the file says is shown first, and fingerprints are compared."""

import re
import threading
import time
from dataclasses import replace

import pytest
from desk_world import finished, opened, plain, send

from datacollab.steps.party import PartyFolder
from party_world import new_world


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
