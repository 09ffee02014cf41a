"""Requests made up from the API's description, signed by everybody, by nobody, and spoilt on their way."""

import json
import os
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from datacollab.agreement import project_text
from datacollab.plugins import all_codes
from datacollab_hub.requests import sign_request
from datacollab_hub.rules import Role
from datacollab_hub.web._refusals import STATUS
from fuzzed_hub import API, BEGUN, PEOPLE, REFUSALS, described, fitting, make_fuzzed, may, named, right_bodies
from hub_world import KEYS, URL, World, make_project
from postgres_server import ON_ONE_DATABASE

schemathesis = pytest.importorskip("schemathesis")
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.core import NOT_SET  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of schemas with keys in them

SIGNATURE = ("Signature", "Signature-Input", "Content-Digest")
WAYS = ("as it is", "stripped", "another's signature", "another's key", "body changed", "twice")
SIGNED = [route for route in API if Role.ANYBODY not in route.roles]
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


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with World(tmp_path_factory.mktemp("hub")) as world:
        yield make_fuzzed(world)


@pytest.fixture
def fuzzed_anywhere(world):
    return make_fuzzed(world)


def name_of(route):
    return f"{route.method} {route.path}"


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

HEADERS = {("PATCH", "{upload}"): "upload-offset", ("GET", "{sha256}"): "range"}


def drawn(data, fuzzed, schema, route, *, fits):
    """A request to a route: path, query, headers and body; right as far as it is to fit, and elsewhere by chance."""
    operation = schema[route.path][route.method]
    right = right_bodies(fuzzed).get((route.method, route.path))
    # Of path and header alone few are wrong that a client can send.
    modes = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if right and route.method == "POST" else [])]
    case = data.draw(operation.as_strategy(generation_mode=data.draw(st.sampled_from(modes))))
    for name in case.path_parameters or {}:
        if fits:
            case.path_parameters[name] = named(fuzzed)[name][0]
        elif data.draw(st.integers(0, 9)):
            case.path_parameters[name] = data.draw(st.sampled_from(named(fuzzed)[name]))
    query = urlencode(case.query or {}, doseq=True)
    headers = {name: str(value) for name, value in (case.headers or {}).items() if name.lower() != "content-type"}
    name = HEADERS.get((route.method, route.path.rpartition("/")[2]))
    if name and data.draw(st.integers(0, 5)):
        headers = {name: data.draw(st.sampled_from(named(fuzzed)[name]))}
    assume(all(value.isascii() and value.isprintable() for value in headers.values()))
    if route.method in RAW:
        body = data.draw(RAW[route.method])
    elif right and (fits or data.draw(st.integers(0, 2))):
        body = json.dumps(data.draw(st.sampled_from(right))).encode()
    elif isinstance(case.body, type(NOT_SET)):
        body = b""
    else:
        body = case.body if isinstance(case.body, bytes) else json.dumps(case.body).encode()
    return case, case.formatted_path + (f"?{query}" if query else ""), headers, body


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


def check_answer(fuzzed, route, answer, body):
    """No trouble of the hub's own, and refusals that are documented and repeat nothing."""
    assert answer.status_code < 500, answer.text
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
    schema = schemathesis.openapi.from_dict(described(fuzzed))
    world = fuzzed.world
    seen = set()

    @budget
    @given(data=st.data())
    def one(data):
        # Chance alone hardly makes all of a request right.
        fits = data.draw(st.integers(0, 2)) == 0
        who = data.draw(st.sampled_from(fitting(route) if fits else [*PEOPLE, None, *fitting(route) * 6]))
        way = "as it is" if fits or who is None else data.draw(st.sampled_from((*WAYS[:1] * 10, *WAYS[1:])))
        case, path, headers, body = drawn(data, fuzzed, schema, route, fits=fits)
        change = spoilt(data, way, world, route.method, path, body)
        sent = []

        def kept(request):
            sent.append(change(request) if change else request)
            return sent[0]

        answer = world.ask(who, route.method, path, body, headers=headers, change=kept)
        seen.add(answer.status_code)
        check_answer(fuzzed, route, answer, body)
        case.validate_response(answer, checks=CHECKS)
        good = answer.status_code < 400
        if way == "body changed":
            # An empty space behind nothing is a body that the route takes, or one that is too large.
            assert not good
        elif way not in ("as it is", "twice"):
            assert not good, (who, way)
        if good:
            assert may(fuzzed, who, route, case.path_parameters or {}), (who, path)
        # Whose a request to join is, is known after its body was read.
        unread = (400, 401, 404, 405, 413, 422) if route.path.endswith("/join") else (401, 404, 405, 413)
        if way == "twice" and answer.status_code not in unread:
            again = world.client.request(**sent[0])
            assert again.status_code == 401
            assert route.method == "HEAD" or again.json()["code"] == "REPLAYED"

    one()
    return seen


CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.response_schema_conformance,
]


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
    assert seen & {*REFUSALS}
