"""Who is let in by a hub, and the memory of requests that its processes share."""

import asyncio
import contextlib
import json
import re
import sqlite3
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from datacollab.bundle import KeyPair, digest, key_with_proof
from datacollab.errors import ExchangeError
from datacollab_hub import service
from datacollab_hub.requests import sign_request
from datacollab_hub.service import Seen
from datacollab_hub.web import make_app
from datacollab_hub.web._bodies import Bodies
from hub_world import KEYS, URL, World, agreed_world, bundle, make_project, refused
from party_world import refusal


class Asked:
    """A request to the app itself, whose body comes when it is told to; how it is answered."""

    def __init__(self, world, who, method, path, body=b"", *, headers=None, now=None):
        self.app, self.body, self.read = world.client.app, body, asyncio.Event()
        self.may_come = asyncio.Event()
        key, now = KEYS.get(who, who), now or world.now
        signed = {} if who is None else sign_request(method, URL + path, {}, body, key, now=now)
        named = {**signed, "Content-Length": str(len(body)), **(headers or {})}
        self.scope = {
            **{"type": "http", "http_version": "1.1", "scheme": "https", "root_path": "", "method": method},
            **{"path": path, "raw_path": path.encode(), "query_string": b"", "client": ("192.0.2.1", 9)},
            **{"server": ("hub.example", 443), "asgi": {"version": "3.0"}},
            "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
        }
        self.status, self.data = None, b""

    async def _receive(self):
        self.read.set()
        await self.may_come.wait()
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self.data += message.get("body", b"")

    async def answered(self):
        """Its status and code."""
        await asyncio.wait_for(self.app(self.scope, self._receive, self._send), 60)
        return self.status, json.loads(self.data).get("code")

    def answer(self):
        """What is answered though the body never comes."""
        return asyncio.run(self.answered())


class Left(Asked):
    """One whose connection ends before its body is there."""

    async def _receive(self):
        return {"type": "http.disconnect"}

    async def answered(self):
        await asyncio.wait_for(self.app(self.scope, self._receive, self._send), 60)
        return self.status, self.data.decode()


BODY = b'{"name": "x"}'


@pytest.mark.parametrize(
    ("who", "change", "status", "code"),
    [
        (None, {}, 401, "SIGNATURE_MISSING"),
        (None, {"Signature": "x", "Signature-Input": "x"}, 401, "SIGNATURE_INVALID"),
        ("stranger", {}, 401, "KEY_UNKNOWN"),
        ("owner", {"Signature": "datacollab=:" + "A" * 86 + "==:"}, 401, "SIGNATURE_INVALID"),
        ("owner", {"Content-Digest": "sha-256=:" + "A" * 43 + "=:"}, 401, "SIGNATURE_INVALID"),
        ("north", {}, 403, "NOT_ALLOWED"),
    ],
)
def test_a_body_is_not_read_before_it_is_known_who_sends_it(agreed, who, change, status, code):
    asked = Asked(agreed, who, "POST", "/v1/projects", BODY, headers=change)
    assert asked.answer() == (status, code)
    assert not asked.read.is_set()


def test_nor_are_bodies_of_others_clocks_projects_and_of_requests_that_were_seen(agreed):
    path = f"/v1/projects/{agreed.project}/uploads"
    late = Asked(agreed, "owner", "POST", path, BODY, now=agreed.now - 1000).answer()
    assert late == (401, "CLOCK_SKEW")
    other = f"/v1/projects/{'f' * 32}/uploads"
    assert Asked(agreed, "owner", "POST", other, BODY).answer() == (404, "NOT_FOUND")
    headers = sign_request("POST", URL + "/v1/projects", {}, BODY, KEYS["owner"], now=agreed.now)
    assert agreed.client.post("/v1/projects", content=BODY, headers=headers).status_code == 201
    again = Asked(agreed, None, "POST", "/v1/projects", BODY, headers=headers).answer()
    assert again == (401, "REPLAYED")


