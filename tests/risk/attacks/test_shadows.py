import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab.errors import AgreementError
from datacollab.risk.attacks import ShadowAttack, membership
from datacollab.risk.attacks._membership_attacks import Reference, View, share_statistics
from datacollab.share import Share


def share_of(rows, target, anchor=None, **given):
    anchor = rows if anchor is None else anchor
    return Share(party="a", representation=rows, anchor_representation=anchor, target=target, **given)


def told(make_share, seed=0, n=40, d=5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    own, others, public = (rng.normal(size=(size, d)) for size in (n, 300, 800))
    attack = ShadowAttack(make_share, 24, random_state=seed).fit(public, np.arange(800) % 2, y)
    share = make_share(own, y, np.random.RandomState(99))
    return membership(attack.score(share, own, y), attack.score(share, others, np.arange(300) % 2))


def test_rows_shared_as_they_are_are_told():
    assert told(lambda rows, y, random: share_of(rows, y)).auc > 0.99


@pytest.mark.parametrize("seed", [0, 1])
def test_a_share_that_has_nothing_of_the_rows_tells_nothing(seed):
    """The one figure that has to be a half: 40 members, so that two standard errors are about .1."""
    found = told(lambda rows, y, random: share_of(random.normal(size=rows.shape), y), seed)
    assert found.low < 0.5 < found.high


@pytest.mark.slow
def test_noise_that_bounds_the_best_test_bounds_the_attack():
    """The mean of all rows with noise: no test exceeds that of two normal distributions a known distance apart."""

    def noisy_mean(rows, y, random):
        clipped = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
        # Leaving out one row moves the mean by 1 / 40 at most: mu is 1.
        return share_of(np.tile(clipped.mean(axis=0) + random.normal(size=5) / 40, (len(rows), 1)), y)

    found = [told(noisy_mean, seed).auc for seed in range(4)]
    assert 0.5 < np.mean(found) <= 0.76


def test_too_few_public_rows_are_refused():
    attack = ShadowAttack(lambda rows, y, random: share_of(rows, y))
    with pytest.raises(AgreementError, match="at least 80 public rows; got 70"):
        attack.fit(np.ones((70, 2)), np.zeros(70, dtype=int), np.zeros(40, dtype=int))


def test_statistics_are_their_formulas(rng):
    rows, images, known = rng.normal(size=(12, 3)), rng.normal(size=(6, 3)), rng.normal(size=(60, 3))
    group, of_known = np.arange(12) % 2, np.arange(60) % 2
    of_images = np.arange(6) % 2
    found = share_statistics(View(rows, group), Reference(known, of_known, 2), images, of_images)
    for record, (image, label) in enumerate(zip(images, of_images, strict=True)):
        distances = np.sort(np.linalg.norm(rows[group == label] - image, axis=1))
        mean = known[of_known == label].mean(axis=0)
        clip = np.median(np.linalg.norm(known[of_known == label] - mean, axis=1))
        gap = image - mean
        gap *= min(1, clip / np.linalg.norm(gap))
        shift = rows[group == label].mean(axis=0) - mean
        nearest = np.argsort(np.linalg.norm(rows - image, axis=1))[:5]
        wanted = [
            -distances[0],
            -np.linalg.norm(rows - image, axis=1).min(),
            -distances[:5].mean(),
            shift @ gap,
            (group[nearest] == label).mean(),
        ]
        assert_allclose(found[record, [0, 1, 2, 4, 7]], wanted)
