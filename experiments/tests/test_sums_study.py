"""The study of sums: what is played is one ridge regression, and what attacks read is in the total."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from datacollab.sums import CommonMap, RidgeSums
from datacollab_experiments.pays.draws import Rows, draw
from datacollab_experiments.pays.settings import Setting
from datacollab_experiments.pays.tables import load_table
from datacollab_experiments.sums.attacks import correlations, made_world, posterior, staged
from datacollab_experiments.sums.plan import SETTINGS, Variant
from datacollab_experiments.sums.playing import beyond, contributing, exact_total, noise_of_total, played, secret
from datacollab_experiments.sums.report import read_best

SMALL = Setting(dataset="breast-cancer", n_parties=4, n_per_party=30, defence="private")


@pytest.fixture(scope="module")
def drawn():
    return draw(load_table("breast-cancer"), SMALL, 0)


def scene(n_rows, components, noise, seed=0):
    return staged(made_world(n_rows, seed), components, noise, seed)


def test_there_are_24_settings_that_count():
    assert len(SETTINGS) == 24
    assert sum(setting.labelled for setting in SETTINGS) == 12


def test_without_noise_the_total_is_one_ridge_on_all_rows(drawn):
    common = CommonMap.from_anchor(drawn.public.X, secret(0), n_components=32, n_rows=0)
    statistic = RidgeSums(32, classes=range(2), noise=0.0)
    rows = contributing(drawn)
    model = statistic.solve(exact_total(statistic, common, rows))
    X, y = np.vstack([own.X for own in rows]), np.concatenate([own.y for own in rows])
    assert len(y) == 4 * 30 + 100  # the public rows have targets
    one = Ridge(alpha=model.alpha).fit(common.transform(X), statistic.encode(y))
    assert_allclose(model.coefficients, one.coef_.T, atol=1e-8)
    assert_allclose(model.intercept, one.intercept_, atol=1e-8)


def test_who_holds_which_rows_changes_nothing_that_is_played(drawn):
    X = np.vstack([own.X for own in drawn.parties.values()])
    y = np.concatenate([own.y for own in drawn.parties.values()])
    parties = {name: Rows(X[k::4], y[k::4]) for k, name in enumerate(drawn.parties)}
    variants = [
        Variant(components=components, scale=scale) for components in (16, 32) for scale in ("declared", "roots")
    ]
    before = [score for *_, score in played(drawn, variants)]
    after = [score for *_, score in played(replace(drawn, parties=parties), variants)]
    assert len(before) == 4
    assert_allclose(before, after, atol=1e-9)


def test_more_components_than_the_anchor_has_rows_are_played_once(drawn):
    found = list(played(drawn, [Variant(components=components) for components in (64, 128, 256)]))
    assert [columns for _, columns, _ in found] == [64, 99]


@pytest.mark.parametrize(("n_parties", "others"), [(10, 5), (5, 2), (3, 2), (4, 2)])
def test_parties_that_do_not_collude_leave_s_and_all_together_more(n_parties, others):
    assert_allclose(beyond(n_parties) ** 2, n_parties / others)
    statistic = RidgeSums(3, classes=(0, 1), noise=0.1)
    blocks = noise_of_total(statistic, Variant(noise=0.1, moments=0.03, from_all=False), n_parties)
    i, j = np.triu_indices(statistic.size)
    of_moments = (i < 3) & (j < 3)
    assert_allclose(blocks[of_moments], 0.3 * statistic.noise_of_each[of_moments])
    assert_allclose(blocks[~of_moments], statistic.noise_of_each[~of_moments])


def test_exact_sums_of_fewer_people_than_components_give_every_target_away():
    """Analyst and party together, and a party that turns the returned model back into sums."""
    of = scene(40, 64, 0.0)
    crossed = of.crossed - of.known.T @ of.known_target
    target, _ = posterior(of, crossed, of.variances, 3.0)
    assert_allclose(target, of.rule + of.beyond, atol=1e-5)
    found = correlations(of)
    assert found["together|target, prior 3"] > 0.9999
    assert found["together, knowing the rule|beyond"] > 0.9999
    assert found["party, everybody's features|target, prior 3"] > 0.999


def test_attack_on_sums_is_the_posterior_mean_of_a_gaussian_model():
    of = scene(30, 16, 0.1)
    crossed = of.crossed - of.known.T @ of.known_target
    target, beyond_ = posterior(of, crossed, of.variances, 0.7)
    # Naively: all unknown numbers (w, e) and all that is observed, in one joint normal distribution.
    n, p = of.features.shape
    prior = np.diag(np.r_[np.full(p, 0.7**2), np.full(n, of.deviation**2)])
    observed = np.vstack(
        [np.hstack([of.features.T @ of.features, of.features.T]), np.hstack([of.known, np.zeros((len(of.known), n))])]
    )
    error = np.diag(np.r_[of.variances, np.full(len(of.known), of.deviation**2)])
    gain = prior @ observed.T @ np.linalg.inv(observed @ prior @ observed.T + error)
    mean = gain @ np.r_[crossed, of.known_target]
    assert_allclose(beyond_, mean[p:], atol=1e-8)
    assert_allclose(target, of.features @ mean[:p] + mean[p:], atol=1e-8)


def test_nothing_is_read_of_people_who_are_in_no_total():
    read = []
    for seed in range(8):
        inside, outside = scene(100, 32, 0.0, seed), scene(100, 32, 0.0, seed + 100)
        stranger = replace(inside, features=outside.features, rule=outside.rule, beyond=outside.beyond)
        found = correlations(stranger)
        read.append([found["together|beyond, prior 1"], found["party|target"], found["together|target, prior 1"]])
    assert np.all(np.abs(np.mean(read, axis=0)) < 0.12)  # three standard errors and a half of 800 people
    assert correlations(inside)["together|target, prior 1"] > 0.35


def test_the_best_of_many_ways_is_not_chosen_by_its_own_luck():
    random = np.random.default_rng(0)
    said = {"world": "w", "rows": 1, "D": 1, "s": 0.1}
    rows = [
        said | {"attacker": attacker, "seed": seed, "read": way, "correlation": random.normal()}
        for attacker in "abcdefghijklmnopqrst"
        for seed in range(10)
        for way in "12345678"
    ]
    hindsight = pd.DataFrame(rows).groupby(["attacker", "read"])["correlation"].mean().groupby("attacker").max()
    assert hindsight.mean() > 0.3
    assert abs(read_best(pd.DataFrame(rows))["mean"].mean()) < 0.2
