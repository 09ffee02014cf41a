"""Attacks on membership in a study's totals: they are the exact ratios, and what is published is what they measured."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from datacollab.study import Effect, LeastSquares, NumberColumn
from datacollab.study._columns import design
from datacollab_experiments.study import membership

ROOT = Path(__file__).parents[2]


def simulated(n, sets=membership.SETS):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"age": random.normal(60, 12, n), "pulse": random.normal(75, 9, n)})
    frame["ward"] = random.choice(["day", "night", "short"], n)
    frame["sex"] = random.choice(["f", "m"], n)
    frame["stay"] = 5 + 0.1 * frame["age"] + random.normal(0, 4, n)
    frame["month"], frame["died"] = random.uniform(1, 60, n).round(1), random.integers(0, 2, n)
    return membership.StudiedTable(frame, "ward", "stay", "month", "died", sets=sets)


SMALL = {"ROWS": (12, 100), "PARTIES": (3,), "N_STRANGERS": 40, "N_BASE": 200}


@pytest.fixture(scope="module")
def small():
    """Six draws of a table of 800 rows."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(membership, name, value)
        table = simulated(800)
        return [membership.StudyDraw(table, seed) for seed in range(6)]


@pytest.fixture(scope="module")
def of_every_set(small):
    """Figures of one draw, of all sets of statistics."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(membership, name, value)
        return [*small[2].figures(100, 3)]


def figures(draws, n_rows, noise, monkeypatch):
    """Mean areas by set and attacker, at this noise in place of the usual one."""
    monkeypatch.setattr(membership, "N_STRANGERS", SMALL["N_STRANGERS"])
    monkeypatch.setattr(membership, "noise_factor", lambda n_parties, known=0: noise * (1 if known else 1.2))
    found = pd.DataFrame([each for draw in draws for each in draw.figures(n_rows, 3)])
    return found.groupby(["statistics", "attacker"], sort=False)["AUC"].mean().unstack()


@pytest.mark.nightly
def test_members_are_nearly_certain_without_noise_and_guessed_in_much(small, monkeypatch):
    bare = figures(small, 12, 0.03, monkeypatch)
    assert len(bare) == len(membership.SETS)
    # Of four rows a party, an effect's groups have one each, whose moments around their mean are 0. Nearly all
    # predictions of a validation are in one part.
    assert bare.drop(index=["effect", membership.VALIDATION]).min(axis=None) > 0.58
    more = figures(small, 100, 0.03, monkeypatch).loc["effect"]
    assert more["together"] > 0.55
    assert bare.loc[[name for name in bare.index if "description" in name]].min(axis=None) > 0.93
    drowned = figures(small, 100, 1e4, monkeypatch)
    assert np.abs(drowned - 0.5).max(axis=None) < 0.2
    assert drowned.mean(axis=None) == pytest.approx(0.5, abs=0.06)


@pytest.mark.nightly
def test_more_rows_hide_more_and_a_party_helps(small, monkeypatch):
    few, many = (figures(small, n, 0.5, monkeypatch).mean() for n in (12, 100))
    assert (few > many + 0.03).all()
    assert few["together"] + many["together"] > few["analyst"] + many["analyst"]


@pytest.mark.slow
def test_an_effects_attackers_read_its_own_numbers(small):
    added = small[0].table.added
    known = {each: added[each.format(who="together")].statistic for each in membership.EFFECT}
    moments, balance = known.values()
    effect = Effect(moments.treatment, moments.outcome, moments.n_components, columns=moments.columns)
    assert_allclose(np.r_[effect.spread[0], moments.spread, balance.spread], effect.spread)
    rows = small[0].table.effect_rows
    message = effect.part(rows, bytes(32))
    assert_allclose(balance.part(rows, bytes(32)), message[1 + len(moments.spread) :], atol=1e-9)
    by_group = effect.add_up(rows, bytes(32))[: 5 * (effect.n_components + 3) ** 2]
    assert_allclose(moments.finish(by_group), message[1 : 1 + len(moments.spread)], atol=1e-9)
    one = replace(moments, n_groups=1)
    alone = added["moments, analyst"].statistic
    assert_allclose(replace(alone, n_groups=1).part(rows), one.part(rows)[[-3, -2, -1]])


@pytest.mark.parametrize("title", membership.BY_ROUNDS)
def test_a_second_round_follows_from_the_total_of_the_first(small, title, monkeypatch):
    monkeypatch.setattr(membership, "N_BASE", SMALL["N_BASE"])
    first = small[0].table.added[membership.ROUNDS[title][0]]
    all_rows = np.arange(600)
    later = first.after(first.part(all_rows), np.array([250, 700]), n_parties=3, noise=0.0)
    numbers = first.statistic.finish(first.over(all_rows))
    so_far = first.statistic.result(numbers, n_parties=3, noise=0.0).so_far
    assert_allclose(later.statistic.before.coefficients, so_far.coefficients, atol=1e-9)
    assert np.abs(so_far.coefficients).max() > 0.1
    refused = first.after(first.part(all_rows[:30]), np.arange(1), n_parties=3, noise=1.0)
    assert not any(refused.statistic.before.coefficients)


def test_a_second_round_is_read_at_the_coefficients_of_the_first(small, monkeypatch):
    monkeypatch.setattr(membership, "N_BASE", SMALL["N_BASE"])
    draw = small[0]
    first = draw.table.added[membership.ROUNDS[membership.LOGISTIC][0]]
    rows = draw.table.effect_rows
    names = {"month", "died", "ward", "sex", "age", "pulse", "stay"}

    def part(statistic, index):
        return statistic.part({name: values[index] for name, values in rows.items() if name in names})

    # Enough rows for a result without noise; with too few, coefficients stay at 0.
    all_rows = np.arange(600)
    second = first.after(first.part(all_rows), np.array([250, 700]), n_parties=3, noise=0.0)
    so_far = first.statistic.result(part(first.statistic, all_rows), n_parties=3, noise=0.0).so_far
    assert_allclose(second.statistic.before.coefficients, so_far.coefficients)
    assert np.abs(so_far.coefficients).max() > 0.1
    base = np.arange(SMALL["N_BASE"])
    for f, row in zip(second.f, (250, 700), strict=True):
        joined = part(second.statistic, np.r_[base, row]) - part(second.statistic, base)
        assert_allclose(f, (joined / second.statistic.spread)[second.kept], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", [membership.LOGISTIC, membership.VALIDATION, membership.BY_COUNTS[1]])
def test_a_set_has_the_same_figures_alone(of_every_set, name, monkeypatch):
    for constant, value in SMALL.items():
        monkeypatch.setattr(membership, constant, value)
    alone = membership.StudyDraw(simulated(800, sets=((name,),)), 2)
    assert alone.table.added.keys() == {membership.ROUNDS.get(name, (name,))[0]}
    assert [*alone.figures(100, 3)] == [each for each in of_every_set if each["statistics"] == name]


def test_the_model_that_is_tried_is_that_of_the_public_rows(small):
    """Its predictions are those of scikit-learn on scaled columns."""
    validation = small[0].table.added[membership.VALIDATION].statistic
    rows = small[0].table.effect_rows
    X = design(validation.columns, rows)
    y = (rows["died"] == 1)[: SMALL["N_BASE"]]
    fitted = LogisticRegression(max_iter=1000).fit(X[: SMALL["N_BASE"]], y)
    assert_allclose(validation.predict(rows), fitted.decision_function(X), atol=1e-9)


def test_figures_of_other_sets_stay():
    old = pd.DataFrame({"statistics": ["counts", "survival"], "AUC": [0.6, 0.7]})
    new = pd.DataFrame({"statistics": ["survival", "effect"], "AUC": [0.8, 0.9]})
    assert membership.merge(old, new)["AUC"].tolist() == [0.6, 0.8, 0.9]


def test_attackers_of_robust_errors_read_all_its_numbers(small):
    all_rows, groups = (small[0].table.added[each].statistic for each in membership.OF_ROBUST)
    robust = LeastSquares(groups.outcome, groups.columns)
    assert_allclose(np.r_[all_rows.spread, groups.spread], robust.spread)
    rows = {name: values[:150] for name, values in small[0].table.effect_rows.items()}
    message = robust.part(rows, bytes(32))
    assert_allclose(np.r_[all_rows.part(rows), groups.part(rows, bytes(32))], message, atol=1e-9)


def test_a_row_adds_to_its_group_the_mean_product_of_weighted_differences(monkeypatch):
    """With five public rows, one of which has a gap; the reach is (5 + 2) / 16."""
    monkeypatch.setattr(membership, "N_BASE", 5)
    x, y = np.array([[0.0, 0.2, 0.4, np.nan, 1.0, 0.9, np.nan], [0.1, 0.9, 0.5, 0.5, 0.3, 0.0, 0.5]])
    groups = membership.Groups(NumberColumn("y", 0, 1), [NumberColumn("x", 0, 1)])
    found = groups.compare({"x": x, "y": y})
    for row in range(7):
        products, weights = np.zeros((2, 2)), 0.0
        for other in (0, 1, 2, 4):
            apart = np.array([x[row] - x[other], y[row] - y[other]])
            if not np.isnan(apart).any():
                weight = min(1, 7 / 16 / max(apart @ apart, 1e-9)) / 5
                products, weights = products + weight * np.outer(apart, apart), weights + weight
        assert_allclose(found[row], [weights, products[0, 0], products[0, 1], products[1, 1]], atol=1e-12)


@pytest.mark.slow
def test_the_ratio_is_as_good_as_the_exact_one_of_normal_rows():
    random, n, noise = np.random.default_rng(1), 6, 1.5
    mean, C = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 1.0]])
    known = membership.TotalDistribution(random.multivariate_normal(mean, C, 20000))
    own, exact, is_member = [], [], np.arange(2000) % 2 == 0
    for inside in is_member:
        rows, candidate = random.multivariate_normal(mean, C, n), random.multivariate_normal(mean, C)
        rows[0] = candidate if inside else rows[0]
        total = rows.sum(axis=0) + noise * random.normal(size=2)
        along, square = known.ratio(candidate[None], total - n * mean, n_rows=n, noise=noise)
        own.append(along[0] - square[0] / 2)
        with_it = multivariate_normal(candidate + (n - 1) * mean, (n - 1) * C + noise**2 * np.eye(2))
        without = multivariate_normal(n * mean, n * C + noise**2 * np.eye(2))
        exact.append(with_it.logpdf(total) - without.logpdf(total))
    best = roc_auc_score(is_member, exact)
    assert best > 0.6
    assert roc_auc_score(is_member, own) == pytest.approx(best, abs=0.01)


def test_groups_are_read_as_the_whole_covariance_says():
    """Ten totals of groups beside one of all: the mean over groups of ratios with the matrix of all numbers."""
    random, n, noise, n_groups = np.random.default_rng(2), 40, 2.0, 3
    rows = random.normal(size=(10**6, 4)) @ random.normal(size=(4, 4))
    draw = object.__new__(membership.StudyDraw)
    draw.f, draw._known, draw.public = {"all": rows[:, :2], "groups": rows[:, 2:]}, {}, rows
    candidates = rows[:20]
    draw.of_candidates = {"all": candidates[:, :2], "groups": candidates[:, 2:]}
    residual = {"all": random.normal(0, 9, (1, 2)), "groups": random.normal(0, 5, (n_groups, 2))}
    score, _ = draw._scores(residual, [n], noise=noise)

    C, f = np.cov(rows.T, bias=True), candidates - rows.mean(axis=0)
    which = np.r_[-1, -1, np.repeat(range(n_groups), 2)]
    of = np.r_[0, 1, np.tile([2, 3], n_groups)]
    share = np.where((which[:, None] == -1) & (which == -1), 1.0, 1 / n_groups)
    apart = (which[:, None] != which) & (which[:, None] >= 0) & (which >= 0)
    S = np.where(apart, 0.0, n * share * C[np.ix_(of, of)]) + noise**2 * np.eye(len(of))
    total, ratios = np.concatenate([each.ravel() for each in residual.values()]), []
    for group in range(n_groups):
        moved = np.where((which == -1) | (which == group), f[:, of], 0.0)
        weighted = np.linalg.solve(S, moved.T).T
        ratios.append(np.exp(weighted @ total - (weighted * moved).sum(axis=1) / 2))
    assert_allclose(score, np.log(np.mean(ratios, axis=0)), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch, capsys):
    """A table that has none of the statistics, as it has no times, is passed over."""
    for name, value in SMALL.items():
        monkeypatch.setattr(membership, name, value)
    sets = (("counts",), (membership.LOGISTIC,))
    tables = {"without": simulated(800, sets=()), "made up": simulated(800, sets=sets)}
    monkeypatch.setattr(membership, "SOURCES", tables)
    monkeypatch.setattr(membership, "table_of", lambda name, sets: tables[name])
    path = tmp_path / "draws.csv"
    membership.play(path, 1)
    first = path.read_text()
    assert "made up, seed 0" in capsys.readouterr().out
    membership.play(path, 2)
    assert path.read_text().startswith(first)
    out = capsys.readouterr().out
    assert "made up, seed 1" in out
    assert "made up, seed 0" not in out
    means = membership.summarise(pd.read_csv(path))
    assert set(means["draws"]) == {2}
    assert len(means) == 2 * 2 * len(sets)


def test_package_and_page_have_what_was_measured():
    means = pd.read_csv(ROOT / membership.RESULTS)
    assert means["draws"].min() >= 20
    assert means["standard error of AUC"].max() < 0.02
    assert (ROOT / membership.PACKAGE).read_text(encoding="utf-8") == membership.package_file(means)
    page = (ROOT / membership.PAGE).read_text(encoding="utf-8")
    assert membership.replace_table(page, membership.page_table(means)) == page
    with pytest.raises(ValueError, match="no table"):
        membership.replace_table("A page.", membership.page_table(means))
