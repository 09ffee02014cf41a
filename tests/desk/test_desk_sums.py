"""Desks of projects that share sums, and of those with times to events, effects, numbers, or nothing to predict."""

import json
import re

import pandas as pd
import pytest
from desk_world import QUICK_FORM, decide, finished, opened, opened_by_analyst, plain, send, worked

from datacollab.steps.party import PartyFolder
from named_world import TASKS, NamedWorld
from party_world import events, new_world
from sums_world import PARTIES, make_rows, new_sums_world


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
    assert "60 rows fit the project" in worked(place, "/table", {"path": str(world.table("north"))})
    home = place.client.get("/").text
    assert "/sums" in home
    for path in ("/release", "/approve", "/explain", "/distil", "/forget"):
        assert f'href="{path}"' not in home
    onward = re.search(r'class="button" href="(.*?)"', place.client.get("/wrong").text)[1]
    assert onward == "/sums"
    for path in ("/release", "/approve"):
        assert "shares sums" in plain(place.client.get(path))
        assert "shares sums" in plain(send(place, path))
    shown = worked(place, "/sums")
    assert "No row leaves, and no target." in shown
    assert "remains personal data" in shown
    assert re.search(r"the analyst and parties together( +\.\d\d){3}", shown)
    assert "You said no" in answered(place, decision="no")
    assert not list((at / "outbox").iterdir())
    worked(place, "/sums")
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
    assert "the total of 5 parties" in worked(desk, "/integrate")
    assert "north.dcmodel" in worked(desk, "/export")
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
    shown = worked(place, "/predict", {"path": str(new), "tested_path": str(new), "find": "90"})
    counts = [int(each) for each in re.search(r"400 predictions: no (\d+), yes (\d+)\.", shown).groups()]
    assert sum(counts) == 400
    flagged = pd.read_csv(at / "desk" / "predictions.csv")["flagged"]
    assert f"{flagged.sum()} rows are flagged, from a probability of" in shown
    shown = worked(place, "/evaluate", {"path": str(new)})
    assert "400 rows" in shown
    assert "too good" not in shown
    with world.table("north").open("rb") as file:
        send(place, "/evaluate", files={"upload": ("mine.csv", file)})
    assert "These are the rows that you shared" in plain(finished(place))


@pytest.mark.slow
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
    worked(place, "/table", {"path": str(made.table("north"))})
    assert "This project has no such step." in plain(place.client.get("/round"))
    assert "counts over 60 of its rows" in worked(place, "/sums")
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
    shown = worked(desk, "/integrate")
    assert "The study's results" in shown
    assert "Look here first. 'pulse': parties differ" in shown
    assert "Next: export" not in shown
    assert "<svg" in desk.client.get("/model/study.html").text


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.slow
def test_a_party_shares_what_is_no_class_as_by_command(tmp_path, kind):
    world = NamedWorld(tmp_path, kind)
    world.joined()
    table = tmp_path / "a.csv"
    world.tables["a"].to_csv(table, index=False)
    place = opened(tmp_path / "a")
    for path in ("/", "/table", "/model", "/predict"):
        assert place.client.get(path).status_code == 200
    assert "120 rows fit the project" in worked(place, "/table", {"path": str(table)})
    page = worked(place, "/release", QUICK_FORM, seconds=120)
    assert place.desk.looked.prepared.plan.defences[0].k == 5
    assert "What would leave: a row that stands for this one and others of its group." in page
    assert ("private: rows of the anchor" in page) is False
    if kind != "none":
        assert place.desk.looked.prepared.summary.named.sentence in page
    assert "Your decision" in worked(place, "/approve", seconds=120)
    decide(place, "yes", name="Officer")
    assert "a.dcshare" in plain(finished(place, 120))


