"""Who is signed in to the hub's pages, by what, and for how long."""

import json
import logging
import re

import pytest
from starlette.testclient import TestClient

from datacollab_hub.rules import Settings
from datacollab_hub.service import Hub
from datacollab_hub.store import backup
from datacollab_hub.web import JsonLines, make_app
from hub_world import FINGERPRINTS, KEYS, URL, World, agreed_world, make_project

NAME = "__Host-datacollab-hub"


@pytest.fixture
def world(tmp_path):
    with agreed_world(tmp_path / "hub") as world:
        yield world


def refused(answer, code, status):
    """A page that says why."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert f"<code>{code}</code>" in answer.text
    return answer.text


def token(browser):
    return re.search(r'name="token" value="([0-9a-f]{64})"', browser.get("/").text)[1]


def test_looking_at_the_link_does_not_use_it_up(world):
    link, browser = world.link("north"), world.browser()
    for _ in range(2):
        page = browser.get(link)
        assert page.status_code == 200
        assert FINGERPRINTS["north"] in page.text
        assert "set-cookie" not in page.headers
        assert link.rpartition("/")[2] not in page.text
    assert browser.post(link).status_code == 303
    assert browser.get("/").status_code == 200


def test_a_link_is_of_one_browser_and_of_two_minutes(world):
    link = world.link("north")
    assert world.browser().post(link).status_code == 303
    for answer in (world.browser().post(link), world.browser().get(link)):
        refused(answer, "INVITATION_INVALID", 403)
    late = world.link("north")
    world.now += 121
    refused(world.browser().post(late), "INVITATION_INVALID", 403)
    refused(world.browser().post(f"{URL}/session/{'x' * 43}"), "INVITATION_INVALID", 403)


def test_the_cookie_is_for_this_host_alone_and_for_no_script(world):
    said = world.browser().post(world.link("north")).headers["set-cookie"]
    name, _, flags = said.partition("=")
    assert name == NAME
    flags = {flag.strip().lower() for flag in flags.split(";")[1:]}
    assert flags == {"httponly", "secure", "path=/", "samesite=strict", f"max-age={4 * 3600}"}


def test_without_tls_the_cookie_has_another_name(world):
    plain = Hub(world.store, Settings(url="http://127.0.0.1:8000"), lambda: world.now)
    browser = TestClient(make_app(plain), base_url="http://127.0.0.1:8000", follow_redirects=False)
    said = browser.post(f"/session/{world.link('north').rpartition('/')[2]}").headers["set-cookie"].lower()
    assert said.startswith("datacollab-hub-8000=")
    assert "httponly" in said
    assert "samesite=strict" in said
    assert "secure" not in said
    assert browser.get("/").status_code == 200


def test_a_session_is_drawn_anew_at_each_sign_in(world):
    """Nobody's browser can be given a session beforehand, and the one that it had is over."""
    browser, fixed = world.browser(), "a" * 43
    browser.cookies.set(NAME, fixed, domain="hub.example")
    refused(browser.get("/"), "NOT_SIGNED_IN", 401)
    cookies = [browser.post(world.link("north")).cookies[NAME] for _ in range(2)]
    assert len({fixed, *cookies}) == 3
    for old in (fixed, cookies[0]):
        other = world.browser()
        other.cookies.set(NAME, old, domain="hub.example")
        refused(other.get("/"), "NOT_SIGNED_IN", 401)


def test_only_hashes_are_kept(world):
    link = world.link("north")
    browser = world.browser()
    cookie = browser.post(link).cookies[NAME]
    form = token(browser)
    world.store.close()
    for path in world.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not any(secret.encode() in data for secret in (cookie, form, link.rpartition("/")[2]))


def test_after_four_hours_a_browser_signs_in_again(world):
    browser = world.browser("north")
    world.now += 4 * 3600 - 10
    assert browser.get("/").status_code == 200
    world.now += 20
    refused(browser.get("/"), "NOT_SIGNED_IN", 401)


