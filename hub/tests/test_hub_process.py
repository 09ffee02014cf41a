"""A real hub: killed again and again in the middle of an upload, which goes on; and its commands."""

import json
import random
import threading
import time

import httpx
import pytest
from sqlalchemy import text

from datacollab.agreement import project_text
from datacollab.bundle import digest, key_with_proof
from datacollab_hub.requests import check_hub_log, sign_request
from hub_process import HubProcess, free_port
from hub_world import FINGERPRINTS, KEYS, PROJECT, World, bundle
from playing import done as run
from suite import IS_NIGHTLY


def ask(hub, who, method, path, body=None, **headers):
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    signed = sign_request(method, hub.url + path, {}, data, KEYS[who])
    return httpx.request(method, hub.url + path, content=data, headers={**named, **signed}, timeout=60)


IN_A_FILE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""What does not depend on where the database is."""


@pytest.fixture
def folder(tmp_path, database):
    (tmp_path / "owner.key").write_text(key_with_proof(KEYS["owner"]))
    more = ["--database", database] if database else []
    run("hub", "allow", tmp_path / "owner.key", "--data", tmp_path / "hub", *more)
    return tmp_path


def opened(hub):
    project = ask(hub, "owner", "POST", "/v1/projects", {"name": "heart"}).json()["project"]
    text = project_text(PROJECT, KEYS["owner"]).encode()
    assert ask(hub, "owner", "PUT", f"/v1/projects/{project}/agreement", text).status_code == 201
    return f"/v1/projects/{project}"


def upload(hub, at, data, piece, stop):
    """As a client does it: ask where to go on, send, and begin again where the line is cut."""
    while not stop.is_set():
        try:
            said = {"kind": "sums", "sha256": digest(data), "size": len(data)}
            answer = ask(hub, "north", "POST", f"{at}/uploads", said)
            if answer.status_code == 200:
                return
            place, offset = f"{at}/uploads/{answer.json()['upload']}", answer.json()["offset"]
            while True:
                answer = ask(hub, "north", "PATCH", place, data[offset : offset + piece], Upload_Offset=str(offset))
                if answer.status_code == 201:
                    return
                assert answer.status_code in (204, 409), answer.text
                offset = int(answer.headers["Upload-Offset"])
        except httpx.TransportError:
            time.sleep(0.01)


@pytest.mark.nightly
@IN_A_FILE  # `benchmarks/test_hub_faults.py` kills one on PostgreSQL.
def test_a_hub_that_is_killed_between_parts_loses_nothing(folder, database):
    n_kills = 40 if IS_NIGHTLY else 8
    chance, data = random.Random(n_kills), bundle("sums", "north", party="north", size=8_000_000)
    hub = HubProcess(folder / "hub", free_port(), folder / "log", database=database)
    stop = threading.Event()
    with hub:
        at = opened(hub)
        client = threading.Thread(target=upload, args=(hub, at, data, 2**16, stop))
        client.start()
        offsets = []
        for _ in range(n_kills):
            time.sleep(chance.uniform(0.05, 0.4))
            hub.kill()
            listed = hub.start() and ask(hub, "north", "GET", f"{at}/files").json()["files"]
            assert [file["sha256"] for file in listed] in ([], [digest(data)])
            offsets.append(bool(listed))
        client.join(timeout=120)
        stop.set()
        assert not client.is_alive()
        assert not offsets[0], "the kills came too late to be between parts"
        answer = ask(hub, "analyst", "GET", f"{at}/files/{digest(data)}")
        assert answer.content == data
        entries = ask(hub, "north", "GET", f"{at}/log?after=0").json()["entries"]
        check_hub_log(at.rpartition("/")[2], entries)
        assert [entry["action"] for entry in entries].count("received") == 1


@pytest.mark.slow
@IN_A_FILE
def test_what_an_operator_sees(folder, database):
    (folder / "token").write_text("s3cret-token\n")
    more = ["--metrics-token", str(folder / "token")]
    hub = HubProcess(folder / "hub", free_port(), folder / "log", database=database, more=more)
    with hub:
        at = opened(hub)
        secret = ask(hub, "owner", "POST", f"{at}/invitations", {"name": "x", "role": "party", "days": 1}).json()[
            "link"
        ]
        httpx.get(f"{hub.url}/nothing/<script>")
        assert httpx.get(f"{hub.url}/metrics").status_code == 404
        numbers = httpx.get(f"{hub.url}/metrics", headers={"Authorization": "Bearer s3cret-token"})
        assert 'route="/v1/projects/{project}/agreement",status="201"} 1.0' in numbers.text
        headers = httpx.get(f"{hub.url}/healthz").headers
        assert "server" not in headers
        assert headers["x-content-type-options"] == "nosniff"
        assert hub.stop() == 0
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["event"] == "request"]
    assert {"method", "route", "status", "ms", "bytes", "time", "level"} <= requests[-1].keys()
    (agreement,) = [line for line in requests if line["route"].endswith("/agreement")]
    assert (agreement["who"], agreement["status"]) == (FINGERPRINTS["owner"], 201)
    said = (folder / "log").read_text()
    assert secret.rpartition("#")[2] not in said
    assert "script" not in said
    assert "s3cret" not in said


@pytest.mark.nightly
def test_the_operators_commands(folder, database, tmp_path):
    more = ["--database", database] if database else []
    data = ["--data", folder / "hub", *more]
    assert json.loads(run("hub", "db", "current", *data, "--json").stdout) == {"current": "0003", "newest": "0003"}
    hub = HubProcess(folder / "hub", free_port(), folder / "log", database=database)
    with hub:
        project = opened(hub).rpartition("/")[2]
        told = json.loads(run("hub", "log", "verify", *data, "--json").stdout)["logs"]
        assert [(each["project"], each["entries"]) for each in told] == [(project, 2)]
        run("hub", "backup", *data, "-o", tmp_path / "copy")
    run("hub", "log", "export", project, *data, "-o", tmp_path / "log.jsonl")
    assert json.loads(run("hub", "log", "verify", tmp_path / "log.jsonl", "--json").stdout)["logs"] == told
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    (tmp_path / "log.jsonl").write_text("\n".join([lines[0], lines[2]]))
    assert "LOG_BROKEN" in run("hub", "log", "verify", tmp_path / "log.jsonl", code=11).stderr
    run("hub", "log", "verify", code=2)
    assert "NOT_FOUND" in run("hub", "log", "export", "f" * 32, *data, "-o", tmp_path / "x", code=14).stderr
    run("hub", "restore", tmp_path / "copy", "--data", tmp_path / "new")
    assert json.loads(run("hub", "log", "verify", "--data", tmp_path / "new", "--json").stdout)["logs"] == told
    run("hub", "db", "downgrade", "base", *data)
    assert json.loads(run("hub", "db", "upgrade", *data, "--json").stdout) == {"before": None, "current": "0003"}
    run("hub", "db", "downgrade", "9999", *data, code=14)


def test_a_key_is_allowed_with_its_owners_signature_alone(tmp_path):
    (tmp_path / "x.key").write_text(KEYS["owner"].public.text)
    assert "KEY_MALFORMED" in run("hub", "allow", tmp_path / "x.key", "--data", tmp_path / "hub", code=10).stderr


@pytest.mark.slow
def test_an_address_with_a_path_is_refused(tmp_path):
    result = run("hub", "serve", "--data", tmp_path / "hub", "--url", "https://a.example/hub", code=13)
    assert "REQUEST_MALFORMED" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        *(("backup", "-o", "{tmp}/copy"), ("db", "current"), ("db", "downgrade", "base"), ("log", "verify")),
        ("log", "export", "f" * 32, "-o", "{tmp}/log.jsonl"),
    ],
)
def test_who_only_looks_makes_no_hub(tmp_path, command):
    arguments = ["hub", *(word.format(tmp=tmp_path) for word in command), "--data"]
    told = run(*arguments, tmp_path / "mistyped", code=14).stderr
    assert "FOLDER_MISSING" in told
    assert "mistyped is no hub's folder" in told
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "others").mkdir()
    assert "FOLDER_MISSING" in run(*arguments, tmp_path / "others", code=14).stderr
    assert list((tmp_path / "others").iterdir()) == []


@pytest.mark.slow
def test_a_database_without_tables_is_no_hub(tmp_path, database):
    more = ["--database", database or f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"]
    for _ in range(2):
        for command in (("db", "current"), ("log", "verify")):
            assert "FOLDER_MISSING" in run("hub", *command, "--data", tmp_path, *more, code=14).stderr
    run("hub", "db", "upgrade", "--data", tmp_path, *more)
    run("hub", "db", "current", "--data", tmp_path, *more)
    told = run("hub", "log", "verify", "--data", tmp_path, *more).stdout
    assert told == "The hub has no project yet, and so no log.\n"


def test_every_broken_log_is_named(tmp_path):
    with World(tmp_path / "hub") as world:
        first, whole, second = (world.open_project(name) for name in ("one", "two", "three"))
        with world.store.writing() as connection:
            connection.execute(text("UPDATE log SET who = 'somebody else' WHERE project <> :whole"), {"whole": whole})
    result = run("hub", "log", "verify", "--data", tmp_path / "hub", code=11)
    assert "LOG_BROKEN: 2 of 3 logs are broken." in result.stderr
    for project in (first, second):
        assert f"Entry 1 of the hub's log does not follow from the one before it, in the project {project}" in (
            result.stderr
        )
    assert f"{whole}: 1 entries, none changed" in result.stdout
    assert whole not in result.stderr
