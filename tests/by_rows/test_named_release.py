"""What a party shares of times to events, effects and no targets, and what it is shown before."""

import dataclasses
import json

import numpy as np
import pytest
from release_example import said_by

from datacollab.bundle import unpack
from datacollab.by_rows.party._stored_party import OwnRows, own_rows_from, own_rows_to
from datacollab.party import GaussianNoise, Microaggregation, SharingPlan
from datacollab.share import share_from
from datacollab.steps.party import load_policy
from datacollab.table import encode_table
from datacollab.targets import TargetKind, coarsen_times
from named_world import TASKS, NamedWorld, table_of
from party_world import refused


@pytest.fixture(params=TASKS)
def world(request, tmp_path):
    return NamedWorld(tmp_path, request.param)


@pytest.fixture
def survival(tmp_path):
    return NamedWorld(tmp_path, "survival")


def share_of(folder):
    return share_from(unpack(folder.path / "outbox" / f"{folder.name}.dcshare"))


def n_alone(columns):
    """Rows of which no other is equal, by counting."""
    rows = list(zip(*columns, strict=True))
    return sum(rows.count(row) == 1 for row in rows)


def test_targets_leave_as_agreed_and_no_exact_time_does(world):
    folder = world.shared()
    target, own = share_of(folder).target, encode_table(world.project, world.tables["a"], where="a").target
    task = world.project.task
    assert len(target) == len(own) == 120
    if task.kind == "none":
        assert not target.dtype.names
        return
    expected = coarsen_times(own, 30.0)
    assert sorted(target.tolist()) == sorted(expected.tolist())
    if task.time:
        assert (target["time"] % 30 == 0).all()
        assert (target["time"] <= task.latest).all()
        assert not np.isin(own["time"], target["time"]).any()


def test_the_summary_counts_what_leaves(world):
    prepared = world.joined().prepare(world.tables["a"], audit=False, preset="none", n_components=3)
    named, table = prepared.summary.named, world.tables["a"]
    seen, treated = int((table["died"] == "yes").sum()), int(table["drug"].sum())
    events = {"event seen": seen, "event not seen": 120 - seen}
    arms = {"treated": treated, "untreated": 120 - treated}
    rounded = np.ceil(table["days"] / 30) * 30
    kind = world.project.task.target_kind
    counts, columns = {
        TargetKind.SURVIVAL: (events, ([table["died"]], "days")),
        TargetKind.EFFECT: (arms, ([table["drug"], table["pressure"]], None)),
        TargetKind.SURVIVAL_EFFECT: (arms | events, ([table["drug"], table["died"]], "days")),
        TargetKind.NONE: ({}, ([], None)),
    }[kind]
    assert named.counts == counts
    others, times = columns
    if kind is TargetKind.NONE:
        before = after = 0
    elif times is None:
        before = after = n_alone(others)
    else:
        before, after = n_alone([*others, table["days"]]), n_alone([*others, rounded])
        assert after < before
    assert (named.n_alone_before, named.n_alone_after) == (before, after)
    told = json.loads(json.dumps(prepared.summary.to_dict(), allow_nan=False))
    assert told["named"]["counts"] == counts
    text = " ".join(prepared.summary.to_text().split())
    assert world.project.task.words in text
    assert ("times rounded up to multiples of 30 days" in text) == bool(times)
    for value in (*table["days"][:5], *table["pressure"][:5]):
        assert str(value) not in text


def test_exact_times_are_shouted(tmp_path):
    task = dataclasses.replace(TASKS["survival"], rounding=0.0)
    world = NamedWorld(tmp_path, "survival", task=task)
    prepared = world.joined().prepare(world.tables["a"], audit=False, preset="none", n_components=3)
    assert "TIMES LEAVE EXACTLY AS THEY ARE" in " ".join(prepared.summary.to_text().split())
    folder = world.shared()
    assert sorted(share_of(folder).target["time"]) == sorted(world.tables["a"]["days"])


def test_without_being_asked_rows_leave_as_means(world):
    folder = world.joined()
    prepared = folder.prepare(world.tables["a"], audit=False)
    kinds = [type(defence) for defence in prepared.party.defences]
    with_treatment = world.project.task.kind == "effect"
    assert kinds == ([Microaggregation] if with_treatment else [Microaggregation, GaussianNoise])
    assert prepared.party.fit_on is not None
    policy = (folder.path / "policy.toml").read_text()
    assert ("MEANS OF GROUPS WITHOUT NOISE EXCEED THEM" in policy) == with_treatment
    if with_treatment:
        arms = prepared.share.target["treatment"]
        groups = np.unique(prepared.share.representation, axis=0, return_inverse=True)[1].ravel()
        for group in np.unique(groups):
            assert (groups == group).sum() >= 5
            assert len(set(arms[groups == group])) == 1


