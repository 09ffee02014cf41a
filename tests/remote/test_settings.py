"""`remotes.toml`: what is written is read again, and what cannot be used is refused."""

import pytest

from datacollab.remote import RemotePlace, choose_place, read_places, write_places
from party_world import refused


def test_what_is_written_is_read_again(tmp_path):
    places = {
        "hub": RemotePlace(name="hub", url="https://hub.example:8443/below", project="0" * 32, ca="ca.pem"),
        "store": RemotePlace(name="store", url="sftp://files.example/exchange"),
    }
    write_places(tmp_path, places)
    assert read_places(tmp_path) == places
    assert (tmp_path / "remotes.toml").stat().st_mode & 0o077 == 0
    assert choose_place(tmp_path, "store") == places["store"]
    for name in (None, "other"):
        with refused("REMOTE_UNKNOWN"):
            choose_place(tmp_path, name)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "https://me:secret@hub.example"},
        {"url": "sftp://me:secret@files.example/exchange"},
        {"url": "https://[broken"},
        {"url": "https://hub.example:port"},
        {"url": ""},
        {"url": "/mnt/\x1b[31m"},
        {"url": "/mnt", "project": "0" * 32},
        {"url": "/mnt", "name": "../x"},
        {"url": "/mnt", "name": ""},
        {"url": "/mnt", "name": "Nul"},
    ],
)
def test_places_that_cannot_be(options):
    with refused("REMOTE_INVALID") as found:
        RemotePlace(**{"name": "hub"} | options)
    assert "secret" not in str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"[remotes",
        b"other = 1",
        b"remotes = 1",
        b"[remotes.hub]",
        b"[remotes.hub]\nurl = 1",
        b'[remotes.hub]\nurl = "/mnt"\ntoken = "x"',
        b'[remotes."../hub"]\nurl = "/mnt"',
    ],
)
def test_files_that_cannot_be(tmp_path, text):
    (tmp_path / "remotes.toml").write_bytes(text)
    with refused("REMOTE_INVALID"):
        read_places(tmp_path)
