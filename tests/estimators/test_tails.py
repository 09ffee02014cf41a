"""Numbers with tails behind scikit-learn's interface: a word or a model better than the mean, best both."""

import warnings

import numpy as np
import pytest

import datacollab as dc
from datacollab.errors import FewEventsWarning, HeavyTailWarning

GROUPS = np.repeat(["a", "b", "c"], 100)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(900, 6))


def played(y, X, **options):
    """R2 on other rows, and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = dc.DataCollaborationRegressor(random_state=0, **options)
        model.fit(X[200:500], y[200:500], groups=GROUPS, anchor=X[:200])
    return model.score(X[500:], y[500:]), [str(each.message) for each in said if each.category is HeavyTailWarning]


def tail(name, rng, f):
    noise = rng.normal(size=len(f))
    if name == "one":
        return np.where(np.arange(len(f)) == 200, 1000.0, f + 0.3 * noise)
    if name == "several":
        return np.where(np.isin(np.arange(len(f)), (200, 260, 330, 410)), -400.0 * (1 + rng.random(len(f))), f)
    return {
        "log-normal": np.exp(2 * f + 0.5 * noise),
        "Pareto": (rng.pareto(1.5, size=len(f)) + 1) * np.exp(f),
        "t": f + 1.5 * rng.standard_t(2, size=len(f)),
        "costs": np.where(rng.random(len(f)) < 1 / (1 + np.exp(2 - 2 * f)), np.exp(f + noise + 3), 0.0),
        "negative": -np.exp(2 * f + 0.5 * noise),
    }[name]


@pytest.mark.parametrize("name", ["one", "several", "log-normal", "Pareto", "t", "costs", "negative"])
def test_a_tail_gets_a_word_and_the_model_beats_the_mean(name):
    rng, X = rows()
    found, said = played(tail(name, rng, (2 * X[:, 0] + X[:, 1]) / np.sqrt(5)), X)
    assert found > 0
    # Of two degrees of freedom, 300 rows need not have a number that is far.
    assert len(said) == (name != "t")
    if not said:
        return
    assert ("scale='log'" in said[0]) == (name in ("log-normal", "Pareto", "costs"))
    assert "of 300 entries of y" in said[0]


@pytest.mark.parametrize("seed", range(3))
def test_plain_numbers_get_no_word(seed):
    rng, X = rows(seed)
    f = (2 * X[:, 0] + X[:, 1]) / np.sqrt(5)
    plain = {
        "normal": f + rng.normal(size=900),
        "bounded": 1 / (1 + np.exp(-2 * f)),
        "counts": rng.poisson(np.exp(0.6 * f + 1.5)),
    }
    for y in plain.values():
        found, said = played(np.asarray(y, dtype=float), X)
        assert not said
        assert found > 0.2


def test_a_scale_that_cannot_be_is_refused_in_words():
    _, X = rows()
    fit = {"groups": GROUPS, "anchor": X[:200]}
    with pytest.raises(ValueError, match=r"scale='log' is for y of 0 or more, and \d+ of 300 entries are below"):
        dc.DataCollaborationRegressor(scale="log").fit(X[200:500], X[200:500, 0], **fit)
    with pytest.raises(ValueError, match="scale is for sums, and sharing has rows shared"):
        dc.DataCollaborationRegressor(scale="log", sharing="rows").fit(X[200:500], np.ones(300), **fit)
    with pytest.raises(ValueError, match="scale"):
        dc.DataCollaborationRegressor(scale="root").fit(X[200:500], np.ones(300), **fit)


def test_a_total_that_says_nothing_says_so():
    rng, X = rows(3)
    y = rng.permutation(np.arange(300) < 6)
    with pytest.warns(FewEventsWarning, match="hardly more of 2 of 2 classes than their shares"):
        model = dc.DataCollaborationClassifier(random_state=0).fit(X[200:500], y, groups=GROUPS, anchor=X[:200])
    said = model.predict_proba(X[500:])
    assert said[:, 1].std() < 0.01
    assert said[:, 1].mean() == pytest.approx(0.02, abs=0.01)