def test_signing_out_takes_the_forms_own_token(world):
    browser, other = world.browser("north"), world.browser("south")
    for data in (
        *({}, {"token": ""}, {"token": token(other)}, {"token": "x" * 70_000}),
        {"token": "\udc80".encode("utf-8", "surrogatepass")},
    ):
        assert browser.post("/sign-out", data=data).status_code in (403, 413)
    assert browser.get("/").status_code == 200
    cookie = browser.cookies[NAME]
    left = browser.post("/sign-out", data={"token": token(browser)})
    assert left.status_code == 200
    assert "signed out" in left.text
    assert "max-age=0" in left.headers["set-cookie"].lower()
    browser.cookies.set(NAME, cookie, domain="hub.example")
    refused(browser.get("/"), "NOT_SIGNED_IN", 401)
    assert other.get("/").status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://elsewhere.example", "null", "https://hub.example:8443", "http://hub.example", "x:y:z"]
)
@pytest.mark.slow
def test_forms_of_other_sites_are_refused(world, origin):
    link, browser = world.link("north"), world.browser("south")
    refused(browser.post(link, headers={"Origin": origin}), "NOT_ALLOWED", 403)
    data = {"token": token(browser)}
    refused(browser.post("/sign-out", data=data, headers={"Origin": origin}), "NOT_ALLOWED", 403)
    assert browser.post(link, headers={"Origin": URL}).status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "\xe9", "a" * 5000, "a; b=c", '"', "' OR 1=1 --"])
def test_no_cookie_of_ones_own_signs_in(world, cookie):
    answer = world.browser().get("/", headers={"Cookie": f"{NAME}={cookie}".encode("latin-1")})
    refused(answer, "NOT_SIGNED_IN", 401)


def test_a_cookie_asks_for_no_api_and_a_signature_for_no_page(world):
    browser = world.browser("north")
    assert browser.get(f"/v1/projects/{world.project}").status_code == 401
    assert browser.request("DELETE", f"/v1/projects/{world.project}/files/{'0' * 64}").status_code == 401
    assert world.ask("north", "GET", "/projects/{p}").status_code == 401


def test_whoever_is_left_out_of_the_project_sees_nothing_from_then_on(world):
    browser = world.browser("south")
    assert browser.get(f"/projects/{world.project}").status_code == 200
    parties = {"north": KEYS["north"].public, "third": KEYS["other"].public}
    world.put_agreement(make_project(parties=parties, revision=2))
    refused(browser.get(f"/projects/{world.project}"), "NOT_FOUND", 404)
    assert "heart" not in browser.get("/").text


def test_a_browser_that_asks_too_often_is_told_to_wait(tmp_path):
    with World(tmp_path / "hub", requests_per_second=1.0) as world:
        browser = world.browser("owner")
        answers = [browser.get("/") for _ in range(8)]
        refused(answers[-1], "TOO_MANY_REQUESTS", 429)


@pytest.mark.slow
def test_pages_have_the_policy_of_pages_and_answers_to_programs_theirs(world):
    browser = world.browser("north")
    for path in ("/", f"/projects/{world.project}", "/static/pages.css", "/session/x", "/projects/x"):
        headers = browser.get(path).headers
        policy = headers.get_list("content-security-policy")
        assert len(policy) == 1
        assert policy[0] == (
            "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
            "base-uri 'none'"
        )
        assert headers["referrer-policy"] == "strict-origin"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
    policy = world.ask("north", "GET", "/v1/projects").headers.get_list("content-security-policy")
    assert policy == ["default-src 'none'; frame-ancestors 'none'"]


def test_the_hubs_log_has_routes_and_no_secret(world, caplog):
    with caplog.at_level(logging.INFO, logger="datacollab.hub"):
        link, browser = world.link("north"), world.browser()
        browser.get(link)
        cookie = browser.post(link).cookies[NAME]
        form = token(browser)
        browser.post("/sign-out", data={"token": form})
        browser.post(link)
    lines = [JsonLines().format(record) for record in caplog.records]
    for secret in (link.rpartition("/")[2], cookie, form):
        assert not any(secret in line for line in lines)
    told = [(each["method"], each["route"], each["status"]) for each in map(json.loads, lines)]
    assert told[1:3] == [("GET", "/session/{secret}", 200), ("POST", "/session/{secret}", 303)]
    assert json.loads(lines[-1])["code"] == "INVITATION_INVALID"
    assert json.loads(lines[3])["who"] == FINGERPRINTS["north"]


def test_browsers_that_are_signed_in_are_in_no_backup(world, tmp_path):
    world.browser("north")
    backup(world.store, tmp_path / "copy")
    rows = (tmp_path / "copy" / "database.jsonl").read_text()
    assert '"browsers"' not in rows
    assert '"agreements"' in rows
