"""Balance on raw columns from parties' sums: that of the pooled table, and never of few rows."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import datacollab as dc
from datacollab.bundle import Bundle, KeyPair, arrays_to_bytes, bytes_to_arrays, unpack
from datacollab.effects import estimate_effect, pooled_balance
from datacollab.errors import (
    AgreementError,
    EffectWarning,
    ExchangeError,
    ObfuscationError,
    SharedBeforeError,
    ShareError,
)
from datacollab.model import PartyModel
from datacollab.party import Microaggregation, balance_sums, local_party, party_state
from datacollab.party._balance import _kept
from datacollab.share import BALANCE_KIND, BALANCE_STEP, BalanceSums, balance_from
from datacollab.targets import effect_target

K, N, WIDTH = 3, 400, 4
NAMES = ["age", "dose", "weight", "smokes"]


def world(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(K * N, WIDTH)) * [10.0, 1.0, 15.0, 1.0] + [60.0, 3.0, 80.0, 0.0]
    X[:, 3] = X[:, 3] > 0
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = (rng.random(K * N) < 1 / (1 + np.exp(-0.5 * z[:, 0] + 0.25 * z[:, 2]))).astype(np.int64)
    y = 2 * t + z[:, 0] + rng.normal(size=K * N)
    anchor = rng.normal(size=(60, WIDTH)) * [10.0, 1.0, 15.0, 0.5] + [60.0, 3.0, 80.0, 0.5]
    return X, t, y, anchor


def collaboration(seed=0, target="ATE", n_components=WIDTH):
    X, t, y, anchor = world(seed)
    f = dc.obfuscator("pca", n_components=n_components, standardize=True)
    rows = {k: slice(k * N, (k + 1) * N) for k in range(K)}
    target_of = effect_target(t, y)
    parties = {k: dc.Party(k, f).fit(X[own], target_of[own]) for k, own in rows.items()}
    shares = [party.share(anchor) for party in parties.values()]
    integrator = dc.LTI(n_components, fit_intercept=True)
    effect = estimate_effect(shares, integrator, method="aipw", target=target, random_state=0)
    options = {"anchor": anchor, "target": target, "columns": NAMES}
    sums = [
        balance_sums(party, X[rows[k]], t[rows[k]], effect.party_model(k), **options) for k, party in parties.items()
    ]
    scores = np.concatenate([p.predict_proba(X[rows[k]], effect.party_model(k))[:, 1] for k, p in parties.items()])
    return X, t, scores, sums


@pytest.mark.parametrize("target", ["ATE", "ATT"])
def test_the_balance_is_that_of_the_pooled_table(target):
    """Straight from the raw columns and the scores, in their own units."""
    X, t, scores, sums = collaboration(target=target)
    e = np.clip(scores, 0.02, 0.98)
    w = np.where(t == 1, 1 / e, 1 / (1 - e)) if target == "ATE" else np.where(t == 1, 1, e / (1 - e))
    variances = [X[t == arm].var(axis=0, ddof=1) for arm in (0, 1)]
    scale = np.sqrt(variances[1] if target == "ATT" else (variances[0] + variances[1]) / 2)
    before = (X[t == 1].mean(axis=0) - X[t == 0].mean(axis=0)) / scale
    means = [np.average(X[t == arm], axis=0, weights=w[t == arm]) for arm in (0, 1)]
    balance = pooled_balance(sums)
    # What leaves is rounded to a thousandth of the anchor's spread, and weights to three decimals.
    np.testing.assert_allclose(balance.before, before, atol=2e-3)
    np.testing.assert_allclose(balance.after, (means[1] - means[0]) / scale, atol=2e-3)
    for arm, found in ((0, balance.effective_untreated), (1, balance.effective_treated)):
        assert found == pytest.approx(w[t == arm].sum() ** 2 / (w[t == arm] ** 2).sum(), rel=1e-4)
    assert (balance.n_untreated, balance.n_treated) == ((t == 0).sum(), t.sum())
    assert balance.largest < 0.3 * np.abs(balance.before).max()


@pytest.mark.parametrize("target", ["ATE", "ATT"])
def test_sums_have_no_last_digits(target):
    """Whole numbers of steps, the nearest to the sums of rows: what a model writes below them is gone."""
    X, t, scores, sums = collaboration(target=target)
    anchor = world()[-1]
    units = (X - anchor.mean(axis=0)) / anchor.std(axis=0)
    e = np.clip(scores, 0.02, 0.98)
    w = np.round(np.where(t == 1, 1 / e, 1 / (1 - e)) if target == "ATE" else np.where(t == 1, 1, e / (1 - e)), 3)
    for k, each in enumerate(sums):
        own = np.arange(K * N) // N == k
        for arm in (0, 1):
            rows = own & (t == arm)
            for weighted, v in enumerate((np.ones(rows.sum()), w[rows])):
                step = 1e-3 * v.sum()
                for found, power in ((each.sums, 1), (each.squares, 2)):
                    off = found[weighted, arm] - v @ units[rows] ** power
                    assert (np.abs(off) < 0.501 * step).all()
                    steps = found[weighted, arm] / step
                    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_units_of_the_columns_and_the_parties_order_change_nothing():
    *_, sums = collaboration()
    first, second = pooled_balance(sums), pooled_balance(sums[::-1])
    np.testing.assert_allclose(first.after, second.after, atol=1e-13)
    moved = []
    for each in sums:
        shifted = each.sums + np.stack([each.counts, each.weights])[:, :, None] * 3.0
        squares = each.squares + 6.0 * each.sums + 9.0 * np.stack([each.counts, each.weights])[:, :, None]
        moved.append(replace(each, sums=shifted, squares=squares))
    np.testing.assert_allclose(pooled_balance(moved).after, first.after, atol=1e-12)


def test_a_column_that_did_not_reach_the_analyst_is_named():
    *_, sums = collaboration()
    assert all(each.kept.min() > 1 - 1e-9 for each in sums)
    *_, sums = collaboration(n_components=2)
    with pytest.warns(EffectWarning, match="reached the analyst"):
        balance = pooled_balance(sums)
    assert balance.kept.min() < 0.95


def test_arms_of_few_rows_are_not_sent():
    X, t, y, anchor = world()
    f = dc.obfuscator("pca", n_components=WIDTH)
    target = effect_target(t, y)
    parties = [dc.Party(k, f).fit(X[k * N : (k + 1) * N], target[k * N : (k + 1) * N]) for k in range(2)]
    effect = estimate_effect([p.share(anchor) for p in parties], dc.LTI(WIDTH, fit_intercept=True), random_state=0)
    treated = np.flatnonzero(t[:N] == 1)[:9]
    rows = np.concatenate([np.flatnonzero(t[:N] == 0), treated])
    with pytest.raises(ObfuscationError, match="fewer than 10 rows"):
        balance_sums(parties[0], X[rows], t[rows], effect.party_model(0), anchor=anchor)
    *_, sums = collaboration()
    with pytest.raises(ShareError, match="fewer than 10 rows"):
        replace(sums[0], counts=[9, 391])
    with pytest.raises(AgreementError, match="made for 1"):
        balance_sums(parties[0], X[:N], t[:N], effect.party_model(1), anchor=anchor)
    with pytest.raises(AgreementError, match="0 or 1 for each"):
        balance_sums(parties[0], X[:N], y[:N], effect.party_model(0), anchor=anchor)
    with pytest.raises(AgreementError, match="names"):
        balance_sums(parties[0], X[:N], t[:N], effect.party_model(0), anchor=anchor, columns=["age"])


def test_names_come_with_a_frame():
    X, t, y, anchor = world()
    table, public = pd.DataFrame(X, columns=NAMES), pd.DataFrame(anchor, columns=NAMES)
    target = effect_target(t, y)
    f = dc.obfuscator("pca", n_components=WIDTH)
    parties = [dc.Party(k, f).fit(table[k * N : (k + 1) * N], target[k * N : (k + 1) * N]) for k in range(2)]
    effect = estimate_effect([p.share(public) for p in parties], dc.LTI(WIDTH, fit_intercept=True), random_state=0)
    sums = balance_sums(parties[0], table[:N], t[:N], effect.party_model(0), anchor=public)
    assert sums.columns == tuple(NAMES)


def test_nothing_of_a_single_row_is_sent_or_shown():
    """Necessary, not sufficient: no value of a table, in its units or the anchor's, is among the numbers."""
    X, t, _, anchor = world()
    *_, sums = collaboration()
    units = (X - anchor.mean(axis=0)) / anchor.std(axis=0)
    sent = np.concatenate([getattr(sums[0], name).ravel() for name in ("sums", "squares", "weights")])
    for values in (X, units, units**2):
        assert not np.isin(sent, values).any()
    assert repr(sums[0]) == "BalanceSums(party=0, 4 columns, 400 rows)"


