"""Requests made up of what the API takes, signed by everybody, by nobody, and spoilt on their way."""

import json
import os
import re
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from datacollab.agreement import project_text
from datacollab.bundle import digest, key_with_proof
from datacollab.plugins import all_codes
from datacollab_hub.requests import sign_request
from datacollab_hub.rules import KINDS, ROUTES, Role
from datacollab_hub.store import allow_key
from datacollab_hub.web._refusals import STATUS
from hub_world import FINGERPRINTS, KEYS, URL, World, bundle, make_project
from postgres_server import ON_ONE_DATABASE

PEOPLE = ("owner", "north", "south", "analyst", "auditor", "other", "second", "stranger")
"""Besides those of the project: a party and the owner of another one, whose key may open more; and nobody."""
ROLES = {"north": {Role.PARTY}, "south": {Role.PARTY}} | {
    each: {Role(each)} for each in ("owner", "analyst", "auditor")
}
ROLES_THERE = {"second": {Role.OWNER}, "other": {Role.PARTY}}
SENT = {
    "share": ("south", bundle("share", "south", party="south"), None, {"south", "analyst"}),
    "model": ("analyst", bundle("model", "analyst", party="north"), "north", {"analyst", "north"}),
    "anchor": ("owner", bundle("anchor", "owner"), None, {"owner", "north", "south"}),
}
"""Of each file: from whom, its bytes, for whom, and who may read it."""
READERS = {digest(data): readers for _, data, _, readers in SENT.values()}
SENDERS = {digest(data): sender for sender, data, _, _ in SENT.values()}
BEGUN = bundle("share", "north", party="north")

SIGNED = [route for route in ROUTES if not (route.is_page or Role.ANYBODY in route.roles)]
"""Without pages, which are for browsers, as these sign nothing."""

SUCCESSES = {
    ("POST", "/v1/sessions"): {201},
    ("POST", "/v1/projects"): {201},
    ("POST", "/v1/projects/{project}/invitations"): {201},
    ("POST", "/v1/projects/{project}/join"): {202},
    ("PUT", "/v1/projects/{project}/agreement"): {200, 201},
    ("POST", "/v1/projects/{project}/uploads"): {200, 201},
    ("PATCH", "/v1/projects/{project}/uploads/{upload}"): {201, 204},
    ("DELETE", "/v1/projects/{project}/uploads/{upload}"): {204},
    ("GET", "/v1/projects/{project}/files/{sha256}"): {200, 206},
}
"""As docs/hub.md says; 200 of all others."""
REFUSALS = {400, 401, 403, 404, 405, 409, 413, 416, 422, 429}
HOSTILE = ["heart", "<script>alert(1)</script>", "a\r\nSet-Cookie: x=1", "../../etc", "\N{RIGHT-TO-LEFT OVERRIDE}x"]
SIGNATURE = ("Signature", "Signature-Input", "Content-Digest")
WAYS = ("as it is", "stripped", "another's signature", "another's key", "body changed", "twice")
QUICK = settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # the hub remembers what was asked before, so that no case can be made smaller
    suppress_health_check=list(HealthCheck),
)
EXAMPLES = int(os.environ.get("DATACOLLAB_EXAMPLES", "20"))
"""Of each route, in the slow tests."""
LONG = settings(QUICK, max_examples=EXAMPLES, print_blob=True)


@dataclass
class Fuzzed:
    """The world, and what is there to be named."""

    world: World
    there: str
    upload: str
    secret: str

    @property
    def project(self):
        return self.world.project


