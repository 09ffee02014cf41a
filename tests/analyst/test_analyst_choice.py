"""The analyst who chooses: what is scored, on which rows, how ridge regressions are averaged, and what goes back."""

import numpy as np
import pytest
from bent_views import turned_shares
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import datacollab as dc
from datacollab.analyst import Candidate, Selection
from datacollab.analyst._analyst import round_predictions
from datacollab.analyst._training import looks_interpolated, training_rows
from datacollab.errors import AgreementError, RepresentationError
from datacollab.model import AveragedClassifier, AveragedRegressor, LandmarkRidgeClassifier, LandmarkRidgeRegressor

pytestmark = pytest.mark.usefixtures("light_choices")


def world(rng, *, target=lambda X: np.where(X[:, 0] * X[:, 1] > 0, "yes", "no"), **sizes):
    """The class is the sign of a product."""
    return turned_shares(rng, target, **sizes)


@pytest.fixture(scope="module")
def chosen(light_choices):
    """Shares, what comes of them with one method, and the progress that was told."""
    shares, said = world(np.random.default_rng(0)), []
    return shares, dc.Analyst([dc.LTI(4)], progress=lambda *what: said.append(what)).fit(shares), said


def changed(share, **changes):
    return dc.Share(**{**vars(share), **changes})


@pytest.mark.slow
def test_takes_the_integrator_and_the_model_that_predict_rows_left_out(rng):
    collaboration = dc.Analyst().fit(world(rng))
    chosen = collaboration.selection_.chosen
    heaviest = max(collaboration.selection_.candidates, key=lambda each: each.part)
    assert "kernel ridge" in heaviest.model  # the classes are no half-spaces
    assert heaviest.integrator == chosen.integrator
    losses = {each.model: each.loss for each in collaboration.selection_.by_loss()}
    assert chosen.loss <= losses["ridge"] - 0.1
    assert collaboration.selection_.judged_on == "rows"
    assert collaboration.selection_.n_judges == 120


def test_left_out_predictions_are_those_of_a_fit_without_the_row(rng, monkeypatch):
    monkeypatch.setattr("datacollab.analyst._analyst.round_predictions", lambda left_out, target: left_out)
    shares = world(rng, n_rows=15)
    h = LandmarkRidgeRegressor(kernel="linear", alphas=[0.5])
    shares = [changed(s, target=np.arange(15.0) ** k, anchor_target=np.ones(60)) for k, s in enumerate(shares, 1)]
    collaboration = dc.Analyst(dc.ODC(), h, left_out=True, anchor_weight=0.3, strata=None).fit(shares)
    rows = np.vstack(list(collaboration.representations_.values()))
    anchor = np.mean(
        [collaboration.integrator_.integration_functions_[s.party](s.anchor_representation) for s in shares], axis=0
    )
    X = np.vstack([rows, anchor])
    y = np.concatenate([*(s.target for s in shares), np.ones(60)])
    weights = np.r_[np.ones(45), np.full(60, 0.3)]
    for party, i in [(0, 3), (1, 0), (2, 14)]:
        without = np.delete(np.arange(105), 15 * party + i)
        refit = LandmarkRidgeRegressor(kernel="linear", alphas=[0.5]).fit(X[without], y[without], weights[without])
        model = collaboration.party_model(f"p{party}")
        assert_allclose(model.left_out[i], refit.predict(rows[[15 * party + i]])[0], atol=1e-8)
        assert model.without_party is None


def test_losses_are_those_of_what_goes_back(chosen):
    shares, collaboration, _ = chosen
    left_out = np.vstack([collaboration.left_out_[s.party] for s in shares])
    y = np.concatenate([s.target for s in shares])
    smoothed = np.clip(left_out, 0.005, 1)
    loss = log_loss(y, smoothed / smoothed.sum(axis=1, keepdims=True))
    assert_allclose(loss, collaboration.selection_.chosen.loss, atol=0.02)


