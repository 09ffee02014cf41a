"""A step of sums that fails or is stopped at any change of the disk: nothing is lost, and nothing leaves twice."""

import errno
import shutil

import numpy as np
import pandas as pd
import pytest

from datacollab.bundle import mask_card_in, unpack
from datacollab.errors import ExchangeError
from datacollab.steps.party import PartyFolder, make_mask_key, read_withdrawal
from failing_disk import failures
from party_world import events, refusal, refused
from sums_world import PARTIES, new_sums_world

NAMES = PARTIES[:3]
STOPPED, FULL = KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")
HALF_DONE = (".part", ".next", ".spent")


class Place:
    """The folder of one party, which can be set back to what it was."""

    def __init__(self, world, name="north"):
        self.world, self.name, self.path, self.saved = world, name, world.root / name, world.root / f"saved {name}"
        shutil.copytree(self.path, self.saved)
        self.secret = unpack(self.path / "mask.dcstate").members["mask-key.bin"]
        table = pd.read_csv(world.table(name))
        self.corrected = world.root / f"corrected {name}.csv"
        table.assign(pulse=np.r_[table["pulse"][:-1], 33.0]).to_csv(self.corrected, index=False)

    def set_back(self, saved=None):
        shutil.rmtree(self.path)
        shutil.copytree(saved or self.saved, self.path)

    def share(self, table=None):
        return self.world.share(self.name, table).read_bytes()

    def withdraw(self):
        return read_withdrawal(self.world.folder(self.name).withdraw().read_bytes(), where="word")

    def sent(self):
        """Messages that somebody who looks into the outbox may take away."""
        return {path.read_bytes() for path in (self.path / "outbox").glob("*.dcsum")}

    def has_secret(self):
        return any(self.secret in path.read_bytes() for path in self.path.rglob("*") if path.is_file())

    def half_done(self):
        return [path.name for path in self.path.rglob("*") if path.name.endswith(HALF_DONE)]

    def restored_reasons(self):
        """Why a folder from a backup may not share beside this one's ledger."""
        backup = self.world.root / "backup"
        shutil.rmtree(backup, ignore_errors=True)
        shutil.copytree(self.saved, backup)
        policy = backup / "policy.toml"
        ledger = f'ledger = "{self.path / "ledger"}"'
        policy.write_text(policy.read_text().replace('ledger = ""', ledger))
        return [each.code for each in PartyFolder(backup).prepare(self.world.table(self.name)).reasons]


def place_of(tmp_path_factory, kind):
    sharing = {"statistics": ("counts",)} if kind == "study" else None
    return Place(new_sums_world(tmp_path_factory.mktemp(kind), parties=NAMES, sharing=sharing))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return place_of(tmp_path_factory, "study")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return place_of(tmp_path_factory, "model")


def check_a_failing_share(place, error, *, after):
    """Fail at each change; then the table is corrected, and shared."""
    outcomes = set()
    place.set_back()
    for _ in failures(place.share, error, after=after):
        left = place.sent()
        if left:
            assert not place.has_secret()
            assert {unpack(data).digest for data in left} <= logged(place)
        left.add(place.share(place.corrected))
        left.add(place.share())
        assert len(left) == 1
        assert place.sent() == left
        assert not place.half_done()
        assert not place.has_secret()
        folder = place.world.folder(place.name)
        folder.log.verify()
        assert events(folder).count("share") == 1
        outcome = folder.way.describe_share().split(" on ")[0]
        if outcome not in outcomes:
            assert place.restored_reasons() == ["ALREADY_SHARED"]
        outcomes.add(outcome)
        place.set_back()
    # Before the ledger knew of it, the corrected table took the place of the first.
    assert outcomes == {"You shared 60 rows of north.csv", "You shared 60 rows of corrected north.csv"}


def logged(place):
    return {entry["facts"].get("digest") for entry in place.world.folder(place.name).log.entries()}


@pytest.mark.slow
def test_a_share_of_a_study_that_is_stopped(study):
    check_a_failing_share(study, STOPPED, after=False)


@pytest.mark.nightly
@pytest.mark.parametrize(("error", "after"), [(STOPPED, True), (FULL, False), (FULL, True)])
def test_a_share_of_a_study_that_fails_otherwise(study, error, after):
    check_a_failing_share(study, error, after=after)


@pytest.mark.nightly
@pytest.mark.parametrize(("error", "after"), [(STOPPED, False), (FULL, True)])
def test_a_share_for_a_model_that_fails(model, error, after):
    check_a_failing_share(model, error, after=after)


@pytest.mark.slow
def test_every_party_fails_somewhere_and_the_total_is_that_of_all_rows(tmp_path, rng):
    """Masks that do not cancel would be noticed, and noise is a few rows."""
    world = new_sums_world(tmp_path, parties=NAMES, sharing={"statistics": ("counts",)})
    files = []
    for name in NAMES:
        for number, _ in enumerate(failures(lambda name=name: world.share(name), STOPPED, after=bool(rng.integers(2)))):
            if number == rng.integers(20, 40):
                break
        files.append(world.share(name))
    world.analyst.add(files)
    rows = {row[1]: int(row[2]) for row in world.analyst.integrate().results["counts"].table().rows if row[0] == "ill"}
    truth = pd.concat([pd.read_csv(world.table(name)) for name in NAMES])["ill"].value_counts()
    assert all(abs(rows[level] - truth[level]) < 25 for level in ("no", "yes"))


