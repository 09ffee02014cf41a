"""Own models, how they are weighed with the common one, and what that brought."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.semi_supervised import LabelSpreading

from datacollab._encoder import TableEncoder
from datacollab._frames import equal_rows
from datacollab.errors import AgreementError
from datacollab.own._benefit import benefit_of, error_reduction
from datacollab.own._blend import Opinions, fit_convex_pool, fit_log_pool, penalise_log_loss, weights_by_loss
from datacollab.own._own_models import OwnData, fold_numbers, own_candidates, spread_left_out, spreading_matrix


def gram(X, Y):
    return np.exp(-0.3 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


def test_left_out_spreading_is_what_hiding_a_label_gives(rng):
    X = rng.normal(size=(30, 2))
    X[3] = X[2]
    labels = (X[:, 0] > 0).astype(int)
    Y = np.eye(2)[labels]
    Y[12:] = 0
    W = gram(X, X)
    np.fill_diagonal(W, 0)
    groups = equal_rows(X)
    spread = spread_left_out(spreading_matrix(W, 0.8), Y, groups)
    for row in range(12):
        hidden = np.where(groups == groups[row], -1, np.where(np.arange(30) < 12, labels, -1))
        # scikit-learn's affinity has a zero diagonal too, and iterates to the same limit.
        reference = LabelSpreading(kernel=gram, alpha=0.8, max_iter=5000, tol=1e-12).fit(X, hidden)
        assert_allclose(spread[row] / spread[row].sum(), reference.label_distributions_[row], atol=1e-6)


def test_folds_keep_equal_rows_together_and_spread_classes(rng):
    groups = np.repeat(np.arange(30), 2)
    classes = np.repeat(np.arange(3), 20)
    folds = fold_numbers(groups, classes, 5, np.random.RandomState(0))
    assert all(len(set(folds[groups == group])) == 1 for group in range(30))
    assert (np.array([[np.sum(folds[classes == c] == f) for c in range(3)] for f in range(5)]) == 4).all()


def data_of(rng, n_own=24, n_public=16, n_classes=3, labelled=True, duplicates=False):
    target = np.arange(n_own + n_public) % n_classes
    rows = rng.normal(size=(n_own + n_public, 4)) + 1.5 * np.eye(4)[target]
    if duplicates:
        rows[1], rows[n_own] = rows[0], rows[2]
    return OwnData(
        rows=rows,
        target=target if labelled else target[:n_own],
        n_own=n_own,
        n_classes=n_classes,
        common_units=np.ones(4),
    )


def changed_label(data, row):
    target = data.target.copy()
    target[row] = (target[row] + 1) % data.n_classes
    return OwnData(
        rows=data.rows, target=target, n_own=data.n_own, n_classes=data.n_classes, common_units=data.common_units
    )


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("duplicates", [True, False])
def test_no_candidate_has_seen_the_label_of_the_row(rng, labelled, duplicates):
    """Another label, for the row and its equals, changes nothing of what is said of it."""
    data = data_of(rng, labelled=labelled, duplicates=duplicates)

    def deterministic(candidates):
        return {
            each.name: each.left_out[0] for each in candidates if each.family in ("kernel ridge", "label spreading")
        }

    seed = np.random.RandomState
    before = deterministic(own_candidates(data, seed(0), n_trees=5))
    after_data = changed_label(changed_label(data, 0), 1) if duplicates else changed_label(data, 0)
    after = deterministic(own_candidates(after_data, seed(0), n_trees=5))
    assert ("label spreading" in {name.split(" (")[0] for name in before}) == (not labelled)
    for name, said in before.items():
        assert_allclose(after[name], said, atol=1e-7, err_msg=name)


@pytest.mark.slow
def test_a_public_row_equal_to_an_own_one_does_not_give_it_away(rng):
    """Memorising is of no use where equal rows are left out together: labels here are noise."""
    rows = rng.normal(size=(30, 3))
    target = rng.integers(2, size=30)
    data = OwnData(rows=np.vstack([rows, rows]), target=np.tile(target, 2), n_own=30, n_classes=2)
    for candidate in own_candidates(data, np.random.RandomState(0), n_trees=50):
        right = (candidate.left_out[:30].argmax(axis=1) == target).mean()
        assert right < 0.85, candidate.name


# Tables as they come.


def test_units_gaps_and_constant_columns(rng):
    X = rng.normal(size=(40, 4)) * [1, 1e6, 1e-6, 0] + [0, 5e6, 0, 7]
    X[3, 1] = np.nan
    encoder = TableEncoder(standardise=True).fit(X)
    Z = encoder.transform(X)
    assert np.isfinite(Z).all()
    assert_allclose(Z[:, :3].std(axis=0), 1, atol=1e-9)
    assert_allclose(Z[:, 3], 0)
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    in_common_units = (Z * encoder.common_units).std(axis=0)
    assert_allclose(in_common_units[1] / in_common_units[0], filled[:, 1].std() / filled[:, 0].std())
    assert_allclose(encoder.transform(X[3:4])[0, 1], encoder.transform(np.nanmedian(X, axis=0)[None])[0, 1])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_with_categories(frame, rng):
    table = frame({"age": rng.normal(size=12), "ward": ["north", "south", "east"] * 4})
    public = frame({"age": rng.normal(size=2), "ward": ["west", "north"]})
    encoder = TableEncoder(standardise=True).fit(table, beside=[public])
    assert encoder.transform(table).shape == (12, 5)
    unknown = frame({"ward": ["nowhere"], "age": [0.0]})
    assert_allclose(encoder.transform(unknown)[0, 1:], 0)
    assert encoder.common_units is None


def test_a_gap_in_a_category_is_one_more(rng):
    table = pd.DataFrame({"age": rng.normal(size=6), "ward": ["n", None, "s", "n", None, "s"]})
    Z = TableEncoder().fit(table).transform(table)
    assert Z.shape == (6, 4)
    assert_allclose(Z[:, 1:].sum(axis=1), 1)


@pytest.mark.parametrize(
    "rows", [np.zeros((3, 5)), pd.DataFrame(np.zeros((3, 4)), columns=list("abcd")), np.full((3, 4), np.inf)]
)
def test_rows_that_do_not_fit_are_refused(rng, rows):
    encoder = TableEncoder("Party 'a': the table").fit(rng.normal(size=(9, 4)))
    with pytest.raises(AgreementError, match="Party 'a'"):
        encoder.transform(rows)


def test_refusals_show_no_entry():
    table = np.array([["12.5", 1], ["secret", 2]], dtype=object)
    encoder = TableEncoder().fit(np.array([[1.5, 1], [2.5, 2]], dtype=object))
    with pytest.raises(AgreementError) as caught:
        encoder.transform(table)
    assert "secret" not in str(caught.value)
    assert "12.5" not in str(caught.value)


def opinions(rng, n_opinions=2, n_rows=30, n_classes=3, skill=1.5):
    codes = rng.integers(n_classes, size=n_rows)
    scores = rng.normal(size=(n_opinions, n_rows, n_classes)) + skill * np.eye(n_classes)[codes]
    return scores - np.log(np.exp(scores).sum(axis=2, keepdims=True)), codes


def naive_loss(weights, logs, codes, prior, tau):
    total = 0.0
    for row, code in enumerate(codes):
        unnormalised = np.prod([np.exp(each[row]) ** w for each, w in zip(logs, weights, strict=True)], axis=0)
        total -= np.log(unnormalised[code] / unnormalised.sum())
    return total + tau / 2 * np.sum((weights - prior) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient_are_those_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    logs, codes = opinions(rng)
    prior = np.array([0.3, 0.7])
    weights = rng.uniform(size=2)
    value, gradient = penalise_log_loss(weights, logs, codes, prior, 5.0)
    assert_allclose(value, naive_loss(weights, logs, codes, prior, 5.0))
    numeric = scipy.optimize.approx_fprime(weights, lambda at: penalise_log_loss(at, logs, codes, prior, 5.0)[0], 1e-7)
    assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tau", [0.1, 20.0])
def test_the_fit_is_where_a_generic_optimiser_ends(rng, tau):
    logs, codes = opinions(rng, n_opinions=3)
    prior = np.array([0.2, 0.3, 0.5])
    generic = scipy.optimize.minimize(
        naive_loss,
        np.full(3, 0.5),
        args=(logs, codes, prior, tau),
        method="SLSQP",
        bounds=[(0, None)] * 3,
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert_allclose(fit_log_pool(logs, codes, prior=prior, tau=tau), generic.x, atol=1e-4)


def test_a_large_penalty_leaves_the_weights_by_loss(rng):
    logs, codes = opinions(rng)
    prior = weights_by_loss(np.array([1.0, 0.5]))
    assert_allclose(prior, [0.2, 0.8])
    assert_allclose(fit_log_pool(logs, codes, prior=prior, tau=1e8), prior, atol=1e-4)


@pytest.mark.parametrize("n_opinions", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_convex_weights_are_those_of_a_generic_optimiser(n_opinions, seed):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=40)
    noise = rng.uniform(0.1, 3, size=n_opinions)
    said = target[:, None] + rng.normal(size=(40, n_opinions)) * noise
    prior = np.full(n_opinions, 1 / n_opinions)
    weights = fit_convex_pool(said, target, prior=prior, tau=2.0)
    generic = scipy.optimize.minimize(
        lambda w: 0.5 * np.sum((target - said @ w) ** 2) + 1.0 * np.sum((w - prior) ** 2),
        prior,
        method="SLSQP",
        bounds=[(0, 1)] * n_opinions,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert_allclose(weights.sum(), 1)
    assert weights.min() >= 0
    assert_allclose(weights, generic.x, atol=1e-4)


FACTS = {
    "party": "a",
    "n_rows": 50,
    "own_models": ("random forest, own rows",),
    "own_weights": (1.0,),
    "weights": {"local": 0.4, "collaboration": 0.6},
}


@pytest.mark.parametrize("n", [25, 50, 100])
@pytest.mark.parametrize(("correlation", "ratio"), [(0.9, 1.0), (0.9, 0.95), (0.5, 0.8)])
def test_the_interval_of_an_error_reduction_holds_the_truth(n, correlation, ratio):
    random, covered = np.random.default_rng(n), 0
    for _ in range(300):
        before, other = random.standard_t(6, size=(2, n))
        after = ratio * (correlation * before + np.sqrt(1 - correlation**2) * other)
        low, high = error_reduction(after**2, before**2)[1]
        covered += low <= 1 - ratio <= high
    assert covered / 300 >= 0.90


def test_the_jackknife_is_that_of_the_definition(rng):
    before, after = rng.normal(size=(2, 12)) ** 2
    ratios = [np.log(np.delete(after, i).mean() / np.delete(before, i).mean()) / 2 for i in range(12)]
    deviation = np.sqrt(11 / 12 * np.sum((ratios - np.mean(ratios)) ** 2))
    ratio = np.log(after.mean() / before.mean()) / 2
    gain, interval = error_reduction(after, before)
    assert_allclose(gain, 1 - np.sqrt(after.mean() / before.mean()))
    assert_allclose(interval, [1 - np.exp(ratio + s * 2.200985 * deviation) for s in (1, -1)], rtol=1e-6)


def shares(right, codes, sure=0.9):
    wrong = (1 - sure) * (1 - np.eye(2)[codes]) + sure * np.eye(2)[codes]
    flipped = wrong[:, ::-1]
    return np.log(np.where(right[:, None], wrong, flipped))


def class_benefit(n_alone, n_pooled, n=50, n_positive=25, **facts):
    codes = (np.arange(n) % (n // n_positive) == 1).astype(int)
    alone, combined = (shares(np.arange(n) < count, codes) for count in (n_alone, n_pooled))
    opinions = Opinions(alone, combined, combined)
    found = benefit_of(opinions, codes, np.ones(n, dtype=bool), None, basis="left out", **FACTS | facts)
    return found, codes, alone, combined


def test_scores_are_those_of_scikit_learn():
    benefit, codes, *said = class_benefit(30, 45)
    alone, combined = (np.exp(each) for each in said)
    assert (benefit.metric, benefit.constant) == ("AUC", 0.5)
    assert_allclose(benefit.local.loss, log_loss(codes, alone))
    areas = [roc_auc_score(codes, each[:, 1]) for each in (alone, combined)]
    assert_allclose([benefit.local.score.value, benefit.combined.score.value], areas)
    assert_allclose(benefit.combined_gain.value, areas[1] - areas[0])


def test_a_class_of_two_rows_is_not_ranked():
    benefit, codes, *said = class_benefit(30, 45, n_positive=2)
    alone, combined = (log_loss(codes, np.exp(each)) for each in said)
    assert benefit.metric == "log loss"
    assert_allclose(benefit.constant, log_loss(codes, np.tile([0.96, 0.04], (50, 1))))
    assert_allclose([benefit.local.score.value, benefit.combined_gain.value], [alone, alone - combined])
    assert benefit.sentence.startswith("Collaboration brought 0.659 of log loss (95 % interval 0.")
    assert "0.168 for always the same answer" in benefit.sentence


@pytest.mark.parametrize(
    ("n_alone", "n_pooled", "start"),
    [
        (30, 45, "Collaboration brought 30.0 points of AUC (95 % interval 1"),
        (30, 31, "Collaboration brought 2.0 points of AUC, or nothing (95 % interval -"),
        (30, 30, "Collaboration brought nothing beyond chance (95 % interval -"),
        (45, 30, "Collaboration cost 30.0 points of AUC (95 % interval -"),
    ],
)
def test_the_sentence_says_what_it_brought(n_alone, n_pooled, start):
    benefit = class_benefit(n_alone, n_pooled)[0]
    assert benefit.sentence.startswith(start)
    assert "0.500 for always the same answer, on 50 own rows, each judged by models that it" in benefit.sentence


def test_numbers_are_told_in_their_units(rng):
    target = rng.normal(size=60)
    noise = rng.normal(size=60)
    opinions = Opinions(target + noise, target + 0.5 * noise, target + 0.5 * noise)
    benefit = benefit_of(opinions, target, np.ones(60, dtype=bool), 10.0, basis="without the party", **FACTS)
    assert_allclose(benefit.local.score.value, 10 * np.sqrt(np.mean(noise**2)))
    assert_allclose(benefit.combined_gain.value, 0.5)
    assert benefit.local.score.low is None
    assert benefit.sentence.startswith("Collaboration brought 50.0 % less error (95 % interval 50.0 to 50.0): RMSE ")
    assert "without any row of the party" in benefit.sentence


def test_without_honest_predictions_nothing_is_claimed():
    codes = np.arange(20) % 2
    said = shares(codes > 5, codes)
    benefit = benefit_of(Opinions(said, said, said), codes, np.zeros(20, dtype=bool), None, basis=None, **FACTS)
    assert benefit.sentence.startswith("It cannot be said what collaboration brought")
    assert benefit.combined is None
    assert json.loads(json.dumps(benefit.to_dict()))["n_judged"] == 0
