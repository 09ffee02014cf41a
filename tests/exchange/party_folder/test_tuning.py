from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_example import diabetes, digits

from datacollab.exchange.party_folder._policy import Policy
from datacollab.exchange.party_folder._prepare import prepare_way
from datacollab.exchange.party_folder._tuning import tune, ways_to_try
from datacollab.exchange.party_folder._way import Way
from datacollab.party import OBFUSCATORS
from party_world import refused

NO_LIMITS = {"max_linkage": None, "max_reidentification": None, "max_membership": None}
POLICY = Policy(min_rows=1, min_class_rows=1, audit="warn", **NO_LIMITS)
PLAIN = Way(obfuscator="pca", n_components=8, standardize=False)
GROUPED = replace(PLAIN, fit_on_anchor=True, group_size=10)
FEW = replace(GROUPED, group_size=4)


@pytest.fixture(scope="module")
def example():
    return digits(60, classes=3)


@pytest.fixture(scope="module")
def small():
    return digits(30, classes=3)


def tuned(parts, policy, ways, **options):
    project, encoded, anchor = parts
    return tune(project, policy, "north", encoded, anchor, ways, random_state=0, **options)


@pytest.fixture(scope="module")
def found(example):
    return tuned(example, replace(POLICY, max_linkage=0.8), [GROUPED, PLAIN])


def test_the_most_useful_way_within_the_limits_is_taken(found):
    """Though the policy only warns."""
    grouped, plain = found.choice.assessments
    assert [reason.code for reason in found.reasons[PLAIN.name]] == ["RISK_TOO_HIGH"]
    assert plain.risk.linkage == 1.0
    assert grouped.risk.linkage < 0.8
    assert (grouped.allowed, plain.allowed) == (True, False)
    assert found.best == GROUPED
    assert found.refusal is None
    assert min(grouped.utility, plain.utility) > 0.5
    assert [row["options"] for row in found.rows() if row["allowed"]] == [GROUPED.options]


def test_the_table_shows_every_way_and_the_limits(found):
    head, first, second, foot = found.to_text().splitlines()
    assert head.split() == ["accuracy", "linked", "told", "apart", "members"]
    assert {first.endswith("  allowed"), second.endswith("  allowed")} == {True, False}
    assert first.startswith(found.rows()[0]["way"])
    assert "100 %" in first + second
    assert foot.split() == ["limits", "of", "the", "policy", "80", "%", "none", "none"]


def test_without_limits_usefulness_decides(example):
    ways = [replace(PLAIN, n_components=1), PLAIN]
    found = tuned(example, POLICY, ways)
    few, many = found.choice.assessments
    assert many.utility > few.utility
    assert found.best == PLAIN
    assert all(each.allowed for each in found.choice.assessments)


def test_the_way_taken_is_let_through_by_the_check(example, found):
    project, encoded, anchor = example
    strict = replace(POLICY, max_linkage=0.8, audit="required")
    assert not prepare_way(project, strict, "north", encoded, anchor, found.best).reasons


def test_nothing_is_taken_where_nothing_is_allowed(small):
    found = tuned(small, replace(POLICY, max_linkage=0.01), [FEW])
    assert found.best is None
    assert found.refusal.code == "NOTHING_ALLOWED"
    assert found.refusal.exit_code == 12
    for words in ("1 ways", "lowest linkage", "allows 1 %"):
        assert words in str(found.refusal)


def test_too_few_rows_are_named_as_what_is_lacking(small):
    found = tuned(small, replace(POLICY, min_rows=500, max_linkage=1.0), [FEW])
    assert found.refusal.code == "NOTHING_ALLOWED"
    assert "wants 500" in str(found.refusal)


def test_time_and_failures_are_told():
    parts = digits(24, classes=3, min_rows=1)
    said = []
    found = tuned(parts, POLICY, [replace(GROUPED, group_size=24)], progress=said.append)
    assert said == ["1 of 1: pca 8, fitted on the anchor, groups of 24"]
    assert list(found.choice.failed) == ["pca 8, fitted on the anchor, groups of 24"]
    assert "could be assessed" in str(found.refusal)
    late = tuned(parts, POLICY, [PLAIN], time_budget=-1.0)
    assert not late.choice.complete
    assert "for which" not in str(late.refusal)
    assert late.rows() == []


def test_regression_is_measured_by_r2():
    found = tuned(diabetes(30), POLICY, [replace(GROUPED, n_components=3, group_size=5, n_bins=10)])
    (row,) = found.rows()
    assert -1 < row["R2 on own rows"] < 1


@given(
    allowed=st.lists(st.sampled_from(OBFUSCATORS), min_size=1, unique=True),
    most=st.integers(1, 40),
    defence=st.sampled_from(["none", "any", "microaggregation"]),
)
def test_only_what_the_policy_allows_is_tried(allowed, most, defence):
    project, encoded, _ = digits(60, max_components=20)
    policy = Policy(obfuscators=tuple(allowed), max_components=most, defence=defence)
    ways = ways_to_try(project, policy, encoded)
    assert ways
    assert {way.obfuscator for way in ways} <= set(allowed)
    assert max(way.n_components for way in ways) <= min(most, 20)
    assert all(way.group_size for way in ways) or defence != "microaggregation"
    assert all(way.defences for way in ways) or defence == "none"
    assert len({way.name for way in ways}) == len({way.options for way in ways}) == len(ways)
    assert ways[0].group_size == 5


@pytest.mark.parametrize("n_rows", [12, 60, 90, 300])
def test_groups_fit_into_classes(n_rows):
    project, encoded, _ = digits(n_rows, min_rows=1)
    rows = np.bincount(encoded.target).max() * 2 // 3
    sizes = {way.group_size for way in ways_to_try(project, POLICY, encoded)} - {None}
    assert sizes == {size for size in (3, 5, 10, 20) if size <= rows}


def test_what_is_named_must_be_allowed(example):
    project, encoded, _ = example
    with refused("OBFUSCATOR_NOT_ALLOWED"):
        ways_to_try(project, Policy(obfuscators=("pca",)), encoded, obfuscators=["umap"])
    with refused("DIM_TOO_LARGE") as caught:
        ways_to_try(project, POLICY, encoded, dimensions=[4, 11])
    assert "10" in str(caught.value)
    ways = ways_to_try(project, POLICY, encoded, obfuscators=["umap"], dimensions=[3])
    assert {(way.obfuscator, way.n_components) for way in ways} == {("umap", 3)}


def test_options_of_a_regression_know_that_targets_are_numbers():
    project, encoded, _ = diabetes(60)
    assert {way.n_bins for way in ways_to_try(project, POLICY, encoded)} == {10}
    assert np.isfinite(encoded.target).all()