def make_fuzzed(world):
    """Two projects: in the first a project file, three files and an upload that has begun."""
    KEYS.setdefault("second", type(KEYS["owner"]).generate())
    FINGERPRINTS["second"] = KEYS["second"].public.fingerprint
    with world.store.writing() as connection:
        allow_key(connection, KEYS["second"].public, world.now)
    there = world.ask("second", "POST", "/v1/projects", {"name": "others"}).json()["project"]
    said = world.ask(
        "second", "POST", f"/v1/projects/{there}/invitations", {"name": "x", "role": "party", "days": 1}
    ).json()
    joining = {"secret": said["link"].partition("#")[2], "public_key": key_with_proof(KEYS["other"])}
    assert world.ask("other", "POST", f"/v1/projects/{there}/join", joining).status_code == 202
    approving = f"/v1/projects/{there}/requests/{FINGERPRINTS['other']}"
    assert world.ask("second", "POST", approving, {"approve": True}).status_code == 200
    world.open_project()
    world.put_agreement()
    world.admit("auditor")
    for kind, (sender, data, recipient, _) in SENT.items():
        assert world.send(sender, kind, data, recipient).status_code == 201
    upload = world.start("north", "share", BEGUN).json()["upload"]
    return Fuzzed(world, there, upload, world.invite("auditor", "stranger"))


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with World(tmp_path_factory.mktemp("hub")) as world:
        yield make_fuzzed(world)


@pytest.fixture
def fuzzed_anywhere(world):
    return make_fuzzed(world)


def name_of(route):
    return f"{route.method} {route.path}"


def named(fuzzed):
    """What a path, a query or a header may name."""
    return {
        "project": [fuzzed.project] * 8 + [fuzzed.there, "0" * 32],
        "upload": [fuzzed.upload] * 3 + ["0" * 32],
        "sha256": [*READERS, "0" * 64],
        "fingerprint": [FINGERPRINTS["auditor"]] * 6 + list(FINGERPRINTS.values()),
        "after": [0, 1, 2**31 - 1, 2**31],
        "upload-offset": ["0"] * 3 + ["400"] * 3 + [str(len(BEGUN)), "-1", "1" * 30],
        "range": ["bytes=0-9"] * 3 + ["bytes=-1", "bytes=99999-", "bytes=9-1", "bytes=0-1,3-4", "x"],
    }


def right_bodies(fuzzed):
    """Bodies that say what they should, by route."""
    at = "/v1/projects/{project}"
    announced = [
        {"kind": kind, "sha256": digest(data), "size": len(data)} | ({"recipient": to} if to else {})
        for kind, (_, data, to, _) in (SENT | {"begun": ("north", BEGUN, None, ())}).items()
        for kind in ([kind] if kind in SENT else ["share", "sums"])
    ]
    return {
        ("POST", "/v1/sessions"): [{}],
        ("POST", "/v1/projects"): [{"name": name} for name in HOSTILE],
        ("POST", f"{at}/invitations"): [{"name": name, "role": "auditor", "days": 1} for name in HOSTILE],
        ("POST", f"{at}/join"): [
            {"secret": fuzzed.secret, "public_key": key_with_proof(KEYS[name])}
            for name in ("stranger", "other", "north")
        ],
        ("POST", f"{at}/requests/{{fingerprint}}"): [{"approve": True}, {"approve": False}],
        ("POST", f"{at}/uploads"): announced,
    }


def pool():
    """Values that mean something in one body or another, and values of other kinds."""
    words = [*KINDS, "party", "analyst", "auditor", "owner", digest(BEGUN), *READERS, "north", FINGERPRINTS["north"]]
    words += [*HOSTILE, "x" * 201, "", *(key_with_proof(KEYS[name]) for name in PEOPLE)]
    return [*words, None, True, 0, 1, -1, len(BEGUN), 2**50, 1e300, [], [[{}]], {}]


@st.composite
def wrong_bodies(draw, right):
    """A right body in which one value is another, one is missing or one is too much; or anything else."""
    body = dict(draw(st.sampled_from(right)))
    name = draw(st.sampled_from([*body, "more"]))
    value = draw(st.sampled_from([..., *pool()]))
    body = {key: each for key, each in body.items() if key != name} | ({} if value is ... else {name: value})
    any_json = st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
    return draw(
        st.one_of(*[st.just(json.dumps(body).encode())] * 4, any_json.map(json.dumps).map(str.encode), st.binary())
    )