def test_fields_are_frozen():
    *_, sums = collaboration()
    with pytest.raises(ValueError, match="read-only"):
        sums[0].sums[0, 0, 0] = 1.0
    with pytest.raises(AttributeError):
        sums[0].party = "other"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": ("a", "a", "b", "c")}, "different names"),
        ({"columns": ()}, "different names"),
        ({"target": "ATU"}, "target must be"),
        ({"weights": [np.nan, 1.0]}, "weights must be finite"),
        ({"weights": [-1.0, 1.0]}, "not those of any rows"),
        ({"squared_weights": [1e-9, 1e-9]}, "not those of any rows"),
        ({"squares": np.zeros((2, 2, 4))}, "not those of any rows"),
        ({"kept": [2.0, 1.0, 1.0, 1.0]}, "not those of any rows"),
        ({"truncated": [401, 0]}, "not those of any rows"),
        ({"truncated": [-1, 0]}, "not those of any rows"),
        ({"sums": np.zeros((2, 4))}, "numbers of shape"),
        ({"counts": [200.5, 199.5]}, "numbers of shape"),
    ],
)
def test_sums_of_no_rows_are_refused(changes, message):
    *_, sums = collaboration()
    with pytest.raises(ShareError, match=f"Party 0: .*{message}"):
        replace(sums[0], **changes)


