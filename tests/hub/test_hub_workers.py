"""A hub of several processes: they take a request once, count together, and stand in for one another."""

import contextlib
import json
import re
import socket
import threading
import time

import httpx
import psutil
import pytest
from hub_process import HubProcess, free_port
from hub_world import KEYS, bundle
from test_hub_process import ask, folder, opened, upload  # noqa: F401

from datacollab.bundle import digest
from datacollab.exchange.requests import sign_request


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


def test_a_request_that_changes_nothing_is_taken_once_by_all_of_them(hub):
    at = opened(hub)
    for _ in range(10):
        signed = sign_request("GET", f"{hub.url}{at}", {}, b"", KEYS["north"])
        # A connection each, so that both processes are asked.
        answers = [httpx.get(f"{hub.url}{at}", headers=signed, timeout=60) for _ in range(6)]
        assert sorted(answer.status_code for answer in answers) == [200] + [401] * 5
        assert {answer.json()["code"] for answer in answers[1:]} == {"REPLAYED"}


def test_their_numbers_are_of_all(hub):
    for _ in range(40):
        httpx.get(f"{hub.url}/healthz", timeout=60)
    for _ in range(5):
        shown = httpx.get(f"{hub.url}/metrics", timeout=60).text
        assert re.search(r'requests_total\{.*route="/healthz",status="200"\} (\S+)', shown)[1] == "40.0"
        assert 'failures_total{code="UNAVAILABLE"} 0.0' in shown


def test_a_key_asks_as_often_as_if_they_were_one(folder, database):  # noqa: F811
    hub = HubProcess(folder / "hub", free_port(), folder / "log", database=database, more=["--workers", "2"])
    hub.arguments[hub.arguments.index("--rate") + 1] = "0.1"
    with hub:
        assert [ask(hub, "owner", "GET", "/v1/projects").status_code for _ in range(8)].count(200) == 1


def test_one_that_is_killed_is_replaced_and_an_upload_goes_on(hub):
    at, data, stop = opened(hub), bundle("balance", "north", party="north", size=4_000_000), threading.Event()
    client = threading.Thread(target=upload, args=(hub, at, data, 2**16, stop))
    client.start()
    try:
        for number in range(3):
            workers(hub)[0].kill()
            until(lambda: n_started(hub) == 3 + number)  # noqa: B023
    finally:
        client.join(timeout=120)
        stop.set()
    assert not client.is_alive()
    assert ask(hub, "analyst", "GET", f"{at}/files/{digest(data)}").content == data
    entries = ask(hub, "north", "GET", f"{at}/log?after=0").json()["entries"]
    assert [entry["action"] for entry in entries].count("received") == 1
    assert hub.stop() == 0
    lines = [json.loads(line) for line in hub.log.read_text().splitlines() if line.startswith("{")]
    assert sum(line["event"].endswith("died") for line in lines) == 3


def test_they_end_with_the_one_that_began_them(hub):
    each = workers(hub)
    hub.kill()
    psutil.wait_procs(each, timeout=120)
    assert not any(process.is_running() for process in each)
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", hub.port))
