"""A study with a rare class by files: counts first, then a plan that merges it, and a model."""

from dataclasses import replace

import pandas as pd
import pytest

from datacollab.agreement import Task
from datacollab.errors import AgreementError
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import make_mask_key
from party_world import refused
from sums_world import PARTIES, entities_of, new_sums_world, rows_of

NAMES = PARTIES[:3]
TASK = Task(kind="classification", target="ill", classes=("fatal", "no", "yes"))
N_FATAL = {"north": 2, "south": 0, "east": 1}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Everybody has sent counts, and the analyst has added them up."""
    world = new_sums_world(
        tmp_path_factory.mktemp("counts"), parties=NAMES, sharing={"statistics": ("counts",)}, task_of_project=TASK
    )
    for place, name in enumerate(NAMES):
        table = rows_of(100, 300 + place)
        table.loc[: N_FATAL[name] - 1, "ill"] = "fatal"
        table.to_csv(world.table(name), index=False)
    world.summaries = []
    files = [world.share(name, approve=lambda summary: world.summaries.append(summary) or "me") for name in NAMES]
    world.analyst.add(files)
    world.result = world.analyst.integrate()
    return world


def test_counts_say_which_class_is_rare(counted):
    truth = pd.concat([pd.read_csv(counted.table(name)) for name in NAMES])["ill"].value_counts()
    noise = 2 * 3**0.5  # one of three may collude
    rows = {row[1]: int(row[2]) for row in counted.result.results["counts"].table().rows if row[0] == "ill"}
    for name in TASK.classes:
        assert abs(rows[name] - max(0, truth[name])) < 5 * noise
    assert counted.result.rare == ("ill=fatal",)
    assert counted.result.model_digest is None


def test_35_numbers_leave_and_the_approver_is_shown_what_they_are(counted):
    """Rows; 13 of each number, whose parts of the range are one less; 5 of three classes, and 3 of two wards."""
    summary = counted.summaries[0]
    assert summary.n_numbers == 35
    assert "counts over 100 of its rows" in summary.to_text()
    assert "The totals of counts:" in summary.to_text()


def test_counts_make_no_model(counted):
    with pytest.raises(AgreementError, match="makes no model"):
        counted.analyst.export()


@pytest.mark.slow
def test_the_next_run_merges_the_class_over_the_same_rows(counted, tmp_path):
    world = counted.copied(tmp_path)
    merged = replace(TASK, classes=("no", "yes"), merged={"fatal": "yes"})
    ridge = replace(world.project.sharing, statistics=("ridge regression",))
    world.project = replace(world.project, task=merged, sharing=ridge)
    world.next_run()
    AnalystFolder.init(world.root / "analyst", world.root / "project.toml")
    world.analyst.add(world.share_all())
    result = world.analyst.integrate()
    assert list(result.class_counts) == ["no", "yes"]
    world.analyst.export()
    folder = world.folder("north")
    folder.install(world.root / "analyst" / "outbox" / "north.dcmodel")
    assert folder.evaluate(world.table("north"))["accuracy"] > 0.8


def test_counts_are_not_sent_again_over_the_same_rows(counted, tmp_path):
    world = counted.copied(tmp_path)
    world.next_run()
    with refused("ALREADY_SHARED"):
        world.share("north")


def test_one_row_more_is_refused_for_the_model_too(counted, tmp_path):
    world = counted.copied(tmp_path)
    world.project = replace(world.project, sharing=replace(world.project.sharing, statistics=("ridge regression",)))
    world.next_run()
    table = pd.concat([pd.read_csv(world.table("north")), rows_of(1, 99)])
    with refused("ALREADY_SHARED"):
        world.share("north", table)


def test_a_model_without_one_of_those_counted_is_refused(counted, tmp_path):
    """Both totals would tell its counts."""
    world = counted.copied(tmp_path)
    world.project = replace(world.project, sharing=replace(world.project.sharing, statistics=("ridge regression",)))
    parties = {name: key for name, key in world.project.parties.items() if name != "east"}
    parties["west"] = world.keys["stranger"].public
    (world.root / "west").mkdir()
    world.keys["stranger"].save(world.root / "west" / "keys.json")
    cards = {name: make_mask_key(world.root / name) for name in parties}
    entities = entities_of(parties)
    sharing = replace(world.project.sharing, run=2, mask_keys=cards, entities=entities)
    world.write_project(replace(world.project, sharing=sharing, revision=2, parties=parties))
    with refused("ALREADY_SHARED"):
        world.share("north")
