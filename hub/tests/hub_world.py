"""A hub in this process, people with keys, and files as they send them."""

import json
import secrets
import sqlite3
from contextlib import closing, contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.testclient import TestClient

from datacollab.agreement import AnchorRecipe, Project, Task, project_text
from datacollab.bundle import KeyPair, digest, key_with_proof, pack
from datacollab.table import Column
from datacollab_hub.requests import sign_request
from datacollab_hub.rules import Settings
from datacollab_hub.service import Hub
from datacollab_hub.store import Store, allow_key, upgrade
from datacollab_hub.web import make_app

URL = "https://hub.example"
NOW = 1_800_000_000.0  # 15 January 2027
PEOPLE = ("owner", "north", "south", "analyst", "auditor", "other", "stranger")
KEYS = {name: KeyPair.generate() for name in PEOPLE}
FINGERPRINTS = {name: key.public.fingerprint for name, key in KEYS.items()}


def make_project(**changes):
    """Owner, two parties and an analyst; the owner is no party."""
    entries = {
        "name": "heart",
        "purpose": "A test.",
        "columns": (
            Column(name="age", kind="number", unit="years", minimum=0, maximum=120),
            Column(name="dose", kind="number", unit="mg", minimum=0, maximum=9),
        ),
        "task": Task(kind="classification", target="ill", classes=("no", "yes")),
        "anchor": AnchorRecipe(method="smote", n_rows=40, source="a public register"),
        "max_components": 1,
        "deadline": date(2027, 1, 31),
        "seal_shares": True,
        "owner": KEYS["owner"].public,
        "analyst": KEYS["analyst"].public,
        "parties": {name: KEYS[name].public for name in ("north", "south")},
    }
    return Project(**(entries | changes))


PROJECT = make_project()
SENT_AS = {
    "anchor": ("datacollab.anchor", {}),
    "share": ("datacollab.share", {}),
    "sums": ("datacollab.masked-sum", {}),
    "round": ("datacollab.round", {"number": 2}),
    "model": ("datacollab.model", {"n_components": 1}),
    "sums-model": ("datacollab.sums-model", {}),
    "answers": ("datacollab.answers", {}),
}


def bundle(kind, by, *, party=None, project=PROJECT, size=1000, more=None):
    """A file as the hub sees it: a signed bundle whose inside is none of its business."""
    name, facts = SENT_AS[kind]
    said = {**facts, "project_digest": project.digest, **({"party": party} if party else {}), **(more or {})}
    return pack(name, said, {"sealed.bin": bytes(size)}, key=KEYS[by])


@cache
def empty_database():
    """Bytes of SQLite's file with all tables: to make it by each migration anew takes longer than most tests."""
    with TemporaryDirectory() as folder:
        store = Store.located(Path(folder))
        upgrade(store.engine)
        store.close()
        return (Path(folder) / "hub.sqlite").read_bytes()