def test_different_sums_cannot_be_added():
    *_, sums = collaboration()
    with pytest.raises(AgreementError, match="No party"):
        pooled_balance([])
    with pytest.raises(AgreementError, match="twice"):
        pooled_balance([sums[0], sums[0]])
    with pytest.raises(AgreementError, match="different columns"):
        pooled_balance([sums[0], replace(sums[1], columns=("a", "b", "c", "d"))])
    with pytest.raises(AgreementError, match="different targets"):
        pooled_balance([sums[0], replace(sums[1], target="ATT")])


def test_files_hold_what_was_saved(tmp_path):
    *_, sums = collaboration()
    key = KeyPair.generate()
    path = tmp_path / "sums.dcbalance"
    sums[0].save(path, key=key)
    loaded = BalanceSums.load(path, signed_by=key.public)
    assert (loaded.party, loaded.columns, loaded.target) == (sums[0].party, sums[0].columns, sums[0].target)
    for name in ("counts", "truncated", "kept", "weights", "squared_weights", "sums", "squares"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(sums[0], name))
    with pytest.raises(ExchangeError, match="signed by"):
        BalanceSums.load(path, signed_by=KeyPair.generate().public)


def test_files_that_do_not_fit_together_are_refused(tmp_path):
    *_, sums = collaboration()
    sums[0].save(tmp_path / "sums")
    bundle = unpack(tmp_path / "sums")
    assert bundle.kind == BALANCE_KIND

    def refused(code, **changes):
        with pytest.raises(ExchangeError) as caught:
            balance_from(replace(bundle, **changes))
        assert caught.value.code == code

    refused("WRONG_KIND", kind="datacollab.share")
    for facts in (
        {"party": None},
        {"party": True},
        {"columns": "age"},
        {"columns": [{}, 1, 2, 3]},
        {"columns": ["a", "b"]},
        {"target": 3},
        {"target": "ATU"},
    ):
        refused("SHARE_MALFORMED", facts=bundle.facts | facts)
    refused("SHARE_MALFORMED", members={})
    (name,) = bundle.members
    arrays = bytes_to_arrays(bundle.members[name], what="x")
    for change in ({"counts": np.array([1, 1])}, {"sums": np.zeros(3)}, {"more": np.zeros(3)}):
        refused("SHARE_MALFORMED", members={name: arrays_to_bytes(arrays | change)})
    refused("SHARE_MALFORMED", members={name: b"nothing"})
    assert isinstance(bundle, Bundle)


