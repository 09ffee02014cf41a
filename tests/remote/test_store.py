"""Files left in a folder that all reach: what goes in, what comes out, and what is not believed."""

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from mail import OF_PARTIES, Mail

from datacollab.agreement import project_text, seal_anchor
from datacollab.bundle import digest
from datacollab.errors import ExchangeError
from datacollab.remote import Kept, RemotePlace, StoreRemote, choose_place, read_places, write_places
from party_world import refused
from suite import N_KILLS


@pytest.fixture(params=["folder", "memory"])
def store(request, tmp_path):
    if request.param == "folder":
        return StoreRemote(str(tmp_path / "store"))
    return StoreRemote(f"memory://{tmp_path.name}")


def everything(mail):
    """All kinds of files, where their makers have them."""
    return {kind: mail.put(kind, "b") for kind in ("share", "sums", "model", "answers", "round")}


def test_each_kind_reaches_whom_it_is_for_and_nobody_else(mail, store):
    made = everything(mail)
    for name in ("a", "b", "analyst"):
        done = mail.push(name, store)
        assert not done.refused
        assert not done.unsealed
    came = {name: mail.pull(name, store)[0].came for name in ("a", "b", "analyst")}
    assert sorted(came["b"].values()) == ["anchor", "answers", "model", "round"]
    assert sorted(came["analyst"].values()) == ["share", "sums"]
    assert sorted(came["a"].values()) == ["anchor", "round"]
    assert mail.inbox("b") == ["anchor.dcanchor", "b.dcanswers", "b.dcmodel", "round.dcround"]
    for kind, path in made.items():
        receiver = "analyst" if kind in OF_PARTIES else "b"
        there = mail.root / receiver / "inbox" / path.name
        assert there.read_bytes() == path.read_bytes()
        assert there.stat().st_mode & 0o077 == 0


def test_files_lie_where_the_document_says(mail, tmp_path):
    path = mail.put("share", "b")
    mail.push("a", StoreRemote(str(tmp_path / "store")))
    mail.push("b", StoreRemote(str(tmp_path / "store")))
    found = {str(each.relative_to(tmp_path / "store")) for each in (tmp_path / "store").rglob("*") if each.is_file()}
    project, anchor = (mail.root / "project.toml").read_bytes(), (mail.root / "anchor.dcanchor").read_bytes()
    root = mail.project.digest
    assert found == {
        f"{root}/share/{digest(path.read_bytes())}.dcshare",
        f"{root}/anchor/{digest(anchor)}.dcanchor",
        f"{root}/agreement/{digest(project)}.toml",
    }


def test_what_was_sent_and_fetched_is_not_sent_and_fetched_again(mail, store):
    path = mail.put("share", "b")
    assert mail.push("b", store).sent == {str(path): "share"}
    again = mail.push("b", store)
    assert (again.sent, again.there) == ({}, [str(path)])
    first, kept = mail.pull("analyst", store)
    assert len(first.came) == 1
    shutil.rmtree(mail.root / "analyst" / "inbox")
    second, _ = mail.pull("analyst", store, kept)
    assert not second.came
    forgotten, _ = mail.pull("analyst", store)
    assert len(forgotten.came) == 1


def test_somebody_who_has_keys_alone_gets_project_and_anchor(mail, store):
    mail.push("a", store)
    (mail.root / "b" / "project.toml").unlink()
    done, _ = mail.pull("b", store)
    assert sorted(done.came.values()) == ["agreement", "anchor"]
    assert mail.inbox("b") == ["anchor.dcanchor", "project.toml"]
    assert mail.pull("b", store)[0].came.keys() == {str(mail.root / "b" / "inbox" / "anchor.dcanchor")}
    nobodys, _ = mail.pull("stranger", store)
    assert not nobodys.came
    assert mail.inbox("stranger") == []


@pytest.mark.parametrize("kind", OF_PARTIES)
def test_a_second_one_is_refused_until_the_first_is_taken_back(mail, store, kind):
    path = mail.put(kind, "b")
    mail.push("b", store)
    mail.put(kind, "b", hours=1)
    done = mail.push("b", store)
    assert done.refused[str(path)].code == "ALREADY_SHARED"
    (entry,) = store.list(mail.folder("b"))
    store.withdraw(entry, folder=mail.folder("b"))
    assert mail.push("b", store).sent == {str(path): kind}


