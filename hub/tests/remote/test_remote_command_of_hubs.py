"""`datacollab remote` at a hub: what is printed, which codes it ends with, and who comes into a project."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from fake_hub import FakeHub
from mail import Mail

from datacollab.agreement import project_text
from datacollab.bundle import key_with_proof
from datacollab.remote import Kept, RemotePlace
from party_world import refused
from playing import done as run
from playing import told


@pytest.fixture
def mail(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return Mail(tmp_path)


@pytest.fixture
def at_store(mail):
    for name in ("a", "b", "analyst"):
        run("remote", "add", "store", mail.root / "store", "-C", mail.root / name)
    return mail


def test_stores_have_no_members(at_store):
    for words in (("open", "wards"), ("invite", "b"), ("requests",), ("approve", "abcd")):
        refused = told("remote", *words, "-C", at_store.root / "a", code=13)
        assert refused["error"]["code"] == "REMOTE_INVALID"


@pytest.fixture
def hub(mail, monkeypatch):
    """A hub that the commands reach; newcomers are known once they joined."""
    made, client = FakeHub(mail.keys["a"].public), httpx.Client
    monkeypatch.setattr("httpx.Client", lambda **options: client(**{**options, "transport": made.transport()}))
    run("remote", "add", "hub", "https://hub.example/", "-C", mail.root / "a")
    return made


@pytest.mark.slow
def test_from_an_invitation_to_a_model_by_a_hub(mail, hub):
    a, b, analyst = (mail.root / name for name in ("a", "b", "analyst"))
    room = told("remote", "open", "wards", "-C", a)["project"]
    assert told("remote", "open", "wards", "-C", a, code=14)["error"]["code"] == "ALREADY_THERE"
    for name, role in (("b", "party"), ("analyst", "analyst")):
        link = told("remote", "invite", name, "--role", role, "-C", a)["link"]
        joined = run("remote", "join", link, "-C", mail.root / name).stdout
        assert mail.keys[name].public.fingerprint in joined
        notes = (mail.root / name / "remotes.toml").read_text()
        assert room in notes
        assert link.partition("#")[2] not in notes
    asked = told("remote", "requests", "-C", a)["requests"]
    assert {each["name"] for each in asked} == {"b", "analyst"}
    for each in asked:
        written = mail.root.joinpath("a", "members", f"{each['fingerprint']}.key").read_text()
        assert written == key_with_proof(mail.keys[each["name"]])
        run("remote", "approve", each["fingerprint"], "-C", a)
    nobody = told("remote", "approve", "abcd-efgh-ijkl-mnop", "-C", a, code=10)
    assert nobody["error"]["code"] == "NOT_A_MEMBER"
    assert set(told("remote", "push", "-C", a)["sent"].values()) == {"agreement", "anchor"}
    mail.put("share", "b")
    pushed = told("remote", "push", "-C", b)
    assert pushed["log"]["head"] == hub.projects[room].log[-1]["digest"]
    assert list(told("remote", "pull", "-C", analyst)["came"].values()) == ["share"]
    assert "missing: a" in run("remote", "status", "-C", analyst).stdout
    mail.put("model", "b")
    run("remote", "push", "-C", analyst)
    assert set(told("remote", "pull", "-C", b)["came"].values()) == {"anchor", "model"}
    # The owner sends a new revision; b has not fetched it.
    (a / "project.toml").write_text(project_text(replace(mail.project, revision=2), mail.keys["a"]))
    run("remote", "push", a / "project.toml", "-C", a)
    shown = run("remote", "status", "-C", b).stdout
    assert "this project file is not here" in shown
    assert "are needed" not in shown
    assert "2 are needed" in run("remote", "status", "-C", a).stdout
    # Whoever runs the hub loses the end of the log, which b has seen.
    del hub.projects[room].log[-1]
    assert told("remote", "status", "-C", b, code=11)["error"]["code"] == "LOG_BROKEN"


def test_what_was_sent_before_an_interruption_has_to_be_in_the_hubs_log(mail, hub):
    a, b = mail.root / "a", mail.root / "b"
    room = hub.projects[told("remote", "open", "wards", "-C", a)["project"]]
    run("remote", "push", "-C", a)
    run("remote", "add", "hub", "https://hub.example", "-C", b)
    for kind in ("sums", "share"):
        mail.put(kind, "b")
    asked = []

    def stop_at_the_second(request):
        asked.append(request.method)
        if asked.count("PATCH") == 2:
            return httpx.Response(401, json={"code": "CLOCK_SKEW", "message": ""})
        return None

    hub.before = stop_at_the_second
    assert told("remote", "push", "-C", b, code=11)["error"]["code"] == "CLOCK_SKEW"
    (sent,) = [each["sha256"] for each in room.files.values() if each["kind"] == "share"]
    assert Kept.read(b, "hub").expected == (sent,)
    hub.before = lambda request: None
    del room.log[-1]
    assert told("remote", "status", "-C", b, code=11)["error"]["code"] == "LOG_BROKEN"


def test_a_browser_is_led_to_the_hubs_pages_by_a_file_that_is_nobody_elses(mail, hub, monkeypatch):
    a, opened = mail.root / "a", []

    def look(address):
        page = Path(unquote(urlsplit(address).path))
        opened.append((address, page.stat().st_mode & 0o777, page.read_text(), page))

    monkeypatch.setattr("datacollab_hub.commands._members.webbrowser.open", look)
    monkeypatch.setattr("datacollab_hub.commands._members.time.sleep", lambda seconds: None)
    said = run("remote", "dashboard", "-C", a).stdout
    ((address, mode, text, page),) = opened
    secret = "s" * 43
    assert mode == 0o600
    assert f"https://hub.example/session/{secret}" in text
    assert not page.exists()
    for other in (address, said):
        assert secret not in other


def test_the_link_is_printed_where_no_browser_is_wanted(mail, hub, monkeypatch):
    monkeypatch.setattr("datacollab_hub.commands._members.webbrowser.open", lambda address: pytest.fail("opened"))
    a = mail.root / "a"
    wanted = f"https://hub.example/session/{'s' * 43}"
    assert wanted in run("remote", "dashboard", "--no-browser", "-C", a).stdout
    # The hub that was asked, and not the one that it names.
    hub.address = "https://elsewhere.example"
    assert told("remote", "dashboard", "-C", a)["link"] == wanted
    hub.address = "https://hub.example/session/'><script>"
    assert told("remote", "dashboard", "-C", a)["link"] == wanted


def test_somebody_is_refused(mail, hub):
    room = told("remote", "open", "wards", "-C", mail.root / "a")["project"]
    link = told("remote", "invite", "c", "-C", mail.root / "a")["link"]
    run("remote", "join", link, "-C", mail.root / "stranger")
    key = mail.keys["stranger"].public.fingerprint
    assert told("remote", "approve", key, "--refuse", "-C", mail.root / "a")["approved"] is False
    assert key not in hub.projects[room].members


def test_who_may_not_invite_is_told_what_to_do(mail, hub):
    assert told("remote", "invite", "b", "-C", mail.root / "a", code=14)["error"]["code"] == "PROJECT_MISSING"
    run("remote", "invite", "b", "--role", "king", "-C", mail.root / "a", code=2)


def test_keys_under_a_passphrase_are_opened_for_a_hub_alone(mail, hub, monkeypatch):
    (mail.root / "b" / "keys.json").unlink()
    mail.keys["b"].save(mail.root / "b" / "keys.json", "four words in a row")
    run("remote", "add", "store", mail.root / "store", "-C", mail.root / "b")
    mail.put("share", "b")
    assert told("remote", "push", "-C", mail.root / "b")["sent"]
    run("remote", "add", "hub", "https://hub.example", "-C", mail.root / "b")
    closed = told("remote", "push", "--remote", "hub", "-C", mail.root / "b", code=10)
    assert closed["error"]["code"] == "PASSPHRASE_WRONG"


@pytest.mark.parametrize(
    "options",
    [
        *({"url": "http://hub.example"}, {"url": "https://"}, {"url": "https://hub.example/?q=1"}),
        *({"url": "https://hub.example/#part"}, {"url": "https://hub.example", "project": "../../x"}),
        {"url": "https://me@hub.example"},
    ],
)
def test_hubs_that_cannot_be(options):
    with refused("REMOTE_INVALID"):
        RemotePlace(**{"name": "hub"} | options)


@pytest.mark.parametrize("url", ["https://hub.example:8443/below", "http://localhost:8000", "http://127.0.0.1:1"])
def test_hubs_that_can_be(url):
    assert RemotePlace(name="hub", url=url, project="0" * 32, ca="ca.pem").url == url
