"""The hub's load: its client signs as the hub wants it, and a run of seconds loses and refuses nothing."""

import json
import sys
import time
from pathlib import Path

import pytest

from datacollab.bundle import KeyPair
from datacollab_hub.requests import verify_request

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from hub_load.__main__ import FILE, main
from hub_load.client import Asker
from hub_load.server import find_programs


@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("POST", b'{"name": "heart"}'), ("PATCH", bytes(2**16))])
def test_own_signatures_are_what_the_hub_verifies(method, body):
    asker = Asker(KeyPair.generate())
    head, _, sent = asker.message(method, "127.0.0.1:8000", "/v1/projects/0a/files", body).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first == f"{method} /v1/projects/0a/files HTTP/1.1"
    assert sent == body
    headers = dict(line.split(": ", 1) for line in lines)
    url = "http://127.0.0.1:8000/v1/projects/0a/files"
    found = verify_request(method, url, headers, body, {asker.fingerprint: asker.key.public}.get, time.time())
    assert found.key == asker.key.public


@pytest.mark.nightly
@pytest.mark.skipif(find_programs() is None, reason="PostgreSQL's programs are not found")
def test_a_short_run_loses_and_refuses_nothing(tmp_path):
    arguments = ["--seconds", "4", "--rate", "20", "--uploads", "3", "--upload-mb", "5", "--at-once", "2"]
    arguments += ["--projects", "2", "--parties-per-project", "3", "--total", "300", "--connections", "8"]
    assert main([*arguments, "--output", str(tmp_path / "out"), "--copy-to", str(tmp_path / "copy")]) == 0
    result = json.loads((tmp_path / "copy" / FILE).read_text())
    polls, uploads = result["polls"], result["uploads"]
    assert result["is_whole"]
    assert result["total"] == 300
    assert not polls["at_a_rate"]["errors"]
    assert not polls["without_pause"]["errors"]
    assert 40 <= polls["at_a_rate"]["answered"] <= 130  # a Poisson number whose mean is 80
    assert not uploads["failed"]
    assert uploads["accepted"] == uploads["listed_once"] == uploads["equal_bytes"] == 3
    # The system counts CPU in steps of 10 ms: 80 requests may cost the database less than one, all 300 do not.
    costs = [polls[part]["cpu_ms_a_request"] for part in ("at_a_rate", "without_pause")]
    assert all(max(cost[who] for cost in costs) > 0 for who in costs[0])
    assert "300 requests were made in one run" in (tmp_path / "copy" / "README.md").read_text()