def test_left_out_predictions_are_no_finer_than_needed(rng, chosen):
    """With exact ones and h, a party could compute sums over the other parties' rows."""
    shares, collaboration, _ = chosen
    said = np.vstack(list(collaboration.left_out_.values()))
    assert_allclose(said * 100, np.round(said * 100), atol=1e-9)
    assert_allclose(said.sum(axis=1), 1)
    exact = rng.dirichlet(np.ones(12), size=50)
    assert abs(round_predictions(exact, np.arange(50)) - exact).max() <= 0.01
    assert_allclose(round_predictions(exact, np.arange(50)).sum(axis=1), 1)
    numbers = [changed(s, target=s.representation[:, 0], anchor_target=None) for s in shares]
    said = dc.Analyst([dc.LTI(4)]).fit(numbers).left_out_["p1"]
    steps = np.diff(np.unique(said))
    assert_allclose(steps / steps.min(), np.round(steps / steps.min()), atol=1e-6)
    target, noise = rng.normal(size=500), 0.3 * rng.normal(size=500)
    for scale in (1, 1e-6, 1e6):
        said = round_predictions(scale * (target + noise), scale * target) / scale
        assert np.min(np.diff(np.unique(said))) == pytest.approx(np.sqrt(np.mean(noise**2)) / 2)
        assert np.mean((said - target) ** 2) == pytest.approx(np.mean(noise**2), rel=0.05)
    assert_allclose(round_predictions(target, target), target, atol=0.01)
    assert_allclose(round_predictions(np.ones(5), np.ones(5)), 1)


def test_left_out_predictions_follow_the_rows(rng):
    shares = world(rng)
    order = rng.permutation(40)
    turned = changed(shares[1], representation=shares[1].representation[order], target=shares[1].target[order])
    first = dc.Analyst(dc.LTI(4), LandmarkRidgeClassifier(kernel="linear"), left_out=True).fit(shares)
    second = dc.Analyst(dc.LTI(4), LandmarkRidgeClassifier(kernel="linear"), left_out=True).fit(
        [shares[0], turned, shares[2]]
    )
    assert_allclose(second.left_out_["p1"], first.left_out_["p1"][order], atol=0.011)
    assert_allclose(second.left_out_["p2"], first.left_out_["p2"], atol=0.011)
    assert not np.allclose(second.left_out_["p1"], first.left_out_["p1"], atol=0.1)


def test_a_party_with_changed_rows_gets_the_model_without_it(rng):
    shares = world(rng, n_parties=4)
    shares[1] = changed(shares[1], one_to_one=False)
    h = LandmarkRidgeClassifier(kernel="linear", alphas=[0.1])
    analyst = dc.Analyst(dc.LTI(4), h, left_out=True)
    # Of two others, it would be a model of hardly anybody.
    assert analyst.fit(shares[:3]).party_model("p1").without_party is None
    collaboration = analyst.fit(shares)
    model = collaboration.party_model("p1")
    assert model.left_out is None
    others = np.vstack([collaboration.representations_[p] for p in ("p0", "p2", "p3")])
    alone = LandmarkRidgeClassifier(kernel="linear", alphas=[0.1]).fit(
        others, np.concatenate([shares[place].target for place in (0, 2, 3)])
    )
    assert_allclose(model.without_party.coefficients_, alone.coefficients_, rtol=1e-6)
    assert collaboration.party_model("p0").without_party is None


def test_changing_a_partys_rows_changes_nothing_in_the_model_without_it(rng):
    shares = [changed(s, one_to_one=False) for s in world(rng, n_parties=4)]
    other = changed(shares[2], representation=shares[2].representation[::-1] * 2)
    analyst = dc.Analyst(dc.LTI(4), LandmarkRidgeClassifier(kernel="linear", alphas=[0.1]), left_out=True)
    before, after = analyst.fit(shares), analyst.fit([*shares[:2], other, shares[3]])
    assert_allclose(before.without_["p2"].coefficients_, after.without_["p2"].coefficients_)
    assert not np.allclose(before.without_["p1"].coefficients_, after.without_["p1"].coefficients_)


def test_means_of_groups_are_judged_by_the_anchor(rng):
    shares = world(rng)
    means = [changed(s, representation=np.repeat(s.representation[::5], 5, axis=0)) for s in shares]
    analyst = dc.Analyst([dc.LTI(4)], LogisticRegression())
    selection = analyst.fit(means).selection_
    assert (selection.judged_on, selection.n_judges) == ("anchor", 60)
    without_targets = [changed(s, anchor_target=None) for s in means]
    assert analyst.fit(without_targets).selection_.judged_on == "groups"
    # A few equal rows are daily life in tables, and no means.
    some = [changed(s, representation=np.r_[s.representation[:35], s.representation[:5]]) for s in shares]
    assert analyst.fit(some).selection_.judged_on == "rows"


