"""What stands under a name that others may have given: a regular file is opened, and nothing is waited for."""

import os
import socket
import threading

import pytest

from datacollab.bundle import KeyPair, PublicKey, open_regular, pack, read_regular, unpack
from datacollab.errors import ExchangeError
from datacollab.exchange.project import load_project

pytestmark = pytest.mark.skipif(os.name != "posix", reason="FIFOs are files of POSIX systems")


def a_fifo(path):
    os.mkfifo(path)


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


def a_link_to_a_device(path):
    path.symlink_to("/dev/zero")


def a_folder(path):
    path.mkdir()


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


@pytest.mark.parametrize("make", [a_fifo, a_socket, a_link_to_a_device, a_folder, a_link_to_a_fifo])
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
