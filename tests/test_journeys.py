"""The two journeys that CONTRIBUTING draws, walked: its functions exist, and are called in its order."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

import datacollab as dc
from datacollab.bundle import KeyPair
from datacollab.exchange.analyst_folder import AnalystFolder
from datacollab.exchange.party_folder import PartyFolder
from datacollab.exchange.project import (
    AnchorRecipe,
    Column,
    Project,
    Task,
    load_project,
    make_anchor,
    project_text,
    seal_anchor,
)
from party_world import made_up_table
from rooms import ROOMS

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
NAMES = ["age", "pulse", "weight", "ward"]


def journeys():
    """The names of each journey, in order."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    section = text[text.index("## Two journeys") : text.index("## How code looks")]
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


def project_of(keys):
    return Project(
        name="journeys",
        purpose="To see what calls what.",
        columns=(
            *(Column(name=name, kind="number", unit="1", minimum=0.0, maximum=100.0) for name in NAMES[:3]),
            Column(name="ward", kind="category", categories=("north", "south")),
        ),
        task=Task(kind="classification", target="ill", classes=("no", "yes")),
        anchor=AnchorRecipe(method="smote", n_rows=60, source="made up"),
        max_components=3,
        min_rows=20,
        seal_shares=True,
        owner=keys["a"].public,
        analyst=keys["analyst"].public,
        parties={name: keys[name].public for name in ("a", "b")},
    )


def travel(root):
    """All that happens between a table and a prediction."""
    keys = {name: KeyPair.generate() for name in ("a", "b", "analyst")}
    for name, key in keys.items():
        (root / name).mkdir()
        key.save(root / name / "keys.json")
    (root / "project.toml").write_text(project_text(project_of(keys), keys["a"]))
    project = load_project(root / "project.toml")
    public = made_up_table(100, seed=99).drop(columns="id")
    public.to_csv(root / "public.csv", index=False)
    anchor = make_anchor(project, public, where="public.csv", random_state=0)
    (root / "anchor.dcanchor").write_bytes(seal_anchor(anchor, project, keys["a"]))

    analyst = AnalystFolder.init(root / "analyst", root / "project.toml")
    parties = {}
    for name in ("a", "b"):
        made_up_table(80, seed=ord(name)).to_csv(root / f"{name}.csv", index=False)
        parties[name] = PartyFolder.join(root / name, root / "project.toml", root / "anchor.dcanchor")
        policy = root / name / "policy.toml"
        policy.write_text(policy.read_text().replace('audit = "required"', 'audit = "warn"'))
        options = {"audit": False, "n_components": 3, "preset": "none", "undefended": True}
        analyst.add([parties[name].share(root / f"{name}.csv", approve=lambda summary: "me", **options)])
    analyst.integrate(dc.KTI(2), LogisticRegression())
    files = analyst.export()
    model = next(file for file in files if "a" in file.stem.split("-") or file.stem == "a")
    parties["a"].install(model)
    parties["a"].predict(root / "b.csv", root / "predictions.csv", using="collaboration")


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Names of both journeys in the order in which they were called."""
    names = {}
    for name in {each for journey in journeys() for each in journey}:
        names.setdefault(code_of(name), []).append(name)
    seen = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code in names:
            seen.append(names[frame.f_code])

    sys.setprofile(watch)
    try:
        travel(tmp_path_factory.mktemp("journey"))
    finally:
        sys.setprofile(None)
    return seen


def test_there_are_two():
    assert [len(journey) > 10 for journey in journeys()] == [True, True]


@pytest.mark.parametrize("number", [0, 1])
def test_a_journey_is_walked_in_its_order(calls, number):
    upcoming = iter(calls)
    for name in journeys()[number]:
        assert any(name in called for called in upcoming), f"{name} is not called where CONTRIBUTING says"