def test_interpolated_anchors_are_seen():
    X, y = dc.datasets.load("digits")
    f = PCA(16).fit(X[:300])
    for real in (f.transform(X[:300]), np.random.default_rng(0).normal(size=(300, 6))):
        assert not looks_interpolated(real)
    for n_made in (300, 1000):
        made, _ = dc.SMOTEAnchor(n_made).sample(X[:100], y[:100], random_state=0)
        assert looks_interpolated(f.transform(made))


def test_interpolated_anchors_do_not_talk_the_analyst_into_following_them():
    """Targets are half noise, and SMOTE hands each on to its relatives."""
    rng = np.random.default_rng(0)
    public = rng.normal(size=(60, 6))
    noisy = np.where(rng.random(60) < 0.3, public[:, 0] < 0, public[:, 0] > 0).astype(int)
    A, target = dc.SMOTEAnchor(300).sample(public, noisy, random_state=0)
    share = {"anchor_representation": A, "anchor_target": target, "one_to_one": False}
    rows = rng.normal(size=(60, 6))
    own = np.where(rng.random(60) < 0.3, rows[:, 0] < 0, rows[:, 0] > 0).astype(int)
    shares = [dc.Share(party=k, representation=rows[k::3], target=own[k::3], **share) for k in range(3)]
    collaboration = dc.Analyst().fit(shares)
    new = rng.normal(size=(500, 6))
    right = collaboration.party_model(0).predict(new) == (new[:, 0] > 0)
    close = dc.Analyst(dc.ODC(), KNeighborsClassifier(1)).fit(shares).party_model(0)
    assert right.mean() > np.mean(close.predict(new) == (new[:, 0] > 0)) + 0.03


def test_anchor_rows_are_training_rows_of_the_weight_given(rng):
    shares = world(rng)
    h = LogisticRegression(C=1e3)
    collaboration = dc.Analyst(dc.LTI(4), h, anchor_weight=0.4).fit(shares)
    lti = dc.LTI(4).fit({s.party: s.anchor_representation for s in shares})
    own = [lti.integration_functions_[s.party](s.representation) for s in shares]
    anchor = np.mean([lti.integration_functions_[s.party](s.anchor_representation) for s in shares], axis=0)
    y = np.concatenate([*(s.target for s in shares), shares[0].anchor_target])
    expected = LogisticRegression(C=1e3).fit(np.vstack([*own, anchor]), y, np.r_[np.ones(120), np.full(60, 0.4)])
    assert_allclose(collaboration.estimator_.coef_, expected.coef_, rtol=1e-5)


def test_numbers(rng):
    shares = world(rng, target=lambda X: np.exp(X[:, 0]) + 0.1 * X[:, 1])
    collaboration = dc.Analyst([dc.LTI(4)]).fit(shares)
    assert collaboration.selection_.metric == "squared error"
    y = np.concatenate([s.target for s in shares])
    assert collaboration.selection_.chosen.loss < 0.5 * y.var()
    assert collaboration.left_out_["p0"].shape == (40,)


def test_balanced_classes_weigh_the_same_whatever_the_anchor_holds(rng):
    shares = world(rng, n_rows=100, target=lambda X: (X[:, 0] > 1).astype(int))
    training = training_rows({s.party: s for s in shares})
    for anchor_weight in (0.0, 0.3):
        weights = training.weights(anchor_weight, "balanced")
        totals = [weights[training.target == each].sum() for each in (0, 1)]
        assert_allclose(*totals)
        assert np.all(weights[training.anchor] == 0) == (anchor_weight == 0)
    counts = training.counts("balanced")
    assert_allclose(counts[training.target == 0].sum(), counts[training.target == 1].sum())
    assert training.weights(1.0, {1: 3.0}).max() == 3.0


def test_a_handful_of_own_rows_does_not_judge_for_everybody(rng):
    few, *many = world(rng, n_parties=4, n_rows=60)
    few = changed(few, representation=few.representation[:4], target=few.target[:4])
    many = [changed(s, one_to_one=False) for s in many]
    assert training_rows({s.party: s for s in [few, *many]}).judged_on == "anchor"
    assert training_rows({few.party: few}).judged_on == "rows"


def test_methods_that_read_the_judges_targets_are_not_judged_by_them(rng):
    shares = [changed(s, one_to_one=False) for s in world(rng, n_parties=4)]
    kti = dc.KTI(4, graph=dc.TargetSimilarityGraph(5))
    selection = dc.Analyst([kti, dc.LTI(4)], LogisticRegression()).fit(shares).selection_
    assert "reads the anchor's targets" in selection.candidates[0].failure
    assert selection.chosen.integrator == "LTI"
    assert dc.Analyst(kti, LogisticRegression(), left_out=True).fit(shares).without_.keys() == {"p0", "p1", "p2", "p3"}