def test_a_key_holds_so_many_bodies_and_no_place_of_others(agreed):
    share = bundle("share", "north", party="north")
    path = f"/v1/projects/{agreed.project}/uploads"
    body = json.dumps({"kind": "share", "sha256": digest(share), "size": len(share)}).encode()

    async def crowd():
        held = [Asked(agreed, "north", "POST", path, body) for _ in range(8)]
        tasks = [asyncio.create_task(asked.answered()) for asked in held]
        for asked in held:
            await asyncio.wait_for(asked.read.wait(), 60)
        ninth = await Asked(agreed, "north", "POST", path, body).answered()
        south = Asked(agreed, "south", "POST", path, body)
        south.may_come.set()
        souths = await south.answered()
        for asked in held:
            asked.may_come.set()
        answers = [await task for task in tasks]
        after = Asked(agreed, "north", "POST", path, body)
        after.may_come.set()
        return ninth, souths, answers, await after.answered()

    ninth, souths, answers, after = asyncio.run(crowd())
    assert ninth == (429, "TOO_MANY_REQUESTS")
    assert souths == (201, None)
    assert answers == [(201, None)] * 8
    assert after == (201, None)


@pytest.mark.slow
def test_members_of_a_project_that_send_no_bodies_keep_no_other_project_out(tmp_path):
    """Eight keys with eight signed requests each are as many as there are places."""
    crowd = {f"party-{number}": KeyPair.generate() for number in range(8)}
    with World(tmp_path / "hub") as world:
        others = world.open_project("others")
        world.put_agreement()
        world.open_project()
        world.put_agreement(make_project(parties={name: key.public for name, key in crowd.items()}))
        path, body = f"/v1/projects/{world.project}/uploads", b"{}"

        async def held_and_asked():
            held = [Asked(world, key, "POST", path, body) for key in crowd.values() for _ in range(8)]
            tasks = [asyncio.create_task(asked.answered()) for asked in held]
            waiting = [asyncio.create_task(asked.read.wait()) for asked in held]
            for task, wait in zip(tasks, waiting, strict=True):
                await asyncio.wait({task, wait}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            n_held = sum(asked.read.is_set() for asked in held)
            south = Asked(world, "south", "POST", f"/v1/projects/{others}/uploads", body)
            south.may_come.set()
            answer = await south.answered()
            for each in (*tasks, *waiting):
                each.cancel()
            await asyncio.gather(*tasks, *waiting, return_exceptions=True)
            return n_held, answer

        n_held, answer = asyncio.run(held_and_asked())
    assert n_held == 16
    # It was read, and says nothing that a hub knows.
    assert answer == (400, "REQUEST_MALFORMED")


def test_projects_of_one_owner_do_not_hold_all_places():
    held = n_held(Bodies(), lambda number: (f"key-{number}", f"project-{number}", "owner"))
    assert held < n_held(Bodies(), lambda number: (f"key-{number}", f"project-{number}", f"owner-{number}"))


@pytest.mark.parametrize("pieces", [(), (b"{", b'"name": ')], ids=["no body", "some of it"])
def test_a_body_that_comes_too_slowly_is_ended(world, monkeypatch, pieces):
    monkeypatch.setattr("datacollab_hub.web._admission._WINDOW", 0.2, raising=False)

    class Slow(Asked):
        async def _receive(self):
            if not self.left:
                await self.may_come.wait()
            await asyncio.sleep(0.01)
            return {"type": "http.request", "body": self.left.pop(0), "more_body": True}

    slow = Slow(world, "owner", "POST", "/v1/projects", BODY)
    slow.left = list(pieces)
    assert slow.answer() == (408, "TOO_SLOW")


@pytest.mark.slow
def test_a_body_that_comes_at_the_least_rate_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("datacollab_hub.web._admission._WINDOW", 0.5)

    class Steady(Asked):
        """A byte every tenth of a second, for longer than a window."""

        left = BODY

        async def _receive(self):
            await asyncio.sleep(0.1)
            piece, self.left = self.left[:1], self.left[1:]
            return {"type": "http.request", "body": piece, "more_body": bool(self.left)}

    with World(tmp_path / "hub", least_bytes_per_second=4) as world:
        assert Steady(world, "owner", "POST", "/v1/projects", BODY).answer() == (201, None)


def test_strangers_that_send_nothing_keep_no_member_out(agreed):
    join, path = f"/v1/projects/{agreed.project}/join", "/v1/projects"

    async def crowd():
        held = [Asked(agreed, "stranger", "POST", join, b"{}") for _ in range(32)]
        tasks = [asyncio.create_task(asked.answered()) for asked in held]
        for asked in held:
            await asyncio.wait_for(asked.read.wait(), 60)
        more = await Asked(agreed, "stranger", "POST", join, b"{}").answered()
        member = Asked(agreed, "owner", "POST", path, BODY)
        member.may_come.set()
        members = await member.answered()
        for asked in held:
            asked.may_come.set()
        return more, members, {await task for task in tasks}

    more, members, answers = asyncio.run(crowd())
    assert more == (429, "TOO_MANY_REQUESTS")
    assert members == (201, None)
    assert answers == {(400, "REQUEST_MALFORMED")}


def n_nonces(world):
    with world.store.reading() as connection:
        return connection.execute(text("SELECT count(*) FROM nonces")).scalar()


def test_whoever_has_no_invitation_leaves_nothing_behind(world):
    world.open_project()
    secret, before = world.invite(), n_nonces(world)
    for wrong in ("made-up", secret + "x"):
        refused(world.join("stranger", wrong), "INVITATION_INVALID", 404)
    assert n_nonces(world) == before
    body = json.dumps({"secret": secret, "public_key": key_with_proof(KEYS["stranger"])}).encode()
    path = f"/v1/projects/{world.project}/join"
    headers = sign_request("POST", URL + path, {}, body, KEYS["stranger"], now=world.now)
    assert world.client.post(path, content=body, headers=headers).status_code == 202
    assert n_nonces(world) == before + 1
    refused(world.client.post(path, content=body, headers=headers), "REPLAYED", 401)


def test_whoever_goes_away_is_no_failure_of_the_hub(agreed):
    browser = agreed.browser("north")
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    headers = {"Cookie": cookie, "Origin": URL}
    for asked in (
        Left(agreed, "owner", "POST", "/v1/projects", BODY),
        Left(agreed, "stranger", "POST", f"/v1/projects/{agreed.project}/join", BODY),
        Left(agreed, None, "POST", "/sign-out", BODY, headers=headers),
    ):
        status, told = asked.answer()
        assert status == 400
        assert "REQUEST_MALFORMED" in told
        assert "The connection ended" in told
    assert 'status="500"' not in generate_latest(agreed.client.app.state.numbers.registry).decode()


def test_failures_are_counted_from_nought_and_a_busy_upload_is_none(tmp_path):
    def counted(world):
        numbers = generate_latest(world.client.app.state.numbers.registry).decode()
        return {code: float(n) for code, n in re.findall(r'hub_failures_total{code="(\w+)"} (\S+)', numbers)}

    share = bundle("share", "north", party="north")
    with agreed_world(tmp_path / "hub") as world:
        upload = world.start("north", "share", share).json()["upload"]
        with world.hub.claims.of(upload):
            refused(world.ask("north", "DELETE", f"/v1/projects/{{p}}/uploads/{upload}"), "BUSY", 503)
        assert counted(world) == {"UNAVAILABLE": 0, "STORE_FULL": 0, "other": 0}
        (tmp_path / "hub" / "blobs").rename(tmp_path / "elsewhere")
        assert world.client.get("/readyz").status_code == 503
        assert counted(world) == {"UNAVAILABLE": 1, "STORE_FULL": 0, "other": 0}


def test_a_failure_that_nobody_foresaw_is_counted(world, monkeypatch):
    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(type(world.store), "check", fails)
    assert world.client.get("/readyz").status_code == 500
    numbers = generate_latest(world.client.app.state.numbers.registry).decode()
    assert 'datacollab_hub_failures_total{code="other"} 1.0' in numbers


def test_words_that_somebody_made_up_are_no_labels(world):
    """Each label is kept as long as the process lives."""
    for method, path in [("BREW", "/healthz"), ("INVENTED", "/v1/projects"), ("GET", "/nothing/here")]:
        assert world.client.request(method, path).status_code in (404, 405)
    world.client.get("/healthz")
    numbers = generate_latest(world.client.app.state.numbers.registry).decode()
    assert set(re.findall('method="(\\w+)"', numbers)) == {"GET", "other"}
    assert 'method="other",route="/healthz",status="405"} 1.0' in numbers
    assert 'method="GET",route="/healthz",status="200"} 1.0' in numbers
    assert "nothing" not in numbers


def test_a_database_that_is_away_is_no_wrong_signature(tmp_path, monkeypatch):
    def away(*_):
        raise OperationalError("SELECT", {}, Exception("connection refused"))

    with World(tmp_path) as world:
        monkeypatch.setattr("datacollab_hub.service._identifying.standing_of", away)
        answer = world.ask("owner", "GET", "/v1/projects")
        assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [("database or disk is full", 507, "STORE_FULL"), ("database is locked", 503, "UNAVAILABLE")],
)
def test_what_processes_share_may_fail(world, monkeypatch, said, status, code):
    def fails(*_):
        raise sqlite3.OperationalError(said)

    monkeypatch.setattr("datacollab_hub.service.Seen.count", fails)
    answer = world.ask("owner", "GET", "/v1/projects")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def n_held(bodies, who):
    """How many bodies of one who asks are held at once, when all wait."""
    with contextlib.ExitStack() as held:
        for number in range(1000):
            try:
                asks = who(number)
                held.enter_context(bodies.held(*asks) if isinstance(asks, tuple) else bodies.held(asks))
            except ExchangeError:
                return number
    raise AssertionError("no bound")