@pytest.mark.parametrize("kind", ["share", "sums"])
def test_a_share_after_the_deadline_is_refused(tmp_path, kind):
    mail = Mail(tmp_path, deadline=date(2026, 3, 31))
    path = mail.put(kind, "b")
    late, last = (StoreRemote(str(tmp_path / "store"), today=date(2026, *day)) for day in ((4, 1), (3, 31)))
    assert mail.push("b", late).refused[str(path)].code == "DEADLINE_PASSED"
    assert mail.push("b", last).sent


@pytest.mark.parametrize(
    ("options", "code"),
    [
        *(({"signer": "stranger"}, "SIGNATURE_INVALID"), ({"signer": "a"}, "SIGNATURE_INVALID")),
        *(({"project_digest": "0" * 64}, "PROJECT_HASH_MISMATCH"), ({"party": "c", "signer": "b"}, "NOT_A_MEMBER")),
        *(({"party": 1, "signer": "b"}, "NOT_A_MEMBER"), ({"party": "a", "signer": "a"}, "NOT_A_MEMBER")),
        *(({"created": "yesterday"}, "BUNDLE_MALFORMED"), ({"created": "2026-01-01"}, "BUNDLE_MALFORMED")),
    ],
)
def test_only_ones_own_files_of_this_project_leave(mail, store, options, code):
    right = mail.put("sums", "b")
    wrong = mail.root / "b" / "outbox" / "b.dcshare"
    named = options.get("party", "b")
    wrong.write_bytes(mail.made("share", named, **{name: each for name, each in options.items() if name != "party"}))
    done = mail.push("b", store)
    assert done.refused[str(wrong)].code == code
    assert done.sent == {str(right): "sums"}


def test_a_damaged_file_does_not_leave(mail, store):
    path = mail.put("share", "b")
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(data)
    assert mail.push("b", store).refused[str(path)].code in ("HASH_MISMATCH", "BUNDLE_MALFORMED")
    assert store.list(mail.folder("b")) == []


def test_a_share_that_all_can_read_is_told(mail, store):
    path = mail.put("share", "b", sealed=False)
    assert mail.push("b", store).unsealed == [str(path)]
    assert mail.push("b", store).unsealed == [str(path)]


def left_by_hand(mail, store_root, kind, suffix, data, name=None):
    place = store_root / mail.project.digest / kind / f"{name or digest(data)}{suffix}"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


@pytest.mark.parametrize(
    ("change", "code"),
    [
        *(("other bytes", "HASH_MISMATCH"), ("cut", "HASH_MISMATCH"), ("member changed", "HASH_MISMATCH")),
        *(("signed by a stranger", "SIGNATURE_INVALID"), ("signed by another party", "SIGNATURE_INVALID")),
    ],
)
def test_what_others_left_or_changed_in_a_store_does_not_come(mail, tmp_path, change, code):
    root = tmp_path / "store"
    good = left_by_hand(mail, root, "share", ".dcshare", mail.made("share", "a"))
    data, name = mail.made("share", "b"), None
    if change == "other bytes":
        name = "0" * 64
    elif change == "cut":
        data, name = data[:-1], digest(data)
    elif change == "member changed":
        changed = bytearray(data)
        changed[-300] ^= 1
        data = bytes(changed)
    else:
        data = mail.made("share", "b", signer="stranger" if "stranger" in change else "a")
    left_by_hand(mail, root, "share", ".dcshare", data, name)
    done, kept = mail.pull("analyst", StoreRemote(str(root)))
    ((sha256, error),) = done.refused.items()
    assert error.code == code
    assert mail.inbox("analyst") == ["a.dcshare"]
    assert kept.fetched == (good.name.partition(".")[0],)


def test_other_things_in_a_store_are_passed_over(mail, tmp_path):
    root = tmp_path / "store"
    left_by_hand(mail, root, "share", ".dcshare", b"", "README")
    left_by_hand(mail, root, "share", ".dcshare", b"no bundle")
    left_by_hand(mail, root, "share", ".txt", b"text")
    left_by_hand(mail, root, "model", ".dcmodel", mail.made("share", "b"))
    left_by_hand(mail, root, "agreement", ".toml", b"no project")
    (root / "README.txt").write_text("hello")
    (root / ("1" * 64)).write_text("a file, not a folder")
    for name in ("a", "b", "analyst"):
        done, _ = mail.pull(name, StoreRemote(str(root)))
        assert (done.came, done.refused) == ({}, {})


