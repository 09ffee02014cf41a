"""The analyst's steps on the desk: the same as by commands, with the same files and refusals."""

import pytest
from desk_world import finished, opened_by_analyst, plain, send, worked

from datacollab.desk.analyst import AnalystDesk
from datacollab.errors import ExchangeError
from datacollab.steps.analyst import AnalystFolder
from party_world import new_world

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
