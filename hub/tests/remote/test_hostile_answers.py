"""x"""

import datetime
import http.server
import ipaddress
import json
import random
import shutil
import ssl
import threading

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fake_hub import PIECE, FakeHub, refusal

from datacollab.bundle import KeyPair
from datacollab.errors import ExchangeError
from datacollab.plugins import all_codes
from datacollab.remote import Kept, withdrawable
from datacollab_hub.remote import HubRemote, Link, Patience, answer_request, invite, join, open_project, requests_of
from party_world import refused
from suite import N_CHANGES

URL = "https://hub.example"
WRONG = (None, True, 0, -1, 1e300, 10**39, "", "\x1b[2J", "../x", "1" * 64, [], [[{}]], {}, {"sha256": {}}, [1, "x"])
HEADERS = (
    *(("Date", "Fri, 01 Jan 2027 12:00:00 -0000"), ("Date", "Fri, 01 Jan 0001 00:00:00 +2359")),
    *(("Date", "Fri, 01 Jan 2027 12:00:00 +99999999999999"), ("Content-Range", "bytes 99-1/0")),
    *(("Content-Encoding", "gzip, gzip"), ("Content-Type", "\xff"), ("Retry-After", "-1"), ("Upload-Offset", "x")),
    *(("Set-Cookie", "=;=;\x01"), ("Location", "https://[")),
)


class Hostile:
    """A hub, and members with a share, a model and somebody who asks to join; `change` is done to each answer."""

    def __init__(self, mail):
        self.mail, self.change, self.remotes = mail, None, {}
        self.hub = FakeHub(*(key.public for key in mail.keys.values()))
        self.id = open_project(self.remote("a", None).client, "wards")
        for kind in ("share", "model"):
            self.mail.put(kind, "b")
        for name in ("a", "b", "analyst"):
            assert not mail.push(name, self.remote(name)).refused
        (self.room,) = self.hub.projects.values()
        self.ask_to_join()

    def remote(self, name, project=""):
        """One for each member, as making them takes time; one that looks for its project is made anew."""
        patience = Patience(attempts=2, sleep=lambda seconds: None)
        options = {"transport": httpx.MockTransport(self.answer), "patience": patience}
        if project != "":
            return HubRemote(URL, self.mail.keys[name], project, **options)
        if name not in self.remotes:
            self.remotes[name] = HubRemote(URL, self.mail.keys[name], self.id, **options)
        return self.remotes[name]

    def answer(self, request):
        try:
            said = self.hub.handle(request)
        except (KeyError, AttributeError):
            # What it is asked for after a spoiled answer may be nothing of its own.
            said = refusal(404, "NOT_FOUND", "nothing of this name")
        return said if self.change is None else self.change(request, said)

    def ask_to_join(self):
        link = Link.of(invite(self.remote("a").client, self.id, "c", "party", 7))
        join(self.remote("stranger").client, link, self.mail.keys["stranger"])

    def push(self):
        path = self.mail.put("sums", "b", hours=random.randrange(10**6))
        self.mail.push("b", self.remote("b"), path, has=lambda sha256: None)

    def pull(self, name="analyst"):
        shutil.rmtree(self.mail.root / name / "inbox", ignore_errors=True)
        done, _ = self.mail.pull(name, self.remote(name))
        assert all(error.code in all_codes() for error in done.refused.values())

    def look(self):
        folder = self.mail.folder("b")
        status = self.remote("b", None).status(folder)
        assert all(isinstance(each, str) for each in (*status.shared, *status.missing, *status.waiting))

    def witness(self):
        self.remote("b").witness(Kept(), self.mail.folder("b"))

    def approve(self):
        client = self.remote("a").client
        for each in requests_of(client, self.id):
            assert isinstance(each.name + each.role + each.state + each.text, str)
        answer_request(client, self.id, self.mail.keys["stranger"].public.fingerprint, True)
        self.room.asked.clear()
        self.change = None
        self.ask_to_join()

    def withdraw(self):
        folder = self.mail.folder("b")
        self.remote("b").withdraw(withdrawable(folder, self.remote("b"), "1" * 64), folder=folder)

    def open_and_invite(self):
        client = self.remote("a", None).client
        Link.of(invite(client, open_project(client, "other"), "c", "party", 7))


ASKED = ("push", "pull", "look", "witness", "approve", "withdraw", "open_and_invite")


def places(value, path=()):
    """Where something can be put in place of something else, in a value of JSON."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from places(entry, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def unread(status, headers, content):
    """An answer as it comes from a line, not looked at by whoever makes it."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return httpx.Response(status, headers=raw, stream=httpx.ByteStream(content))


def spoiled(chance):
    """Spoils an answer here and there: a value of JSON, a header, or a status."""

    def change(request, said):
        if chance.random() < 0.3:
            return said
        status = said.status_code if chance.random() < 0.9 else chance.choice([200, 201, 204, 206, 409, 416, 429, 500])
        headers = dict([chance.choice(HEADERS)]) if chance.random() < 0.2 else {}
        try:
            value = json.loads(said.content)
        except ValueError:
            kept = {name: said.headers[name] for name in ("Content-Range", "Upload-Offset") if name in said.headers}
            content = said.content if chance.random() < 0.5 else chance.randbytes(chance.randrange(2000))
            return unread(status, kept | headers, content)
        path = chance.choice(list(places(value)))
        return unread(status, headers, json.dumps(changed(value, path, chance.choice(WRONG))).encode())

    return change


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("n_rounds", [40, pytest.param(N_CHANGES, marks=pytest.mark.nightly)])
def test_whatever_a_hub_answers_a_command_ends_with_a_code(mail, asked, n_rounds):
    hostile, chance = Hostile(mail), random.Random(asked)
    refusals = []
    for _ in range(n_rounds):
        hostile.change = spoiled(chance)
        try:
            getattr(hostile, asked)()
        except ExchangeError as error:
            refusals.append(error)
    assert {error.code for error in refusals} <= all_codes().keys()
    assert all(str(error).isprintable() and len(str(error)) < 2000 for error in refusals)
    assert len(refusals) > n_rounds / 10


