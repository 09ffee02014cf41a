"""Counts of classes under masks, against counting all rows in one place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.errors import AgreementError
from datacollab.linalg import gaussian_sigma
from datacollab.sums import ClassCounts, CountsPlan, MaskKey, RidgeSums, SumsPlan

NAMES = ("north", "south", "west")
CLASSES = ("mild", "severe", "fatal")


def new_keys():
    return {name: MaskKey(bytes([place]) * 32) for place, name in enumerate(NAMES, 1)}


def plan_of(**options):
    return CountsPlan({name: key.public for name, key in new_keys().items()}, CLASSES, **options)


@given(st.lists(st.sampled_from(CLASSES), max_size=30))
def test_a_part_is_the_count_of_each_class(y):
    assert_array_equal(ClassCounts(CLASSES).part(y), [y.count(name) for name in CLASSES])


def test_the_total_counts_all_rows():
    tables = {name: np.random.default_rng(place).choice(CLASSES, 50) for place, name in enumerate(NAMES)}
    plan, keys = plan_of(noise=1e-6), new_keys()
    counts = plan.counts([plan.message(name, y, keys[name]) for name, y in tables.items()])
    together = np.concatenate(list(tables.values())).tolist()
    assert_allclose([counts[name] for name in CLASSES], [together.count(name) for name in CLASSES], atol=1e-4)


def test_the_noise_is_that_of_the_plan():
    plan, found = plan_of(), []
    for draw in range(200):
        keys = new_keys()
        noise = [bytes([draw, place]) * 16 for place in range(3)]
        messages = [plan.message(name, [], keys[name], noise_key=key) for name, key in zip(NAMES, noise, strict=True)]
        found += plan.counts(messages).values()
    # 600 draws: their standard deviation is within 12 % in all but one case in 10,000.
    assert np.std(found) == pytest.approx(2 * plan.agreed.excess, rel=0.12)


def test_a_class_is_rare_unless_it_clearly_has_ten_rows():
    plan = plan_of()
    least = 10 + 2 * 2 * plan.agreed.excess
    assert plan.rare({"mild": 300.0, "severe": least + 0.01, "fatal": least - 0.01}) == ["fatal"]


def test_another_class_or_noise_is_another_sum():
    contexts = {plan_of(**each).agreed.context for each in ({}, {"noise": 3.0}, {"facts": {"run": 2}})}
    roster = {name: key.public for name, key in new_keys().items()}
    contexts |= {CountsPlan(roster, CLASSES[:2]).agreed.context, SumsPlan(roster, 1, CLASSES).agreed.context}
    assert len(contexts) == 5


@pytest.mark.parametrize("y", [["mild", "unknown"], [["mild"]], [None]])
def test_targets_of_no_class_are_refused_and_not_quoted(y):
    with pytest.raises(AgreementError) as caught:
        ClassCounts(CLASSES).part(y)
    assert "unknown" not in str(caught.value)


@pytest.mark.parametrize("classes", [["mild"], ["mild", "mild"]])
def test_classes_that_make_no_sense_are_refused(classes):
    with pytest.raises(AgreementError):
        CountsPlan({name: key.public for name, key in new_keys().items()}, classes)


def test_noise_hides_a_row_as_well_as_that_of_sums():
    """A Gaussian mechanism of one epsilon has noise in proportion to how far one row moves the numbers."""
    counts, sums = ClassCounts(CLASSES, ClassCounts.noise_for(4.0)), RidgeSums(1, classes=CLASSES)
    assert counts.noise_of_sums == pytest.approx(sums.noise_for(4.0))
    moved = counts.part(["mild", "mild"]) - counts.part(["mild", "fatal"])
    assert counts.noise == pytest.approx(gaussian_sigma(4.0, 1e-5) * np.linalg.norm(moved))