@pytest.mark.slow
def test_a_party_of_numbers(tmp_path):
    world = new_world(tmp_path, task="regression")
    world.join()
    place = opened(tmp_path / "a")
    assert "Rows of each class" not in worked(place, "/table", {"path": str(tmp_path / "a.csv")})
    assert "targets" in worked(place, "/release", QUICK_FORM, seconds=120).lower()
    assert "probability of each class" not in place.client.get("/predict").text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"), [("survival", "Concordance of the model"), ("none", "Trained on"), ("effect", "of the effect")]
)
def test_the_analyst_of_what_is_no_class(tmp_path, kind, words):
    world = NamedWorld(tmp_path, kind)
    world.analyst(*(world.shared(name) for name in ("a", "b")))
    place = opened_by_analyst(tmp_path / "analyst")
    form = plain(place.client.get("/integrate"))
    if kind == "effect":
        assert words in form
        assert "datacollab analyst effect" in form
        assert "analyst effect" in worked(place, "/integrate")
        return
    assert words in worked(place, "/integrate", {"clusters": "3"} if kind == "none" else {"model": "cox"}, seconds=200)
    assert "a.dcmodel" in worked(place, "/export")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The arms differ:datacollab.errors.EffectWarning")
def test_an_effect_at_the_desks_of_analyst_and_parties(tmp_path):
    world = NamedWorld(tmp_path, "effect", n_rows=200)
    world.analyst(*(world.shared(name) for name in ("a", "b")))
    place = opened_by_analyst(tmp_path / "analyst")
    for path in ("/", "/effect", "/export"):
        assert place.client.get(path).status_code == 200
    assert "expected one of ATE, ATT" in plain(send(place, "/effect", {"estimand": "best"}))
    page = worked(place, "/effect", {"estimand": "ATE"}, seconds=120)
    found = json.loads((tmp_path / "analyst" / "effect.json").read_bytes())
    assert found["sentence"] in page
    assert found["estimand"] in page
    before, after = found["balance"]["party b"][:2]
    assert f"party b {before:+.2f} {after:+.2f}" in page
    assert f"{found['interval'][0]:.4g} to {found['interval'][1]:.4g}" in page
    assert place.client.get("/effect/effect.html").content == (tmp_path / "analyst" / "effect.html").read_bytes()
    assert "Next:" not in plain(place.client.get("/"))
    assert "There is nothing to be sent" in plain(place.client.get("/export"))
    for name in ("a", "b"):
        party = opened(tmp_path / name)
        home = party.client.get("/")
        assert not [path for path in ("/evaluate", "/model", "/predict") if path in home.text]
        assert "Next:" not in plain(home)
        assert "Of an effect no model comes back" in plain(party.client.get("/outbox"))


@pytest.mark.slow
def test_a_further_round_is_answered_once_from_the_rows_that_were_shared(tmp_path):
    sharing = {"statistics": ("logistic regression",), "rounds": 2}
    made = new_sums_world(tmp_path, parties=PARTIES[:3], sharing=sharing)
    for number, name in enumerate(PARTIES[:3]):
        make_rows(number).to_csv(made.table(name), index=False)
    place = opened(made.root / "north")
    worked(place, "/table", {"path": str(made.table("north"))})
    assert "Nothing was shared yet, so there is no further round" in plain(place.client.get("/round"))
    worked(place, "/sums")
    answered(place, decision="yes", name="Officer", heard="\n".join(made.heard("north")))
    assert "answer the next round" in plain(place.client.get("/outbox"))
    assert "Answer a further round" in plain(place.client.get("/"))
    first = (made.root / "north" / "outbox" / "north.dcsum").read_bytes()
    made.share_all(["south", "east"])
    made.analyst.add(made.root / name / "outbox" / f"{name}.dcsum" for name in PARTIES[:3])
    made.analyst.integrate()
    request = made.root / "analyst" / "outbox" / "round.dcround"
    with request.open("rb") as file:
        send(place, "/round", files={"upload": ("round.dcround", file)})
    assert "north.dcsum" in plain(finished(place))
    assert (made.root / "north" / "outbox" / "north.dcsum").read_bytes() != first
    assert "All rounds are answered." in plain(place.client.get("/round"))
    assert "answer the next round" not in plain(place.client.get("/outbox"))
