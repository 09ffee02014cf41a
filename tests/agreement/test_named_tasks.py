"""Project files of times to events, effects and no targets, and targets from tables."""

import dataclasses

import numpy as np
import pytest
import tomli_w

from datacollab.agreement import (
    Task,
    draft_project,
    load_project,
    project_content,
    project_text,
    sign_project_text,
    task_lines,
)
from datacollab.table import encode_table, read_table
from datacollab.targets import TargetKind, effect_target, survival_target, target_kind
from named_world import ARMS, EVENT, TASKS, TIME, project_of, table_of
from party_world import refusal as refused


@pytest.fixture(params=TASKS)
def named(request, keys):
    return project_of(request.param, keys)


def test_a_file_says_all_of_a_task(named, keys, write):
    loaded = load_project(write("project.toml", project_text(named, keys["a"])))
    assert loaded == named
    assert loaded.digest == named.digest


def text_of(project, change=lambda task: None):
    content = project_content(project)
    change(content["task"])
    return tomli_w.dumps(content)


def test_unknown_and_missing_entries_are_refused(named, keys, write):
    def signed(change=lambda task: None):
        return sign_project_text(text_of(named, change), keys["a"])

    assert "'horizon'" in refused("SPEC_INVALID", signed, lambda task: task.update(horizon=5))
    assert load_project(write("project.toml", signed())) == named
    optional = {"kind", "unit"}
    for name in project_content(named)["task"].keys() - optional:
        assert name in refused("SPEC_INVALID", signed, lambda task, name=name: task.pop(name))


def task(kind="survival", **changes):
    entries = {"survival": EVENT | TIME, "effect": ARMS | {"outcome": "o", "minimum": 0.0, "maximum": 1.0}, "none": {}}
    return Task(kind=kind, **(entries[kind] | changes))


