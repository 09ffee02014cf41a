"""A regression by rounds over a folder that all reach: each party's further sums go and come like the first ones."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from datacollab.bundle import digest, pack
from datacollab.by_sums.rounds import ROUND_FILE, ROUND_KIND
from datacollab.steps.analyst import STUDY_FILES
from datacollab.sums import MASKED_SUM_KIND
from playing import done, told
from rounds_world import NAMES, follow, new_rounds_world, push, share_first, status

CREATED = "2030-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """All have shared in the first round over a folder, and the analyst has made the request for the second."""
    world = new_rounds_world(tmp_path_factory.mktemp("rounds"))
    for name in (*NAMES, "analyst"):
        done("remote", "add", "store", world.root / "store", "-C", world.root / name)
    for name in NAMES:
        assert share_first(world, name)["refused"] == {}
    assert status(world, "analyst") == (sorted(NAMES), [], 0)
    follow(world, "analyst", ["sums"] * 3)
    return world


@pytest.fixture
def world(first, tmp_path):
    """The same, where the folder that all reach is a copy."""
    world = first.copied(tmp_path)
    for name in (*NAMES, "analyst"):
        places = tmp_path / name / "remotes.toml"
        places.write_text(places.read_text().replace(str(first.root), str(tmp_path)))
    return world


@pytest.mark.slow
def test_two_rounds_go_and_come(world):
    assert push(world, "analyst") == {ROUND_FILE: "round"}
    assert status(world, "south") == ([], sorted(NAMES), 1)
    for name in NAMES:
        before = (world.root / "analyst" / "inbox" / f"{name}.dcsum").read_bytes()
        follow(world, name, ["round"])
        assert push(world, name) == {f"{name}.dcsum": "sums"}
        assert push(world, name) == {}
        assert (world.root / name / "outbox" / f"{name}.dcsum").read_bytes() != before
        shared, missing, _ = status(world, "analyst")
        assert name in shared
        assert {*shared, *missing} == {*NAMES}
    # The files of the first round lie there still, and do not come again.
    assert follow(world, "analyst", ["sums"] * 3)["older"] == []
    for name in NAMES:
        sent = (world.root / name / "outbox" / f"{name}.dcsum").read_bytes()
        assert (world.root / "analyst" / "inbox" / f"{name}.dcsum").read_bytes() == sent
    text = (world.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")
    lines = {line[1]: line[2:] for line in csv.reader(io.StringIO(text)) if line[0] == "logistic regression"}
    whole = pd.concat([pd.read_csv(world.table(name)).assign(party=name) for name in NAMES])
    X = np.column_stack([whole["age"], whole["pulse"], whole["ward"] == "night", pd.get_dummies(whole["party"])])
    pooled = sm.Logit((whole["ill"] == "yes").astype(float), X.astype(float)).fit(disp=0)
    for place, name in enumerate(("age", "pulse", "ward=night")):
        _, _, _, coefficient, error = map(float, lines[name][:5])
        assert abs(coefficient - pooled.params.iloc[place]) < 3 * error


def leave(world, by, facts):
    """Put a request into the store by hand, as anybody who reaches it could."""
    facts = {"project_digest": world.project.digest, "created": CREATED} | facts
    data = pack(ROUND_KIND, facts, {}, key=world.keys[by])
    place = world.root / "store" / world.project.digest / "round" / f"{digest(data)}.dcround"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(data)


def refusal_of(world, name):
    """The refusal of the one file that a push does not send."""
    (refused,) = told("remote", "push", "-C", world.root / name, code=14)["refused"].values()
    return refused["code"], refused["message"]


def test_what_is_no_request_of_the_analyst_for_a_round_of_the_project_opens_nothing(world):
    for by, number in (("stranger", 2), ("north", 2), *(("analyst", number) for number in (1, 3, True, "2", None))):
        leave(world, by, {"number": number})
        assert status(world, "south") == (sorted(NAMES), [], 0), (by, number)
    # The request came by another way.
    request = world.root / "analyst" / "outbox" / ROUND_FILE
    done("party", "share", world.table("north"), "--round", request, "-C", world.root / "north")
    code, words = refusal_of(world, "north")
    assert code == "ALREADY_SHARED"
    assert "once the analyst has pushed that request" in words
    push(world, "analyst")
    assert push(world, "north") == {"north.dcsum": "sums"}


def test_one_file_of_sums_goes_in_each_round(world):
    push(world, "analyst")
    follow(world, "north", ["round"])
    push(world, "north")
    more = {"party": "north", "project_digest": world.project.digest, "created": CREATED}
    sent = world.root / "north" / "outbox" / "north.dcsum"
    sent.write_bytes(pack(MASKED_SUM_KIND, more, {"sealed.bin": b"other"}, key=world.keys["north"]))
    code, words = refusal_of(world, "north")
    assert code == "ALREADY_SHARED"
    # No further request is to be waited for.
    assert "pushed that request" not in words
    assert "datacollab remote withdraw" in words