def test_a_model_for_somebody_else_does_not_come(mail, tmp_path):
    """A hub might list another party's file as one's own; a store lists by what files say."""

    class Lying(StoreRemote):
        def list(self, folder):
            return [replace(entry, recipient=folder.key.fingerprint) for entry in self._entries(mail.project, "model")]

    root = tmp_path / "store"
    left_by_hand(mail, root, "model", ".dcmodel", mail.made("model", "a"))
    done, _ = mail.pull("b", Lying(str(root)))
    assert [error.code for error in done.refused.values()] == ["WRONG_RECIPIENT"]
    assert mail.inbox("b") == []


def test_a_file_of_another_kind_than_listed_does_not_come(mail, tmp_path):
    class Lying(StoreRemote):
        def list(self, folder):
            return [replace(entry, kind="answers") for entry in self._entries(mail.project, "model")]

        def fetch(self, entry, part, **options):
            super().fetch(replace(entry, kind="model"), part, **options)

    root = tmp_path / "store"
    left_by_hand(mail, root, "model", ".dcmodel", mail.made("model", "b"))
    done, _ = mail.pull("b", Lying(str(root)))
    assert [error.code for error in done.refused.values()] == ["WRONG_KIND"]


@pytest.mark.parametrize(
    ("kind", "receiver", "name"),
    [("model", "b", "b.dcmodel"), ("sums", "analyst", "b.dcsum"), ("round", "b", "round.dcround")],
)
def test_an_older_file_does_not_take_a_newers_place(mail, tmp_path, kind, receiver, name):
    root, suffix = tmp_path / "store", Path(name).suffix
    newer, older = mail.made(kind, "b", hours=2), mail.made(kind, "b", hours=1)
    left_by_hand(mail, root, kind, suffix, newer)
    _, kept = mail.pull(receiver, StoreRemote(str(root)))
    left_by_hand(mail, root, kind, suffix, older)
    done, kept = mail.pull(receiver, StoreRemote(str(root)), kept)
    assert done.older == [digest(older)]
    assert (mail.root / receiver / "inbox" / name).read_bytes() == newer
    newest = mail.made(kind, "b", hours=3)
    left_by_hand(mail, root, kind, suffix, newest)
    done, kept = mail.pull(receiver, StoreRemote(str(root)), kept)
    assert list(done.came.values()) == [kind]
    assert (mail.root / receiver / "inbox" / name).read_bytes() == newest
    # A folder that remembers nothing ends with the newest as well, in whatever order the store lists them.
    shutil.rmtree(mail.root / receiver / "inbox")
    mail.pull(receiver, StoreRemote(str(root)))
    assert mail.inbox(receiver) == [name]
    assert (mail.root / receiver / "inbox" / name).read_bytes() == newest


def test_what_vanishes_between_two_looks_stops_nothing_else(mail, tmp_path):
    """Its sender has taken it back meanwhile, or somebody has tidied up."""
    store = StoreRemote(str(tmp_path / "store"))
    mail.push("a", store)
    for name in ("a", "b"):
        mail.put("share", name)
        mail.push(name, store)
    names, listed = store._names, store.list(mail.folder("analyst"))
    (gone,) = [each for each in listed if each.sender == mail.keys["b"].public.fingerprint]
    (tmp_path / "store" / mail.project.digest / "share" / f"{gone.sha256}.dcshare").unlink()
    with refused("NOT_FOUND"):
        store.withdraw(gone, folder=mail.folder("b"))
    store.list = lambda folder: listed
    done, kept = mail.pull("analyst", store)
    assert {sha256: error.code for sha256, error in done.refused.items()} == {gone.sha256: "NOT_FOUND"}
    assert mail.inbox("analyst") == ["a.dcshare"]
    # Also where it vanishes before it was looked into.
    del store.list
    ghosts = {"share": f"{gone.sha256}.dcshare", "agreement": f"{'0' * 64}.toml"}
    store._names = lambda place: [
        *names(place),
        *(f"{place}/{ghost}" for kind, ghost in ghosts.items() if place.endswith(f"/{kind}")),
    ]
    done, _ = mail.pull("analyst", store, kept)
    assert (done.came, done.refused) == ({}, {})
    assert store.status(mail.folder("analyst")).shared == ("a",)