@pytest.mark.parametrize(("kind", "had_shared"), [("study", False), ("study", True), ("model", True)])
@pytest.mark.slow
def test_a_withdrawal_that_fails(kind, had_shared, request, tmp_path):
    """It may be made again, tells the truth, and once it is there nothing of the run is made here any more."""
    place = request.getfixturevalue(kind)
    place.set_back()
    if had_shared:
        place.share()
    start = tmp_path / "start"
    shutil.copytree(place.path, start)
    refusals = set()
    for _ in failures(place.withdraw, STOPPED, after=False):
        if (place.path / "outbox" / "north.dcwithdrawal").exists():
            assert not place.sent()
            assert not place.has_secret()
        # It can be made again at once; here, somebody tries to share first.
        try:
            place.share()
        except ExchangeError as error:
            refusals.add(error.code)
            assert place.withdraw().had_shared is had_shared
        else:
            assert place.withdraw().had_shared
        assert not place.sent()
        assert not place.half_done()
        assert not place.has_secret()
        if kind == "model":
            assert "erased when this institution left" in place.world.folder("north").way.own_model_words()
        with refused("KEY_MISSING"):
            place.share()
        place.set_back(start)
    assert refusals == ({"KEY_MISSING"} if had_shared else {"ALREADY_SHARED", "KEY_MISSING"})


@pytest.fixture(scope="module")
def made(model):
    """All have shared, and the model of their sums has come."""
    model.set_back()
    model.world.analyst.add(model.world.share_all())
    model.world.analyst.integrate()
    model.world.analyst.export()
    return model.world.root / "analyst" / "outbox" / "north.dcmodel"


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_installation_that_fails(model, made, after, tmp_path):
    """There is no model, or this one; then it is installed, and logged as often as it was."""
    start = tmp_path / "start"
    shutil.copytree(model.path, start)
    folder, digest, outcomes = model.world.folder("north"), unpack(made).digest, set()
    message = model.sent()
    for _ in failures(lambda: folder.install(made), FULL, after=after):
        folder.record("look")
        there = (model.path / "model.dcmodel").exists()
        assert there is ("install" in events(folder))
        folder.install(made, older=True)
        folder.log.verify()
        assert unpack(model.path / "model.dcmodel").digest == digest
        assert not model.half_done()
        assert model.sent() == message
        outcomes.add(there)
        model.set_back(start)
    assert outcomes == {False, True}


@pytest.mark.slow
@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_new_mask_key_that_fails(study, after):
    """`public.key` names the key that is kept."""
    study.set_back()
    study.share()
    used_up = {mask_card_in(study.saved / "public.key")}
    for _ in failures(lambda: make_mask_key(study.path), FULL, after=after):
        card = make_mask_key(study.path)
        assert card not in used_up
        assert mask_card_in(study.path / "public.key") == card == make_mask_key(study.path)
        assert not study.half_done()
        used_up.add(card)
        study.set_back()
        study.share()


@pytest.mark.slow
def test_after_a_share_that_was_stopped_a_new_mask_key_is_another(study):
    """Or the next run's project would name a key that the next command erases."""
    study.set_back()
    used_up, cards = mask_card_in(study.path / "public.key"), set()
    for _ in failures(study.share, STOPPED, after=False, every=4):
        first = make_mask_key(study.path)
        is_released = study.world.folder("north").way.describe_share() is not None
        assert (first != used_up) is is_released
        study.share()
        if is_released:
            assert make_mask_key(study.path) == first
        cards.add(is_released)
        study.set_back()
    assert cards == {False, True}


@pytest.mark.slow
def test_a_check_after_a_share_that_was_stopped_names_a_file_that_is_there(study):
    study.set_back()
    file, found = study.path / "outbox" / "north.dcsum", set()
    for _ in failures(study.share, STOPPED, after=False, every=4):
        try:
            reasons, words = study.world.folder("north").prepare(study.corrected).reasons, ""
        except ExchangeError as error:
            reasons, words = [error], str(error)
        # Of what was not released, nothing is left; else the file is there, and named.
        assert bool(reasons) is file.exists()
        assert bool(reasons) is (str(file) in words)
        found.add(file.exists())
        study.set_back()
    assert found == {False, True}


def test_a_damaged_mask_key_is_to_be_made_anew_and_never_restored(study):
    study.set_back()
    (study.path / "mask.dcstate").write_bytes(b"nothing")
    for step in (study.share, lambda: make_mask_key(study.path)):
        words = refusal("STATE_DAMAGED", step)
        assert "keys mask" in words
        assert "backup" not in words