@st.composite
def texts_of_projects(draw):
    """Project files: right ones, of other keys, spoilt ones, and none."""
    who = draw(st.sampled_from(["owner", "owner", "owner", "second", "north"]))
    project = make_project(revision=draw(st.integers(1, 3)), owner=KEYS[who].public)
    text = bytearray(project_text(project, KEYS[who]).encode())
    for place in draw(st.one_of(st.just([]), st.lists(st.integers(0, len(text) - 1), max_size=2))):
        text[place] = draw(st.integers(0, 255))
    return draw(st.sampled_from([*[bytes(text)] * 6, bytes(text)[:200], b"", b"\xff\x00"]))


RAW = {
    "PUT": texts_of_projects(),
    "PATCH": st.one_of(st.sampled_from([BEGUN[:400], BEGUN[400:], BEGUN, BEGUN + b"x"]), st.binary(max_size=300)),
}
NAMES = st.text(st.characters(exclude_characters="/.", exclude_categories=["Cs"]), min_size=1, max_size=70)
OTHERS = {("PATCH", "{upload}"): "upload-offset", ("GET", "{sha256}"): "range", ("GET", "log"): "after"}
"""What a route takes besides its path and body: headers, and a query."""


def drawn(data, fuzzed, route, *, fits):
    """A request to a route: names in its path, query, headers and body; right as far as it is to fit."""
    there, given = named(fuzzed), {}
    for name in re.findall(r"{(\w+)}", route.path):
        others = st.one_of(*[st.sampled_from(there[name])] * 9, NAMES)
        given[name] = there[name][0] if fits else data.draw(others)
    path, headers = route.path.format(**{name: quote(value, safe="") for name, value in given.items()}), {}
    other = OTHERS.get((route.method, route.path.rpartition("/")[2]))
    if other and data.draw(st.integers(0, 5)):
        value = str(data.draw(st.sampled_from(there[other])))
        path, headers = (f"{path}?after={value}", {}) if other == "after" else (path, {other: value})
    right = right_bodies(fuzzed).get((route.method, route.path))
    if route.method in RAW:
        body = data.draw(RAW[route.method])
    elif right and (fits or data.draw(st.integers(0, 2))):
        body = json.dumps(data.draw(st.sampled_from(right))).encode()
    else:
        body = data.draw(wrong_bodies(right)) if right else b""
    return given, path, headers, body


def spoilt(data, way, world, method, path, body):
    """What somebody on the way makes of a signed request; None where it stays right."""
    other = data.draw(st.sampled_from(["owner", "second"]))

    def change(request):
        headers = dict(request["headers"])
        if way == "stripped":
            names = [name for name in headers if name in SIGNATURE]
            headers.pop(data.draw(st.sampled_from(names)))
        elif way == "another's signature":
            headers |= sign_request(method, f"{URL}/v1/sessions", {}, b"x", KEYS[other], now=world.now)
        elif way == "another's key":
            own = sign_request(method, URL + path, {}, body, KEYS[other], now=world.now)
            headers["Signature-Input"] = own["Signature-Input"]
        else:
            return request | {"content": request["content"] + b" "}
        return request | {"headers": headers}

    return None if way in ("as it is", "twice") else change


def fitting(route):
    """People of the first project whom a route is for."""
    if route.path.endswith("{upload}"):
        return ["north"]
    roles = {name: ROLES.get(name, set()) | {Role.KNOWN} for name in ("owner", "north", "south", "analyst", "auditor")}
    found = [name for name, own in roles.items() if own & route.roles]
    return found or (["owner"] if Role.OPENER in route.roles else ["stranger"])


