"""A project that shares sums, on the desks of a party and the analyst: from a table to predictions."""

import re

import pandas as pd
import pytest
from desk_world import finished, opened, opened_by_analyst, plain, send

from datacollab.desk.party._party_app import _count_predictions
from datacollab.steps.party import PartyFolder
from party_world import events
from sums_world import PARTIES, new_sums_world


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """All but north have shared."""
    made = new_sums_world(tmp_path_factory.mktemp("sums"))
    made.share_all([name for name in made.project.parties if name != "north"])
    return made


def answered_now(place, **data):
    """The page that the answer gets at once."""
    asked = re.search(r'name="question" value="(\w+)"', place.client.get("/sums").text)
    return plain(send(place, "/sums/decide", {"question": asked[1] if asked else ""} | data))


def answered(place, **data):
    answered_now(place, **data)
    return plain(finished(place))


@pytest.mark.slow
def test_from_a_table_to_predictions(world):
    at = world.root / "north"
    place = opened(at)
    names = [name for name in world.project.parties if name != "north"]
    send(place, "/table", {"path": str(world.table("north"))})
    assert "60 rows fit the project" in plain(finished(place))
    home = place.client.get("/").text
    assert "/sums" in home
    for path in ("/release", "/approve", "/explain", "/distil", "/forget"):
        assert f'href="{path}"' not in home
    onward = re.search(r'class="button" href="(.*?)"', place.client.get("/wrong").text)[1]
    assert onward == "/sums"
    for path in ("/release", "/approve"):
        assert "shares sums" in plain(place.client.get(path))
        assert "shares sums" in plain(send(place, path))

    send(place, "/sums")
    shown = plain(finished(place))
    assert "No row leaves, and no target." in shown
    assert "remains personal data" in shown
    assert re.search(r"the analyst and parties together( +\.\d\d){3}", shown)
    assert "You said no" in answered(place, decision="no")
    assert not list((at / "outbox").iterdir())
    send(place, "/sums")
    finished(place)
    assert "Write the name" in plain(send(place, "/sums/decide", {
        "decision": "yes", "question": re.search(r'name="question" value="(\w+)"', place.client.get("/sums").text)[1],
    }))  # fmt: skip
    assert not any(key.fingerprint in shown for key in world.project.parties.values())
    first, second = world.heard("north")
    for heard, words in (("", "two other institutions"), ("a" * 16, "no party of project 'wards'"), (first, "1 more")):
        told = answered_now(place, decision="yes", name="Officer", heard=heard)
        assert "NOT_CONFIRMED" in told
        assert words in told
    # The first one was kept; what is typed now has other letters in between.
    assert "north.dcsum" in answered(place, decision="yes", name="Officer", heard=second.upper().replace("-", " "))
    folder = PartyFolder(at)
    assert events(folder)[-1] == "share"
    assert folder.log.entries()[-1]["facts"]["approved_by"] == "Officer"

    desk = opened_by_analyst(world.root / "analyst")
    shown = desk.client.get("/integrate").text
    assert "0 of 5 files are there." in shown
    assert 'action="/integrate"' not in shown
    for name in (*names, "north"):
        with (world.root / name / "outbox" / f"{name}.dcsum").open("rb") as file:
            send(desk, "/shares", files={"upload": (f"{name}.dcsum", file)})
        page = plain(finished(desk))
    assert "5 of 5 parties have shared" in page
    assert "5 are needed" in plain(desk.client.get("/"))
    assert "add them up" in plain(desk.client.get("/model"))
    send(desk, "/integrate")
    assert "the total of 5 parties" in plain(finished(desk))
    send(desk, "/export")
    assert "north.dcmodel" in plain(finished(desk))

    with (world.root / "analyst" / "outbox" / "south.dcmodel").open("rb") as file:
        send(place, "/model", files={"upload": ("sent to us.dcmodel", file)})
    shown = plain(finished(place))
    assert "sent to us.dcmodel was made for party 'south'" in shown
    assert "upload-" not in shown
    with (world.root / "analyst" / "outbox" / "north.dcmodel").open("rb") as file:
        send(place, "/model", files={"upload": ("north.dcmodel", file)})
    shown = plain(finished(place))
    assert "A model is installed." in shown
    assert folder.log.entries()[-1]["facts"]["model_digest"] in shown.replace(" ", "")
    new = world.root / "new.csv"
    send(place, "/predict", {"path": str(new), "tested_path": str(new), "find": "90"})
    shown = plain(finished(place))
    counts = [int(each) for each in re.search(r"400 predictions: no (\d+), yes (\d+)\.", shown).groups()]
    assert sum(counts) == 400
    flagged = pd.read_csv(at / "desk" / "predictions.csv")["flagged"]
    assert f"{flagged.sum()} rows are flagged, from a probability of" in shown
    send(place, "/evaluate", {"path": str(new)})
    shown = plain(finished(place))
    assert "400 rows" in shown
    assert "too good" not in shown
    with world.table("north").open("rb") as file:
        send(place, "/evaluate", files={"upload": ("mine.csv", file)})
    assert "These are the rows that you shared" in plain(finished(place))


def test_that_nobody_is_called_of_the_second_class_is_said(tmp_path):
    file = tmp_path / "predictions.csv"
    file.write_text("id,prediction,proba_no,proba_yes\n1,no,.9,.1\n2,no,.8,.2\n")
    assert _count_predictions(file, ["no", "yes"]) == {"classes": {"no": 2, "yes": 0}, "n_flagged": 0}
    file.write_text("prediction;flagged\n1;True\n0;True\n1;False\n", encoding="utf-8-sig")
    assert _count_predictions(file, ["0", "1"]) == {"classes": {"0": 1, "1": 2}, "n_flagged": 2}
    assert _count_predictions(file, []) == {"classes": {}, "n_flagged": 0}


def test_counts_of_a_study_on_both_desks(tmp_path):
    made = new_sums_world(tmp_path, parties=PARTIES[:3], sharing={"statistics": ("counts",)})
    table = pd.read_csv(made.table("east"))
    table.assign(pulse=table["pulse"] / 10).to_csv(made.table("east"), index=False)
    place = opened(made.root / "north")
    assert "anchor" not in plain(place.client.get("/"))
    assert "Join again when the owner sends a new revision" in plain(place.client.get("/join"))
    assert (
        "dcanchor" not in place.client.get("/join").text.partition("<code>datacollab party join")[2].partition("<")[0]
    )
    send(place, "/join", {"path": str(made.root / "project.toml")})
    assert "none is needed" in plain(place.client.get("/join"))
    send(place, "/join/decline")
    send(place, "/table", {"path": str(made.table("north"))})
    finished(place)
    send(place, "/sums")
    assert "counts over 60 of its rows" in plain(finished(place))
    heard = "\n".join(made.heard("north"))
    assert "north.dcsum" in answered(place, decision="yes", name="Officer", heard=heard)
    made.share_all(["south", "east"])
    made.analyst.add(made.root / name / "outbox" / f"{name}.dcsum" for name in PARTIES[:3])
    desk = opened_by_analyst(made.root / "analyst")
    shown = desk.client.get("/shares").text
    assert "–" not in shown
    assert ">Rows<" not in shown
    assert "Add up" in plain(desk.client.get("/"))
    assert "model" not in plain(desk.client.get("/integrate"))
    send(desk, "/integrate")
    shown = plain(finished(desk))
    assert "The study's results" in shown
    assert "Look here first. 'pulse': parties differ" in shown
    assert "Next: export" not in shown
    assert "<svg" in desk.client.get("/model/study.html").text
