"""The two journeys that CONTRIBUTING draws, walked: its functions exist, and are called in its order, in few files."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

import datacollab as dc
from datacollab.agreement import AnchorRecipe, load_project, make_anchor, seal_anchor
from datacollab.steps.analyst import AnalystFolder
from party_world import made_up_table, new_world
from rooms import ROOMS
from sums_world import PARTIES, new_sums_world

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def journeys():
    """The names of each journey, in order."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    section = text[text.index("## Two journeys") : text.index("## Setting up")]
    room = "|".join(map(re.escape, sorted(ROOMS, key=len, reverse=True)))
    return [re.findall(rf"\b(?:{room})\.\w[\w.]*", block) for block in re.findall(r"```text\n(.*?)```", section, re.S)]


def code_of(name):
    """What is run when a function or method of this name is called, or an object of a class is made."""
    room = max((each for each in ROOMS if name.startswith(f"{each}.")), key=len)
    found = importlib.import_module(f"datacollab.{room}")
    for part in name.removeprefix(f"{room}.").split("."):
        found = getattr(found, part)
    if inspect.isclass(found):
        found = getattr(found, "__post_init__", found.__init__)
    return inspect.unwrap(found).__code__


def travel_by_sums(root):
    """All that happens between a table and a prediction, the default way."""
    world = new_sums_world(root, parties=PARTIES[:3])
    world.share_all()
    world.analyst.add(world.folder(name).path / "outbox" / f"{name}.dcsum" for name in PARTIES[:3])
    world.analyst.integrate()
    (model,) = [file for file in world.analyst.export() if file.stem == "north"]
    world.folder("north").install(model)
    world.folder("north").predict(world.table("north"), root / "predictions.csv")


def travel_by_rows(root):
    """The same by rows."""
    recipe = AnchorRecipe(method="smote", n_rows=60, source="made up")
    world = new_world(root, anchor=recipe, max_components=3, seal_shares=True)
    project = load_project(root / "project.toml")
    anchor = make_anchor(project, made_up_table(100, seed=99), where="public.csv", random_state=0)
    (root / "anchor.dcanchor").write_bytes(seal_anchor(anchor, project, world.keys["a"]))
    analyst = AnalystFolder.init(root / "analyst", root / "project.toml")
    a, b = world.shared("a"), world.shared("b")
    analyst.add(folder.path / "outbox" / f"{folder.name}.dcshare" for folder in (a, b))
    analyst.integrate(dc.KTI(2), LogisticRegression())
    (model,) = [file for file in analyst.export() if file.stem == "a"]
    a.install(model)
    a.predict(root / "b.csv", root / "predictions.csv", using="collaboration")


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Names of both journeys in the order in which they were called."""
    names = {}
    for name in {each for journey in journeys() for each in journey}:
        names.setdefault(code_of(name), []).append(name)
    walked = []
    for travel in (travel_by_sums, travel_by_rows):
        seen = []

        def watch(frame, event, argument, seen=seen):
            if event == "call" and frame.f_code in names:
                seen.append(names[frame.f_code])

        sys.setprofile(watch)
        try:
            travel(tmp_path_factory.mktemp("journey"))
        finally:
            sys.setprofile(None)
        walked.append(seen)
    return walked


def test_there_are_two():
    assert [len(journey) > 10 for journey in journeys()] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_a_journey_is_walked_in_its_order(calls, number):
    upcoming = iter(calls[number])
    for name in journeys()[number]:
        assert any(name in called for called in upcoming), f"{name} is not called where CONTRIBUTING says"


def files_entered(call):
    """Files of the package with a function that is called."""
    package, entered = str(Path(dc.__file__).parent), set()

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(package) and frame.f_code.co_name != "<module>":
            entered.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


@pytest.mark.parametrize("way", ["sums", "rows"])
def test_a_share_enters_few_files(tmp_path, way):
    """From a folder that is opened to a file in the outbox; attacks on rows are a journey of their own."""
    if way == "sums":
        world = new_sums_world(tmp_path, parties=PARTIES[:3])
        entered = files_entered(lambda: world.share("north"))
    else:
        world = new_world(tmp_path, seal_shares=True)
        world.join("a")
        entered = files_entered(lambda: world.share(world.folder("a"), preset="groups"))
    # With sums, the party's own model is made on the way, in three of these; rows alone, codes of the ledger,
    # and what was heard by telephone have a file each.
    assert 10 < len(entered) <= 49
