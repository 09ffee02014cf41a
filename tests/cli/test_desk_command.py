"""``datacollab desk`` as a program: its link, its address, and how it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import typer

from datacollab.steps.party import PartyFolder
from party_world import new_world
from playing import run


@pytest.fixture
def world(tmp_path):
    made = new_world(tmp_path)
    made.join()
    return made


@pytest.fixture
def desk(world):
    """The running program, and the link that it printed."""
    command = [sys.executable, "-m", "datacollab", "desk", "-C", str(world.root / "a"), "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        link = None
        for line in running.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+/enter/\S+", line):
                link = found[0]
                break
        yield running, link
        running.kill()


def assert_listens_on_loopback_alone(port):
    own = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {"127.0.0.1"}:
        with pytest.raises(OSError, match="refused|unreachable|timed out"):
            socket.create_connection((address, port), timeout=5)
    socket.create_connection(("127.0.0.1", port), timeout=30).close()


@pytest.mark.slow
def test_the_link_opens_once_on_loopback_alone_and_an_interruption_ends_it_in_order(desk):
    running, link = desk
    assert_listens_on_loopback_alone(int(re.search(r":(\d+)/", link)[1]))
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(link, timeout=30).close()
    with opener.open(link.partition("/enter")[0], timeout=30) as answer:
        assert answer.status == 200
        assert "Party a of project wards" in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(link, timeout=30)
    assert refused.value.code == 403
    refused.value.close()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    assert "The desk is closed." in out
    assert link.rpartition("/")[2] not in out + err


def test_keys_pressed_as_soon_as_they_are_named_end_it_in_order(world, monkeypatch):
    said = typer.echo

    def pressed(line="", **options):
        said(line, **options)
        if "Ctrl-C" in line:
            raise KeyboardInterrupt

    monkeypatch.setattr(typer, "echo", pressed)
    result = run("desk", "-C", world.root / "a", "--no-browser")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "The desk is closed." in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a program that stands for a browser is a shell's")
def test_the_secret_is_not_among_the_arguments_of_the_browser(world):
    """Every user of a machine can read these."""
    browser, told = world.root / "browser", world.root / "told"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}.part\ncp "${{1#file://}}" {world.root}/page\nmv {told}.part {told}\n'
    )
    browser.chmod(0o700)
    command = [sys.executable, "-m", "datacollab", "desk", "-C", str(world.root / "a")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "BROWSER": f"{browser} %s"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        end = time.monotonic() + 120
        while not told.exists() and time.monotonic() < end:
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    secret = re.search(r"/enter/(\S+)", out)[1]
    arguments = told.read_text()
    assert arguments.startswith("file:///")
    assert secret not in arguments
    assert f'value="{secret}"' in (world.root / "page").read_text()
    assert err == ""
    assert list((world.root / "a" / "desk").iterdir()) == []


def answered(client, path, words, seconds=60):
    """The page, once it says so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        page = client.get(path).text
        if words in page:
            return page
        time.sleep(0.2)
    raise AssertionError(f"{path} did not say: {words}")


@pytest.mark.nightly
def test_a_long_upload_is_kept_whole_and_a_desk_that_closes_before_a_yes_lets_nothing_leave(world, desk):
    """The upload is more than what the server holds in memory."""
    running, link = desk
    httpx = pytest.importorskip("httpx2")
    folder, data = world.root / "a", (world.root / "a.csv").read_bytes()
    long = data + data.partition(b"\n")[2] * 800
    assert len(long) > 2**21
    before = set(folder.rglob("*"))
    with httpx.Client(base_url=link.partition("/enter")[0], follow_redirects=True, timeout=60) as client:
        token = re.search(r'name="token" value="([^"]+)"', client.get(link).text + client.get("/table").text)[1]
        client.post("/table", files={"upload": ("t.csv", long)}, data={"token": token})
        answered(client, "/work", f"{801 * 80} rows fit the project")
        assert (folder / "desk" / "table.csv").read_bytes() == long
        assert set(folder.rglob("*")) - before == {folder / "desk", folder / "desk" / "table.csv"}
        client.post("/table", files={"upload": ("t.csv", data)}, data={"token": token})
        answered(client, "/work", ">80 rows fit the project")
        quick = {"no_audit": "yes", "components": "3"}
        client.post("/release", data={"token": token} | quick)
        answered(client, "/work", "This may be shared")
        client.post("/approve", data={"token": token})
        answered(client, "/work", "Your decision")
        assert PartyFolder(folder).share_digest() is None
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 0
    assert PartyFolder(folder).share_digest() is None
    assert list((folder / "outbox").iterdir()) == []


def test_a_port_that_is_taken_is_named(world):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run("desk", "-C", world.root / "a", "--no-browser", "--port", port)
    assert result.exit_code == 1
    assert f"Port {port} of this machine is taken" in result.stderr


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_what_is_no_port_is_a_usage_error(world, port):
    result = run("desk", "-C", world.root / "a", "--no-browser", "--port", port)
    assert result.exit_code == 2
    assert "Invalid value for '--port'" in result.stderr


def test_without_its_packages_it_says_how_to_install_them(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = run("desk", "-C", world.root / "a", "--no-browser")
    assert result.exit_code == 1
    assert "pip install 'datacollab[desk]'" in result.stderr
