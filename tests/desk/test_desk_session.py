"""Who gets in, and by what a form is the desk's own; uploads, work with questions, and the look of all pages."""

import io
import re
import stat
import threading
from html import unescape
from pathlib import Path

import pytest
from desk_world import HOST, browser, send
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from datacollab.desk.party import party_app
from datacollab.desk.web import Chosen, DeskFiles, Jobs, Session, door_page
from datacollab.errors import ExchangeError
from datacollab.look import HEADERS, STYLE, templates_in
from party_world import refused

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


@pytest.mark.slow
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


def test_one_piece_of_work_at_a_time():
    jobs, free = Jobs(), threading.Event()
    first = jobs.start("One", "/one", lambda job: free.wait(10))
    with refused("BUSY"):
        jobs.start("Two", "/two", lambda job: None)
    free.set()
    assert first.wait(10)
    jobs.start("Two", "/two", lambda job: 2)
    assert jobs.last.wait(10)
    assert (jobs.last.result, jobs.running) == (2, None)


def test_work_asks_and_goes_on_with_the_answer():
    jobs = Jobs()
    job = jobs.start("Asking", "/", lambda job: job.ask("May it?") + "!")
    assert job.wait(10)
    asked = job.question
    assert (asked.about, job.is_done) == ("May it?", False)
    with refused("NOT_APPROVED"):
        job.answer("no", "another")
    job.answer("yes", asked.id)
    assert job._done.wait(10)
    assert job.result == "yes!"
    with refused("NOT_APPROVED"):
        job.answer("no", asked.id)


def test_of_many_answers_one_counts():
    jobs, said = Jobs(), []
    job = jobs.start("Asking", "/", lambda job: job.ask("May it?"))
    assert job.wait(10)
    asked, together = job.question.id, threading.Barrier(8)

    def answer(number):
        together.wait(10)
        try:
            job.answer(number, asked)
        except ExchangeError:
            return
        said.append(number)

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert job._done.wait(10)
    assert said == [job.result]


def test_the_end_comes_once_whatever_becomes_of_the_work_and_its_failure_is_told():
    def fails(job):
        raise ValueError("wrong")

    jobs, ended, free = Jobs(), [], threading.Event()
    assert jobs.start("One", "/one", fails, at_end=lambda: ended.append("one")).wait(10)
    job = jobs.start("One", "/one", lambda job: free.wait(10), at_end=lambda: ended.append("one"))
    with refused("BUSY"):
        jobs.start("Two", "/two", fails, at_end=lambda: ended.append("two"))
    free.set()
    assert job.wait(10)
    assert ended == ["one", "two", "one"]

    def fails():
        raise PermissionError("no")

    jobs = Jobs()
    assert jobs.start("One", "/", lambda job: None, at_end=fails).wait(10)
    assert jobs.last.refusal.code == "PermissionError"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ExchangeError("NOT_SHARED", "Party 'a' has not shared."), "NOT_SHARED", "Party 'a' has not shared."),
        (ValueError("wrong"), "ValueError", "wrong"),
        (KeyError("patient-00017"), "BUG", "A KeyError that should not happen. Nothing was sent."),
    ],
)
def test_what_went_wrong_is_kept_without_the_words_of_what_nobody_foresaw(error, code, words):
    def work(job):
        raise error

    jobs = Jobs()
    job = jobs.start("Failing", "/", work)
    assert job.wait(10)
    assert (job.refusal.code, job.refusal.message) == (code, words)


ENDINGS = (".csv", ".parquet")


def keep(files, name, data=b"a,b\n1,2\n"):
    taken = files.take(io.BytesIO(data), name, as_name="table", endings=ENDINGS)
    kept = files.keep(taken, as_name="table")
    taken.discard()
    return kept


@pytest.mark.parametrize("name", ["patients.csv", "../../etc/x.CSV", "C:\\me\\x.csv", "a\n<b>.csv", "x.parquet"])
def test_only_the_ending_of_a_name_is_kept(tmp_path, name):
    files = DeskFiles(tmp_path)
    kept = keep(files, name)
    assert kept.parent == tmp_path / "desk"
    assert kept.name in ("table.csv", "table.parquet")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]


