"""A store on an SFTP server: one of this machine, which the test runs by itself."""

import contextlib
import os
import socket
import threading
from typing import ClassVar

import fsspec
import pytest
from mail import Mail

from datacollab.bundle import digest
from datacollab.remote import StoreRemote
from party_world import refused

paramiko = pytest.importorskip("paramiko", reason="the extra sftp is not installed")


class Login(paramiko.ServerInterface):
    asked: ClassVar[list] = []

    def check_auth_password(self, username, password):
        self.asked.append(username)
        return paramiko.AUTH_SUCCESSFUL if (username, password) == ("me", "word") else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED


class Folder(paramiko.SFTPServerInterface):
    """Files below a folder."""

    root = None

    def place(self, path):
        return os.path.join(self.root, self.canonicalize(path).lstrip("/"))

    def tried(self, action):
        try:
            return action()
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    def list_folder(self, path):
        def listed():
            place = self.place(path)
            return [
                paramiko.SFTPAttributes.from_stat(os.lstat(os.path.join(place, name)), name)
                for name in os.listdir(place)
            ]

        return self.tried(listed)

    def stat(self, path):
        return self.tried(lambda: paramiko.SFTPAttributes.from_stat(os.stat(self.place(path))))

    lstat = stat

    def open(self, path, flags, attr):
        def opened():
            handle = os.open(self.place(path), flags, 0o600)
            file = os.fdopen(handle, "rb" if not flags & (os.O_WRONLY | os.O_RDWR) else "wb")
            found = paramiko.SFTPHandle(flags)
            found.readfile = found.writefile = file
            return found

        return self.tried(opened)

    def remove(self, path):
        return self.tried(lambda: os.remove(self.place(path)) or paramiko.SFTP_OK)

    def mkdir(self, path, attr):
        return self.tried(lambda: os.mkdir(self.place(path)) or paramiko.SFTP_OK)

    def posix_rename(self, old, new):
        return self.tried(lambda: os.replace(self.place(old), self.place(new)) or paramiko.SFTP_OK)

    rename = posix_rename


@pytest.fixture
def server(tmp_path):
    """Address of a server whose root is a new folder."""
    (tmp_path / "served").mkdir()
    handler = type("Served", (Folder,), {"root": str(tmp_path / "served")})
    key = paramiko.RSAKey.generate(2048)
    listening = socket.create_server(("127.0.0.1", 0))
    transports = []

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transports.append(transport)
            transport.add_server_key(key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, handler)
            # A client that does not know the server hangs up.
            with contextlib.suppress(paramiko.SSHException, EOFError):
                transport.start_server(server=Login())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1], key
    for transport in transports:
        transport.close()
    listening.close()


@pytest.fixture
def known(server, tmp_path, monkeypatch):
    """The server's port, as ssh of somebody knows it."""
    port, key = server
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    known = tmp_path / "home" / ".ssh" / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} ssh-rsa {key.get_base64()}\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    fsspec.config.conf["sftp"] = {"username": "me", "password": "word", "look_for_keys": False, "allow_agent": False}
    yield known
    del fsspec.config.conf["sftp"]


@pytest.mark.slow
def test_files_cross_by_sftp(server, known, tmp_path):
    mail, store = Mail(tmp_path), StoreRemote(f"sftp://127.0.0.1:{server[0]}/exchange")
    path = mail.put("share", "b", size=1_500_000)
    assert mail.push("b", store).sent == {str(path): "share"}
    mail.push("a", store)
    served = tmp_path / "served" / "exchange" / mail.project.digest / "share"
    assert [each.name for each in served.iterdir()] == [f"{digest(path.read_bytes())}.dcshare"]
    assert list(mail.pull("analyst", store)[0].came.values()) == ["share"]
    assert (mail.root / "analyst" / "inbox" / "b.dcshare").read_bytes() == path.read_bytes()
    assert list(mail.pull("b", store)[0].came.values()) == ["anchor"]
    (entry,) = [each for each in store.list(mail.folder("b")) if each.kind == "share"]
    store.withdraw(entry, folder=mail.folder("b"))
    assert list(served.iterdir()) == []


@pytest.mark.parametrize("change", ["nobody knows it", "another key"])
def test_a_server_that_is_not_known_gets_no_password(server, known, change):
    key = paramiko.RSAKey.generate(2048).get_base64()
    known.write_text("" if change == "nobody knows it" else f"[127.0.0.1]:{server[0]} ssh-rsa {key}\n")
    Login.asked.clear()
    with refused("REMOTE_UNREACHABLE"):
        StoreRemote(f"sftp://127.0.0.1:{server[0]}/exchange")
    assert Login.asked == []
