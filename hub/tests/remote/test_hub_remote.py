"""A folder and a hub: what is sent and fetched, and what becomes of it when lines are cut and clocks are wrong."""

import copy
import ssl
import time
from dataclasses import replace

import httpx
import pytest
from fake_hub import PIECE, FakeHub

from datacollab.agreement import project_text
from datacollab.bundle import KeyPair, key_with_proof
from datacollab.errors import ExchangeError
from datacollab.remote import Kept
from datacollab_hub.remote import HubRemote, Link, Patience, answer_request, invite, join, open_project, requests_of
from datacollab_hub.requests import hub_entry
from party_world import refused

URL = "https://hub.example/below"


class Carried:
    """Members of a project whose owner has opened it at a hub and sent the agreement."""

    def __init__(self, mail):
        self.mail, self.slept = mail, []
        self.hub = FakeHub(*(key.public for key in mail.keys.values()), prefix="/below")
        self.id = open_project(self.remote("a", project=None).client, "wards")
        assert not mail.push("a", self.remote("a")).refused
        (self.room,) = self.hub.projects.values()
        self.hub.requests.clear()

    def remote(self, name, *, project="", attempts=5, key=None, **options):
        project = getattr(self, "id", None) if project == "" else project
        patience = Patience(attempts=attempts, sleep=self.slept.append)
        key = key or self.mail.keys[name]
        return HubRemote(URL, key, project, transport=self.hub.transport(), patience=patience, **options)

    def sent(self, name="b", **options):
        """The path of a share that a party has sent."""
        path = self.mail.put("share", name, **options)
        self.mail.push(name, self.remote(name))
        return path

    def pulled(self, name="analyst", kept=None):
        return self.mail.pull(name, self.remote(name), kept)

    def change(self, ending, change):
        """Let the hub's answers below a path be what a function makes of them."""
        answer = self.hub.handle

        def changed(request):
            said = answer(request)
            return change(said) if request.url.path.endswith(ending) else said

        self.hub.handle = changed


@pytest.fixture
def carried(mail):
    return Carried(mail)


def test_each_kind_reaches_whom_it_is_for(carried):
    mail = carried.mail
    for kind in ("share", "sums", "model", "answers", "round"):
        mail.put(kind, "b")
    for name in ("b", "analyst"):
        assert not mail.push(name, carried.remote(name)).refused
    came = {name: sorted(mail.pull(name, carried.remote(name))[0].came.values()) for name in ("a", "b", "analyst")}
    assert came == {
        "a": ["anchor", "round"],
        "b": ["anchor", "answers", "model", "round"],
        "analyst": ["share", "sums"],
    }
    for name in ("b", "analyst"):
        again = mail.push(name, carried.remote(name))
        assert again.there
        assert not again.sent


def cutting(n_times, when, error=httpx.ReadError):
    """Lines cut so many times at requests of a kind."""
    left = [n_times]

    def cut(request):
        if request.method == when and left[0]:
            left[0] -= 1
            raise error("cut", request=None)

    return cut


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError, httpx.ReadTimeout])
@pytest.mark.slow
def test_uploads_go_on_where_the_line_was_cut(carried, method, moment, error):
    """Also where the hub did what was asked, and its answer was lost: nothing arrives twice."""
    mail = carried.mail
    path = mail.put("share", "b", size=2 * PIECE + 100)
    setattr(carried.hub, moment, cutting(3, method, error))
    assert mail.push("b", carried.remote("b")).sent == {str(path): "share"}
    (file,) = (each for each in carried.room.files.values() if each["kind"] == "share")
    assert file["data"] == path.read_bytes()
    assert len([each for each in carried.room.log if each["action"] == "received"]) == 2  # and the anchor
    assert len(carried.slept) == 3