def test_every_wrong_type_in_a_listed_file_is_refused_or_left_out(mail):
    """Each field with each wrong value, one at a time: also those that only some ways of reading look at."""
    hostile = Hostile(mail)
    folder, remote = mail.folder("analyst"), hostile.remote("analyst")
    (listed,) = (each for each in hostile.room.files.values() if each["kind"] == "share")
    listed = {name: value for name, value in listed.items() if name != "data"}
    codes = set()
    for name in listed:
        for wrong in WRONG:
            hostile.change = lambda request, said, wrong=wrong, name=name: httpx.Response(
                200, json={"files": [{**listed, name: wrong}]}
            )
            try:
                remote.list(folder)
            except ExchangeError as error:
                codes.add(error.code)
    assert codes == {"REMOTE_REFUSED"}


@pytest.mark.parametrize(("date", "told"), [(date, "99999" not in date) for name, date in HEADERS if name == "Date"])
def test_a_date_of_any_form_is_told_or_left_out(mail, date, told):
    hostile = Hostile(mail)
    hostile.change = lambda request, said: httpx.Response(
        401, headers={"Date": date}, json={"code": "CLOCK_SKEW", "message": "no"}
    )
    with refused("CLOCK_SKEW") as refusal:
        hostile.remote("b").list(mail.folder("b"))
    assert told == (" seconds " in str(refusal.value))


def test_what_is_packed_is_not_unpacked(mail):
    """A bomb of three layers is some kilobytes on the line."""
    hostile = Hostile(mail)
    hostile.change = lambda request, said: unread(200, {"Content-Encoding": "gzip, gzip, gzip"}, bytes(1000))
    with refused("REMOTE_REFUSED") as refusal:
        hostile.remote("b").list(mail.folder("b"))
    assert "packed" in str(refusal.value)


def listing(*entries):
    """Answers that list files whose bytes break off at nine tenths."""

    class Cut(httpx.SyncByteStream):
        def __init__(self, size):
            self.size = size

        def __iter__(self):
            yield bytes(self.size)
            raise httpx.ReadError("cut")

    def change(request, said):
        if request.url.path.endswith("/files"):
            return httpx.Response(200, json={"files": list(entries)})
        if "/files/" in request.url.path:
            return httpx.Response(200, stream=Cut(PIECE * 9 // 10))
        return said

    return change


def test_a_hub_fills_no_disk_by_files_that_break_off(mail):
    """Each time it lists others, and cuts each shortly before its end."""
    hostile = Hostile(mail)
    inbox = mail.root / "analyst" / "inbox"
    most = 0
    for number in range(6):
        entries = [
            {"sha256": f"{10 * number + each:064x}", "kind": "share", "size": PIECE, "sender": "x"} for each in range(2)
        ]
        hostile.change = listing(*entries)
        with refused("REMOTE_UNREACHABLE"):
            mail.pull("analyst", hostile.remote("analyst"))
        parts = list(inbox.glob(".*.part"))
        most = max(most, sum(part.stat().st_size for part in parts))
        assert [part.name for part in parts] == [f".{10 * number:064x}.part"]
    assert 0 < most <= PIECE
    hostile.change = listing()
    mail.pull("analyst", hostile.remote("analyst"))
    assert list(inbox.glob(".*.part")) == []


def test_a_log_without_end_is_not_read_to_its_end(mail, monkeypatch):
    monkeypatch.setattr("datacollab_hub.remote._hub._MOST_OF_LOG", 20_000)
    hostile = Hostile(mail)
    asked = []

    def endless(request, said):
        asked.append(request)
        return httpx.Response(200, json={"entries": [{"facts": "x" * 1000}]})

    hostile.change = endless
    with refused("REMOTE_REFUSED"):
        hostile.remote("b").witness(Kept(), mail.folder("b"))
    assert len(asked) < 30


NOW = datetime.datetime.now(datetime.UTC)


def certificate(name, key, issuer, issuer_key, *, is_ca):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        **dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
        ),
        **{"digital_signature": True, "key_cert_sign": is_ca, "crl_sign": is_ca, "decipher_only": False},
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(days=1))
        .not_valid_after(NOW + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"projects": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def hub(tmp_path):
    """The address of a server, whose authority's certificate is beside it."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    authority = certificate("Nordklinik", keys[0], None, keys[0], is_ca=True)
    own = certificate("hub", keys[1], authority.subject, keys[0], is_ca=False)
    pem = serialization.Encoding.PEM
    (tmp_path / "ca.pem").write_bytes(authority.public_bytes(pem))
    secret = keys[1].private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "hub.pem").write_bytes(own.public_bytes(pem) + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "hub.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def asked(url, **options):
    remote = HubRemote(url, KeyPair.generate(), patience=Patience(attempts=1), **options)
    try:
        return remote.client.ask("GET", "/v1/projects").json()
    finally:
        remote.close()


def test_an_organisations_own_certificate(hub, tmp_path):
    assert asked(hub, ca=tmp_path / "ca.pem") == {"projects": []}
    with refused("TLS_UNTRUSTED"):
        asked(hub)
    with refused("TLS_UNTRUSTED"):
        asked(hub.replace("127.0.0.1", "localhost"), ca=tmp_path / "ca.pem")  # signed for another name