def test_the_options_that_are_printed_mean_the_same_way(world):
    prepared = world.joined().prepare(world.tables["a"], audit=False)
    task = world.project.task
    said = said_by(prepared.plan.options)
    plan = SharingPlan.of(target_kind=task.target_kind, time_step=task.time_step, **said, largest=3)
    assert (plan.options, plan.time_step) == (prepared.plan.options, prepared.plan.time_step)


def test_each_policy_as_it_is_joined_can_be_read(tmp_path, world):
    from datacollab.steps.party import Policy, default_policy_text

    for kind in TargetKind:
        file = tmp_path / f"{kind.value}.toml"
        file.write_text(default_policy_text(kind))
        shown = kind in (TargetKind.EFFECT, TargetKind.SURVIVAL, TargetKind.SURVIVAL_EFFECT)
        assert load_policy(file) == dataclasses.replace(Policy(), audit="warn" if shown else "required")


def rare(table, column, value, n_rows, other):
    changed = table.copy()
    changed[column] = other
    changed.loc[: n_rows - 1, column] = value
    return changed


@pytest.mark.parametrize(
    ("kind", "column", "value", "other", "words"),
    [
        ("survival", "died", "yes", "no", "event seen: 4"),
        ("survival", "died", "no", "yes", "event not seen: 4"),
        ("effect", "drug", 1, 0, "treated: 4"),
        ("survival-effect", "drug", 0, 1, "untreated: 4"),
        ("survival-effect", "died", "yes", "no", "event seen: 4"),
    ],
)
def test_few_events_and_small_arms_do_not_leave(tmp_path, kind, column, value, other, words):
    folder = NamedWorld(tmp_path, kind).joined()
    table = table_of(120)
    for n_rows, codes in ((4, ["CLASS_TOO_SMALL"]), (5, []), (0, [])):
        changed = rare(table, column, value, n_rows, other)
        prepared = folder.prepare(changed, audit=False, preset="none", n_components=3)
        found = [reason for reason in prepared.reasons if reason.code == "CLASS_TOO_SMALL"]
        assert [reason.code for reason in found] == codes
        assert all(words in str(reason) for reason in found)


def test_the_stricter_of_project_and_policy_counts(tmp_path):
    world = NamedWorld(tmp_path, "survival", min_class_rows=30)
    table = rare(table_of(120), "died", "yes", 29, "no")
    reasons = world.joined().prepare(table, audit=False, preset="none", n_components=3).reasons
    assert any(reason.code == "CLASS_TOO_SMALL" and "project demands 30" in str(reason) for reason in reasons)


def test_what_a_policy_wants_has_a_way(survival):
    folder = survival.joined()
    policy = folder.path / "policy.toml"
    policy.write_text(policy.read_text().replace('defence = "none"', 'defence = "microaggregation"'))
    found = folder.prepare(survival.tables["a"], audit=False, preset="none").reasons
    (reason,) = [each for each in found if each.code == "DEFENCE_NEEDED"]
    assert "--preset groups" in str(reason)
    assert not [
        each for each in folder.prepare(survival.tables["a"], audit=False).reasons if each.code == "DEFENCE_NEEDED"
    ]


def test_own_rows_come_back_with_their_targets(world):
    target = encode_table(world.project, world.tables["a"], where="a").target
    own = OwnRows(X=np.ones((len(target), 2)), target=target, order=np.arange(len(target)), n_shared=len(target))
    facts, members = own_rows_to(own)
    back = own_rows_from(json.loads(json.dumps(facts)), members)
    assert back.target.dtype == target.dtype
    assert (back.target == target).all()
    assert (back.order == own.order).all()


def test_nothing_leaves_below_the_limits_of_the_audit(survival):
    folder = survival.joined()
    policy = folder.path / "policy.toml"
    policy.write_text(policy.read_text().replace('audit = "warn"', 'audit = "required"'))
    found = folder.prepare(survival.tables["a"].iloc[:45], n_components=3, group_size=5, fit_on_anchor=True)
    assert {"RISK_TOO_HIGH", "RISK_UNKNOWN"} & {reason.code for reason in found.reasons}
    # Where event and time alone find more rows than may be found, no other way of sharing rows is suggested.
    assert found.summary.risk.targets_alone["linkage"] > folder.policy.max_linkage
    (of_linkage,) = [str(reason) for reason in found.reasons if "linkage" in str(reason)]
    assert "Targets alone reach" in of_linkage
    assert "group-size" not in of_linkage
    with refused("RISK_TOO_HIGH"):
        folder.share(
            survival.tables["a"].iloc[:45],
            approve=lambda summary: "me",
            n_components=3,
            group_size=5,
            fit_on_anchor=True,
        )
    assert not list((folder.path / "outbox").iterdir())
