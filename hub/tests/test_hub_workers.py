"""A hub of several processes: they take a request once, count together, and stand in for one another."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from uvicorn.importer import import_from_string

from datacollab.bundle import digest
from datacollab_hub.requests import sign_request
from datacollab_hub.store import Store
from hub_process import HubProcess, free_port
from hub_world import KEYS, bundle
from postgres_server import ON_ONE_DATABASE
from test_hub_process import IN_A_FILE, ask, folder, opened, upload  # noqa: F401

pytestmark = pytest.mark.nightly


@pytest.fixture
def hub(folder, database):  # noqa: F811
    with HubProcess(folder / "hub", free_port(), folder / "log", database=database, more=["--workers", "2"]) as hub:
        until(lambda: len(workers(hub)) == 2 and n_started(hub) == 2)
        yield hub


def workers(hub):
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(hub.process.pid).children()
        return [each for each in children if "--multiprocessing-fork" in each.cmdline()]
    return []


def n_started(hub):
    return hub.log.read_text().count("Application startup complete")


def until(is_so):
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def at_once(n, ask):
    """Answers to the same question, by a connection each, so that all processes are asked."""
    with ThreadPoolExecutor(n) as threads:
        return [each.result() for each in [threads.submit(ask) for _ in range(n)]]


def test_a_request_that_changes_nothing_is_taken_once_by_all_of_them(hub):
    at = opened(hub)
    for _ in range(10):
        signed = sign_request("GET", f"{hub.url}{at}", {}, b"", KEYS["north"])
        answers = at_once(8, lambda: httpx.get(f"{hub.url}{at}", headers=signed, timeout=60))  # noqa: B023
        assert sorted(answer.status_code for answer in answers) == [200] + [401] * 7
        assert {answer.json()["code"] for answer in answers if answer.status_code == 401} == {"REPLAYED"}


@IN_A_FILE
def test_their_numbers_are_of_all(hub):
    for _ in range(40):
        httpx.get(f"{hub.url}/healthz", timeout=60)

    def shown():
        return httpx.get(f"{hub.url}/metrics", timeout=60).text

    def n_healthy(text):
        return re.search(r'requests_total\{.*route="/healthz",status="200"\} (\S+)', text)[1]

    # The last one is counted after it was answered.
    until(lambda: n_healthy(shown()) == "40.0")
    for text in at_once(8, shown):
        assert n_healthy(text) == "40.0"
        assert 'failures_total{code="UNAVAILABLE"} 0.0' in text


def test_a_key_asks_as_often_as_if_they_were_one(folder, database):  # noqa: F811
    hub = HubProcess(folder / "hub", free_port(), folder / "log", database=database, more=["--workers", "2"])
    hub.arguments[hub.arguments.index("--rate") + 1] = "0.1"
    with hub:
        until(lambda: n_started(hub) == 2)
        begun = time.monotonic()
        statuses = [answer.status_code for answer in at_once(8, lambda: ask(hub, "owner", "GET", "/v1/projects"))]
        assert 1 <= statuses.count(200) <= 1 + 0.1 * (time.monotonic() - begun)
        assert set(statuses) == {200, 429}


@ON_ONE_DATABASE
def test_one_that_is_killed_is_replaced_and_an_upload_goes_on(hub):
    at, data, stop = opened(hub), bundle("sums", "north", party="north", size=4_000_000), threading.Event()
    client = threading.Thread(target=upload, args=(hub, at, data, 2**16, stop))
    client.start()
    try:
        for number in range(3):
            workers(hub)[0].kill()
            until(lambda: n_started(hub) >= 3 + number)  # noqa: B023
    finally:
        client.join(timeout=120)
        stop.set()
    assert not client.is_alive()
    assert ask(hub, "analyst", "GET", f"{at}/files/{digest(data)}").content == data
    entries = ask(hub, "north", "GET", f"{at}/log?after=0").json()["entries"]
    assert [entry["action"] for entry in entries].count("received") == 1
    assert hub.stop() == 0
    lines = [json.loads(line) for line in hub.log.read_text().splitlines() if line.startswith("{")]
    assert sum(line["event"].endswith("died") for line in lines) >= 3


@IN_A_FILE
def test_they_end_with_the_one_that_began_them(hub):
    each = workers(hub)
    hub.kill()
    psutil.wait_procs(each, timeout=120)
    assert not any(process.is_running() for process in each)
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", hub.port))
    (left,) = hub.folder.glob("running-*")
    with hub:
        (used,) = hub.folder.glob("running-*")
        assert used != left
        assert hub.stop() == 0
    assert not [*hub.folder.glob("running-*")]


@IN_A_FILE
def test_one_that_begins_beside_another_leaves_what_is_in_use(hub):
    (used,) = hub.folder.glob("running-*")
    before = {path.name for path in used.iterdir()}
    second = HubProcess(hub.folder, hub.port, hub.log, more=["--workers", "2"])
    second.environment = hub.environment
    code = "from datacollab.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *second.arguments], env=hub.environment, timeout=300, check=False
    )
    assert done.returncode != 0  # The port is taken.
    assert {path.name for path in used.iterdir()} == before
    assert ask(hub, "owner", "GET", "/v1/projects").status_code == 200


@IN_A_FILE
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_what_is_secret_is_in_no_environment(folder, database):  # noqa: F811
    (folder / "token").write_text("s3cret-token\n")
    more = ["--workers", "2", "--metrics-token", str(folder / "token")]
    with HubProcess(folder / "hub", free_port(), folder / "log", database=database, more=more) as hub:
        for each in psutil.Process(hub.process.pid).children(recursive=True):
            assert b"s3cret" not in Path(f"/proc/{each.pid}/environ").read_bytes()
        (told,) = (folder / "hub").glob("running-*/told.json")
        assert (told.stat().st_mode & 0o777, told.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_one_that_finds_no_room_waits_and_ends(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("datacollab_hub.web._serving._check_room", full)
    monkeypatch.setattr("datacollab_hub.web._serving._PAUSE", 0.0)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    Store.opened(tmp_path / "hub").close()
    told = {"data": str(tmp_path / "hub"), "database": None, "blobs": None, "n_processes": 2}
    (tmp_path / "told.json").write_text(json.dumps({**told, "settings": {"url": "https://hub.example"}}))
    with pytest.raises(SystemExit) as ended:
        import_from_string("datacollab_hub.web._serving:one_of_several")()
    assert ended.value.code == 1
