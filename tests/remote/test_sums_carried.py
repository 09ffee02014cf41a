"""Files of a project that shares sums, by a folder that all reach."""

from datacollab.cli._remote_commands import next_commands
from datacollab.remote import Kept, MemberFolder, StoreRemote, pull, push
from sums_world import new_sums_world

PARTIES = ("north", "south", "east")


def came(world, name, store):
    kept = Kept()
    return pull(MemberFolder.at(world.root / name), store, kept, keep=lambda kept: None)[0].came


def test_sums_go_to_the_analyst_and_models_come_back(tmp_path):
    world = new_sums_world(tmp_path, parties=PARTIES)
    (tmp_path / "store").mkdir()
    store = StoreRemote(str(tmp_path / "store"))
    world.share_all()
    for name in PARTIES:
        # The owner sends the project file, too.
        assert set(push(MemberFolder.at(world.root / name), store).sent.values()) - {"agreement"} == {"sums"}
    lying = {path: kind for path, kind in came(world, "analyst", store).items() if kind != "agreement"}
    assert sorted(lying.values()) == ["sums"] * 3
    (command,) = next_commands(world.root / "analyst", lying, is_analyst=True)
    assert command.startswith("datacollab analyst integrate")
    world.analyst.add(sorted(lying))
    world.analyst.integrate()
    world.analyst.export()
    assert set(push(MemberFolder.at(world.root / "analyst"), store).sent.values()) == {"sums-model"}
    # Each party gets its own alone.
    ((path, kind),) = ((path, kind) for path, kind in came(world, "south", store).items() if kind != "agreement")
    assert kind == "sums-model"
    (command,) = next_commands(world.root / "south", {path: kind}, is_analyst=False)
    assert command.startswith("datacollab party install")
    world.folder("south").install(path)
    assert world.folder("south").evaluate(world.root / "new.csv")["n_rows"] == 400
