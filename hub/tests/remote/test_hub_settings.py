"""Hubs in `remotes.toml`: addresses that cannot be used are refused."""

import pytest

from datacollab.remote import RemotePlace
from party_world import refused


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://hub.example"},
        {"url": "https://"},
        {"url": "https://hub.example/?q=1"},
        {"url": "https://hub.example/#part"},
        {"url": "https://hub.example", "project": "../../x"},
        {"url": "https://me@hub.example"},
    ],
)
def test_hubs_that_cannot_be(options):
    with refused("REMOTE_INVALID"):
        RemotePlace(**{"name": "hub"} | options)


@pytest.mark.parametrize("url", ["https://hub.example:8443/below", "http://localhost:8000", "http://127.0.0.1:1"])
def test_hubs_that_can_be(url):
    assert RemotePlace(name="hub", url=url, project="0" * 32, ca="ca.pem").url == url
