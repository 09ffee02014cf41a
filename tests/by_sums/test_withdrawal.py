"""A run without a party that was in an earlier one: only with its signed word, or with a name and the risk."""

import shutil

import pytest

from datacollab.by_sums.party._withdrawal import withdrawal_to_bytes
from datacollab.errors import AgreementError, ExchangeError
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import read_withdrawal
from party_world import events, new_world, refused
from sums_world import new_sums_world

LEFT, STAYED = "centre", ("north", "south", "east", "west")


@pytest.fixture(scope="module")
def stuck(tmp_path_factory):
    """Four of five have shared, and the fifth never will."""
    world = new_sums_world(tmp_path_factory.mktemp("stuck"))
    world.share_all(STAYED)
    return world


@pytest.fixture
def world(stuck, tmp_path):
    return stuck.copied(tmp_path)


@pytest.mark.slow
def test_the_others_go_on_with_a_signed_withdrawal_and_make_a_model(world):
    world.analyst.add(world.folder(name).outbox / f"{name}.dcsum" for name in STAYED)
    word = world.folder(LEFT).withdraw()
    said = read_withdrawal(word.read_bytes(), where="word")
    assert (said.party, said.had_shared, said.project_digest) == (LEFT, False, world.project.digest)
    world.next_run(without=[LEFT])
    analyst = AnalystFolder.init(world.root / "analyst", world.root / "project.toml")
    assert analyst.shares() == []
    seen = []
    for name in STAYED:
        path = world.share(name, withdrawals=[word], approve=lambda summary: seen.append(summary) or "me")
        analyst.add([path])
    assert analyst.integrate().n_parties == 4
    assert "before it shared" in " ".join(seen[0].to_text().split())
    # The noise of both totals is accounted for.
    assert seen[0].noise_before == pytest.approx(seen[0].noise)


def test_files_of_the_earlier_run_go_from_the_analysts_inbox_too(world):
    """Sums of both runs, one with a party and one without it, would tell this party's."""
    inbox = world.root / "analyst" / "inbox"
    inbox.mkdir()
    shutil.copy(world.folder("north").outbox / "north.dcsum", inbox)
    (inbox / "south.dcsum").write_bytes(b"cut off")
    world.next_run(without=[LEFT])
    east = world.share("east", without=[LEFT])
    shutil.copy(east, inbox)
    AnalystFolder.init(world.root / "analyst", world.root / "project.toml")
    assert sorted(file.name for file in inbox.iterdir()) == ["east.dcsum", "south.dcsum"]
    assert world.analyst.log.entries()[-1]["facts"]["removed"] == ["north.dcsum"]


@pytest.mark.slow
def test_without_its_word_or_with_anothers_nothing_leaves(world, tmp_path):
    word = world.folder(LEFT).withdraw()
    (tmp_path / "elsewhere").mkdir()
    of_another = new_sums_world(tmp_path / "elsewhere").folder(LEFT).withdraw()
    forged = tmp_path / "forged.dcwithdrawal"
    project = world.project
    forged.write_bytes(withdrawal_to_bytes(LEFT, project.name, project.digest, False, world.keys["stranger"]))
    world.next_run(without=[LEFT])
    with refused("ALREADY_SHARED", "--withdrawal"):
        world.share("north")
    for wrong in (of_another, forged):
        with refused("NOT_A_MEMBER", LEFT):
            world.share("north", withdrawals=[wrong])
    with refused("NOT_A_MEMBER", "south"):
        world.share("north", withdrawals=[word], without=["south"])
    cut = tmp_path / "cut.dcwithdrawal"
    cut.write_bytes(word.read_bytes()[:-1])
    with pytest.raises(ExchangeError):
        world.share("north", withdrawals=[cut])
    assert (world.root / "north" / "mask.dcstate").exists()


def test_a_word_for_a_run_in_which_the_party_still_is_serves_nobody(world):
    word = world.folder(LEFT).withdraw()
    world.next_run()
    with refused("NOT_A_MEMBER", LEFT):
        world.share("north", withdrawals=[word])


def test_an_override_names_the_party_and_the_risk(world):
    world.next_run(without=[LEFT])
    seen = []
    world.share("north", without=[LEFT], approve=lambda summary: seen.append(summary) or "me")
    text = " ".join(seen[0].to_text().split())
    assert f"Party {LEFT} left" in text
    assert f"together tell what {LEFT} added" in text


def test_who_withdrew_shares_no_more_in_this_run_even_from_a_backup(world):
    place = world.root / LEFT
    key = (place / "mask.dcstate").read_bytes()
    folder = world.folder(LEFT)
    folder.withdraw()
    assert not (place / "mask.dcstate").exists()
    assert "dcmask1-" not in (place / "public.key").read_text()
    (place / "mask.dcstate").write_bytes(key)
    with refused("ALREADY_SHARED", "left this run"):
        world.share(LEFT)
    assert events(folder) == ["join", "withdraw"]


def test_who_shared_before_says_so_and_sends_the_file_no_more(world):
    folder = world.folder("west")
    said = read_withdrawal(folder.withdraw().read_bytes(), where="word")
    assert said.had_shared
    assert [path.name for path in folder.outbox.iterdir()] == ["west.dcwithdrawal"]
    with refused("KEY_MISSING"):
        world.share("west")


def test_shares_of_rows_are_not_withdrawn_so(tmp_path):
    with pytest.raises(AgreementError, match="shares rows"):
        new_world(tmp_path).join().withdraw()
