"""What polls are shown is kept until a project's log grows: it is what the database holds, after whatever was done."""

from dataclasses import replace

import pytest
from sqlalchemy import event, text

from datacollab.bundle import digest
from datacollab_hub.rules import Person, Role
from datacollab_hub.service import Views, list_files, project_status
from datacollab_hub.store import roles_of
from hub_world import FINGERPRINTS, KEYS, bundle, make_project

WHO = ("owner", "north", "south", "analyst", "auditor")


def shown(hub, project):
    """Answers of both routes to everybody."""
    answers = {}
    for who in WHO:
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