def test_a_budget_spent_leaves_the_rest_untried(rng):
    seen = []
    collaboration = dc.Analyst(budget=0.0, progress=lambda *what: seen.append(what)).fit(world(rng))
    tried = [each for each in collaboration.selection_.candidates if each.failure is None]
    assert len(tried) == 1
    assert tried[0].chosen
    assert all("budget" in each.failure for each in collaboration.selection_.candidates if each is not tried[0])
    assert seen[0][0] == 0


def test_what_cannot_be_fitted_is_named_and_left_out(rng):
    shares = world(rng)
    analyst = dc.Analyst([dc.LTI(50), dc.LTI(4)], LogisticRegression())
    selection = analyst.fit(shares).selection_
    assert "n_components=50" in next(each.failure for each in selection.candidates if each.failure)
    with pytest.raises(ValueError, match="n_components=50"):
        dc.Analyst([dc.LTI(50)], LogisticRegression()).fit(shares)
    flat = changed(shares[0], anchor_representation=np.ones((60, 4)))
    with pytest.raises(RepresentationError, match="'p0'"):
        dc.Analyst().fit([flat, *shares[1:]])


def test_intervals_are_of_paired_differences(rng):
    shares = world(rng, n_rows=80)
    h = LandmarkRidgeClassifier(kernel="linear", alphas=[0.01])
    analyst = dc.Analyst([dc.LTI(4), dc.LTI(2)], h, anchor_weight=0.0)
    selection = analyst.fit(shares).selection_
    y = np.concatenate([s.target for s in shares]) == "yes"
    losses = []
    for d in (4, 2):
        rows = np.vstack(list(dc.Analyst(dc.LTI(d), h).fit(shares).representations_.values()))
        p = clone(h).fit_left_out(rows, np.concatenate([s.target for s in shares]))[:, 1]
        losses.append(-np.log(np.where(y, p, 1 - p)))
    _, other = selection.by_loss()
    difference = max(losses, key=np.mean) - min(losses, key=np.mean)
    assert_allclose((other.difference_low + other.difference_high) / 2, difference.mean(), atol=1e-9)
    half = 1.96 * difference.std() / np.sqrt(240)
    assert_allclose(other.difference_high - other.difference_low, 2 * half, rtol=1e-9)
    assert "*" in str(selection)


def made_up_selection(judged_on, *losses, chosen):
    found = [
        Candidate(integrator="LTI", model=f"model {number}", loss=loss, standard_error=0.01, chosen=number == chosen)
        for number, loss in enumerate(losses)
    ]
    return Selection(candidates=tuple(found), metric="log loss", judged_on=judged_on, n_judges=100)


