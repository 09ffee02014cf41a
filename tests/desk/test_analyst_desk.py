"""The analyst's steps on the desk, as by commands; and what both desks offer at every stage, or say is missing."""

import pytest
from desk_world import finished, opened, opened_by_analyst, plain, send, worked

from datacollab.desk.analyst import AnalystDesk
from datacollab.errors import ExchangeError
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from party_world import new_world
from sums_world import PARTIES, new_sums_world

PAGES = ("/", "/shares", "/integrate", "/model", "/export")


pytestmark = pytest.mark.usefixtures("light_choices")


@pytest.fixture(scope="module")
def both_shared(tmp_path_factory):
    made = new_world(tmp_path_factory.mktemp("shared"))
    AnalystFolder.init(made.root / "analyst", made.root / "project.toml")
    for name in ("a", "b"):
        made.shared(name)
    return made


@pytest.fixture
def world(both_shared, tmp_path):
    return both_shared.copied(tmp_path)


@pytest.fixture
def place(world):
    return opened_by_analyst(world.root / "analyst")


def shares(world):
    return [world.root / name / "outbox" / f"{name}.dcshare" for name in ("a", "b")]


def test_every_page_is_there_before_anything_came_in(place):
    for path in PAGES:
        assert place.client.get(path).status_code == 200, path
    assert "nothing yet" in plain(place.client.get("/shares"))
    assert "were not integrated yet" in plain(place.client.get("/model"))


@pytest.mark.slow
def test_from_shares_to_models(world, place):
    files = [("upload", (f"some {number}.dcshare", file.read_bytes())) for number, file in enumerate(shares(world))]
    told = worked(place, "/shares", files=files)
    assert "2 of 2 parties have shared" in told
    assert list(place.desk.files.path.iterdir()) == []
    card = worked(place, "/integrate", {"method": "lti", "model": "linear"}, seconds=200)
    result = AnalystFolder(world.root / "analyst").read_integration()[1]
    assert "LTI with" in card
    assert result.score.sentence() in card
    for value in result.concordance.values():
        assert f"{value:.3f}" in card
    told = worked(place, "/export")
    assert "b alone" in told
    model = world.root / "analyst" / "outbox" / "a.dcmodel"
    assert place.client.get("/outbox/a.dcmodel").content == model.read_bytes()
    assert "in the outbox" in plain(place.client.get("/shares"))
    # Another desk finds all of it.
    assert "LTI with" in plain(opened_by_analyst(world.root / "analyst").client.get("/model"))


def test_what_came_into_the_inbox_is_offered_and_gives_way_to_a_path(world, place):
    inbox = world.root / "analyst" / "inbox"
    inbox.mkdir()
    a, b = shares(world)
    b.replace(inbox / "b.dcshare")
    page = place.client.get("/shares")
    assert "what came into the inbox: b.dcshare" in plain(page)
    assert "1 of 2 parties have shared" in worked(place, "/shares", {"path": str(a), "whole_inbox": "yes"})
    assert "2 of 2 parties have shared" in worked(place, "/shares", {"whole_inbox": "yes"})
    assert (inbox / "b.dcshare").exists()


@pytest.mark.slow
def test_what_was_made_of_earlier_shares_is_not_done(world, place):
    for file in shares(world):
        worked(place, "/shares", {"path": str(file)})
    worked(place, "/integrate", {"method": "lti", "model": "linear"}, seconds=200)
    assert "Next: Export" in plain(place.client.get("/"))
    world.shared("a", again=True)
    worked(place, "/shares", {"path": str(shares(world)[0])})
    home = place.client.get("/")
    assert "Next: Align and train" in plain(home)
    assert home.text.count("shares came in since") == 2


@pytest.mark.slow
def test_candidates_are_shown_with_intervals(world, place):
    worked(place, "/shares", {"path": str(shares(world)[0].parent)})
    worked(place, "/shares", {"path": str(shares(world)[1])})
    send(place, "/integrate", {"method": "lti", "budget": "600"})
    page = finished(place, 300)
    selection = AnalystFolder(world.root / "analyst").read_integration()[1].selection
    told = plain(page)
    assert f"{selection.metric} on {selection.n_judges} rows left out" in told
    for each in selection.by_loss()[:10]:
        assert f"{each.loss:.4f}" in told
        if not each.chosen:
            assert f"{each.difference_low:+.4f} to {each.difference_high:+.4f}" in told
    (row,) = [row for row in page.text.split("<tr>") if '<span class="light green">taken</span>' in row]
    assert ">–</td>" in row


@pytest.mark.parametrize(
    ("path", "form", "words"),
    [
        ("/shares", {}, "No share that a party sent was given"),
        ("/shares", {"path": "/nowhere"}, "There is no file /nowhere"),
        ("/shares", {"path": "/"}, "There are no files .dcshare"),
        ("/integrate", {"method": "best"}, "one of auto, "),
        ("/integrate", {"model": "best"}, "one of auto"),
        ("/integrate", {"budget": "-1"}, "a number from 0 on"),
    ],
)
def test_what_is_strange_is_refused(place, path, form, words):
    answer = send(place, path, form)
    assert answer.status_code == 422
    assert words in plain(answer)


def test_a_party_has_no_analysts_desk(world):
    with pytest.raises(ExchangeError, check=lambda error: error.code == "NOT_A_MEMBER"):
        AnalystDesk(world.root / "a")


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
