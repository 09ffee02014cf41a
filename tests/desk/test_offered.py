"""Pages offer what can be done, and say what is missing for the rest: at every stage, on both desks."""

import pytest
from desk_world import opened, opened_by_analyst, plain, worked

from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from party_world import new_world
from sums_world import PARTIES, new_sums_world

pytestmark = pytest.mark.usefixtures("light_choices")
OF_PARTY = ("/release", "/approve", "/sums", "/model", "/predict", "/evaluate", "/explain", "/distil")
OF_ANALYST = ("/integrate", "/effect", "/export")


def offered(place, paths):
    """The paths whose page has the form that does its step; the others say what is missing."""
    found = set()
    for path in paths:
        page = place.client.get(path)
        lacking, where = place.desk.lacks(path)
        has_form = f'<form method="post" action="{path}"' in page.text
        assert not (has_form and lacking), path
        if has_form:
            found.add(path)
        elif page.status_code == 200 and lacking and "This project is of" not in plain(page):
            assert lacking in plain(page)
            assert not where or place.client.get(where).status_code in (200, 422)
    return found


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    world = new_world(tmp_path_factory.mktemp("rows"))
    world.join("a")
    AnalystFolder.init(world.root / "analyst", world.root / "project.toml")
    return world


@pytest.mark.slow
def test_a_party_is_offered_a_step_once_the_one_before_is_done(rows, tmp_path):
    world = rows.copied(tmp_path)
    place = opened(world.root / "a")
    place.desk.choose(world.root / "a.csv")
    assert offered(place, OF_PARTY) == {"/release", "/approve"}
    anchor = (world.root / "a" / "anchor.dcstate").read_bytes()
    (world.root / "a" / "anchor.dcstate").unlink()
    assert offered(place, OF_PARTY) == set()
    (world.root / "a" / "anchor.dcstate").write_bytes(anchor)
    a, b = world.share(PartyFolder(world.root / "a")), world.shared("b")
    assert a
    assert offered(place, OF_PARTY) >= {"/model", "/distil"}
    assert not offered(place, ("/predict", "/evaluate", "/explain"))
    world.folder("a").install(world.model_file(world.folder("a"), b), random_state=0)
    assert offered(place, OF_PARTY) >= {"/model", "/predict", "/evaluate", "/explain", "/distil"}


@pytest.mark.slow
def test_an_analyst_is_offered_a_step_once_the_one_before_is_done(rows, tmp_path):
    world = rows.copied(tmp_path)
    place = opened_by_analyst(world.root / "analyst")
    assert offered(place, OF_ANALYST) == set()
    assert "0 of 2 files are there" in plain(place.client.get("/integrate"))
    assert "No model was made" in plain(place.client.get("/export"))
    world.share(PartyFolder(world.root / "a"))
    world.shared("b")
    place.desk.folder.add([world.root / name / "outbox" / f"{name}.dcshare" for name in "ab"])
    assert offered(place, OF_ANALYST) == {"/integrate"}
    worked(place, "/integrate", {"method": "lti", "model": "linear"}, seconds=200)
    assert offered(place, OF_ANALYST) == {"/integrate", "/export"}


@pytest.mark.slow
def test_where_sums_are_shared_each_is_offered_the_steps_of_sums(tmp_path):
    """Sums are exported once they were added up, and a study never."""
    counts = {"statistics": ("counts",)}
    for name, sharing, models, exported in (("sums", {}, {"/model"}, {"/export"}), ("study", counts, set(), set())):
        (tmp_path / name).mkdir()
        world = new_sums_world(tmp_path / name, parties=PARTIES[:3], sharing=sharing)
        party, analyst = opened(world.root / "north"), opened_by_analyst(world.root / "analyst")
        party.desk.choose(world.table("north"))
        assert offered(party, (*OF_PARTY, "/forget")) == {"/sums"}
        assert offered(analyst, ("/integrate", "/export")) == set()
        analyst.desk.folder.add(world.share_all())
        assert offered(party, (*OF_PARTY, "/forget")) == {"/sums"} | models
        assert offered(analyst, ("/integrate", "/export")) == {"/integrate"}
        worked(analyst, "/integrate")
        assert offered(analyst, ("/integrate", "/export")) == {"/integrate"} | exported
    assert "no model goes back" in plain(analyst.client.get("/export"))
