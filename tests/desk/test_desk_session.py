"""Who gets in, and by what a form is known to be the desk's own."""

import re
import stat

import pytest
from desk_world import HOST, browser, send
from starlette.testclient import TestClient

from datacollab.desk.party import party_app
from datacollab.desk.web import Session, door_page

PAGES = ("/", "/table", "/outbox", "/model", "/predict", "/work", "/static/desk.css", "/nowhere")


@pytest.fixture
def stranger(place):
    return TestClient(place.app, base_url=place.session.origin)


@pytest.mark.parametrize("path", [*PAGES[:6], "/release", "/outbox/a.dcshare", "/predict/predictions.csv"])
def test_nobody_gets_in_without_the_cookie(stranger, path):
    assert stranger.get(path).status_code == 401
    assert stranger.post(path, data={}).status_code == 401
    stranger.cookies.set("datacollab-desk-8123", "guessed")
    assert stranger.get(path).status_code == 401


@pytest.mark.parametrize(
    "path", ["/enter/x/y", "/enter/", "/enter/x%2Fy", "/enter/%2e%2e/table", "/enter//", "/enter/x/"]
)
def test_below_the_entrance_nothing_is_told(stranger, path):
    answer = stranger.get(path)
    assert answer.status_code in (401, 403, 404, 405)
    assert "wards" not in answer.text
    assert "Party" not in answer.text


def test_the_link_lets_one_browser_in_once(place):
    assert place.session.link is None
    again = TestClient(place.app, base_url=place.session.origin)
    assert again.get("/enter/anything").status_code == 403
    assert again.get("/").status_code == 401
    # The browser that is in may open its old link.
    assert place.client.get("/enter/anything").url.path == "/"


def test_a_look_whether_the_link_is_there_does_not_use_it_up(place):
    session = Session(HOST)
    app = party_app(place.desk, session)
    client = TestClient(app, base_url=session.origin)
    assert client.head(session.link, follow_redirects=False).status_code == 403
    assert client.get("/enter/wrong").status_code == 403
    entered = client.get(session.link, follow_redirects=False)
    # A redirection would come without the cookie, where the browser comes from elsewhere.
    assert entered.status_code == 200
    assert 'content="0; url=/"' in entered.text
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie
    assert session.cookie not in entered.text


def test_the_page_on_the_disk_lets_one_browser_in_and_is_gone_then(place, tmp_path):
    session = Session(HOST)
    client = TestClient(party_app(place.desk, session), base_url=session.origin)
    # A page on the disk is of no origin.
    sent = {"headers": {"Origin": "null"}, "follow_redirects": False}
    with door_page(session, tmp_path / "a") as page:
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        secret = re.search(r'name="secret" value="([^"]+)"', page.read_text())[1]
        assert secret not in str(page)
        assert f'action="{session.origin}/enter"' in page.read_text()
        assert client.post("/enter", data={"secret": "guessed"}, **sent).status_code == 403
        assert client.post("/enter", data={}, **sent).status_code == 403
        assert page.exists()
        assert client.post("/enter", data={"secret": secret}, **sent).status_code == 200
        assert not page.exists()
        assert client.get("/").status_code == 200
        assert client.post("/enter", data={"secret": secret}, **sent).status_code == 403
    with door_page(Session(HOST), tmp_path / "a") as page:
        pass
    assert not page.exists()


def test_whoever_is_not_let_in_can_send_little(place, stranger):
    long = b"secret=" + b"a" * 10_000
    assert stranger.post("/enter", content=long).status_code == 413
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert stranger.post("/enter", content=(long[:1000] for _ in range(10)), headers=kind).status_code == 400
    assert stranger.post("/enter", files={"secret": ("x", b"a")}).status_code == 400


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:9999", "localhost:8123", "127.0.0.1:8123.evil"]
)
def test_another_name_for_this_machine_is_refused(place, host):
    """A name elsewhere that is made to point here must not reach the desk, cookie or not."""
    assert place.client.get("/", headers={"Host": host}).status_code == 421
    assert send(place, "/table", headers={"Host": host}).status_code == 421


def test_a_form_needs_the_token_of_this_session_and_the_desks_origin(place):
    for wrong in ({}, {"token": ""}, {"token": "x"}, {"token": place.session.token[:-1]}):
        answer = place.client.post("/table", data={"path": "/etc/hostname"} | wrong)
        assert answer.status_code == 403
    assert place.desk.table is None
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        assert send(place, "/table", {"path": "x"}, headers={"Origin": origin}).status_code == 403
    own = send(place, "/table", {"path": "x"}, headers={"Origin": place.session.origin})
    assert own.status_code == 422


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(place, method):
    assert place.client.request(method, "/table").status_code == 405


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_forbids_what_is_not_the_desks(place, path):
    headers = place.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    refused = TestClient(place.app, base_url="http://evil.example").get(path)
    assert refused.headers["content-security-policy"] == policy


@pytest.mark.parametrize("path", PAGES[:6])
def test_pages_hold_no_script_no_style_and_nothing_from_elsewhere(place, path):
    page = place.client.get(path).text
    assert not re.search(r"<script|<style|\son\w+=|\sstyle=|javascript:", page)
    assert not re.findall(r'(?:src|href|action)="(?!/|#main)[^"]*"', page)
    for form in re.findall(r'<form method="post".*?</form>', page, re.DOTALL):
        assert f'name="token" value="{place.session.token}"' in form


def test_every_entry_of_a_form_has_a_label(place):
    (place.desk.path / "model.dcmodel").touch()  # Or there is nothing to predict with, and no form.
    for path in ("/table", "/join", "/evaluate", "/predict"):
        page = place.client.get(path).text
        entries = re.findall(r'<(?:input|select)[^>]*id="(\w+)"', page)
        assert entries
        for entry in entries:
            assert f'for="{entry}"' in page, (path, entry)


def test_too_long_a_form_is_refused_before_it_is_read_and_a_longer_body_is_cut_off(place):
    answer = send(place, "/table", headers={"Content-Length": str(10**13)})
    assert answer.status_code == 413
    place.app._most = 1000

    def endless():
        for _ in range(100):
            yield b"a" * 100

    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = place.client.post("/table", content=endless(), headers=kind)
    assert answer.status_code == 400


def test_two_desks_do_not_take_each_others_cookies(place):
    other = Session("127.0.0.1:8124")
    client = browser(party_app(place.desk, other), other)
    client.cookies.set(place.session.cookie_name, place.session.cookie)
    assert client.get("/").status_code == 200
    assert other.cookie_name != place.session.cookie_name
    wrong = TestClient(place.app, base_url=place.session.origin)
    wrong.cookies.set(place.session.cookie_name, other.cookie)
    assert wrong.get("/").status_code == 401
