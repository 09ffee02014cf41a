"""Numbers with tails by files: what a draft makes of them, what a party is told, and sums of logarithms."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from datacollab.agreement import draft_project, load_project, project_text
from datacollab.bundle import KeyPair, digest, pack, seal, unpack
from datacollab.by_sums.plan import plan_of
from datacollab.errors import ExchangeError
from datacollab.table import encode_table
from party_world import refused
from sums_world import PARTIES, TASKS, cards_of, new_sums_world, project_of, rows_of

THREE = PARTIES[:3]
LOGS = TASKS["costs"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = new_sums_world(tmp_path_factory.mktemp("logs"), "costs", THREE)
    for seed, name in enumerate(THREE):
        rows_of(150, 100 + seed, "costs").to_csv(world.table(name), index=False)
    return world


@pytest.fixture(scope="module")
def keys():
    return {name: KeyPair.generate() for name in (*PARTIES, "analyst")}


@pytest.mark.slow
def test_a_run_on_the_scale_of_logarithms(world, tmp_path):
    world = world.copied(tmp_path)
    world.analyst.add(world.share_all())
    world.analyst.integrate()
    model = world.analyst.way.model()
    assert (model.scale, model.limits) == ("log", (0.0, 400.0))
    assert 0 < model.fit.residual < 1
    for file in world.analyst.export():
        world.folder(file.stem).install(file)
    scores = world.folder("north").evaluate(world.root / "new.csv")
    assert scores["r2"] > 0.5
    # A model that says it has no scale would be read in another unit.
    path, purpose = world.root / "analyst" / "outbox" / "north.dcmodel", f"model of north in {world.project.digest}"
    inner = replace(model, scale=None).to_bytes(key=world.keys["analyst"])
    facts = unpack(path).facts | {"model_digest": digest(inner)}
    sealed = seal(inner, [world.keys["north"].public], purpose=purpose)
    path.write_bytes(pack(unpack(path).kind, facts, {"sealed.bin": sealed}, key=world.keys["analyst"]))
    with refused("MODEL_MALFORMED") as caught:
        world.folder("north").install(path, older=True)
    assert "another range or scale" in str(caught.value)


def test_the_scale_is_in_the_context_and_in_the_file(keys, tmp_path):
    cards = cards_of(keys, THREE)
    logs = project_of(keys, THREE, cards, task=LOGS)
    plain = replace(logs, task=replace(LOGS, scale=None))
    facts = {"anchor_commitment": "0" * 64, "n_components": 3}
    assert plan_of(logs, **facts).agreed.context != plan_of(plain, **facts).agreed.context
    assert plan_of(logs, **facts).ridge.scale == "log"
    path = tmp_path / "project.toml"
    path.write_text(project_text(logs, keys["north"]))
    assert load_project(path) == logs
    assert "scale" not in project_text(plain, keys["north"])


def test_a_scale_that_cannot_be_is_refused(keys):
    with refused("SPEC_INVALID") as caught:
        replace(LOGS, minimum=-1.0)
    assert "minimum is below" in str(caught.value)
    with refused("SPEC_INVALID"):
        replace(LOGS, scale="root")
    project = project_of(keys, THREE, cards_of(keys, THREE), task=LOGS)
    for sharing in (None, replace(project.sharing, statistics=("counts",))):
        with refused("SPEC_INVALID") as caught:
            replace(project, sharing=sharing)
        assert "sums for a model of a number alone" in str(caught.value)


def test_a_few_targets_beyond_the_range_are_clipped_and_counted(world):
    folder, table = world.folder("north"), pd.read_csv(world.table("north"))
    plain = folder.prepare(table).summary
    assert "Before they were added up" not in plain.to_text()
    far = table.assign(ill=np.where(np.arange(150) < 3, 98765.0, table["ill"]))
    found = folder.prepare(far)
    assert found.reasons == []
    text = found.summary.to_text()
    assert "Before they were added up: 3 of 150 rows in 1 column: 3 numbers clipped; 3 numbers far outside." in text
    assert "98765" not in text
    assert found.summary.adjusted["columns"]["ill"]["clipped_above"] == 3
    np.testing.assert_allclose(found.part, folder.prepare(far.assign(ill=far["ill"].clip(0, 400))).part)
    encoded = encode_table(world.project, far, where="a.csv")
    assert encoded.target.max() == 400
    assert encoded.adjusted.n_rows_outside == 3


def test_many_targets_beyond_the_range_are_refused_without_a_number(world):
    folder, table = world.folder("north"), pd.read_csv(world.table("north"))
    with pytest.raises(ExchangeError, match="More than 5 % of a column are no exceptions") as caught:
        folder.prepare(table.assign(ill=np.where(np.arange(150) < 20, 98765.0, table["ill"])))
    assert caught.value.code == "TARGET_INVALID"
    assert "98765" not in str(caught.value)


@pytest.mark.parametrize("far", [1e300, -1e300, np.inf])
def test_the_farthest_target_is_clipped_too(world, far):
    table = pd.read_csv(world.table("north"))
    table.loc[5, "ill"] = far
    encoded = encode_table(world.project, table, where="a.csv")
    assert encoded.target[5] == (400 if far > 0 else 0)


def drafted(keys, table, told, **options):
    members = {"owner": keys["north"].public, "analyst": keys["analyst"].public}
    parties = {name: keys[name].public for name in THREE}
    options = {"mask_keys": cards_of(keys, THREE), "tell": told.append, "target": "ill"} | options
    return draft_project(table, name="wards", purpose="x", parties=parties, **members, **options)


def test_a_draft_leaves_a_far_target_out_of_the_range_and_names_the_scale(keys):
    told, table = [], rows_of(200, 1, "costs")
    table.loc[0, "ill"] = 1e7
    task = drafted(keys, table, told).task
    (tail,) = [each for each in told if each.kind == "tail"]
    assert task.maximum < 1000
    assert tail.column == "ill"
    assert 'write scale = "log" below [task]' in tail.sentence
    assert "of 200 entries far from the rest" in tail.sentence
    # Rows carry targets as they are, and a range that people gave stands.
    assert drafted(keys, table, told, mask_keys=None).task.maximum >= 1e7
    assert drafted(keys, table, told, target_range=(0.0, 2e7)).task.maximum == 2e7
    negative = drafted(keys, table.assign(ill=-table["ill"]), told).task
    assert negative.minimum > -1000
    assert "scale" not in told[-1].sentence


def test_a_draft_of_plain_targets_says_nothing(keys):
    told, table = [], rows_of(200, 1, "regression")
    low, high = table["ill"].min(), table["ill"].max()
    task = drafted(keys, table, told).task
    assert not [each for each in told if each.kind == "tail"]
    assert task.minimum <= low - (high - low) / 2
    assert task.maximum >= high + (high - low) / 2
