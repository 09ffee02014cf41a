import errno
import fcntl
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from datacollab.agreement import load_project
from datacollab.bundle import KeyPair, PublicKey, open_regular, pack, read_regular, unpack, write_atomically
from datacollab.errors import ExchangeError
from datacollab.folder.log import locked
from refusals import refused_with

KILLED = """
import itertools, os, random, signal, sys, time
from pathlib import Path
from datacollab.bundle import write_atomically
from datacollab.folder.log import locked

path = Path(sys.argv[1])
n_leftovers = 0
for seed in range(60):
    child = os.fork()
    if not child:
        with locked(path.parent):
            for letter in itertools.cycle(b"ab"):
                write_atomically(path, bytes([letter]) * 1_000_000, mode=0o600)
    time.sleep(random.Random(seed).uniform(0.001, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    n_leftovers += len(list(path.parent.glob(".*.part")))
    assert not path.exists() or path.read_bytes() in (b"a" * 1_000_000, b"b" * 1_000_000)
    with locked(path.parent):
        assert {each.name for each in path.parent.iterdir()} <= {"state", ".lock"}
print(n_leftovers)
"""
HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def umask():
    before = os.umask(0)
    yield os.umask
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_or_the_new_file(tmp_path):
    """Sixty writers, forked from one process that has loaded everything, are killed at random points."""
    found = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "state"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 0, "no writer was killed in the middle, so nothing was shown"


def test_the_old_file_stays_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "state"
    write_atomically(path, b"old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_permissions_hold_under_any_umask(tmp_path, umask, mode):
    for mask in (0, 0o022, 0o077):
        umask(mask)
        path = tmp_path / f"{mask}"
        write_atomically(path, b"x", mode=mode)
        assert mode_of(path) == mode & ~mask


def test_the_half_written_file_is_never_open_to_others(tmp_path, umask, monkeypatch):
    seen = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: seen.append(mode_of(a)) or replace(a, b))
    write_atomically(tmp_path / "secret", b"x", mode=0o600)
    assert seen == [0o600]


def test_a_file_that_is_not_to_be_overwritten(tmp_path, monkeypatch):
    path = tmp_path / "keys"
    write_atomically(path, b"first", overwrite=False)
    for _ in range(2):
        with refused_with("ALREADY_THERE"):
            write_atomically(path, b"second", overwrite=False)
        # The second time as if the file had come between the look and the renaming.
        monkeypatch.setattr(os.path, "lexists", lambda path: False)
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["keys"]


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def no_links(a, b):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    write_atomically(tmp_path / "keys", b"first", overwrite=False)
    assert (tmp_path / "keys").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["keys"]


def test_a_folder_that_is_missing_is_named_and_long_names_are_written(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(tmp_path / "no" / "state", b"x")
    assert str(tmp_path / "no" / "state") in str(caught.value)
    assert ".part" not in str(caught.value)
    path = tmp_path / ("n" * 255)
    write_atomically(path, bytes(3_000_000))
    assert path.stat().st_size == 3_000_000


def test_two_commands_in_one_folder_that_must_be_there(tmp_path):
    with locked(tmp_path), refused_with("BUSY", match=re.escape(str(tmp_path))), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass
    with refused_with("FOLDER_MISSING"), locked(tmp_path / "no"):
        pass


def test_the_lock_ends_with_the_process(tmp_path):
    with locked(tmp_path):
        assert mode_of(tmp_path / ".lock") == 0o600
    process = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / ".lock"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    with refused_with("BUSY"), locked(tmp_path):
        pass
    process.kill()
    process.communicate()
    with locked(tmp_path):
        pass


def test_what_is_cleared_away(tmp_path):
    (tmp_path / "outbox").mkdir()
    old = [tmp_path / f".state.{'0' * 16}.part", tmp_path / "outbox" / f".a.dcshare.{'f' * 16}.part"]
    kept = [tmp_path / "book.part", tmp_path / ".mine.part", tmp_path / "state"]
    written_now = tmp_path / f".table.csv.{'1' * 16}.part"
    for path in [*old, *kept, written_now]:
        path.write_bytes(b"x")
    with open(written_now, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with locked(tmp_path):
            assert not any(path.exists() for path in old)
            assert all(path.exists() for path in [*kept, written_now])


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


def a_link_to_a_device(path):
    path.symlink_to("/dev/zero")


def a_link_to_a_fifo(path):
    os.mkfifo(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def within(seconds, call, *args):
    """What a call returns or raises; a failure where it does neither in time, as one that waits at a FIFO."""
    found = []

    def run():
        try:
            found.append(call(*args))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, f"{call} is still waiting after {seconds} s"
    return found[0]


@pytest.mark.parametrize("make", [os.mkfifo, a_socket, a_link_to_a_device, Path.mkdir, a_link_to_a_fifo])
@pytest.mark.parametrize("read", [open_regular, read_regular, unpack, PublicKey.load, load_project])
def test_what_is_no_file_is_refused_at_once_and_named(tmp_path, monkeypatch, make, read):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "given")
    error = within(60, read, tmp_path / "given")
    assert isinstance(error, ExchangeError)
    assert str(tmp_path / "given") in str(error)


def test_a_link_is_followed_where_a_person_names_it_and_refused_elsewhere(tmp_path):
    data = pack("datacollab.share", {}, {}, key=KeyPair.generate())
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link") == data
    with open_regular(tmp_path / "file", follow=False) as file:
        assert file.read() == data
    with pytest.raises(ExchangeError, match="link is a symbolic link"):
        open_regular(tmp_path / "link", follow=False)
