"""Sums leave once two other institutions have read out their fingerprints, and the folder keeps who did."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from datacollab.cli import _party_commands
from datacollab.cli._app import app
from datacollab.steps.party import assessment
from party_world import new_world, refused
from playing import runs
from sums_world import PARTIES, new_sums_world

THREE = PARTIES[:3]
party = runs("party")


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Counts are the quickest sums."""
    return new_sums_world(tmp_path_factory.mktemp("joined"), sharing={"statistics": ("counts",)})


@pytest.fixture
def world(joined, tmp_path):
    return joined.copied(tmp_path)


def fingerprint(world, name):
    return world.keys[name].public.fingerprint


def with_institutions(world, **entities):
    """The next revision of the project, in which some parties are of other institutions."""
    sharing = world.project.sharing
    changed = replace(sharing, entities=sharing.entities | entities)
    world.write_project(replace(world.project, sharing=changed, revision=world.project.revision + 1))
    return world.folder("north")


def test_nothing_leaves_before_two_other_institutions_are_confirmed(world):
    south, east = (fingerprint(world, name) for name in ("south", "east"))
    with refused("NOT_CONFIRMED", "2 more: ring up one of centre, east, south, west, at.*--heard"):
        world.share("north", heard=())
    with refused("NOT_CONFIRMED", "1 more: ring up one of centre, east, west, at"):
        world.share("north", heard=[south, south])
    north = world.root / "north"
    assert not list((north / "outbox").iterdir())
    assert (north / "mask.dcstate").exists()
    assert not (north / "ledger" / "ledger.json").exists()
    # The first one was kept.
    assert world.share("north", heard=[east]).exists()


def test_three_parties_confirm_both_others(tmp_path):
    world = new_sums_world(tmp_path, parties=THREE, sharing={"statistics": ("counts",)})
    with refused("NOT_CONFIRMED", "ring up east, at"):
        world.share("north", heard=[fingerprint(world, "south")])
    assert world.share("north", heard=[fingerprint(world, "east")]).exists()


def test_a_later_run_of_the_same_parties_asks_nobody_again(world):
    world.share("north")
    world.next_run()
    assert world.folder("north").n_unconfirmed() == 0


def test_other_parties_are_confirmed_anew(world):
    folder = world.folder("north")
    assert folder.confirm(world.heard("north")) == ["centre", "east"]
    world.next_run(without=("west",))
    folder = world.folder("north")
    assert folder.n_unconfirmed() == 2
    folder.confirm(world.heard("north"))
    assert world.folder("north").n_unconfirmed() == 0


def test_an_institution_of_another_name_is_confirmed_anew(world):
    world.folder("north").confirm(world.heard("north"))
    assert with_institutions(world, east="THE EAST HOSPITAL!").n_unconfirmed() == 0
    assert with_institutions(world, east="Another hospital").n_unconfirmed() == 1


def test_institutions_count_and_not_keys(world):
    folder = with_institutions(world, south="One hospital", east="one  Hospital.", west="The north hospital")
    assert folder.confirm([fingerprint(world, name) for name in ("south", "east")]) == ["south", "east"]
    assert folder.n_unconfirmed() == 1
    with refused("NOT_CONFIRMED", "'west', of your own institution"):
        folder.confirm([fingerprint(world, "west")])
    with refused("NOT_CONFIRMED", "ring up centre, at"):
        world.share("north", heard=())
    folder.confirm([fingerprint(world, "centre")])
    assert folder.n_unconfirmed() == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("north", "of your own institution"), ("analyst", "of the analyst, who is no party"), ("stranger", "no party of")],
)
def test_a_key_of_nobody_else_in_the_project_confirms_nothing(world, name, words):
    folder = world.folder("north")
    with refused("NOT_CONFIRMED", words):
        folder.confirm([fingerprint(world, name)])
    assert folder.n_unconfirmed() == 2


@given(data=st.data())
def test_it_does_not_matter_how_a_fingerprint_is_typed(joined, data):
    letters = fingerprint(joined, "south").replace("-", "")
    between = st.sampled_from(["", "-", " ", ". ", "\N{EN DASH}", "\N{NO-BREAK SPACE}", "\t"])
    typed = "".join(
        data.draw(between) + (each.upper() if data.draw(st.booleans()) else each) for each in letters
    ) + data.draw(between)
    assert joined.folder("west").confirm([typed]) == ["south"]


@given(typed=st.text(max_size=30))
def test_what_is_no_fingerprint_is_refused(joined, typed):
    folder = joined.folder("centre")
    with refused("NOT_CONFIRMED"):
        folder.confirm([typed])
    assert not folder.files.heard.exists()


def test_whoever_damages_what_was_kept_has_it_read_out_again(world):
    folder = world.folder("north")
    folder.confirm(world.heard("north"))
    folder.files.heard.write_bytes(folder.files.heard.read_bytes()[:-1])
    assert folder.n_unconfirmed() == 2
    folder.confirm(world.heard("north"))
    assert folder.n_unconfirmed() == 0


def test_no_fingerprint_is_shown_before_it_was_heard(world):
    folder, of_others = world.folder("north"), [fingerprint(world, name) for name in PARTIES[1:]]
    summary = folder.prepare(world.table("north")).summary
    text, form = summary.to_text(), assessment(folder.project, folder.policy, summary)
    for each in (text, form, str(summary.to_dict())):
        assert "centre (The centre hospital)" in each
        assert not any(fingerprint in each for fingerprint in of_others)
    for each in (text, form):
        assert "Ring up two of these institutions" in " ".join(each.split())
    folder.confirm(world.heard("north"))
    text = " ".join(folder.prepare(world.table("north")).summary.to_text().split())
    assert f"centre (The centre hospital): {fingerprint(world, 'centre')}, as heard" in text
    assert "So nobody has made up all the other parties" in text


def test_a_command_asks_whoever_is_there_until_two_are_confirmed(world, monkeypatch):
    at = ("-C", world.root / "north")
    shown = party("check", world.table("north"), *at).stdout
    assert shown.rstrip().endswith("--approve --heard FINGERPRINT --heard FINGERPRINT")
    monkeypatch.setattr(_party_commands, "at_terminal", lambda: True)
    centre, east = world.heard("north")
    typed = ["?", fingerprint(world, "stranger"), centre, east.upper()]
    words = [str(word) for word in ("party", "share", world.table("north"), "--approve", *at)]
    result = CliRunner().invoke(app, words, input="\n".join(typed) + "\n")
    assert result.exit_code == 0, result.output
    asked = result.stdout.partition("The other parties:")[2]
    for words in (
        "16 letters and digits, and 0 were typed",
        "no party of project 'wards' has the fingerprint",
        "This is the key of centre.",
        "This is the key of east.",
    ):
        assert words in asked
        asked = asked.partition(words)[2]
    assert "approved by" in asked


def test_who_joins_without_the_owners_key_reads_that_nothing_confirms_it(world):
    at = ("-C", world.root / "north")
    told = party("join", world.root / "project.toml", *at).stdout
    assert "Nothing confirms yet that the file is the owner's." in told
    assert "two other institutions read out" in told
    owner = world.root / "north" / "public.key"
    assert "confirms" not in party("join", world.root / "project.toml", "--owner", owner, *at).stdout


def test_who_shares_rows_is_not_asked(tmp_path):
    assert new_world(tmp_path).join().n_unconfirmed() == 0