def may(fuzzed, who, route, parameters):
    """Whether a route may do something for somebody, by the documents; strangers may join with an invitation."""
    if Role.ANYBODY in route.roles:
        return True
    if who is None:
        return False
    if Role.INVITED in route.roles:
        return True
    project = parameters.get("project")
    roles = {Role.OPENER} if who in ("owner", "second") else set()
    roles |= {fuzzed.project: ROLES, fuzzed.there: ROLES_THERE}.get(project, {}).get(who, set())
    if not (roles | (set() if who == "stranger" else {Role.KNOWN})) & route.roles:
        return False
    if "upload" in parameters and project == fuzzed.project:
        return parameters["upload"] != fuzzed.upload or who == "north"
    if route.path.endswith("{sha256}") and project == fuzzed.project:
        found = parameters["sha256"]
        named = {SENDERS.get(found)} if route.method == "DELETE" else READERS.get(found, set())
        return who in named or found not in READERS
    return True


def check_answer(fuzzed, route, answer, body):
    """No trouble of the hub's own, and refusals that are documented and repeat nothing."""
    good = SUCCESSES.get((route.method, route.path), {200})
    assert answer.status_code in good | REFUSALS, answer.text
    if answer.status_code < 400 or route.method == "HEAD" or answer.status_code == 416:
        return
    said = answer.json()
    assert set(said) == {"code", "message"}
    assert said["code"] in all_codes()
    wanted = {STATUS.get(said["code"], 422)}
    wanted |= {401} if said["code"].startswith("SIGNATURE_") else {405} if said["code"] == "NOT_FOUND" else set()
    assert answer.status_code in wanted, said
    for header in answer.headers.values():
        assert "\n" not in header
        assert "\r" not in header
    assert "<script" not in said["message"]
    assert str(fuzzed.world.folder) not in said["message"]


def explore(fuzzed, route, budget):
    """Requests to one route by everybody."""
    world = fuzzed.world
    seen = set()

    @budget
    @given(data=st.data())
    def one(data):
        # Chance alone hardly makes all of a request right.
        fits = data.draw(st.integers(0, 2)) == 0
        who = data.draw(st.sampled_from(fitting(route) if fits else [*PEOPLE, None, *fitting(route) * 6]))
        way = "as it is" if fits or who is None else data.draw(st.sampled_from((*WAYS[:1] * 10, *WAYS[1:])))
        given, path, headers, body = drawn(data, fuzzed, route, fits=fits)
        change = spoilt(data, way, world, route.method, path, body)
        sent = []

        def kept(request):
            sent.append(change(request) if change else request)
            return sent[0]

        answer = world.ask(who, route.method, path, body, headers=headers, change=kept)
        seen.add(answer.status_code)
        check_answer(fuzzed, route, answer, body)
        good = answer.status_code < 400
        if way == "body changed":
            # An empty space behind nothing is a body that the route takes, or one that is too large.
            assert not good
        elif way not in ("as it is", "twice"):
            assert not good, (who, way)
        if good:
            assert may(fuzzed, who, route, given), (who, path)
        # Whose a request to join is, is known after its body was read.
        unread = (400, 401, 404, 405, 413, 422) if route.path.endswith("/join") else (401, 404, 405, 413)
        if way == "twice" and answer.status_code not in unread:
            again = world.client.request(**sent[0])
            assert again.status_code == 401
            assert route.method == "HEAD" or again.json()["code"] == "REPLAYED"

    one()
    return seen


@pytest.mark.parametrize("route", SIGNED, ids=name_of)
@pytest.mark.slow
def test_whatever_is_asked_is_answered_as_documented(fuzzed, route):
    assert max(explore(fuzzed, route, QUICK)) < 500


@pytest.mark.nightly
@ON_ONE_DATABASE
@pytest.mark.parametrize("route", SIGNED, ids=name_of)
def test_whatever_is_asked_for_long_is_answered_as_documented(fuzzed_anywhere, route):
    seen = explore(fuzzed_anywhere, route, LONG)
    assert min(seen) < 300  # it is not only refused
    assert seen & REFUSALS
