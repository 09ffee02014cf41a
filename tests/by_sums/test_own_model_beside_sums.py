"""The own model beside the common one of sums, by files: kept when the party shares, combined at home, never sent."""

import os
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.bundle import bytes_to_arrays, unpack
from datacollab.by_sums.party._own_model import OwnSample, own_model_state, read_own_model
from datacollab.party import MOST_OWN_ROWS
from datacollab.sums import RidgeSums
from datacollab.table import Column
from party_world import events, refused
from sums_world import new_sums_world

PARTIES = ("north", "south", "east")

pytestmark = pytest.mark.usefixtures("all_trees")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Public rows have targets, all have shared, and north has installed."""
    world = new_sums_world(tmp_path_factory.mktemp("shared"), parties=PARTIES, sharing={"labelled_by": "north"})
    world.analyst.add(world.share_all())
    world.analyst.integrate()
    world.analyst.export()
    world.folder("north").install(world.root / "analyst" / "outbox" / "north.dcmodel")
    return world


@pytest.fixture
def world(shared, tmp_path):
    return shared.copied(tmp_path)


@pytest.mark.slow
def test_both_together_are_the_mean_of_the_two(shared):
    folder = shared.folder("north")
    home, (own, _) = folder.way.at_home(), read_own_model(folder)
    assert list(home.sides) == ["combined", "local", "collaboration"]
    assert (own.n_own, len(own.rows)) == (60, 180)
    X = folder.encode(shared.root / "new.csv").X
    common = home.side("collaboration").predict_proba(X)
    local = own.estimator.predict_proba(X / np.array([25.0, 25.0, 1.0, 1.0]))
    weight = home.side().model.weight
    assert 0.0 < weight <= 1.0
    assert_allclose(home.side().predict_proba(X), (1 - weight) * common + weight * local)
    assert f"({1 - weight:.0%}) and your own ({weight:.0%}): " in home.sentence
    assert home.sentence.endswith(" on 60 of your rows and 120 labelled public ones.")
    assert folder.sentence == home.sentence


@pytest.mark.slow
def test_all_sides_are_evaluated_and_the_common_one_can_be_had_alone(shared):
    scores = shared.folder("north").evaluate(shared.root / "new.csv")
    assert scores["using"] == "combined"
    assert list(scores["sides"]) == ["combined", "local", "collaboration"]
    assert scores["sides"]["combined"]["log_loss"] < scores["sides"]["collaboration"]["log_loss"]
    for name in scores["sides"]:
        alone = shared.folder("north").evaluate(shared.root / "new.csv", using=name)
        assert alone["log_loss"] == scores["sides"][name]["log_loss"]
    with refused("NOT_POOLED", "Take 'local'"):
        shared.folder("north").evaluate(shared.root / "new.csv", using="own")


def test_it_is_closed_to_others_signed_and_never_sent(shared):
    place = shared.root / "north"
    if os.name == "posix":
        assert not (place / "own.dcstate").stat().st_mode & 0o077
    kept = unpack(place / "own.dcstate", signed_by=shared.keys["north"].public).members["own.safetensors"]
    assert all(kept not in file.read_bytes() for file in (place / "outbox").iterdir())
    assert not any((shared.root / "analyst").rglob("own.dcstate"))


def test_a_message_that_is_sent_again_leaves_it_as_it_was(world):
    before = (world.root / "south" / "own.dcstate").read_bytes()
    (world.root / "south" / "outbox" / "south.dcsum").unlink()
    world.share("south", world.root / "missing.csv")
    assert (world.root / "south" / "own.dcstate").read_bytes() == before


def test_a_lost_one_is_made_again_from_the_table_and_nothing_new_is_sent(world):
    own, _ = read_own_model(world.folder("south"))
    sent, file = world.root / "south" / "outbox" / "south.dcsum", world.root / "south" / "own.dcstate"
    before = sent.read_bytes()
    file.unlink()
    assert "datacollab party share" in world.folder("south").way.own_model_words()
    world.share("south", world.root / "missing.csv")
    assert not file.exists()
    world.share("south")
    again, _ = read_own_model(world.folder("south"))
    X = world.folder("south").anchor.rows / np.array([25.0, 25.0, 1.0, 1.0])
    assert_array_equal(own.outputs(X), again.outputs(X))
    assert sent.read_bytes() == before
    assert events(world.folder("south")).count("share") == 1


@pytest.mark.slow
def test_a_model_that_cannot_be_made_stops_no_share(tmp_path, monkeypatch):
    def failing(*given):
        raise RuntimeError("a row of somebody")

    monkeypatch.setattr("datacollab.own.fit_own_model", failing)
    world = new_sums_world(tmp_path, parties=PARTIES)
    world.analyst.add(world.share_all())
    world.analyst.integrate()
    world.analyst.export()
    folder = world.folder("north")
    installed = folder.install(world.root / "analyst" / "outbox" / "north.dcmodel")
    for said in (installed["sentence"], folder.way.own_model_words()):
        assert "It could not be made (RuntimeError). Run `datacollab party share` with the table once more" in said
        assert "somebody" not in said
    assert list(folder.way.at_home().sides) == ["collaboration"]
    monkeypatch.undo()
    world.share("north")
    assert "combine the model of all parties' rows" in folder.sentence


def test_one_class_alone_has_no_own_model_and_labelled_public_rows_count(shared):
    folder, sample = shared.folder("north"), OwnSample()
    own = folder.encode(shared.table("north"))
    sample.add(own.X, np.full(own.n_rows, "no"))
    facts, members = folder.way._own_state(folder.anchor, sample)
    assert "reason" not in facts
    assert len(bytes_to_arrays(members["own.safetensors"], what="rows")["rows"]) == own.n_rows + 120
    facts, members = folder.way._own_state(replace(folder.anchor, target=None), sample)
    assert facts["reason"] == "All rows are of one class, or they are too few."
    assert not members


def test_columns_that_are_all_alike_have_none(tmp_path):
    """Fifty numbers of one range, as pixels are."""
    columns = tuple(Column(name=f"p{place}", kind="number", minimum=0.0, maximum=1.0) for place in range(50))
    project = replace(new_sums_world(tmp_path, parties=PARTIES).project, columns=columns)
    facts, members = own_model_state(project, RidgeSums(3, classes=("no", "yes")), [])
    assert "all alike" in facts["reason"]
    assert not members


def test_who_leaves_the_run_keeps_none(world):
    folder = world.folder("south")
    folder.withdraw()
    assert read_own_model(folder) == (None, "It was erased when this institution left the run.")
    assert b"own.safetensors" not in (world.root / "south" / "own.dcstate").read_bytes()


def test_a_changed_file_is_refused(world):
    file = world.root / "south" / "own.dcstate"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with refused("STATE_DAMAGED"):
        read_own_model(world.folder("south"))


def test_one_of_another_run_is_not_taken(world):
    world.next_run()
    assert read_own_model(world.folder("south"))[0] is None


def test_of_a_long_table_the_same_rows_are_taken_in_whatever_batches():
    n = 3 * MOST_OWN_ROWS
    X, y = np.arange(float(n))[:, None], np.arange(n).astype(str)
    taken = []
    for size in (n, 700, 1):
        sample = OwnSample()
        for start in range(0, n if size > 1 else 50, size):
            sample.add(X[start : start + size], y[start : start + size])
        taken.append(sample.parts[0])
    (whole, target), (batched, _), (few, _) = taken
    assert_array_equal(whole, batched)
    assert_array_equal(whole[:, 0].astype(int).astype(str), target)
    assert len(whole) == MOST_OWN_ROWS
    assert abs(whole.mean() / n - 0.5) < 0.03
    assert_array_equal(few, X[:50])