def test_a_download_goes_on_where_it_ended(mail, tmp_path, monkeypatch):
    root, data = tmp_path / "store", mail.made("model", "b", size=50_000)
    left_by_hand(mail, root, "model", ".dcmodel", data)
    monkeypatch.setattr("datacollab.remote._store._PIECE", 1000)
    left = [7]

    def stop(step, share=None):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mail.pull("b", StoreRemote(str(root)), tell=stop)
    (part,) = (mail.root / "b" / "inbox").iterdir()
    begun = part.read_bytes()
    assert part.stat().st_mode & 0o077 == 0
    assert 0 < len(begun) < len(data)
    assert data.startswith(begun)
    shares = []
    mail.pull("b", StoreRemote(str(root)), tell=lambda step, share=None: shares.append(share))
    assert (mail.root / "b" / "inbox" / "b.dcmodel").read_bytes() == data
    assert mail.inbox("b") == ["b.dcmodel"]
    assert min(share for share in shares if share) > len(begun) / len(data)


@pytest.mark.parametrize("rest", [b"wrong beginning", b"x" * 100_000])
def test_a_wrong_beginning_is_thrown_away(mail, tmp_path, rest):
    root, data = tmp_path / "store", mail.made("model", "b")
    left_by_hand(mail, root, "model", ".dcmodel", data)
    (mail.root / "b" / "inbox").mkdir()
    (mail.root / "b" / "inbox" / f".{digest(data)}.part").write_bytes(rest)
    first, _ = mail.pull("b", StoreRemote(str(root)))
    if first.refused:
        assert [error.code for error in first.refused.values()] == ["HASH_MISMATCH"]
        first, _ = mail.pull("b", StoreRemote(str(root)))
    assert list(first.came.values()) == ["model"]
    assert mail.inbox("b") == ["b.dcmodel"]


def test_an_interrupted_upload_leaves_nothing_that_counts(mail, store, monkeypatch):
    path = mail.put("share", "b", size=50_000)
    monkeypatch.setattr("datacollab.remote._store._PIECE", 1000)

    def stop(step, share=None):
        if share is not None and share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mail.push("b", store, tell=stop)
    assert mail.pull("analyst", store)[0].came == {}
    assert mail.push("b", store).sent == {str(path): "share"}
    assert list(mail.pull("analyst", store)[0].came.values()) == ["share"]


def test_what_a_killed_command_left_goes_with_the_next_one(mail, tmp_path):
    root, path = tmp_path / "store", mail.put("share", "b")
    name = f"{digest(path.read_bytes())}.dcshare"
    leftover = left_by_hand(mail, root, "share", "", b"half", f".{name}.0123456789abcdef.part")
    mail.push("b", StoreRemote(str(root)))
    assert not leftover.exists()
    assert [each.name for each in leftover.parent.iterdir()] == [name]


def test_a_new_revision_comes_with_its_anchor_and_an_old_one_does_not_replace_it(mail, store):
    mail.push("a", store)
    newer = replace(mail.project, revision=2, quorum=1)
    (mail.root / "a" / "project.toml").write_text(project_text(newer, mail.keys["a"]))
    (mail.root / "a" / "anchor.dcanchor").write_bytes(seal_anchor(mail.world.anchor, newer, mail.keys["a"]))
    mail.push("a", store)
    done, kept = mail.pull("b", store)
    assert sorted(done.came.values()) == ["agreement", "anchor"]
    for name in ("project.toml", "anchor.dcanchor"):
        assert (mail.root / "b" / "inbox" / name).read_bytes() == (mail.root / "a" / name).read_bytes()
    again, _ = mail.pull("b", store, kept)
    assert (again.came, again.refused) == ({}, {})
    came = mail.root / "b" / "inbox" / "project.toml"
    # Joining is the party's decision: until then files of the new revision wait.
    assert mail.folder("b").agreed.digest == mail.project.digest
    (mail.root / "b" / "project.toml").write_bytes(came.read_bytes())
    (mail.root / "a" / "project.toml").write_bytes((mail.root / "project.toml").read_bytes())
    pushed = mail.push("a", store, mail.root / "a" / "project.toml")
    assert [error.code for error in pushed.refused.values()] == ["PROJECT_OLDER"]