@pytest.mark.parametrize(
    "who", [lambda _: None, lambda _: "north", lambda number: f"key-{number}"], ids=["strangers", "one key", "keys"]
)
def test_several_processes_share_the_places_for_bodies(who):
    assert [n_held(Bodies(n), who) for n in (2, 8)] == [n_held(Bodies(), who) // n for n in (2, 8)]
    assert n_held(Bodies(1000), who) == 1


@pytest.mark.slow
def test_polls_that_wait_leave_threads_for_what_changes_something(agreed, monkeypatch):
    """More members than there are threads ask while the database is slow: a project is opened all the same."""
    go_on, status = threading.Event(), service.project_status

    def slow(*arguments):
        assert go_on.wait(60)
        return status(*arguments)

    async def opened_meanwhile():
        path = f"/v1/projects/{agreed.project}"
        # a server of this kind has forty threads
        polls = [asyncio.create_task(Asked(agreed, "north", "GET", path).answered()) for _ in range(60)]
        try:
            await asyncio.sleep(1)
            opening = Asked(agreed, "owner", "POST", "/v1/projects", BODY)
            opening.may_come.set()
            found = await asyncio.wait_for(opening.answered(), 30)
        finally:
            go_on.set()
        return found, await asyncio.gather(*polls)

    monkeypatch.setattr(service, "project_status", slow)
    opened, polled = asyncio.run(opened_meanwhile())
    assert opened == (201, None)
    assert set(polled) == {(200, None)}


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
    with TestClient(make_app(world.hub), base_url=URL) as second:
        refused(second.post("/v1/sessions", headers=headers), "REPLAYED", 401)


def test_a_request_that_was_refused_is_not_taken_later(agreed):
    data = bundle("share", "north", party="north")
    body = f'{{"kind": "share", "sha256": "{digest(data)}", "size": {len(data)}, "recipient": "south"}}'.encode()
    path = f"/v1/projects/{agreed.project}/uploads"
    headers = sign_request("POST", URL + path, {}, body, KEYS["north"], now=agreed.now)
    refused(agreed.client.post(path, headers=headers, content=body), "REQUEST_MALFORMED", 400)
    refused(agreed.client.post(path, headers=headers, content=body), "REPLAYED", 401)


@pytest.mark.parametrize(
    "change",
    [
        lambda request: request | {"content": b'{"name": "mine"}'},
        lambda request: request | {"url": request["url"] + "?after=1"},
        lambda request: request | {"headers": {**request["headers"], "Content-Digest": ""}},
    ],
)
def test_a_request_that_was_changed_on_its_way_is_refused(world, change):
    refused(world.ask("owner", "POST", "/v1/projects", {"name": "x"}, change=change), "SIGNATURE_INVALID", 401)
    assert world.ask("owner", "GET", "/v1/projects").json() == {"projects": []}


def test_a_request_is_to_this_hub_by_its_own_address_whatever_a_proxy_says(world):
    """A hub that passes on what it is asked, in its own name or in this one's."""
    headers = sign_request("GET", "https://evil.example/v1/projects", {}, b"", KEYS["owner"], now=world.now)
    for host in ("hub.example", "evil.example"):
        answer = world.client.get("/v1/projects", headers={**headers, "Host": host})
        refused(answer, "SIGNATURE_INVALID", 401)
    headers = sign_request("GET", URL + "/v1/projects", {}, b"", KEYS["owner"], now=world.now)
    answer = world.client.get("/v1/projects", headers={**headers, "Host": "10.0.0.7:8000"})
    assert answer.status_code == 200


def test_paths_are_compared_as_they_came(world):
    """What decodes to the same path was not signed."""
    headers = sign_request("GET", URL + "/v1/projects", {}, b"", KEYS["owner"], now=world.now)
    answer = world.client.get("/v1/%70rojects", headers=headers)
    assert answer.status_code in (401, 404)


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


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "seen.sqlite"


def may_ask(seen, key, now):
    try:
        seen.count(key, now)
    except ExchangeError as error:
        if error.code != "TOO_MANY_REQUESTS":
            raise
        return False
    return True


def test_a_request_is_taken_once_until_it_has_expired(place):
    seen = Seen(1.0, place)
    seen.take("north", "nonce", 0.0, 10.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 5.0, 10.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 10.0, 10.0)
    seen.take("south", "nonce", 5.0, 10.0)
    # One that waited, and was overtaken by others that cleared away.
    seen.take("south", "later", 14.0, 20.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 9.5, 10.0)
    seen.take("north", "nonce", 75.0, 80.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 80.0, 80.0)


@given(
    rate=st.sampled_from([0.1, 0.5, 1.0, 3.0, 50.0]),
    asked=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 3, width=16)), max_size=60),
)
def test_a_key_asks_as_often_as_a_bucket_allows(rate, asked):
    """Clearing away, which `take` does all the time here, changes nothing."""
    seen, most, now, left = Seen(rate), max(1.0, 4 * rate), 0.0, {}
    for number, (key, later) in enumerate(asked):
        now += later
        seen.take(key, str(number), now, now)
        there, then = left.get(key, (most, now))
        there = min(most, there + (now - then) * rate)
        if abs(there - 1) < 1e-9:
            return  # Rounding decides.
        assert may_ask(seen, key, now) == (there >= 1)
        left[key] = (there - 1, now) if there >= 1 else left.get(key, (most, now))