def test_a_table_says_why_a_simpler_one_was_taken_and_where_scores_are_no_promise():
    """Lest its figures be read for more than they are."""
    assert "The simpler one (*) was taken" in made_up_selection("anchor", 0.6, 0.5, chosen=0).table()
    assert "simpler" not in made_up_selection("anchor", 0.6, 0.5, chosen=1).table()
    shortened = made_up_selection("anchor", 0.6, 0.5, 0.4, 0.3, chosen=0).table(most=2).splitlines()
    assert [line[1] for line in shortened[1:3]] == [" ", "*"]
    for judged_on, is_said in (("rows", False), ("anchor", True), ("groups", True)):
        assert bool(made_up_selection(judged_on, 0.6, chosen=0).caution) == is_said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"integrator": "kti"}, "integrator must be an integration method"),
        ({"integrator": []}, "integrator must be an integration method"),
        ({"estimator": "forest"}, "'forest'"),
        ({"anchor_weight": -1.0}, "anchor_weight"),
        ({"anchor_weight": "all"}, "anchor_weight='all'"),
        ({"left_out": "no"}, "left_out='no'"),
        ({"task": "survival"}, "task"),
    ],
)
def test_parameters_without_meaning(rng, changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dc.Analyst(**changes).fit(world(rng))


def test_models_that_give_no_probabilities_cannot_be_left_out(rng):
    with pytest.raises(AgreementError, match="LinearSVC gives no probabilities"):
        dc.Analyst("auto", LinearSVC()).fit(world(rng))


@pytest.mark.slow
def test_a_dummy_is_never_chosen_over_a_model(rng):
    shares = world(rng, target=lambda X: (X[:, 0] > 0).astype(int))
    worse = dc.Analyst([dc.LTI(4)], DummyClassifier(strategy="prior")).fit(shares).selection_.chosen.loss
    assert dc.Analyst([dc.LTI(4)]).fit(shares).selection_.chosen.loss < worse / 2
    with pytest.raises(TypeError, match="takes no sample_weight"):
        dc.Analyst(dc.LTI(4), KNeighborsClassifier(), anchor_weight=0.5).fit(shares)


@pytest.mark.slow
def test_one_process_estimators_leave_the_choice_too(rng):
    X = rng.normal(size=(200, 5))
    y = np.where(X[:, 0] > 0, 2.0, 1.0)  # classes that are floating-point numbers
    groups = np.arange(120) % 3
    f = dc.obfuscator("pca", n_components=5)
    model = dc.DataCollaborationClassifier(f, "auto", "auto", random_state=0)
    model.fit(X[:120], y[:120], groups=groups, anchor=X[120:160], anchor_target=y[120:160])
    assert model.score(X[160:], y[160:], groups=np.zeros(40, dtype=int)) > 0.85
    assert model.classes_.tolist() == [1.0, 2.0]
    regressor = dc.DataCollaborationRegressor(f, "auto", random_state=0)
    regressor.fit(X[:120], X[:120, 0], groups=groups, anchor=X[120:160], anchor_target=X[120:160, 0])
    assert regressor.score(X[160:], X[160:, 0], groups=np.zeros(40, dtype=int)) > 0.9


def rare_class(n, generator):
    """15 % of the rows have the class, shape (n, 6) and (n,)."""
    y = (np.arange(n) % 20 < 3).astype(int)
    X = generator.normal(size=(n, 6))
    X[:, 0] += y
    X[:, 1] -= 0.7 * y
    return X, y


@pytest.mark.filterwarnings("ignore::datacollab.errors.RepeatableSecretWarning")
@pytest.mark.parametrize("sampler", ["SMOTE", "SMOTE without targets", "sample"])
def test_means_of_groups_give_probabilities_near_the_parties_frequencies(sampler):
    """SMOTE's classes are balanced, and means of a class vary less than rows: neither may reach the probabilities."""
    generator = np.random.default_rng(0)
    X_public, y_public = rare_class(400, generator)
    make = dc.SampleAnchor(150) if sampler == "sample" else dc.SMOTEAnchor(300)
    anchor, target = make.sample(X_public, y_public, random_state=0)
    target = target if sampler == "SMOTE" else None
    f, defences = dc.obfuscator("pca", n_components=6), [dc.party.Microaggregation(5), dc.party.GaussianNoise(0.3)]
    parties = [dc.Party(each, f, fit_on=X_public, defences=defences, random_state=0) for each in "abc"]
    shares = [party.fit(*rare_class(140, generator)).share(anchor, target) for party in parties]
    collaboration = dc.Analyst().fit(shares)
    X, y = rare_class(2000, generator)
    said = parties[0].predict_proba(X, collaboration.party_model("a"))[:, 1]
    constant = log_loss(y, np.full(len(y), y.mean()))
    assert abs(said.mean() - y.mean()) < 0.03
    assert log_loss(y, said) < 0.95 * constant
    assert_allclose(collaboration.selection_.constant, constant, atol=1e-3)
    assert "a constant" in collaboration.selection_.table()


def test_anchor_rows_weigh_as_the_parties_classes_do_and_as_before_where_they_are_as_frequent(rng):
    """Weights of classes that both have are the ratio of frequencies; others stay."""
    shares = world(rng, n_rows=80)
    training = training_rows({share.party: share for share in shares})
    if not training.has_anchor:
        anchor_target = np.resize(["no", "no", "no", "yes", "never"], len(shares[0].anchor_representation))
        shares = [changed(share, anchor_target=anchor_target) for share in shares]
        training = training_rows({share.party: share for share in shares})
    weights = training.at_parties_frequencies().weights(1.0, None)
    own, of_anchor = training.target[: training.anchor.start], training.target[training.anchor]
    assert_allclose(weights[: training.anchor.start], 1.0)
    both = np.isin(of_anchor, own)
    for each in np.unique(own):
        share = weights[training.anchor][of_anchor == each].sum() / weights[training.anchor][both].sum()
        assert_allclose(share, np.mean(own == each))
    assert_allclose(weights[training.anchor][~both], 1.0)


def curved_world(rng, numbers=False, one_to_one=True, n_parties=3):
    """Shares of turned views on one space; the target is curved, and noisy."""

    def target(X):
        signal = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=len(X))
        return signal if numbers else np.where(signal > 0, "yes", "no")

    first, second, *others = turned_shares(rng, target, n_parties=n_parties)
    return [first, second if one_to_one else dc.Share(**{**vars(second), "one_to_one": False}), *others]


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
def test_weights_follow_a_power_of_the_likelihood(rng, numbers):
    """Squared errors are log losses of normal errors; what would weigh next to nothing weighs nothing."""
    selection = dc.Analyst([dc.LTI(4)]).fit(curved_world(rng, numbers)).selection_
    averaged = [each for each in selection.candidates if each.part]
    losses = np.array([each.loss for each in averaged])
    losses = losses / (2 * losses.min()) if numbers else losses
    expected = np.exp(-0.1 * selection.n_judges * (losses - losses.min()))
    assert_allclose([each.part for each in averaged], expected / expected.sum(), rtol=1e-6)
    assert min(each.part for each in averaged) >= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
