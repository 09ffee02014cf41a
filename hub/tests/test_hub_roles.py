"""Every route, asked by everybody."""

import pytest

from datacollab.agreement import project_text
from datacollab.bundle import digest
from datacollab_hub.rules import ROUTES, Role
from hub_world import FINGERPRINTS, KEYS, PROJECT, World, bundle, refused

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