CONTRADICTIONS = {
    "no rounding": {"rounding": None},
    "negative rounding": {"rounding": -1.0},
    "rounding beyond the longest time": {"rounding": 2000.0},
    "rounding that is none": {"rounding": float("nan")},
    "no maximum": {"maximum": None},
    "maximum of 0": {"maximum": 0.0, "rounding": 0.0},
    "a minimum of times": {"minimum": 1.0},
    "one column twice": {"event": "days"},
    "nothing means seen": {"seen": ()},
    "one entry for both": {"seen": ("no",)},
    "texts and numbers": {"seen": (1,)},
    "truth values": {"seen": (True,), "not_seen": (False,)},
    "classes": {"classes": ("no", "yes")},
    "a target": {"target": "died"},
    "a treatment": ARMS,
    "an invisible letter": {"event": "di\u202eed"},
    "an effect without outcome": {"kind": "effect", "outcome": "", "minimum": None, "maximum": None},
    "two outcomes": {"kind": "effect", **EVENT, "time": "days"},
    "an effect's range upside down": {"kind": "effect", "minimum": 2.0},
    "columns of nothing": {"kind": "none", "event": "died"},
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_refused(case):
    assert task() is not None
    refused("SPEC_INVALID", task, **CONTRADICTIONS[case])


def test_a_column_of_targets_is_no_other_column(keys):
    for name in ("age", "pulse"):
        renamed = dataclasses.replace(TASKS["survival"], event=name)
        assert name in refused("SPEC_INVALID", project_of, "survival", keys, task=renamed)


def test_targets_are_those_of_the_columns(keys):
    table = table_of(50)
    seen, treated = (table["died"] == "yes").to_numpy(), table["drug"].to_numpy()
    wanted = {
        "survival": survival_target(seen, table["days"]),
        "effect": effect_target(treated, table["pressure"]),
        "survival-effect": effect_target(treated, event=seen, time=table["days"]),
    }
    for kind, target in wanted.items():
        found = encode_table(project_of(kind, keys), table, where="x.csv").target
        assert found.dtype == target.dtype
        assert (found == target).all()
    nothing = encode_table(project_of("none", keys), table[["age", "pulse", "weight"]], where="x.csv").target
    assert target_kind(nothing) is TargetKind.NONE
    assert nothing.shape == (50,)


@pytest.mark.parametrize(
    ("entries", "seen", "not_seen"),
    [
        (["1", "0", "1.0"], (1,), (0,)),
        (["true", "False", "TRUE"], (1,), (0,)),
        (["dead", "alive", "lost"], ("dead",), ("alive", "lost")),
        (["2", "1", "3"], (2, 3), (1,)),
    ],
)
def test_events_are_read_from_a_file_as_they_are_written(keys, write, entries, seen, not_seen):
    changed = dataclasses.replace(TASKS["survival"], seen=seen, not_seen=not_seen)
    project = project_of("survival", keys, task=changed)
    rows = "\n".join(f"50,50,50,{entry},10" for entry in entries)
    file = write("t.csv", f"age,pulse,weight,died,days\n{rows}\n")
    target = encode_table(project, read_table(file, schema=project), where="t.csv").target
    yes = {str(each) for each in seen} | {"1.0", "true"} - {str(each) for each in not_seen}
    expected = [entry.lower() in yes for entry in entries]
    assert target["event"].tolist() == expected


SECRET = 987.654
REFUSALS = {
    "event of no meaning": ("died", "SECRET", "2 of 9 rows"),
    "event missing": ("died", None, "no entry in 2 of 9 rows"),
    "time missing": ("days", np.nan, "no entry"),
    "time of 0": ("days", 0.0, "0 or less in 2 of 9 rows (the first: row 3)"),
    "time before 0": ("days", -SECRET, "0 or less"),
    "time too long": ("days", 9 * SECRET, "0 to 1000 days"),
    "time that is text": ("days", "SECRET", "expected numbers"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_name_column_count_and_row_and_no_entry(keys, case):
    column, value, words = REFUSALS[case]
    table = table_of(9)
    table[column] = table[column].astype(object)
    table.loc[[2, 5], column] = value
    message = refused("TARGET_INVALID", encode_table, project_of("survival", keys), table, where="x.csv")
    assert f"target {column!r}" in message
    assert words in message
    assert "SECRET" not in message
    assert "987" not in message
    assert "8888" not in message


def test_a_time_beyond_the_longest_has_a_way_on_that_the_project_file_has(keys):
    table = table_of(9)
    table.loc[0, "days"] = 1e6
    message = refused("TARGET_INVALID", encode_table, project_of("survival", keys), table, where="x.csv")
    assert "ask the owner for a wider range (maximum in [task])" in message


def test_all_columns_that_fail_are_named_together(keys):
    table = table_of(9)
    table.loc[0, "died"], table.loc[1, "days"] = "?", -1.0
    message = refused("TARGET_INVALID", encode_table, project_of("survival", keys), table, where="x.csv")
    assert "Look at these columns too: days" in message
    del table["days"]
    assert "days" in refused("SCHEMA_MISSING_COLUMN", encode_table, project_of("survival", keys), table, where="x.csv")


def draft(keys, table, **options):
    members = {"owner": keys["a"].public, "analyst": keys["analyst"].public}
    parties = {name: keys[name].public for name in ("a", "b")}
    given = {"name": "p", "purpose": "x", "without": [], **members, "parties": parties}
    return draft_project(table, **(given | options))


def test_a_draft_guesses_what_the_columns_say(keys):
    table = table_of(200)
    table["days"] = table["days"] * 1826 / table["days"].max()
    drafted = draft(keys, table, event="died", time="days", without=["drug", "pressure"])
    found = drafted.task
    assert found.kind == "survival"
    assert (found.seen, found.not_seen) == (("yes",), ("no",))
    assert found.rounding == 30.0
    assert found.maximum > 1826
    assert "died" not in {column.name for column in drafted.columns}
    effect = draft(keys, table, treatment="drug", outcome="pressure", without=["died", "days"]).task
    assert (effect.kind, effect.treated, effect.untreated) == ("effect", (1,), (0,))
    # Three numbers, and a category of two.
    assert draft(keys, table, treatment="drug", outcome="pressure", without=["died", "days"]).max_components == 4
    assert drafted.max_components == 3
    assert effect.minimum < table["pressure"].min() < table["pressure"].max() < effect.maximum
    both = draft(keys, table, treatment="drug", event="died", time="days", without=["pressure"]).task
    assert both.target_kind is TargetKind.SURVIVAL_EFFECT
    nothing = draft(keys, table, task="none", without=["died", "days", "drug", "pressure"])
    assert nothing.task == Task(kind="none")


def test_a_draft_does_not_guess_what_entries_mean(keys):
    table = table_of(50)
    table["died"] = np.where(table["died"] == "yes", "dead", "alive")
    wanted = {"event": "died", "time": "days", "without": ["drug", "pressure"]}
    assert "--seen" in refused("SPEC_INVALID", draft, keys, table, **wanted)
    told = draft(keys, table, **wanted, seen=["dead"]).task
    assert (told.seen, told.not_seen) == (("dead",), ("alive",))
    assert "lost" in refused("SPEC_INVALID", draft, keys, table, **wanted, seen=["lost"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "expected --target;"),
        ({"event": "died"}, "expected --event, --time;"),
        ({"treatment": "drug"}, "--outcome, --treatment or --event, --time, --treatment"),
        ({"target": "died", "event": "died", "time": "days"}, "got --event, --target, --time"),
        ({"task": "none", "target": "died"}, "expected no column;"),
        ({"task": "regression", "event": "died", "time": "days"}, "expected --target;"),
        ({"target": "died", "seen": ["yes"]}, "--seen"),
        ({"task": "ranking", "target": "died"}, "survival, effect or none"),
    ],
)
def test_a_draft_wants_the_columns_of_one_kind(keys, given, words):
    assert words in refused("SPEC_INVALID", draft, keys, table_of(20), **given)


@pytest.mark.parametrize(
    ("maximum", "rounding", "latest"), [(1000.0, 30.0, 1020.0), (60.0, 0.1, 60.0), (5.0, 0.0, 5.0)]
)
def test_the_latest_time_is_the_maximum_rounded_up(keys, maximum, rounding, latest):
    changed = dataclasses.replace(TASKS["survival"], maximum=maximum, rounding=rounding)
    assert changed.latest == pytest.approx(latest)
    lines = task_lines(dataclasses.replace(project_of("survival", keys), task=changed))
    assert ("times are not rounded" in "".join(lines)) == (rounding == 0)
