"""Folders against a hub in a process of its own: lines are cut, clocks are wrong, processes are killed."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from cutting_proxy import Proxy
from mail import Mail

from datacollab.bundle import digest
from datacollab.remote import Kept
from datacollab_hub.remote import HubRemote, Patience, open_project
from party_world import refused

pytest.importorskip("fastapi", reason="the extra hub is not installed")
from datacollab_hub.store import Store, allow_key

HERE = Path(__file__).parent
MEBI = 2**20
pytestmark = pytest.mark.nightly

KILLS = int(os.environ.get("DATACOLLAB_KILLS", "6"))


class Served:
    """A hub in a process, behind a line that can be cut; its address is the line's."""

    def __init__(self, root):
        self.folder, self.proxy = root / "hub", Proxy()
        self.url = f"http://127.0.0.1:{self.proxy.port}"
        self.process = None
        self.start()

    def start(self, ahead=0):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.proxy.target = free.getsockname()[1]
        words = [self.folder, self.url, self.proxy.target, ahead]
        with open(self.folder.with_suffix(".log"), "ab") as told:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "served_hub.py"), *map(str, words)], stdout=told, stderr=told
            )
        for _ in range(600):
            assert self.process.poll() is None, self.folder.with_suffix(".log").read_text()
            try:
                if httpx.get(f"http://127.0.0.1:{self.proxy.target}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError("the hub did not start")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def close(self):
        self.stop(signal.SIGKILL)
        self.proxy.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A hub in a process."""
    served = Served(tmp_path_factory.mktemp("served"))
    yield served
    served.close()


class RealMail(Mail):
    """Members of a project of their own each time, at one hub."""

    hub = None

    def __init__(self, root):
        super().__init__(root)
        self.opened = []

    def open_project(self):
        self.id = open_project(self.remote("a", project=None).client, "wards")
        assert self.push("a", self.remote("a")).refused == {}

    def remote(self, name, *, project="", attempts=40):
        project = self.id if project == "" else project
        patience = Patience(attempts=attempts, first=0.02, sleep=lambda seconds: time.sleep(min(seconds, 0.2)))
        self.opened.append(HubRemote(self.hub.url, self.keys[name], project, patience=patience))
        return self.opened[-1]


@pytest.fixture
def mail(served, tmp_path):
    """Members of a new project, whose owner the hub's operator lets open it, and who has sent agreement and anchor."""
    mail = RealMail(tmp_path)
    mail.hub = served
    store = Store.opened(served.folder)
    with store.writing() as connection:
        allow_key(connection, mail.keys["a"].public, time.time())
    store.close()
    mail.open_project()
    yield mail
    for remote in mail.opened:
        remote.close()


def files_at(mail, name="b", kind="share"):
    return [each for each in mail.remote(name).list(mail.folder(name)) if each.kind == kind and not each.withdrawn]


@pytest.mark.parametrize("seed", range(3))
def test_lines_that_are_cut_at_any_byte(mail, seed):
    """Upwards and downwards, within headers, bodies and answers: what arrives is whole, and arrives once."""
    chance = random.Random(seed)
    path = mail.put("share", "b", size=9 * MEBI)
    mail.hub.proxy.limits += [
        (chance.randrange(1, 6 * MEBI), None) if chance.random() < 0.7 else (None, chance.randrange(1, 900))
        for _ in range(6)
    ]
    before = mail.hub.proxy.n_cut
    assert mail.push("b", mail.remote("b")).sent == {str(path): "share"}
    mail.hub.proxy.limits.clear()
    assert mail.hub.proxy.n_cut > before
    (there,) = files_at(mail)
    assert there.sha256 == digest(path.read_bytes())
    mail.hub.proxy.limits += [(None, chance.randrange(1, 5 * MEBI)) for _ in range(6)]
    done, _ = mail.pull("analyst", mail.remote("analyst"))
    mail.hub.proxy.limits.clear()
    assert list(done.came.values()) == ["share"]
    assert (mail.root / "analyst" / "inbox" / "b.dcshare").read_bytes() == path.read_bytes()
    kept = mail.remote("b").witness(Kept(expected=(there.sha256,)), mail.folder("b"))
    assert kept.expected == ()


def test_what_passed_is_of_no_use_a_second_time(mail):
    """Whoever keeps a request as it passed and sends it again is refused."""
    mail.put("sums", "b")
    mail.hub.proxy.passed.clear()
    mail.push("b", mail.remote("b"))
    mail.pull("analyst", mail.remote("analyst"))
    seen = [bytes(passed) for passed in mail.hub.proxy.passed if passed]
    assert seen
    entries = len(log_of(mail))
    for passed in seen:
        with socket.create_connection(("127.0.0.1", mail.hub.proxy.target)) as again:
            again.sendall(passed + b"GET /healthz HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
            told = b""
            while data := again.recv(2**16):
                told += data
        *replayed, healthy = re.findall(rb"HTTP/1.1 (\d+)", told)
        assert replayed
        assert set(replayed) == {b"401"}
        assert told.count(b"REPLAYED") == len(replayed)
        assert healthy == b"200"
    assert len(log_of(mail)) == entries


def log_of(mail):
    return mail.remote("a").client.ask("GET", f"/v1/projects/{mail.id}/log?after=0").field("entries", list)


@pytest.mark.parametrize("ahead", [86_400, -86_400])
def test_a_clock_that_is_wrong_by_a_day(mail, ahead):
    mail.put("sums", "b")
    mail.hub.stop()
    mail.hub.start(ahead)
    try:
        with refused("CLOCK_SKEW"):
            mail.push("b", mail.remote("b"))
    finally:
        mail.hub.stop()
        mail.hub.start()
    assert mail.push("b", mail.remote("b")).sent


def test_a_hub_that_is_killed_between_pieces(mail):
    """And comes back while the client waits."""
    path = mail.put("share", "b", size=12 * MEBI)
    steps = []

    def kill_once(step, share=None):
        steps.append(share)
        if share is not None and 0.3 < share < 1 and len(steps) < 1000:
            steps.extend([None] * 1000)
            mail.hub.stop(signal.SIGKILL)
            mail.hub.start()

    assert mail.push("b", mail.remote("b"), tell=kill_once).sent == {str(path): "share"}
    (there,) = files_at(mail)
    assert there.sha256 == digest(path.read_bytes())
    assert min(share for share in steps[1000:] if share is not None) > 0


PUSH = """
import json, sys, time
from pathlib import Path
from datacollab.bundle import KeyPair
from datacollab.remote import MemberFolder, push
from datacollab_hub.remote import HubRemote
folder, url, project = sys.argv[1:]
remote = HubRemote(url, KeyPair.load(Path(folder) / "keys.json"), project)
def tell(step, share=None):
    print(json.dumps([step, share]), flush=True)
    time.sleep(0.02)
push(MemberFolder.at(Path(folder)), remote, tell=tell)
"""


def test_a_client_that_is_killed_in_mid_upload_goes_on(mail):
    path, chance = mail.put("share", "b", size=16 * MEBI), random.Random(0)
    words = [sys.executable, "-c", PUSH, str(mail.root / "b"), mail.hub.url, mail.id]
    furthest = []
    for _ in range(KILLS):
        client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        for _ in range(chance.randrange(2, 5)):
            step, share = json.loads(client.stdout.readline() or "[null, null]")
            furthest.append(share or 0.0)
        client.kill()
        client.communicate()
        assert mail.pull("analyst", mail.remote("analyst"))[0].came.keys() <= {
            str(mail.root / "analyst" / "inbox" / "b.dcshare")
        }
    assert subprocess.run(words, check=False, capture_output=True).returncode == 0
    (there,) = files_at(mail)
    assert there.sha256 == digest(path.read_bytes())
    assert max(furthest) > 0
    mail.pull("analyst", mail.remote("analyst"))
    assert (mail.root / "analyst" / "inbox" / "b.dcshare").read_bytes() == path.read_bytes()
