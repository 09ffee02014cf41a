import stat
import warnings
from dataclasses import replace

import numpy as np
import pytest

from datacollab.agreement import load_project
from datacollab.errors import ExchangeError
from datacollab.folder.log import locked
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from party_world import NAMES, contents, events, refused


def test_the_log_tells_what_was_done_and_no_data(world):
    folder = world.installed()
    folder.predict(world.root / "new.csv", world.root / "out.csv")
    folder.evaluate(world.root / "new.csv")
    assert events(folder) == ["join", "share", "install", "predict", "evaluate"]
    folder.log.verify()
    entries = {entry["event"]: entry["facts"] for entry in folder.log.entries()}
    assert entries["share"]["digest"] == world.open_share(folder)[1].digest
    assert (entries["share"]["n_rows"], entries["share"]["approved_by"]) == (80, "me")
    assert (entries["predict"]["n_rows"], entries["predict"]["file"]) == (80, "new.csv")
    text = (folder.path / "log.jsonl").read_text()
    for name in NAMES[:3]:
        assert not any(repr(value) in text for value in world.table[name])


def test_a_damaged_state_is_refused(world):
    folder = world.installed()
    for name in ("party.dcstate", "anchor.dcstate"):
        path = folder.path / name
        data = path.read_bytes()
        for changed in (data[:100], b"", data[:-300] + bytes(300), data[:500] + b"\xff" + data[501:]):
            path.write_bytes(changed)
            with refused("STATE_DAMAGED"):
                folder.install(world.root / "a.dcmodel")
        path.write_bytes(data)
    folder.install(world.root / "a.dcmodel")


@pytest.mark.slow
def test_flipped_bytes_are_refused_or_change_nothing(world):
    folder = world.shared()
    path, random = folder.path / "party.dcstate", np.random.default_rng(0)
    data, own = path.read_bytes(), folder
    expected = own.read(path)
    codes = []
    for _ in range(300):
        changed = bytearray(data)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            changed[place] ^= random.integers(1, 256)
        path.write_bytes(changed)
        try:
            assert own.read(path) == expected
        except ExchangeError as error:
            codes.append(error.code)
    assert set(codes) <= {"STATE_DAMAGED", "FORMAT_TOO_NEW", "PASSPHRASE_WRONG"}
    assert len(codes) > 250


def test_a_state_that_somebody_else_signed_is_damaged(world):
    a, b = world.shared("a"), world.shared("b")
    (a.path / "party.dcstate").write_bytes((b.path / "party.dcstate").read_bytes())
    with refused("STATE_DAMAGED"):
        a.install(world.model_file(a, b))


def test_under_a_passphrase_nothing_is_in_the_clear(world):
    world.shared("b")
    key = world.keys["a"]
    (world.root / "a" / "keys.json").unlink()
    key.save(world.root / "a" / "keys.json", "open sesame")
    with refused("PASSPHRASE_WRONG"):
        world.join()
    folder = world.join(passphrase="open sesame")
    world.share(folder)
    for name in ("anchor.dcstate", "party.dcstate", "keys.json"):
        data = (folder.path / name).read_bytes()
        assert stat.S_IMODE((folder.path / name).stat().st_mode) == 0o600
        assert not any(row.tobytes() in data for row in world.anchor.rows)
        assert b"obfuscator" not in data
    for wrong in (None, "open"):
        with refused("PASSPHRASE_WRONG") as found:
            PartyFolder(folder.path, passphrase=wrong)
        assert str(folder.path / "keys.json") in str(found.value)
        with refused("PASSPHRASE_WRONG") as found:
            folder._passphrase = wrong
            folder.read(folder.path / "party.dcstate")
        assert str(folder.path / "party.dcstate") in str(found.value)
    state = folder.path / "party.dcstate"
    data = state.read_bytes()
    state.write_bytes(data[:40])
    with refused("STATE_DAMAGED"):
        folder._passphrase = "open sesame"
        folder.read(state)
    state.write_bytes(data)
    again = PartyFolder(folder.path, passphrase="open sesame")
    again.install(world.model_file(again, PartyFolder(world.root / "b")))
    assert again.evaluate(world.root / "new.csv")["n_rows"] == 80


def test_files_encrypted_after_the_keys_ask_for_the_passphrase(world):
    folder = world.join(passphrase="open sesame")
    with refused("PASSPHRASE_WRONG"):
        world.share(PartyFolder(folder.path))


@pytest.mark.nightly
def test_umap_is_stored_and_predicts(world):
    pytest.importorskip("umap")
    a, b = world.shared("a", obfuscator="umap", n_components=2), world.shared("b")
    a.install(world.model_file(a, b))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert a.evaluate(world.root / "new.csv")["n_rows"] == 80


def test_an_obfuscator_that_does_not_come_back_is_refused(world, monkeypatch):
    from datacollab.by_rows.party import _stored_party

    def forgetful(facts, members):
        party = real(facts, members)
        party._rotation = np.eye(3)[::-1]
        return party

    real = _stored_party.local_party
    monkeypatch.setattr(_stored_party, "local_party", forgetful)
    folder = world.join()
    with refused("STATE_UNSUPPORTED"):
        world.share(folder)
    assert not (folder.path / "party.dcstate").exists()


def test_two_commands_at_a_time_are_one_too_many(world, monkeypatch):
    from datacollab.folder.party import _folder

    monkeypatch.setattr(_folder, "PATIENCE", 0.1)
    folder = world.installed()
    before = contents(folder)
    with locked(folder.path):
        for verb in (
            lambda: world.share(folder, again=True),
            lambda: folder.install(world.root / "a.dcmodel"),
            world.join,
        ):
            with refused("BUSY"):
                verb()
        assert len(next(folder.predict_batches(world.root / "new.csv"))) == 80
    assert contents(folder) == before


def test_others_may_work_while_somebody_approves(world):
    folder = world.installed()

    def approve(summary):
        folder.predict(world.root / "new.csv", world.root / "out.csv")
        return "me"

    world.share(folder, again=True, approve=approve)
    assert events(folder)[-2:] == ["predict", "share"]
    assert world.open_share(folder)[1].facts["log_head"] == folder.log.entries()[-2]["hash"]


def test_of_two_shares_at_a_time_one_counts(world):
    folder = world.join()
    with refused("ALREADY_SHARED"):
        world.share(folder, approve=lambda summary: world.share(folder).name)
    assert events(folder) == ["join", "share"]


def test_a_project_that_was_replaced_does_not_come_back(world):
    """An older file is signed as well; it may name a key that was stolen since."""
    old = world.project
    world.write_project(replace(old, revision=2))
    folder = world.join()
    kept = (folder.path / "project.toml").read_bytes()
    world.write_project(old)
    with refused("PROJECT_OLDER"):
        world.join()
    assert (folder.path / "project.toml").read_bytes() == kept
    world.write_project(replace(old, revision=3))
    assert world.join().project.revision == 3


def test_nor_does_it_at_the_analyst(world):
    def init():
        return AnalystFolder.init(world.root / "analyst", world.root / "project.toml")

    world.write_project(replace(world.project, revision=2))
    init()
    world.write_project(world.project)
    with refused("PROJECT_OLDER"):
        init()
    assert load_project(world.root / "analyst" / "project.toml").revision == 2