def test_what_the_hub_has_of_an_upload_is_not_sent_again(carried):
    mail = carried.mail
    mail.put("share", "b", size=3 * PIECE)
    stopped = cutting(99, "PATCH")
    sent = []

    def after_one(request):
        if request.method == "PATCH":
            sent.append(len(request.content))
            if len(sent) > 1:
                return stopped(request)
        return None

    carried.hub.before = after_one
    with refused("REMOTE_UNREACHABLE"):
        mail.push("b", carried.remote("b"))
    (upload,) = carried.room.uploads.values()
    assert len(upload["data"]) == PIECE
    carried.hub.before, before = (lambda request: sent.append(len(request.content))), sum(sent[:1])
    sent.clear()
    mail.push("b", carried.remote("b"))
    assert sum(sent) - 400 < 2 * PIECE + 2000
    assert before == PIECE


def test_an_upload_that_the_hub_forgot_begins_anew(carried):
    mail = carried.mail
    mail.put("share", "b", size=2 * PIECE)
    seen = []

    def forget(request):
        seen.append(request.method)
        if seen.count("PATCH") == 2:
            seen.append("PATCH")
            carried.room.uploads.clear()

    carried.hub.before = forget
    assert mail.push("b", carried.remote("b")).sent


@pytest.mark.parametrize("parts_taken", [False, True], ids=["none taken", "first one taken"])
def test_a_hub_that_goes_back_and_forth_does_not_keep_us(carried, parts_taken):
    mail, asked = carried.mail, []
    mail.put("share", "b", size=2 * PIECE)

    def conflict(request):
        if request.method == "PATCH":
            asked.append(request)
            assert len(asked) < 50
            if parts_taken and request.headers["Upload-Offset"] == "0":
                return httpx.Response(204, headers={"Upload-Offset": str(PIECE)})
            return httpx.Response(409, headers={"Upload-Offset": "0"}, json={"code": "OFFSET_DIFFERS", "message": "no"})
        return None

    carried.hub.before = conflict
    with refused("REMOTE_UNREACHABLE"):
        mail.push("b", carried.remote("b"))
    assert len(carried.slept) == 4


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_hub_is_asked_again_as_late_as_it_wants(carried, status):
    mail = carried.mail
    mail.put("share", "b")
    left = [2]

    def busy(request):
        if left[0]:
            left[0] -= 1
            return httpx.Response(status, headers={"Retry-After": "17"})
        return None

    carried.hub.before = busy
    assert mail.push("b", carried.remote("b")).sent
    assert carried.slept == [17.0, 17.0]


def test_an_endless_wait_is_not_waited(carried):
    carried.hub.before = lambda request: httpx.Response(503, headers={"Retry-After": "99999"})
    with refused("REMOTE_UNREACHABLE"):
        carried.remote("b").status(carried.mail.folder("b"))
    assert max(carried.slept) == 60.0


def cut_downloads(n_times, after):
    """A transport whose answers to GET of files break off after some bytes."""
    left = [n_times]

    class Cut(httpx.SyncByteStream):
        def __init__(self, data):
            self.data = data

        def __iter__(self):
            yield self.data[:after]
            raise httpx.ReadError("cut")

    def cut(request, said):
        if "/files/" in request.url.path and left[0]:
            left[0] -= 1
            headers = {name: each for name, each in said.headers.items() if name.lower() != "content-length"}
            return httpx.Response(said.status_code, headers=headers, stream=Cut(said.content))
        return said

    return cut


def test_downloads_go_on_where_the_line_was_cut(carried):
    mail = carried.mail
    path = carried.sent(size=300_000)
    cut, answer = cut_downloads(4, 50_000), carried.hub.handle
    carried.hub.handle = lambda request: cut(request, answer(request))
    asked = carried.hub.requests
    asked.clear()
    done, _ = carried.pulled()
    assert list(done.came.values()) == ["share"]
    assert (mail.root / "analyst" / "inbox" / "b.dcshare").read_bytes() == path.read_bytes()
    assert len([path for _, path in asked if "/files/" in path]) == 5
    assert mail.inbox("analyst") == ["b.dcshare"]