def test_what_nobody_has_is_not_lost():
    """A category without rows is the same for all, and there is nothing to adjust for."""
    *_, sums = collaboration()
    changed = []
    for each in sums:
        total, squares, kept = each.sums.copy(), each.squares.copy(), each.kept.copy()
        total[:, :, 3], squares[:, :, 3], kept[3] = 0.0, 0.0, 0.0
        changed.append(replace(each, sums=total, squares=squares, kept=kept))
    assert pooled_balance(changed).lost == ()
    kept[0] = 0.5
    with pytest.warns(EffectWarning, match="95% of age reached"):
        assert pooled_balance([*changed[:-1], replace(changed[-1], kept=kept)]).lost == ("age",)


def with_column(sums, means, width, kept):
    """The sums with other values of the last column, by arms' means in units of the anchor, rounded as parties do."""
    changed = []
    for each in sums:
        total, squares, parts = each.sums.copy(), each.squares.copy(), each.kept.copy()
        for v, weights in enumerate((each.counts, each.weights)):
            step = BALANCE_STEP * weights
            total[v, :, 3] = np.round(weights * means / step) * step
            squares[v, :, 3] = np.round(weights * (np.square(means) + width**2) / step) * step
        parts[3] = kept
        changed.append(replace(each, sums=total, squares=squares, kept=parts))
    return changed


@pytest.mark.parametrize("prevalence", [0.005, 0.013, 0.02, 0.037, 0.05, 0.071, 0.1])
def test_a_category_that_the_anchor_alone_has_is_not_lost(prevalence):
    """In units of the anchor it is not 0 but the same for all, and sums of it are rounded."""
    *_, sums = collaboration()
    constant = -prevalence / np.sqrt(prevalence * (1 - prevalence))
    found = pooled_balance(with_column(sums, [constant, constant], 0.0, kept=0.0))
    assert (found.lost, found.coarse) == ((), ())
    assert (found.before[3], found.after[3]) == (0.0, 0.0)


@pytest.mark.parametrize(("width", "is_coarse"), [(0.02, True), (0.05, True), (0.25, False), (1.0, False)])
def test_columns_that_are_narrow_beside_the_anchor_are_named(width, is_coarse):
    """Their variance is a difference of two rounded numbers; what is not named is told to the tenth."""
    *_, sums = collaboration()
    found = pooled_balance(with_column(sums, [3.0, 3.0 + 0.4 * width], width, kept=1.0))
    assert found.coarse == (("smokes",) if is_coarse else ())
    assert np.isfinite(found.before[3])
    if not is_coarse:
        np.testing.assert_allclose(found.before[3], 0.4, rtol=0.1)


def test_arms_that_have_each_their_own_value_differ_without_end():
    *_, sums = collaboration()
    found = pooled_balance(with_column(sums, [-1.0, 1.0], 0.0, kept=1.0))
    assert found.before[3] == found.after[3] == np.inf