@pytest.mark.parametrize("back", [50.0, 50_000.0])
def test_a_clock_that_is_set_back_gives_nobody_more(place, back):
    seen, now = Seen(1.0, place), 100_000.0
    assert [may_ask(seen, "north", each) for each in [now] * 4 + [now - back, now - back + 0.5]] == [True] * 4 + [
        False
    ] * 2


def test_a_clock_that_was_a_day_ahead_keeps_nobody_out(place):
    seen = Seen(1.0, place)
    assert may_ask(seen, "north", 86_400.0)
    assert [may_ask(seen, "north", now) for now in (0.0, 0.0, 0.0, 0.0, 1.0)] == [True] * 3 + [False, True]


def test_requests_that_overtake_one_another_give_nobody_more(place):
    seen, rate, seconds = Seen(50.0, place), 50.0, 2.0
    times = [late for number in range(2000) for late in (number * 0.001, number * 0.001 - 0.04)]
    assert sum(may_ask(seen, "north", 100.0 + now) for now in times) <= 4 * rate + seconds * rate


@pytest.mark.slow
def test_what_has_expired_takes_no_room(tmp_path):
    """Also where all of it expires at once, and whoever is not let in asks alone."""
    seen, place = Seen(1.0, tmp_path / "seen.sqlite"), tmp_path / "seen.sqlite"
    for number in range(40_000):
        seen.take("north", str(number), 0.0, 10.0)
    for now in range(100, 300):
        for number in range(20):
            assert may_ask(seen, f"stranger-{now}-{number}", now)
    with sqlite3.connect(place) as database:
        assert database.execute("SELECT count(*) FROM requests").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM keys").fetchone()[0] <= 20 * 6
    assert (tmp_path / "seen.sqlite-wal").stat().st_size < 6 * 2**20


def test_many_keys_do_not_make_one_forget_how_often_it_asked(place):
    seen = Seen(1.0, place)
    for number in range(4):
        assert may_ask(seen, "often", 0.0)
        for other in range(100):
            assert may_ask(seen, f"other-{number}-{other}", 0.0)
        seen.take("often", str(number), 0.0, 10.0)
    assert not may_ask(seen, "often", 0.0)


def test_several_that_share_a_file_take_a_request_once_and_count_together(tmp_path):
    """As many at a time as one hub's processes and threads."""
    both = [Seen(2.0, tmp_path / "seen.sqlite") for _ in range(2)]
    taken, counted = [], []

    def work(seen):
        for number in range(50):
            try:
                seen.take("north", str(number), 0.0, 10.0)
            except ExchangeError:
                continue
            taken.append(number)
        counted.extend(may_ask(seen, "north", 0.0) for _ in range(10))

    threads = [threading.Thread(target=work, args=(seen,)) for seen in both for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(50))
    assert sum(counted) == 8
    for seen in both:
        seen.close()
