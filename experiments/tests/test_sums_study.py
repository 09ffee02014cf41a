"""The study of sums: what is played is one ridge regression, and what attacks read is in the total."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

import datacollab.sums
from datacollab.sums import CommonMap, membership_figures
from datacollab_experiments.pays.draws import Rows, draw
from datacollab_experiments.pays.settings import Setting
from datacollab_experiments.pays.tables import load_table
from datacollab_experiments.sums.attacks import N_PUBLIC, N_WIDE, Scene, draw_world
from datacollab_experiments.sums.membership import Membership
from datacollab_experiments.sums.playing import (
    ALIKE,
    ROSTERS,
    Roster,
    common_map,
    exact_total,
    noise_factor,
    rows_of_total,
    rule_for,
    statistic_of,
)
from datacollab_experiments.sums.rebuilding import Descent, rebuild
from datacollab_experiments.sums.report import package_table, read_best

SMALL = Setting(dataset="breast-cancer", n_parties=4, n_per_party=30, defence="sums")
RULE = rule_for(alike=False)


@pytest.fixture(scope="module")
def drawn():
    return draw(load_table("breast-cancer"), SMALL, 0)


TEN = Roster(10, 1)


def scene(n_rows, components=32, seed=0, roster=TEN, target="numbers"):
    return Scene(draw_world("made-up", roster, n_rows, seed), components, seed, roster, target)


def read(scene, noise):
    """The best reading of each attacker, with hindsight."""
    found = {}
    for attacker, _, value, _ in scene.read(replace(RULE, components=scene.D, noise=noise)):
        found[attacker] = max(value, found.get(attacker, -1.0))
    return found


def test_without_noise_the_total_is_one_ridge_on_all_rows(drawn):
    common, unit = common_map(drawn, 32)
    statistic = statistic_of(drawn, 32, 0.0)
    rows = [Rows(own.X / unit, own.y) for own in rows_of_total(drawn)]
    model = statistic.solve(exact_total(statistic, common, rows))
    X, y = np.vstack([own.X for own in rows]), np.concatenate([own.y for own in rows])
    assert len(y) == 4 * 30 + 100  # the public rows have targets
    one = Ridge(alpha=model.alpha).fit(common.transform(X), statistic.encode(y))
    # Each class's fit is shrunk towards its share of rows.
    assert min(model.reliability) > 0.9
    assert_allclose(model.coefficients, one.coef_.T * model.reliability, atol=1e-8)
    means = statistic.encode(y).mean(axis=0)
    assert_allclose(model.intercept, means + (one.intercept_ - means) * model.reliability, atol=1e-8)


@pytest.mark.parametrize(("n_parties", "others"), [(10, 5), (5, 2), (3, 2), (4, 2)])
def test_parties_that_do_not_collude_leave_s_and_all_together_more(n_parties, others):
    assert_allclose(noise_factor(n_parties) ** 2, n_parties / others)
    assert_allclose(noise_factor(n_parties, known=1) ** 2, (n_parties - 1) / others)


@pytest.mark.parametrize("roster", ROSTERS)
def test_rosters_are_as_many_attackers_as_the_noise_allows_for(roster):
    """They are left with s itself: one more would be left with less, and is not promised anything."""
    assert_allclose(noise_factor(roster.n_parties, known=roster.n_colluding), 1)
    others = roster.n_parties - roster.n_colluding
    n = 300 * others
    assert roster.n_known_beside(n) == 300 * roster.n_colluding == roster.n_known_of(300 * roster.n_parties)


@pytest.mark.slow
@pytest.mark.parametrize("roster", ROSTERS)
@pytest.mark.parametrize("target", ["numbers", "classes"])
def test_worst_rosters_together_see_noise_s_and_reckon_with_it(roster, target, monkeypatch):
    s, squares = RULE.noise, []

    def see(attacker, crossed, noise, **_):
        if attacker == "together":
            columns = of.statistic.n_outputs
            deviation = np.r_[np.full(of.D, noise / 0.5), noise / 0.25] * np.sqrt(columns / 2)
            assert_allclose(noise, s)
            squares.append(np.mean(((crossed - of.cross_moments(of.exact)) / deviation) ** 2))
        return iter(())

    for seed in range(8):
        of = scene(50, 64, seed, roster, target)
        monkeypatch.setattr(of.known, "readings", see)
        list(of.read(RULE))
    # Of 520 squares the mean has a standard error of .06.
    assert_allclose(np.mean(squares), 1, atol=0.3)


def test_targets_that_are_two_classes_are_one_number_with_the_noise_of_two():
    """A class is -1 or 1; with Σ v t and Σ t of classes 0 and 1 in the total, the attacker takes their difference."""
    of = scene(50, 16, target="classes")
    assert set(np.unique(of.target)) == {-1.0, 1.0}
    assert_allclose(of.cross_moments(of.exact), of.features.T @ of.target, atol=1e-9)
    normal = np.random.default_rng(0).normal(size=(4000, of.statistic.n_numbers)) * of.statistic.noise_of_each
    noise = np.std([of.cross_moments(each) for each in normal], axis=0)
    # What `Known.posterior` reckons with: twice the variance of one column, and s / √2 in each number.
    assert_allclose(noise[:-1], np.sqrt(2 / 2) / 0.5, rtol=0.1)
    assert_allclose(noise[-1], np.sqrt(2 / 2) / 0.25, rtol=0.1)


def test_exact_sums_of_fewer_people_than_components_give_every_target_away():
    """To analyst and party together, and to a party that turns the returned model back into sums."""
    for target in ("numbers", "classes"):
        found = read(scene(40, 100, target=target), 0.0)
        assert found["together"] > 0.99
        assert found["party, everybody's features"] > 0.99
        assert max(read(scene(40, 100, target=target), 10.0).values()) < 0.6


def test_attack_on_sums_is_the_posterior_mean_of_a_gaussian_model():
    of, noise, weight = scene(30, 16), 0.1, 1.0
    crossed = of.cross_moments(of.exact)
    target, beyond_ = of.known.posterior(crossed, noise, weight)
    # Naively: all unknown numbers (w, e) and all that is observed, in one joint normal distribution.
    n, p, known = 30, 17, of.known
    prior = np.diag(np.r_[np.full(p, weight**2), np.full(n, of.deviation**2)])
    observed = np.vstack(
        [np.hstack([of.others.T @ of.others, of.others.T]), np.hstack([known.Phi, np.zeros((len(known.Phi), n))])]
    )
    variances = np.r_[np.full(16, noise**2 / 2 / 0.25), noise**2 / 2 / 0.0625]
    error = np.diag(np.r_[variances, np.full(len(known.Phi), of.deviation**2)])
    gain = prior @ observed.T @ np.linalg.inv(observed @ prior @ observed.T + error)
    mean = gain @ np.r_[crossed - known.Phi.T @ known.t, known.t]
    assert len(known.t) == N_PUBLIC + TEN.n_known_beside(30)
    assert_allclose(beyond_, mean[p:], atol=1e-5)
    assert_allclose(target, of.others @ mean[:p] + mean[p:], atol=1e-5)


@pytest.mark.nightly
def test_nothing_is_read_of_people_who_are_in_no_total():
    readings = []
    for seed in range(8):
        inside, outside = scene(100, seed=seed), scene(100, seed=seed + 100)
        inside.beyond = outside.beyond
        readings.append(list(read(inside, 0.0).values()))
    # The best of some 60 ways by hindsight in one draw; three standard errors of 800 people beyond it.
    assert np.all(np.mean(readings, axis=0) < 0.25)
    assert read(scene(100), 0.0)["together"] > 0.4


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
    assert abs(read_best(pd.DataFrame(rows), [*said, "attacker"], "correlation")["mean"].mean()) < 0.2


@pytest.mark.slow
def test_members_are_told_from_others_by_a_total_unless_noise_drowns_it():
    def areas(noise):
        found = {}
        of = Membership("breast-cancer", 100, 0, replace(RULE, components=32, noise=noise), TEN)
        assert of.is_member.sum() == (~of.is_member).sum() == 45
        for attacker, _, value in of.readings():
            found.setdefault(attacker, []).append(value)
        return found

    assert max(areas(0.01)["together"]) > 0.7
    assert np.mean(areas(4.0)["together"]) < 0.6


def test_what_parties_see_of_membership_is_what_was_measured():
    """The package's table is what the command in its first line makes of the study's, and its most in each case."""
    study = pd.read_csv(Path(__file__).parents[2] / "docs" / "results" / "sums" / "membership.csv")
    assert Path(datacollab.sums.__file__).with_name("membership.csv").read_text("utf-8") == package_table(study)
    kinds = study.table.map(lambda name: "alike" if name in ALIKE else "own columns" if name == "wide" else "table")
    for kind, n_components in (("table", 128), ("alike", 128), ("own columns", N_WIDE)):
        rule, of = rule_for(alike=kind == "alike"), study[kinds == kind]
        for each in membership_figures(kind):
            assert (each.n_components, each.noise) == (n_components, rule.noise)
            same = of[(of.rows == each.n_rows) & (of["class of ten"] == each.rare) & (of.s == rule.noise)]
            for attacker in ("analyst", "party"):
                assert getattr(each, attacker) == same[same.attacker == attacker]["mean"].max()
            # Together they can do what each of them does.
            assert each.together == same["mean"].max()


ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "sums"
KIND_OF = {"digits": "pictures", "mnist": "pictures", "wide": "wide"}
ON_PAGE = {
    "analyst and parties; all know everybody's features": "together",
    "parties": "party",
    "parties that know everybody's features": "party, everybody's features",
    "analyst alone": "analyst",
    "analyst and parties": "together",
}


def lines_of_page(head):
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    table = page.partition(f"\n{head}")[2].partition("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def shown(value, least):
    return f"{max(value, least):.2f}".removeprefix("0")


def test_the_threat_models_correlations_are_the_highest_that_were_measured():
    """Of numbers and, in brackets, of classes: over all data sets of a kind, and over all rosters."""
    study = pd.read_csv(RESULTS / "attacks.csv")
    study["kind"] = study.world.map(KIND_OF).fillna("tables")
    assert set(zip(study.parties, study.attacking, strict=True)) == {(3, 1), (10, 5), (3, 0)}
    highest = study.groupby(["attacker", "kind", "rows", "target"])["mean"].max()
    lines = lines_of_page("| attacker | tables, 300 rows |")
    assert len(lines) == 4
    for words, *cells in lines:
        cases = product(("tables", "pictures", "wide"), (300, 1500))
        for cell, (kind, n) in zip(cells, cases, strict=True):
            numbers, classes = (highest[ON_PAGE[words], kind, n, target] for target in ("numbers", "classes"))
            assert cell == f"{shown(numbers, 0)} ({shown(classes, 0)})"


def test_the_threat_models_figures_of_membership_are_the_highest_that_were_measured():
    study = pd.read_csv(RESULTS / "membership.csv")
    study["kind"] = study.table.map(KIND_OF).fillna("tables")
    assert set(zip(study.parties, study.attacking, strict=True)) == {(3, 1), (10, 5)}
    highest = study.groupby(["attacker", "kind", "rows", "class of ten"])["mean"].max()
    lines = lines_of_page("| attacker | data | 250 rows |")
    assert len(lines) == 9
    for place, (*_, kind, at_250, at_1000, at_3000, ten) in enumerate(lines):
        attacker = ("together", "party", "analyst")[place // 3]
        cells = {(250, False): at_250, (1000, False): at_1000, (3000, False): at_3000, (1000, True): ten}
        for (n, rare), cell in cells.items():
            value = highest[attacker, kind, n, rare]
            if attacker == "together":  # They can do as each of them does.
                value = max(highest[each, kind, n, rare] for each in ("together", "party", "analyst"))
            assert cell == shown(value, 0.5)


def test_the_gradient_of_the_misfit_is_that_of_differences():
    rng = np.random.default_rng(0)
    common = CommonMap.from_anchor(rng.normal(size=(60, 5)), bytes(32), n_components=12)
    k = common.principal.shape[1]
    descent = Descent(common, np.eye(12 + 3 + 1), 0.5, 3, rng.normal(size=(20, k)))
    x = rng.normal(size=4 * (k + 3))
    gradient = descent.loss(x)[1]
    numeric = [(descent.loss(x + 1e-6 * e)[0] - descent.loss(x - 1e-6 * e)[0]) / 2e-6 for e in np.eye(len(x))]
    assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5 * np.abs(gradient).max())


@pytest.mark.nightly
def test_few_rows_come_back_from_an_exact_total_and_not_from_a_noisy_one():
    exact = dict(rebuild("breast-cancer", 8, 0, replace(RULE, noise=0.0)))
    noisy = dict(rebuild("breast-cancer", 8, 0, replace(RULE, noise=0.5)))
    assert exact["rebuilt, median"] < 0.5 * exact["nearest of 400 rows, median"]
    assert noisy["rebuilt, median"] > 0.8 * exact["nearest of 400 rows, median"]