def test_a_later_revision_that_waits_in_the_inbox_is_not_replaced_by_an_older_one(mail, store):
    for revision in (3, 2):
        later = replace(mail.project, revision=revision)
        text = project_text(later, mail.keys["a"])
        if revision == 3:
            (mail.root / "b" / "inbox").mkdir()
            (mail.root / "b" / "inbox" / "project.toml").write_text(text)
    store.agree(later, text.encode())
    done, _ = mail.pull("b", store)
    assert done.refused["agreement"].code == "PROJECT_OLDER"
    assert mail.folder("b").coming.revision == 3


def test_an_anchor_of_another_version_of_the_project_is_not_sent(mail, store):
    newer = replace(mail.project, revision=2)
    (mail.root / "a" / "anchor.dcanchor").write_bytes(seal_anchor(mail.world.anchor, newer, mail.keys["a"]))
    done = mail.push("a", store)
    assert [error.code for error in done.refused.values()] == ["PROJECT_HASH_MISMATCH"]


def test_an_owner_names_files_that_lie_elsewhere(mail, store):
    (mail.root / "a" / "project.toml").unlink()
    (mail.root / "a" / "anchor.dcanchor").unlink()
    with refused("PROJECT_MISSING"):
        mail.folder("a").agreed  # noqa: B018
    done = mail.push("a", store, mail.root / "project.toml", mail.root / "anchor.dcanchor")
    assert sorted(done.sent.values()) == ["agreement", "anchor"]


def test_the_projects_of_two_owners_cannot_be_told_apart(mail, store, tmp_path):
    mail.push("a", store)
    other = replace(mail.project, owner=mail.keys["stranger"].public, name="other")
    (mail.root / "stranger" / "project.toml").write_text(project_text(other, mail.keys["stranger"]))
    mail.push("stranger", store)
    assert mail.pull("b", store)[0].refused == {}
    (mail.root / "b" / "project.toml").unlink()
    assert mail.pull("b", store)[0].refused["agreement"].code == "REMOTE_INVALID"


def test_a_store_that_cannot_be_used_is_told_and_nothing_is_remembered(mail, tmp_path):
    mail.put("share", "b")
    (tmp_path / "file").write_text("not a folder")
    with refused("REMOTE_UNREACHABLE"):
        mail.push("b", StoreRemote(str(tmp_path / "file" / "below")))
    with refused("REMOTE_INVALID"):
        StoreRemote("nonsense://somewhere")


def test_what_is_remembered_is_read_as_it_was_written(tmp_path):
    kept = Kept().having("1" * 64).having("1" * 64).expecting("2" * 64).without("3" * 64).without("3" * 64)
    kept.write(tmp_path, "hub")
    assert Kept.read(tmp_path, "hub") == kept
    assert Kept.read(tmp_path, "other") == Kept()
    path = tmp_path / ".remotes" / "hub.json"
    written = json.loads(path.read_bytes())
    wrong = [{name: [1]} for name in ("fetched", "expected", "shown", "withdrawn", "owed")]
    wrong += [{"agreed": 1}, {"head": None}, {"seq": "0"}, {"seq": True}, {"version": 2}, {"other": []}]
    for damaged in (b"", b"[]", b'{"version":1}', *(json.dumps({**written, **each}).encode() for each in wrong)):
        path.write_bytes(damaged)
        with refused("STATE_DAMAGED"):
            Kept.read(tmp_path, "hub")


def test_a_file_that_changes_while_it_is_sent_is_not_left_there(mail, tmp_path, monkeypatch):
    path, store = mail.put("share", "b", size=50_000), StoreRemote(str(tmp_path / "store"))
    monkeypatch.setattr("datacollab.remote._store._PIECE", 1000)

    def change(step, share=None):
        if share is not None and 0.3 < share < 0.4:
            path.write_bytes(bytes(path.stat().st_size))

    assert mail.push("b", store, tell=change).refused[str(path)].code == "HASH_MISMATCH"
    assert [each for each in (tmp_path / "store").rglob("*") if each.is_file()] == []