class World:
    """The hub's address is one, whatever the client's."""

    portal = None
    """The loop of events in which all clients ask, once the tests have begun one."""

    def __init__(self, folder, database=None, *, blobs=None, **limits):
        self.folder, self.now, self.project = folder, NOW, None
        if database is None and not (folder / "hub.sqlite").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "hub.sqlite").write_bytes(empty_database())
            (folder / "hub.sqlite").chmod(0o600)
            with closing(sqlite3.connect(folder / "hub.sqlite")) as connection, connection:
                # No two hubs have one id.
                connection.execute("UPDATE hub SET id = ?", (secrets.token_hex(16),))
        self.store = Store.opened(folder, database=database, blobs=blobs)
        self.hub = Hub(
            self.store,
            Settings(url=URL, **{"requests_per_second": 10_000.0, "part_bytes": 1, **limits}),
            lambda: self.now,
        )
        self.client = TestClient(make_app(self.hub), base_url=URL, raise_server_exceptions=False)
        self.client.portal = self.portal
        self.allow("owner")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.store.close()

    def allow(self, who):
        """Let a key open projects, as the hub's operator does."""
        with self.store.writing() as connection:
            allow_key(connection, KEYS[who].public, self.now)

    def ask(self, who, method, path, body=None, *, headers=None, change=None, now=None):
        """A signed request; ``change`` is what somebody on the way does to it."""
        path = path.replace("{p}", self.project or "")
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = dict(headers or {})
        if who is not None:
            headers |= sign_request(method, URL + path, headers, data, KEYS[who], now=self.now if now is None else now)
        request = {"method": method, "url": path, "headers": headers, "content": data}
        return self.client.request(**(change(request) if change else request))

    def link(self, who):
        """A link that signs a browser in."""
        answer = self.ask(who, "POST", "/v1/sessions", {})
        assert answer.status_code == 201, answer.text
        return answer.json()["link"]

    def browser(self, who=None):
        """A browser, signed in if it is somebody's."""
        browser = TestClient(self.client.app, base_url=URL, follow_redirects=False, raise_server_exceptions=False)
        browser.portal = self.portal
        if who is not None:
            assert browser.post(self.link(who)).status_code == 303
        return browser

    def open_project(self, name="heart"):
        answer = self.ask("owner", "POST", "/v1/projects", {"name": name})
        assert answer.status_code == 201, answer.text
        self.project = answer.json()["project"]
        return self.project

    def put_agreement(self, project=PROJECT, who="owner"):
        answer = self.ask(who, "PUT", "/v1/projects/{p}/agreement", project_text(project, KEYS[who]).encode())
        assert answer.status_code in (200, 201), answer.text
        return answer

    def invite(self, role="auditor", name="somebody", days=7):
        """The secret of an invitation."""
        answer = self.ask("owner", "POST", "/v1/projects/{p}/invitations", {"name": name, "role": role, "days": days})
        assert answer.status_code == 201, answer.text
        address, _, secret = answer.json()["link"].partition("#")
        assert address == f"{URL}/v1/projects/{self.project}/join"
        return secret

    def join(self, who, secret, *, key=None):
        body = {"secret": secret, "public_key": key_with_proof(KEYS[key or who])}
        return self.ask(who, "POST", "/v1/projects/{p}/join", body)

    def decide(self, who, approve=True, by="owner"):
        return self.ask(by, "POST", f"/v1/projects/{{p}}/requests/{FINGERPRINTS[who]}", {"approve": approve})

    def admit(self, who, role="auditor"):
        assert self.join(who, self.invite(role, who)).status_code == 202
        assert self.decide(who).status_code == 200

    def start(self, who, kind, data, recipient=None, **changes):
        body = {"kind": kind, "sha256": digest(data), "size": len(data)}
        body |= {"recipient": recipient} if recipient else {}
        return self.ask(who, "POST", "/v1/projects/{p}/uploads", {**body, **changes})

    def part(self, who, upload, offset, data):
        headers = {"Upload-Offset": str(offset)}
        return self.ask(who, "PATCH", f"/v1/projects/{{p}}/uploads/{upload}", data, headers=headers)

    def send(self, who, kind, data, recipient=None, *, piece=400):
        """All of an upload; the last answer."""
        answer = self.start(who, kind, data, recipient)
        if answer.status_code != 201:
            return answer
        upload, offset = answer.json()["upload"], answer.json()["offset"]
        while offset < len(data):
            answer = self.part(who, upload, offset, data[offset : offset + piece])
            if answer.status_code != 204:
                return answer
            offset = int(answer.headers["Upload-Offset"])
        return answer

    def files(self, who):
        return self.ask(who, "GET", "/v1/projects/{p}/files").json()["files"]

    def log(self, who="owner", after=0):
        return self.ask(who, "GET", f"/v1/projects/{{p}}/log?after={after}").json()["entries"]

    def blobs(self):
        """What lies in the folder of blobs, besides the hub's id."""
        found = (path for path in (self.folder / "blobs").rglob("*") if path.is_file())
        return sorted(path for path in found if path.name != "hub-id")


@contextmanager
def agreed_world(folder, *args, **options):
    """A hub with a project and its file."""
    with World(folder, *args, **options) as world:
        world.open_project()
        world.put_agreement()
        yield world


def refused(answer, code, status=None):
    """What an answer says, if it is this refusal."""
    assert answer.status_code < 500 or status is not None, answer.text
    said = answer.json()
    assert set(said) == {"code", "message"}, said
    assert said["code"] == code, said
    assert status in (None, answer.status_code), answer.status_code
    return said["message"]
