"""Requests that were recorded, stripped, swapped, redirected or made up."""

import pytest

from datacollab.bundle import KeyPair, digest, key_with_proof
from datacollab_hub.requests import sign_request
from hub_world import KEYS, URL, World, bundle, refused


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/sessions"), ("GET", "/v1/projects")])
def test_a_request_is_taken_once(world, method, path):
    headers = sign_request(method, URL + path, {}, b"", KEYS["owner"], now=world.now)
    assert world.client.request(method, path, headers=headers).status_code in (200, 201)
    refused(world.client.request(method, path, headers=headers), "REPLAYED", 401)
    world.now += 299
    refused(world.client.request(method, path, headers=headers), "REPLAYED", 401)
    world.now += 2
    refused(world.client.request(method, path, headers=headers), "CLOCK_SKEW", 401)


def test_a_request_of_the_future_is_taken_once_until_it_is_too_old(world):
    headers = sign_request("POST", URL + "/v1/sessions", {}, b"", KEYS["owner"], now=world.now + 299)
    assert world.client.post("/v1/sessions", headers=headers).status_code == 201
    world.now += 598
    refused(world.client.post("/v1/sessions", headers=headers), "REPLAYED", 401)


def test_a_changing_request_is_remembered_by_other_processes_too(world, tmp_path):
    headers = sign_request("POST", URL + "/v1/sessions", {}, b"", KEYS["owner"], now=world.now)
    assert world.client.post("/v1/sessions", headers=headers).status_code == 201
    from starlette.testclient import TestClient

    from datacollab_hub.web import make_app

    with TestClient(make_app(world.hub), base_url=URL) as second:
        refused(second.post("/v1/sessions", headers=headers), "REPLAYED", 401)


def test_a_request_that_was_refused_is_not_taken_later(agreed):
    data = bundle("share", "north", party="north")
    body = f'{{"kind": "share", "sha256": "{digest(data)}", "size": {len(data)}, "recipient": "south"}}'.encode()
    path = f"/v1/projects/{agreed.project}/uploads"
    headers = sign_request("POST", URL + path, {}, body, KEYS["north"], now=agreed.now)
    refused(agreed.client.post(path, headers=headers, content=body), "REQUEST_MALFORMED", 400)
    refused(agreed.client.post(path, headers=headers, content=body), "REPLAYED", 401)


def changes():
    def without(name):
        return lambda request: {**request, "headers": {k: v for k, v in request["headers"].items() if k != name}}

    yield "SIGNATURE_MISSING", without("Signature")
    yield "SIGNATURE_MISSING", without("Signature-Input")
    yield "SIGNATURE_INVALID", without("Content-Digest")
    yield "SIGNATURE_INVALID", lambda request: {**request, "content": b'{"name": "mine"}'}
    yield "SIGNATURE_INVALID", lambda request: {**request, "url": request["url"] + "?after=1"}
    other = sign_request("POST", URL + "/v1/projects", {}, b'{"name": "x"}', KEYS["other"], now=1_800_000_000.0)
    yield (
        "SIGNATURE_INVALID",
        lambda request: {**request, "headers": {**request["headers"], "Signature": other["Signature"]}},
    )


@pytest.mark.parametrize(("code", "change"), list(changes()))
def test_a_request_that_was_changed_on_its_way_is_refused(world, code, change):
    refused(world.ask("owner", "POST", "/v1/projects", {"name": "x"}, change=change), code, 401)
    assert world.ask("owner", "GET", "/v1/projects").json() == {"projects": []}


def test_a_request_to_another_hub_is_none_to_this_one(world):
    """A hub that passes on what it is asked, in its own name or in this one's."""
    headers = sign_request("GET", "https://evil.example/v1/projects", {}, b"", KEYS["owner"], now=world.now)
    for host in ("hub.example", "evil.example"):
        answer = world.client.get("/v1/projects", headers={**headers, "Host": host})
        refused(answer, "SIGNATURE_INVALID", 401)


def test_the_host_that_a_proxy_says_is_none_of_the_hubs_business(world):
    headers = sign_request("GET", URL + "/v1/projects", {}, b"", KEYS["owner"], now=world.now)
    answer = world.client.get("/v1/projects", headers={**headers, "Host": "10.0.0.7:8000"})
    assert answer.status_code == 200


