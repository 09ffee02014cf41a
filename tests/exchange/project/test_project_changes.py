"""What two revisions of an agreement say differently, entry by entry."""

from dataclasses import replace
from datetime import date

from datacollab.bundle import KeyPair
from datacollab.exchange.project import Change, Column, compare_projects


def test_equal_agreements_differ_in_nothing(project):
    assert compare_projects(project, replace(project, revision=7)) == []


def test_entries_are_named_with_what_they_were_and_are(project):
    after = replace(project, deadline=date(2031, 2, 3), seal_shares=not project.seal_shares, purpose="Another.")
    changes = {change.where: (change.before, change.after) for change in compare_projects(project, after)}
    words = {True: "yes", False: "no"}
    assert changes == {
        "Purpose": (project.purpose, "Another."),
        "Last day for shares": (None if project.deadline is None else project.deadline.isoformat(), "2031-02-03"),
        "Shares are sealed to the analyst": (words[project.seal_shares], words[not project.seal_shares]),
    }


def test_columns_come_go_change_and_move(project):
    first, *others = project.columns
    new = Column(name="new", kind="category", categories=("a", "b"))
    changed = replace(others[0], missing="fill", fill=others[0].categories[0] if others[0].categories else None)
    if changed.kind == "number":
        changed = replace(changed, fill=changed.minimum)
    found = compare_projects(project, replace(project, columns=(new, changed, *others[1:])))
    by_where = {change.where: change for change in found}
    assert by_where[f"Column {first.name}"].after is None
    assert by_where["Column new"] == Change("Column new", None, "category, a, b")
    assert "missing:" in by_where[f"Column {changed.name}"].after
    moved = compare_projects(project, replace(project, columns=(*others, first)))
    assert [change.where for change in moved] == ["Order of the columns"]


def test_members_are_compared_by_their_keys(project):
    name, *_ = project.parties
    new = KeyPair.generate().public
    parties = {**project.parties, name: new, "newcomer": KeyPair.generate().public}
    changes = compare_projects(project, replace(project, parties=parties))
    assert [change.where for change in changes] == [f"Party {name}", "Party newcomer"]
    assert (changes[0].before, changes[0].after) == (project.parties[name].fingerprint, new.fingerprint)
    assert changes[1].before is None
