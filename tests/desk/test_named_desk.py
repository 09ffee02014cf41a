"""Desks of projects with times to events, effects, numbers, or nothing to predict."""

import json

import pytest
from desk_world import QUICK_FORM, decide, finished, opened, opened_by_analyst, plain, send

from named_world import TASKS, NamedWorld
from party_world import new_world


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
    send(place, "/table", {"path": str(table)})
    assert "120 rows fit the project" in plain(finished(place))
    send(place, "/release", QUICK_FORM)
    page = plain(finished(place, 120))
    assert place.desk.looked.prepared.plan.defences[0].k == 5
    assert "What would leave: a row that stands for this one and others of its group." in page
    assert ("private: rows of the anchor" in page) is False
    if kind != "none":
        assert place.desk.looked.prepared.summary.named.sentence in page
    send(place, "/approve")
    assert "Your decision" in plain(finished(place, 120))
    decide(place, "yes", name="Officer")
    assert "a.dcshare" in plain(finished(place, 120))


def test_a_party_of_numbers(tmp_path):
    world = new_world(tmp_path, task="regression")
    world.join()
    place = opened(tmp_path / "a")
    send(place, "/table", {"path": str(tmp_path / "a.csv")})
    assert "Rows of each class" not in plain(finished(place))
    send(place, "/release", QUICK_FORM)
    assert "targets" in plain(finished(place, 120)).lower()
    assert "probability of each class" not in place.client.get("/predict").text


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
        send(place, "/integrate")
        assert "analyst effect" in plain(finished(place))
        return
    send(place, "/integrate", {"clusters": "3"} if kind == "none" else {"model": "cox"})
    assert words in plain(finished(place, 200))
    send(place, "/export")
    assert "a.dcmodel" in plain(finished(place, 60))


@pytest.mark.filterwarnings("ignore:The arms differ:datacollab.errors.EffectWarning")
def test_an_effect_at_the_desks_of_analyst_and_parties(tmp_path):
    world = NamedWorld(tmp_path, "effect", n_rows=200)
    world.analyst(*(world.shared(name) for name in ("a", "b")))
    place = opened_by_analyst(tmp_path / "analyst")
    for path in ("/", "/effect", "/export"):
        assert place.client.get(path).status_code == 200
    assert "expected one of ATE, ATT" in plain(send(place, "/effect", {"estimand": "best"}))
    send(place, "/effect", {"estimand": "ATE"})
    page = plain(finished(place, 120))
    found = json.loads((tmp_path / "analyst" / "effect.json").read_bytes())
    assert found["sentence"] in page
    assert found["estimand"] in page
    assert f"party b {found['balance']['party b'][0]:+.2f} {found['balance']['party b'][1]:+.2f}" in " ".join(
        page.split()
    )
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
