"""What two revisions of an agreement say differently."""

from dataclasses import replace
from datetime import date

from datacollab.agreement import Sharing
from datacollab.bundle import KeyPair
from datacollab.sums import MaskKey, mask_card
from datacollab.table import Column
from datacollab_hub.pages._changes import Change, compare_projects
from hub_world import KEYS, PROJECT, make_project

PARTIES = ("north", "south", "other")


def test_equal_agreements_differ_in_nothing():
    assert compare_projects(PROJECT, replace(PROJECT, revision=7)) == []


def test_entries_are_named_with_what_they_were_and_are():
    after = replace(PROJECT, deadline=date(2031, 2, 3), seal_shares=not PROJECT.seal_shares, purpose="Another.")
    changes = {change.where: (change.before, change.after) for change in compare_projects(PROJECT, after)}
    words = {True: "yes", False: "no"}
    assert changes == {
        "Purpose": (PROJECT.purpose, "Another."),
        "Last day for shares": (None if PROJECT.deadline is None else PROJECT.deadline.isoformat(), "2031-02-03"),
        "Shares are sealed to the analyst": (words[PROJECT.seal_shares], words[not PROJECT.seal_shares]),
    }


def test_columns_come_go_change_and_move():
    first, *others = PROJECT.columns
    new = Column(name="new", kind="category", categories=("a", "b"))
    changed = replace(others[0], missing="fill", fill=others[0].minimum)
    found = compare_projects(PROJECT, replace(PROJECT, columns=(new, changed, *others[1:])))
    by_where = {change.where: change for change in found}
    assert by_where[f"Column {first.name}"].after is None
    assert by_where["Column new"] == Change("Column new", None, "category, a, b")
    assert "missing:" in by_where[f"Column {changed.name}"].after
    moved = compare_projects(PROJECT, replace(PROJECT, columns=(*others, first)))
    assert [change.where for change in moved] == ["Order of the columns"]


def test_members_are_compared_by_their_keys():
    name, *_ = PROJECT.parties
    new = KeyPair.generate().public
    parties = {**PROJECT.parties, name: new, "newcomer": KeyPair.generate().public}
    changes = compare_projects(PROJECT, replace(PROJECT, parties=parties))
    assert [change.where for change in changes] == [f"Party {name}", "Party newcomer"]
    assert (changes[0].before, changes[0].after) == (PROJECT.parties[name].fingerprint, new.fingerprint)
    assert changes[1].before is None


def test_changes_of_sharing_are_named():
    cards = {name: mask_card(MaskKey.generate(), KEYS[name]) for name in PARTIES}
    entities = {name: f"The {name} hospital" for name in (*PARTIES, "analyst")}
    parties = {name: KEYS[name].public for name in PARTIES}
    sums = {"anchor": replace(PROJECT.anchor, method="sample"), "parties": parties}
    before = make_project(**sums, sharing=Sharing(mask_keys=cards, entities=entities))
    changed = {
        "mask_keys": cards | {"south": mask_card(MaskKey.generate(), KEYS["south"])},
        "entities": entities | {"north": "Elsewhere"},
    }
    after = make_project(**sums, sharing=Sharing(**changed, run=2, noise=0.3))
    assert [change.where for change in compare_projects(before, after)] == [
        "Sharing: noise",
        "Sharing: run",
        "Mask key of south",
        "Legal entity of north",
    ]
    assert compare_projects(before, before) == []