@pytest.mark.parametrize("name", ["x", "x.exe", ".csv", "x.csv/..", "x.csv\x00", "x.dcmodel"])
def test_another_ending_is_refused(tmp_path, name):
    with refused("TABLE_UNREADABLE"):
        keep(DeskFiles(tmp_path), name)


def test_the_next_upload_takes_the_place_of_the_last_one(tmp_path):
    files = DeskFiles(tmp_path)
    keep(files, "one.parquet")
    kept = keep(files, "two.csv", b"new")
    assert kept.read_bytes() == b"new"
    assert files.find_copy("table") == kept
    assert len(list(files.path.iterdir())) == 1
    files.remove("table")
    assert files.find_copy("table") is None


def test_an_upload_is_beside_all_others_and_closed_until_it_is_discarded(tmp_path):
    files = DeskFiles(tmp_path)
    one, two = (files.take(io.BytesIO(data), "x.csv", as_name="new", endings=ENDINGS) for data in (b"1", b"2"))
    assert (one.path.read_bytes(), two.path.read_bytes()) == (b"1", b"2")
    assert stat.S_IMODE(one.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(one.path.parent.stat().st_mode) == 0o700
    for each in (one, two, one):
        each.discard()
    assert list(files.path.iterdir()) == []


def test_a_file_that_lies_elsewhere_is_neither_moved_nor_removed(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("a")
    files, chosen = DeskFiles(tmp_path), Chosen(table)
    assert files.keep(chosen, as_name="table") == table
    chosen.discard()
    assert table.read_text() == "a"


def test_an_upload_that_ends_too_early_leaves_nothing(tmp_path):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError("gone")

    files = DeskFiles(tmp_path)
    with pytest.raises(OSError, match="gone"):
        files.take(Broken(), "x.csv", as_name="new", endings=ENDINGS)
    assert list(files.path.iterdir()) == []


def test_a_link_in_the_place_of_an_upload_is_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("old")
    files = DeskFiles(tmp_path)
    (files.make_folder() / "table.csv").symlink_to(secret)
    keep(files, "x.csv", b"new")
    assert secret.read_text() == "old"


CSS = STYLE.read_text(encoding="utf-8")
ON = {
    "page": ("ink", "soft", "link", "accent", "red", "amber", "green"),
    "panel": ("ink", "soft", "link"),
    "accent": ("on-accent",),
    "red": ("page",),
}


def colours(block):
    found = {}
    for name, value in re.findall(r"--([\w-]+): (#[0-9a-f]+);", block):
        digits = value[1:] if len(value) == 7 else "".join(2 * each for each in value[1:])
        found[name] = tuple(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return found


def luminance(colour):
    """Of WCAG 2."""
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


LIGHT, DARK = (colours(block) for block in re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL))


def test_the_measure_is_that_of_the_guidelines():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast((0x77 / 255,) * 3, (1, 1, 1)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(scheme):
    assert LIGHT.keys() == DARK.keys()
    for behind, names in ON.items():
        for name in names:
            assert contrast(scheme[name], scheme[behind]) >= 4.5, (name, behind)


def test_no_colour_of_words_is_left_out():
    used = set(re.findall(r"[; {]color: var\(--([\w-]+)\)", CSS))
    assert used == {name for names in ON.values() for name in names} - {"accent"}


def test_no_text_becomes_markup_or_turns_others_around():
    page = templates_in(Path("nowhere")).from_string("<p title='{{ text }}'>{{ text }}</p>")
    shown = page.render(text="<script>'\"\u202egpj\x1b[2J")
    assert "<script" not in shown
    assert not {"\u202e", "\x1b"} & set(shown)
    assert shown.count("&#39;") == 2
    page = templates_in(Path("nowhere")).from_string("{{ text }}")
    assert page.render(text="may leave\rmay not") == "may leave\ufffdmay not"


def test_a_page_loads_nothing_from_elsewhere_and_runs_nothing():
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}
    assert "url(" not in CSS
    assert "@import" not in CSS


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]) | st.just("\n"), max_size=40))
def test_a_text_that_a_browser_sends_comes_back_as_it_was(text):
    page = templates_in(Path("nowhere")).from_string("<textarea>{{ text }}</textarea>")
    assert unescape(page.render(text=text.replace("\n", "\r\n"))) == f"<textarea>{text}</textarea>"