def test_parties_get_the_average_that_was_judged(rng, numbers, monkeypatch):
    monkeypatch.setattr("datacollab.analyst._analyst.round_predictions", lambda left_out, target: left_out)
    shares = curved_world(rng, numbers)
    collaboration = dc.Analyst([dc.LTI(4)]).fit(shares)
    chosen, h = collaboration.selection_.chosen, collaboration.estimator_
    assert chosen.model.startswith("average of ")
    assert isinstance(h, AveragedRegressor if numbers else AveragedClassifier)
    assert all(isinstance(each, LandmarkRidgeClassifier | LandmarkRidgeRegressor) for each in h.estimators_)
    parts = [each.part for each in collaboration.selection_.candidates if each.part]
    assert_allclose(sorted(parts), sorted(h.weights_))
    target = np.concatenate([share.target for share in shares])
    told = np.concatenate([collaboration.left_out_[share.party] for share in shares])
    found = np.mean((told - target) ** 2) if numbers else log_loss(target, told)
    assert_allclose(chosen.loss, found, rtol=1e-6)
    # By Jensen's inequality it is at least as good as its parts are on average.
    of_parts = sum(each.part * each.loss for each in collaboration.selection_.candidates if each.part)
    assert chosen.loss <= of_parts + 1e-12
    assert str(collaboration.selection_).count(" of the average") >= 1


@pytest.mark.slow
def test_the_average_stands_for_its_parts(rng):
    """Also where one of them has, by chance, a smaller loss."""
    analyst = dc.Analyst([dc.LTI(4)], anchor_weight=1.0)
    found = [analyst.fit(curved_world(np.random.default_rng(seed))).selection_ for seed in range(3)]
    smaller = [each.loss < selection.chosen.loss for selection in found for each in selection.candidates if each.part]
    assert any(smaller)
    assert all(selection.chosen.model.startswith(("average", "random forest")) for selection in found)


def test_a_party_with_changed_rows_gets_the_average_without_it(rng):
    shares = curved_world(rng, one_to_one=False, n_parties=4)
    collaboration = dc.Analyst([dc.LTI(4)], anchor_weight=1.0).fit(shares)
    h, without = collaboration.estimator_, collaboration.party_model("p1").without_party
    assert_allclose(without.weights_, h.weights_)
    rows = collaboration.representations_
    anchors = {share.party: share.anchor_representation for share in shares}
    anchor = np.mean(list(collaboration.integrator_.transform(anchors).values()), axis=0)
    X = np.vstack([rows["p0"], rows["p2"], rows["p3"], anchor])
    y = np.concatenate([shares[0].target, shares[2].target, shares[3].target, shares[0].anchor_target])
    for part, of_all in zip(without.estimators_, h.estimators_, strict=True):
        alone = clone(of_all).set_params(alphas=(of_all.alpha_,)).fit(X, y)
        assert_allclose(part.coefficients_, alone.coefficients_, rtol=1e-5, atol=1e-7)
        assert not np.allclose(part.coefficients_, of_all.coefficients_)


def test_nothing_is_averaged_where_other_rows_than_the_parties_judge(rng):
    shares = [dc.Share(**{**vars(share), "one_to_one": False}) for share in curved_world(rng)]
    selection = dc.Analyst().fit(shares).selection_
    assert selection.judged_on == "anchor"
    assert not any(each.model.startswith("average") for each in selection.candidates)
