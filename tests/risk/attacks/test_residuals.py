import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.party import AnchorResiduals, Microaggregation
from datacollab.risk.attacks import without_anchor_residuals


@pytest.mark.parametrize("labelled", [True, False])
def test_means_come_out_as_they_were_before_residuals(rng, labelled):
    """Oracle: the defence without its second step."""
    rows, y = rng.normal(size=(60, 5)), np.repeat([0, 1, 2], 20)
    anchor, classes = rng.normal(size=(300, 5)), np.arange(300) % 3
    means, target = Microaggregation(4).apply(rows, y)
    published, _ = AnchorResiduals().apply(
        means, target, anchor_representation=anchor, anchor_target=classes if labelled else None, random_state=0
    )
    assert not np.isclose(published, means).all(axis=1).any()
    bare = without_anchor_residuals(published, anchor, classes if labelled else np.zeros(300, dtype=int))
    assert_allclose(bare, means, atol=1e-8)
    assert len(np.unique(bare, axis=0)) == len(np.unique(means, axis=0))


def test_other_rows_stay_as_they_are(rng):
    rows, anchor = rng.normal(size=(80, 4)), rng.normal(size=(200, 4))
    assert_array_equal(without_anchor_residuals(rows, anchor, np.zeros(200, dtype=int)), rows)
    means = np.repeat(rows[:20], 4, axis=0)
    assert_array_equal(without_anchor_residuals(means, anchor, np.zeros(200, dtype=int)), means)


def test_noise_hides_residuals(rng):
    means, anchor = np.repeat(rng.normal(size=(10, 4)), 5, axis=0), rng.normal(size=(200, 4))
    published = means + anchor[:50] - anchor.mean(axis=0) + 1e-6 * rng.normal(size=means.shape)
    assert_array_equal(without_anchor_residuals(published, anchor, np.zeros(200, dtype=int)), published)


def test_too_many_pairs_are_not_tried(rng):
    rows, anchor = rng.normal(size=(2100, 1)), rng.normal(size=(2000, 1))
    assert_array_equal(without_anchor_residuals(rows, anchor, np.zeros(2000, dtype=int)), rows)