def test_a_hub_that_knows_no_parts_sends_all_of_it(carried):
    mail = carried.mail
    path = carried.sent(size=300_000)
    (mail.root / "analyst" / "inbox").mkdir()
    (entry,) = carried.remote("analyst").list(mail.folder("analyst"))
    (mail.root / "analyst" / "inbox" / f".{entry.sha256}.part").write_bytes(path.read_bytes()[:1000])
    carried.hub.before = lambda request: request.headers.pop("Range", None) and None
    done, _ = carried.pulled()
    assert list(done.came.values()) == ["share"]


def test_more_bytes_than_listed_are_not_taken(carried):
    mail = carried.mail
    carried.sent()
    for file in carried.room.files.values():
        file["data"] += bytes(10_000_000)
    done, _ = carried.pulled()
    assert [error.code for error in done.refused.values()] == ["TOO_LARGE"]
    assert mail.inbox("analyst") == []


def test_other_bytes_than_listed_are_not_taken(carried):
    mail = carried.mail
    carried.sent()
    for file in carried.room.files.values():
        file["data"] = bytes([file["data"][0] ^ 1]) + file["data"][1:]
    done, kept = carried.pulled()
    assert [error.code for error in done.refused.values()] == ["HASH_MISMATCH"]
    assert mail.inbox("analyst") == []
    assert kept.fetched == ()


def test_a_clock_that_is_wrong_by_a_day_is_told(carried):
    carried.hub.now = lambda: time.time() + 86_400
    carried.change("", lambda said: said.headers.update({"Date": "Fri, 01 Jan 2027 12:00:00 GMT"}) or said)
    with pytest.raises(
        Exception, match=r"The clock of this machine is \d+ seconds (ahead of|behind) the hub's"
    ) as found:
        carried.remote("b").list(carried.mail.folder("b"))
    assert found.value.code == "CLOCK_SKEW"
    assert carried.slept == []


def test_each_request_is_signed_anew_also_when_it_is_asked_again(carried):
    nonces = []
    carried.hub.before = lambda request: (
        nonces.append(request.headers["Signature-Input"]) or (httpx.Response(503) if len(nonces) < 4 else None)
    )
    carried.remote("b").status(carried.mail.folder("b"))
    assert len(set(nonces)) == 4


def test_requests_that_something_on_the_way_sends_twice_are_made_again(carried):
    """A proxy asks the hub once more, and gives the second answer: the first had done what was asked."""
    mail, answer = carried.mail, carried.hub.handle
    path = mail.put("share", "b", size=2 * PIECE)
    asked = []

    def twice(request):
        asked.append(request)
        if len(asked) % 3 == 0:
            answer(request)
        return answer(request)

    carried.hub.handle = twice
    assert mail.push("b", carried.remote("b")).sent == {str(path): "share"}
    assert len([each for each in carried.room.log if each["facts"].get("kind") == "share"]) == 1
    assert len(carried.slept) >= 1
    carried.hub.handle = lambda request: answer(request) and answer(request)
    with refused("REPLAYED"):
        carried.remote("b").list(mail.folder("b"))


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (httpx.Response(200, content=b"<html>"), "REMOTE_REFUSED"),
        (httpx.Response(200, json=[1]), "REMOTE_REFUSED"),
        (httpx.Response(200, json={"files": "none"}), "REMOTE_REFUSED"),
        (httpx.Response(200, json={"files": [1]}), "REMOTE_REFUSED"),
        (httpx.Response(200, content=b"[" * 17_000_000), "TOO_LARGE"),
        (httpx.Response(302, headers={"Location": "https://elsewhere.example/"}), "REMOTE_REFUSED"),
        (httpx.Response(403, content=b"proxy says no"), "REMOTE_REFUSED"),
        (httpx.Response(403, json={"code": "NEW_CODE", "message": "of a later version"}), "REMOTE_REFUSED"),
        (httpx.Response(403, json={"code": "DEADLINE_PASSED", "message": "x" * 10_000}), "DEADLINE_PASSED"),
        (httpx.Response(500, content=b""), "REMOTE_REFUSED"),
    ],
)  # fmt: skip
def test_what_is_no_hub_is_told(carried, said, code):
    carried.hub.before = lambda request: said
    with pytest.raises(ExchangeError) as found:
        carried.remote("b").list(carried.mail.folder("b"))
    assert found.value.code == code
    assert len(str(found.value)) < 1000
    assert not carried.slept


