"""Files left in an object store that all reach."""

import pytest

from datacollab.bundle import digest
from datacollab.remote import StoreRemote
from party_world import refused
from s3_server import run_bucket


@pytest.fixture
def store():
    with run_bucket() as url:
        yield StoreRemote(f"{url}/exchange")


@pytest.mark.slow
def test_a_share_goes_there_and_comes_to_the_analyst(mail, store):
    path = mail.put("share", "b")
    assert mail.push("b", store).sent == {str(path): "share"}
    assert not mail.push("b", store).sent
    mail.pull("analyst", store)
    assert (mail.root / "analyst" / "inbox" / path.name).read_bytes() == path.read_bytes()
    entry = next(each for each in store.list(mail.folder("b")) if each.kind == "share")
    assert entry.sha256 == digest(path.read_bytes())
    store.withdraw(entry, folder=mail.folder("b"))
    assert not [each for each in store.list(mail.folder("analyst")) if each.kind == "share"]


@pytest.mark.slow
def test_what_others_send_later_is_seen_by_whoever_watches(mail, store):
    assert not [each for each in store.list(mail.folder("analyst")) if each.kind == "share"]
    mail.put("share", "b")
    mail.push("b", StoreRemote(store.url))
    assert [each.kind for each in store.list(mail.folder("analyst")) if each.kind == "share"] == ["share"]


def test_a_server_that_does_not_answer_is_told(mail, store, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    mail.put("share", "b")
    with refused("REMOTE_UNREACHABLE"):
        mail.push("b", StoreRemote(store.url))