@pytest.mark.parametrize("apart", [-86_400, 86_400])
def test_a_clock_that_is_a_day_off_is_named(world, apart):
    message = refused(world.ask("owner", "GET", "/v1/projects", now=world.now + apart), "CLOCK_SKEW", 401)
    assert "86400 seconds" in message


def test_paths_are_compared_as_they_came(world):
    """What decodes to the same path was not signed."""
    headers = sign_request("GET", URL + "/v1/projects", {}, b"", KEYS["owner"], now=world.now)
    answer = world.client.get("/v1/%70rojects", headers=headers)
    assert answer.status_code in (401, 404)


def test_an_unknown_key_is_told_so(world):
    refused(world.ask("stranger", "GET", "/v1/projects"), "KEY_UNKNOWN", 401)


def test_a_key_joins_as_itself_alone(world):
    world.open_project()
    secret = world.invite()
    refused(world.join("north", secret, key="south"), "KEY_UNKNOWN", 401)
    half = f"{KEYS['north'].public.text}\n" + key_with_proof(KEYS["south"]).split("\n")[1]
    body = {"secret": secret, "public_key": half}
    refused(world.ask("north", "POST", "/v1/projects/{p}/join", body), "KEY_MALFORMED", 422)
    body = {"secret": secret, "public_key": KEYS["north"].public.text}
    refused(world.ask("north", "POST", "/v1/projects/{p}/join", body), "KEY_MALFORMED", 422)
    assert world.join("north", secret).status_code == 202


def test_whoever_asks_too_often_waits(tmp_path):
    with World(tmp_path, requests_per_second=2.0) as world:
        answers = [world.ask("owner", "GET", "/v1/projects") for _ in range(9)]
        assert [answer.status_code for answer in answers] == [200] * 8 + [429]
        refused(answers[-1], "TOO_MANY_REQUESTS", 429)
        assert answers[-1].headers["Retry-After"] == "1"
        world.now += 1
        assert world.ask("owner", "GET", "/v1/projects").status_code == 200


def test_bodies_that_are_too_large_are_not_read(world):
    def endless():
        for _ in range(100):
            yield bytes(2**16)

    refused(world.client.post("/v1/projects", content=bytes(2**16 + 1)), "TOO_LARGE", 413)
    refused(world.client.post("/v1/projects", content=endless()), "SIGNATURE_MISSING", 401)
    headers = sign_request("POST", URL + "/v1/projects", {}, b"x", KEYS["owner"], now=world.now)
    refused(world.client.post("/v1/projects", content=endless(), headers=headers), "TOO_LARGE", 413)
    refused(world.client.request("GET", "/v1/projects", content=b"x"), "TOO_LARGE", 413)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"name": 1}', b'{"name": "a", "name": "b"}', b'{"name": "a", "secret": "q"}', b'"\xff"',
     b'{"name": "\\ud800"}', b"[" * 5000, b'{"name": NaN}'],
)  # fmt: skip
def test_bodies_that_say_something_else_are_refused(world, body):
    message = refused(world.ask("owner", "POST", "/v1/projects", body), "REQUEST_MALFORMED", 400)
    assert "secret" not in message


def test_a_session_link_is_for_one_key_and_once(world):
    from datacollab.errors import ExchangeError
    from datacollab_hub.service import redeem_browser_session

    def secret():
        link = world.ask("owner", "POST", "/v1/sessions").json()["link"]
        assert link.startswith(URL + "/session/")
        return link.rpartition("/")[2]

    once = secret()
    assert redeem_browser_session(world.hub, once) == KEYS["owner"].public.fingerprint
    late = secret()
    world.now += 121
    for used in (once, late, "made-up"):
        with pytest.raises(ExchangeError) as caught:
            redeem_browser_session(world.hub, used)
        assert caught.value.code == "INVITATION_INVALID"


def test_a_fresh_key_has_no_rights(world):
    KEYS["fresh"] = KeyPair.generate()
    try:
        refused(world.ask("fresh", "POST", "/v1/projects", {"name": "x"}), "KEY_UNKNOWN", 401)
    finally:
        del KEYS["fresh"]