STEERING = "\x1b[2J\u202e\x9b\nNext: rm\r"


def test_words_of_a_hub_steer_no_terminal_and_make_no_lines(carried):
    mail, asked = carried.mail, dict.fromkeys(("name", "role", "state"), STEERING)
    asked["public_key"] = key_with_proof(mail.keys["b"])
    for ending, status, said in (
        ("/files", 403, {"code": "NEW" + STEERING, "message": "no" + STEERING}),
        ("/requests", 200, {"requests": [asked]}),
        (carried.id, 200, {"name": STEERING, "digest": STEERING, "shared": [STEERING]}),
    ):
        carried.change(ending, lambda _, status=status, said=said: httpx.Response(status, json=said))
    status = carried.remote("b").status(mail.folder("b"))
    with refused("REMOTE_REFUSED") as refusal:
        carried.remote("b").list(mail.folder("b"))
    (asked,) = requests_of(carried.remote("a").client, carried.id)
    assert asked.text == key_with_proof(mail.keys["b"])
    shown = (str(refusal.value), status.project, status.digest, *status.shared, asked.name, asked.role, asked.state)
    for words in shown:
        assert "Next: rm" in words
        assert not set(words) & set(STEERING) - set("[2J Next:rm")


def test_a_log_is_hashed_as_it_came_and_may_name_files_by_anything(carried):
    """Names that somebody thought of may hold such letters."""
    carried.room.write("hub", "invited", {"name": STEERING})
    assert carried.remote("b").witness(Kept(), carried.mail.folder("b")).seq == len(carried.room.log)
    # The hub's facts are its own affair.
    carried.room.write(carried.mail.keys["b"].public.fingerprint, "received", {"sha256": [{}]})
    assert carried.remote("b").witness(Kept(), carried.mail.folder("b")).shown == ()


def test_a_certificate_that_nobody_trusts_is_told(carried):
    def untrusted(request):
        try:
            raise ssl.SSLCertVerificationError("self-signed certificate")
        except ssl.SSLError as error:
            raise httpx.ConnectError("failed") from error

    carried.hub.before = untrusted
    with refused("TLS_UNTRUSTED"):
        carried.remote("b").list(carried.mail.folder("b"))
    with refused("REMOTE_INVALID"):
        carried.remote("b", ca=carried.mail.root / "project.toml")


def test_what_is_asked_for_twice_by_a_lost_answer_is_not_asked_twice(carried):
    client = carried.remote("a").client
    carried.hub.after = cutting(1, "POST")
    with refused("REMOTE_UNREACHABLE"):
        invite(client, carried.id, "c", "party", 7)
    assert len(carried.room.secrets) == 1


def test_joining_by_a_link(carried):
    mail = carried.mail
    owner, newcomer = carried.remote("a"), KeyPair.generate()
    link = invite(owner.client, carried.id, "c", "party", 7)
    assert link.startswith(f"{URL}/v1/projects/{carried.id}/join#")
    parsed = Link.of(link)
    remote = HubRemote(parsed.url, newcomer, parsed.project, transport=carried.hub.transport())
    join(remote.client, parsed, newcomer)
    (asked,) = requests_of(owner.client, carried.id)
    assert (asked.name, asked.role, asked.key) == ("c", "party", newcomer.public)
    assert remote.agreement(mail.folder("stranger")) is None
    answer_request(owner.client, carried.id, newcomer.public.fingerprint, True)
    assert remote.agreement(mail.folder("stranger")) is not None
    with refused("REMOTE_REFUSED"):
        join(remote.client, parsed, newcomer)