def test_only_a_later_revision_in_the_inbox_is_to_be_joined(mail):
    (mail.root / "b" / "inbox").mkdir()
    later = replace(mail.project, revision=2)
    (mail.root / "b" / "inbox" / "project.toml").write_text(project_text(later, mail.keys["a"]))
    assert mail.folder("b").coming.digest == later.digest
    # As it stays there once it was joined, and when a still later one was.
    for revision in (2, 3):
        joined = replace(mail.project, revision=revision)
        (mail.root / "b" / "project.toml").write_text(project_text(joined, mail.keys["a"]))
        assert mail.folder("b").coming is None


@pytest.mark.parametrize(
    ("owner", "revision", "code"), [("stranger", 5, "SIGNATURE_INVALID"), ("a", 1, "PROJECT_OLDER")]
)
def test_a_project_file_of_another_owner_or_an_older_one_does_not_come(mail, tmp_path, owner, revision, code):
    joined = replace(mail.project, revision=2)
    (mail.root / "b" / "project.toml").write_text(project_text(joined, mail.keys["a"]))
    lie = replace(mail.project, revision=revision, owner=mail.keys[owner].public)

    class Lying(StoreRemote):
        def agreement(self, folder):
            return project_text(lie, mail.keys[owner]).encode()

    done, _ = mail.pull("b", Lying(str(tmp_path / "store")))
    assert done.refused["agreement"].code == code
    assert mail.inbox("b") == []


def a_link(path):
    path.symlink_to(path.parents[3] / "elsewhere")


@pytest.mark.skipif(os.name != "posix", reason="FIFOs are files of POSIX systems")
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, a_link])
@pytest.mark.parametrize("kind", ["anchor", "agreement"])
def test_what_is_no_file_is_refused_and_named_and_never_waited_for(mail, tmp_path, make, kind):
    store = StoreRemote(str(tmp_path / "store"))
    mail.push("a", store)
    (place,) = (tmp_path / "store" / mail.project.digest / kind).iterdir()
    place.rename(tmp_path / "elsewhere")
    make(place)
    done = []
    thread = threading.Thread(target=lambda: done.append(outcome(mail, store)), daemon=True)
    thread.start()
    thread.join(60)
    assert done, "the pull is still waiting"
    assert done[0].code == "BUNDLE_MALFORMED"
    assert str(place) in str(done[0])


def outcome(mail, store):
    """The refusal that a pull ends with or reports."""
    try:
        done, _ = mail.pull("b", store)
    except ExchangeError as error:
        return error
    (error,) = done.refused.values()
    return error


def test_a_project_file_that_is_none_elsewhere_stops_no_other_project(mail, tmp_path):
    store = StoreRemote(str(tmp_path / "store"))
    mail.push("a", store)
    others = tmp_path / "store" / ("0" * 64) / "agreement"
    others.mkdir(parents=True)
    os.mkfifo(others / ("0" * 64 + ".toml"))
    assert len(mail.pull("b", store)[0].came) == 1


HERE = Path(__file__).parent


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX has them")
def test_kills_leave_whole_files_or_none(mail):
    mail.put("share", "b", size=20_000_000)
    killing = [sys.executable, str(HERE.parent / "killing.py"), str(HERE / "carrying.py")]
    done = subprocess.run([*killing, str(mail.root), str(N_KILLS), "0"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    leftovers = [path.name for path in mail.root.glob("store/**/.*.part")]
    assert not leftovers


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
        *({"url": f"{kind}://me:secret@files.example/exchange"} for kind in ("https", "sftp")),
        *({"url": url} for url in ("https://[broken", "https://hub.example:port", "", "/mnt/\x1b[31m")),
        {"url": "/mnt", "project": "0" * 32},
        *({"url": "/mnt", "name": name} for name in ("../x", "", "Nul")),
    ],
)
def test_places_that_cannot_be(options):
    with refused("REMOTE_INVALID") as found:
        RemotePlace(**{"name": "hub"} | options)
    assert "secret" not in str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        *(b"\xff", b"[remotes", b"other = 1", b"remotes = 1", b"[remotes.hub]", b"[remotes.hub]\nurl = 1"),
        b'[remotes.hub]\nurl = "/mnt"\ntoken = "x"',
        b'[remotes."../hub"]\nurl = "/mnt"',
    ],
)
def test_files_that_cannot_be(tmp_path, text):
    (tmp_path / "remotes.toml").write_bytes(text)
    with refused("REMOTE_INVALID"):
        read_places(tmp_path)