def test_a_propensity_of_means_is_warned_of():
    """Weighted by it, raw rows differ by more than with that of rows: of what the warning says."""
    X, t, y, anchor = world()
    f = dc.obfuscator("pca", n_components=WIDTH, standardize=True)
    target, found = effect_target(t, y), {}
    for k, defences in ((1, []), (6, [Microaggregation(6)])):
        options = {"fit_on": anchor, "defences": defences} if defences else {}
        halves = {"a": slice(None, K * N // 2), "b": slice(K * N // 2, None)}
        parties = {name: dc.Party(name, f, **options).fit(X[own], target[own]) for name, own in halves.items()}
        shares = [party.share(anchor) for party in parties.values()]
        effect = estimate_effect(shares, dc.LTI(WIDTH, fit_intercept=True), random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            models = {name: effect.party_model(name) for name in parties}
        assert any("one of means" in str(each.message) for each in caught) == (k > 1)
        sums = [
            balance_sums(party, X[halves[name]], t[halves[name]], models[name], anchor=anchor, truncate=True)
            for name, party in parties.items()
        ]
        found[k] = pooled_balance(sums, of_means=k > 1)
        assert found[k].to_dict()["of_means"] == (k > 1)
    assert found[6].largest > 2 * found[1].largest


def test_text_and_figure():
    *_, sums = collaboration()
    balance = pooled_balance(sums)
    first = balance.to_text().splitlines()[1]
    assert first.startswith(NAMES[int(np.argmax(np.abs(balance.before)))])
    assert json.loads(json.dumps(balance.to_dict()))["columns"]["age"]["before"] == balance.before[0]
    assert str(balance) == balance.to_text()
    pytest.importorskip("matplotlib")
    axes = balance.love_plot()
    drawn = [sorted(line.get_xdata()) for line in axes.lines[:2]]
    np.testing.assert_allclose(drawn[0], sorted(np.abs(balance.before)))
    np.testing.assert_allclose(drawn[1], sorted(np.abs(balance.after)))


def test_a_column_of_one_value_is_balanced():
    *_, sums = collaboration()
    changed = []
    for each in sums:
        total, squares = each.sums.copy(), each.squares.copy()
        totals = np.stack([each.counts, each.weights])
        total[:, :, 1], squares[:, :, 1] = 2.0 * totals, 4.0 * totals
        changed.append(replace(each, sums=total, squares=squares))
    balance = pooled_balance(changed)
    assert (balance.before[1], balance.after[1]) == (0.0, 0.0)


def shared_world(n_components=WIDTH, **options):
    """A party with its rows and treatment, the anchor, and what the analyst has: g, Z and T of the shared rows."""
    X, t, y, anchor = world()
    X, t, y = X[:N], t[:N], y[:N]
    f = dc.obfuscator("pca", n_components=n_components, **options)
    party = dc.Party("a", f).fit(X, effect_target(t, y))
    share = party.share(anchor)
    representations = {"a": share.anchor_representation, "b": share.anchor_representation}
    integrator = dc.LTI(n_components, fit_intercept=True).fit(representations)
    Z = integrator.transform({"a": share.representation})["a"]
    g = integrator.integration_functions_["a"]
    return party, X, t, anchor, g, Z, share.target["treatment"]


def propensity(g, estimator):
    return PartyModel(party="a", integration_function=g, estimator=estimator)


@pytest.mark.parametrize("n_victims", [1, 2, 9])
def test_a_model_that_singles_out_rows_is_refused(n_victims):
    """Without a refusal, (sum of wx - w_lo sum of x) / (w_hi - w_lo) of one arm is the victim's row."""
    party, X, t, anchor, g, Z, treated = shared_world()
    victims = np.zeros(N, dtype=np.int64)
    victims[np.flatnonzero(treated == 0)[:n_victims]] = 1
    model = propensity(g, DecisionTreeClassifier(random_state=0).fit(Z, victims))
    for target in ("ATE", "ATT"):
        with pytest.raises(ObfuscationError, match=rf"Party 'a': .* untreated rows .* rests on {n_victims}\.0 rows"):
            balance_sums(party, X, t, model, anchor=anchor, target=target)
    sums = balance_sums(party, X, t, model, anchor=anchor, target="ATT", truncate=True)
    # Brought in, the weights are all equal, and the weighted sums say what the others do.
    assert (sums.truncated == [n_victims, 0]).all()
    np.testing.assert_allclose(sums.sums[1, 0] * sums.counts[0], sums.sums[0, 0] * sums.weights[0], rtol=1e-12)


def test_an_ordinary_propensity_passes_and_is_not_touched():
    party, X, t, anchor, g, Z, treated = shared_world()
    model = propensity(g, LogisticRegression().fit(Z, treated))
    sums = balance_sums(party, X, t, model, anchor=anchor)
    assert (sums.truncated == 0).all()
    assert pooled_balance([sums]).n_truncated == 0


def test_a_second_model_is_refused_and_the_first_gives_the_same_again():
    party, X, t, anchor, g, Z, treated = shared_world()
    first, second = (propensity(g, LogisticRegression(C=C).fit(Z, treated)) for C in (1.0, 0.01))
    sums = balance_sums(party, X, t, first, anchor=anchor)
    assert balance_sums(party, X, t, first, anchor=anchor) is sums
    for rows, model, target in (
        (slice(None), second, "ATE"),
        (slice(1, None), first, "ATE"),
        (slice(None), first, "ATT"),
    ):
        with pytest.raises(SharedBeforeError, match="Party 'a': it has given other sums"):
            balance_sums(party, X[rows], t[rows], model, anchor=anchor, target=target)
    at_home = local_party(*party_state(party))
    assert balance_sums(at_home, X, t, first, anchor=anchor).is_close_to(sums)
    with pytest.raises(SharedBeforeError):
        balance_sums(at_home, X, t, second, anchor=anchor)


def test_noise_and_constants_do_not_count_as_kept():
    """Eight components of 20 rows of the anchor fit a column of noise to 40 %, which is none of it."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        public, mapped = rng.normal(size=(20, 3)), rng.normal(size=(20, 8))
        public[:, 1], mapped[:, 0] = 5.0, public[:, 2]
        found.append(_kept(public, mapped))
    assert np.mean(found, axis=0)[0] < 0.2
    assert (np.array(found)[:, 1] == 0.0).all()
    np.testing.assert_allclose(np.array(found)[:, 2], 1.0, atol=1e-12)
    assert (_kept(public, rng.normal(size=(20, 19))) == 0.0).all()


def test_a_column_that_is_constant_over_the_anchor_is_warned_of():
    party, X, t, anchor, g, Z, treated = shared_world()
    model = propensity(g, LogisticRegression().fit(Z, treated))
    anchor[:, 3] = 1.0
    with pytest.warns(EffectWarning, match="95% of smokes reached .* constant over the anchor"):
        balance = pooled_balance([balance_sums(party, X, t, model, anchor=anchor, columns=NAMES)])
    assert balance.kept[3] == 0.0


def test_sums_tell_an_affine_map_of_few_components():
    """What the Notes of `balance_sums` say is not excluded: without a defence, four sums are four equations."""
    party, X, t, anchor, g, Z, treated = shared_world(n_components=3)
    model = propensity(g, LogisticRegression().fit(Z, treated))
    sums = balance_sums(party, X, t, model, anchor=anchor)
    e = np.clip(model.estimator.predict_proba(Z)[:, 1], 0.02, 0.98)
    w = np.where(treated == 1, 1 / e, 1 / (1 - e))
    known = np.column_stack([Z, np.ones(N)])
    equations = np.stack([(known * v[:, None])[treated == arm].sum(axis=0) for v in (np.ones(N), w) for arm in (0, 1)])
    solved = known @ np.linalg.solve(equations, sums.sums.reshape(4, WIDTH))
    units = ((X - anchor.mean(axis=0)) / anchor.std(axis=0))[party.share_with_order(anchor)[1]]
    # Age and weight are all but in the three components; of the column of yes and no there is little.  Rounding blurs
    # what sums tell, and does not hide it.
    assert np.corrcoef(solved[:, 0], units[:, 0])[0, 1] > 0.99
    assert np.corrcoef(solved[:, 2], units[:, 2])[0, 1] > 0.99