def test_an_invitation_is_to_the_hub_and_the_project_that_were_asked(carried):
    """Whoever gets the link would otherwise prove their key to somebody else, or come into another room."""
    other = [f"https://elsewhere.example/v1/projects/{carried.id}"]
    carried.change("/invitations", lambda _: httpx.Response(201, json={"link": f"{other[0]}/join#{'s' * 22}"}))
    owner = carried.remote("a")
    assert invite(owner.client, carried.id, "c", "party", 7) == f"{URL}/v1/projects/{carried.id}/join#{'s' * 22}"
    other[0] = f"{URL}/v1/projects/{'0' * 32}"
    with refused("REMOTE_REFUSED"):
        invite(owner.client, carried.id, "c", "party", 7)


def test_a_key_without_its_owners_proof_is_not_shown_for_approval(carried):
    a, b = KeyPair.generate().public, KeyPair.generate().public
    mixed = type(a)(a.signing, b.sealing)
    said = {"name": "c", "role": "party", "public_key": f"{mixed.text}\ndcproof1-{'a' * 103}\n"}
    carried.room.asked["x"] = said
    with refused("KEY_MALFORMED"):
        requests_of(carried.remote("a").client, carried.id)


@pytest.mark.parametrize(
    "text",
    [
        "", "https://hub.example/", "https://hub.example/v1/projects/" + "0" * 32 + "/join", "nonsense#" + "s" * 22,
        "http://[",
        *(
            f"https://hub.example{path}/v1/projects/{'0' * 32}/join#{'s' * 22}"
            for path in ("/'$(id)'", "/a b", "/%0a", "//", "/\x9b")
        ),
    ],
)  # fmt: skip
def test_a_link_that_is_none_is_refused_and_not_repeated(text):
    with refused("REMOTE_INVALID") as found:
        Link.of(text)
    assert "s" * 22 not in str(found.value)


def test_the_project_is_found_where_it_was_not_named(carried):
    found = []
    remote = carried.remote("b", project=None, found=found.append)
    assert remote.status(carried.mail.folder("b")).digest == carried.mail.project.digest
    assert found == [carried.id]
    with refused("REMOTE_INVALID"):
        carried.remote("stranger", project=None).status(carried.mail.folder("b"))


def test_what_is_said_of_a_project_file_that_is_not_here_is_not_repeated(carried):
    """A hub that names another one would otherwise be free to make up its deadline."""
    mail, made_up = carried.mail, {"digest": "0" * 64, "deadline": "2030-01-01", "quorum": 9, "revision": 9}
    later = replace(mail.project, revision=2, quorum=1)
    carried.change(carried.id, lambda said: httpx.Response(200, json=said.json() | made_up))
    status = carried.remote("b").status(mail.folder("b"))
    assert (status.digest, status.deadline, status.quorum, status.revision) == ("0" * 64, None, None, None)
    assert status.missing == ("a", "b")
    # Of one that waits in the inbox it has to say what the owner signed.
    (mail.root / "b" / "inbox").mkdir()
    (mail.root / "b" / "inbox" / "project.toml").write_text(project_text(later, mail.keys["a"]))
    made_up["digest"] = later.digest
    with refused("WITHHELD"):
        carried.remote("b").status(mail.folder("b"))
    made_up.update(deadline=None, quorum=1, revision=2)
    assert carried.remote("b").status(mail.folder("b")).quorum == 1


def test_a_withdrawn_file_is_told_to_whoever_fetched_it_and_not_sent_again(carried):
    mail = carried.mail
    path = carried.sent()
    _, kept = carried.pulled()
    (entry,) = [each for each in carried.remote("b").list(mail.folder("b")) if each.kind == "share"]
    carried.remote("b").withdraw(entry, folder=mail.folder("b"))
    assert mail.push("b", carried.remote("b")).withdrawn == [str(path)]
    done, _ = carried.pulled(kept=kept)
    assert done.withdrawn == [entry.sha256]
    fresh, _ = carried.pulled()
    assert (fresh.came, fresh.withdrawn) == ({}, [])


def log_seen(carried, name="b"):
    """What a folder remembers after it has sent a share and looked at the log."""
    mail = carried.mail
    mail.put("share", name)
    has = []
    mail.push(name, carried.remote(name), has=has.append)
    return carried.remote(name).witness(Kept(expected=tuple(has)), mail.folder(name))


def test_a_log_that_goes_on_is_remembered(carried):
    kept = log_seen(carried)
    assert (kept.seq, kept.head, kept.expected) == (len(carried.room.log), carried.room.log[-1]["digest"], ())
    for number in range(7):
        carried.room.write("hub", "looked", {"number": number})
    later = carried.remote("b").witness(kept, carried.mail.folder("b"))
    assert later.seq == kept.seq + 7
    assert carried.remote("b").witness(later, carried.mail.folder("b")) == later


def rewritten(room, log, start):
    """Entries from a number on, chained anew as whoever runs the hub could."""
    previous = log[start - 1]["digest"] if start else "0" * 64
    for position in range(start, len(log)):
        entry = log[position]
        log[position] = hub_entry(
            room.id, position + 1, entry["time"], entry["who"], entry["action"], entry["facts"], previous
        )
        previous = log[position]["digest"]


@pytest.mark.parametrize("change", ["cut", "emptied", "edited", "written anew", "removed", "another's"])
def test_a_log_that_does_not_go_on_is_told(carried, change):
    kept, log = log_seen(carried), carried.room.log
    if change == "cut":
        del log[-1]
    elif change == "emptied":
        log.clear()
    elif change == "edited":
        carried.room.write("hub", "looked", {})
        log[-1] = {**log[-1], "action": "else"}
    elif change == "written anew":
        log[1] = {**log[1], "facts": {}}
        rewritten(carried.room, log, 1)
    elif change == "removed":
        del log[1]
        rewritten(carried.room, log, 1)
        carried.room.write("hub", "looked", {})
    else:
        carried.room.id, other = "0" * 32, copy.deepcopy(carried.room.id)
        rewritten(carried.room, log, 0)
        carried.room.id = other
    with refused("LOG_BROKEN"):
        carried.remote("b").witness(kept, carried.mail.folder("b"))


def test_a_log_without_what_the_hub_accepted_is_told(carried):
    with refused("LOG_BROKEN"):
        carried.remote("b").witness(Kept(expected=("1" * 64,)), carried.mail.folder("b"))
    mail = carried.mail
    mail.put("share", "b")
    has = []
    mail.push("b", carried.remote("b"), has=has.append)
    log = carried.room.log
    received = log[-1]
    # The same file in somebody else's name, or fetched or taken back, does not count.
    for other in ({"who": mail.keys["a"].public.fingerprint}, {"action": "fetched"}, {"action": "withdrawn"}):
        log[-1] = received | other
        rewritten(carried.room, log, len(log) - 1)
        with refused("LOG_BROKEN"):
            carried.remote("b").witness(Kept(expected=tuple(has)), mail.folder("b"))


def test_what_the_log_has_shown_is_not_looked_for_again(carried):
    mail, kept = carried.mail, log_seen(carried)
    has = []
    assert mail.push("b", carried.remote("b"), has=has.append).there
    for sha256 in has:
        kept = kept.expecting(sha256)
    assert kept.expected == ()
    assert carried.remote("b").witness(kept, mail.folder("b")) == kept


def test_files_of_a_past_revision_are_left_where_they_are(carried):
    carried.sent()
    past = {"current": False}
    carried.change(
        "/files", lambda said: httpx.Response(200, json={"files": [each | past for each in said.json()["files"]]})
    )
    done, kept = carried.pulled()
    assert (done.came, done.refused, kept.fetched) == ({}, {}, ())
