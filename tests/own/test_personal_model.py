"""Own models and the common one pooled, and maps on a party's disk."""

import json
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer
from sklearn.svm import LinearSVC

import datacollab as dc
from datacollab.bundle import pack
from datacollab.errors import AgreementError, ExchangeError, ObfuscationError
from datacollab.model import LinearMap, PartyModel
from datacollab.party import LocalParty, Party, PersonalModel, local_party, obfuscator, party_state, personalise
from refusals import refused_with

N_OWN, N_OTHERS = 40, 300
MIXING = np.random.default_rng(5).normal(size=(6, 3))


def drawn(n, seed, task="classes"):
    """Six columns of unlike units; the target depends on three hidden ones."""
    random = np.random.default_rng(seed)
    hidden = random.normal(size=(n, 3))
    X = hidden @ MIXING.T + 0.1 * random.normal(size=(n, 6))
    if task == "numbers":
        return X, 50 + 10 * np.sin(1.5 * hidden[:, 0]) + 5 * hidden[:, 1] + random.normal(size=n)
    return X, (hidden[:, 0] > 0.3).astype(int) + (hidden[:, 1] > 0.5)


SETTLED = 0.06
"""How much a log loss differs, at most, as each row's scale is settled without it."""


class World:
    """One party by hand; the analyst's model is trained on its f_k of many rows of the others too."""

    def __init__(self, task="classes", estimator=None, relabel=lambda y: y, shuffle=True):
        self.X, y = drawn(N_OWN, 0, task)
        self.y = relabel(y)
        self.X_new, y_new = drawn(400, 1, task)
        self.y_new = relabel(y_new)
        # The same map and order each time: some bounds below would fail for one map in hundreds.
        secret = np.random.RandomState(0)
        self.party = Party("a", obfuscator("pca", 4), fit_on=drawn(60, 2)[0], shuffle=shuffle, random_state=secret)
        self.party.fit(self.X, self.y)
        self.share, self.order = self.party.share_with_order(drawn(30, 3)[0])
        X_others, y_others = drawn(N_OTHERS, 4, task)
        self.g = LinearMap("a", np.linalg.qr(np.random.default_rng(6).normal(size=(4, 4)))[0])
        Z = np.vstack([self.g(self.share.representation), self.g(self.party.obfuscate(X_others))])
        t = np.concatenate([self.share.target, relabel(y_others)])
        if estimator is None:
            estimator = LogisticRegression() if task == "classes" else Ridge()
        method = "predict_proba" if hasattr(estimator, "predict_proba") else "predict"
        self.left_out = cross_val_predict(estimator, Z, t, cv=10, method=method)[:N_OWN]
        self.h = estimator.fit(Z, t)
        self.without = type(estimator)().fit(Z[N_OWN:], t[N_OWN:])

    def model(self, left_out=True, without=False, **changes):
        return PartyModel(
            party="a",
            integration_function=self.g,
            estimator=changes.pop("estimator", self.h),
            left_out=changes.pop("told", self.left_out) if left_out else None,
            without_party=self.without if without else None,
        )

    def personal(self, model=None, **options):
        return self.party.personalise(model or self.model(), self.X, self.y, random_state=0, **options)

    def score(self, mine, using):
        return (mine.predict(self.X_new, using=using) == self.y_new).mean()


@pytest.fixture(scope="module", autouse=True)
def small_forests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.own._personal_model.N_TREES", 20)
        yield


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def mine(world):
    return world.personal()


@pytest.mark.slow
def test_the_sides_are_what_they_are_called(world, mine):
    common = world.party.predict(world.X_new, world.model())
    assert (mine.predict(world.X_new, using="collaboration") == common).mean() > 0.99
    alone = world.score(mine, "local")
    assert alone > 0.6
    assert world.score(mine, "combined") >= max(alone, world.score(mine, "collaboration")) - 0.03
    for using in ("local", "collaboration", "combined"):
        p = mine.predict_proba(world.X_new, using=using)
        assert_allclose(p.sum(axis=1), 1)
        assert (mine.classes_[p.argmax(axis=1)] == mine.predict(world.X_new, using=using)).all()
    with pytest.raises(ValueError, match="using must be"):
        mine.predict(world.X_new, using="both")
    assert mine.n_features_in_ == 6


@pytest.mark.slow
def test_own_rows_alone_know_nothing_of_public_targets(world, mine):
    rows, target = drawn(80, 9)
    targets = target, np.random.default_rng(0).permutation(target)
    told = [world.personal(public=rows, public_target=each) for each in targets]
    own, alone = ([each.predict_proba(world.X_new, using=using) for each in told] for using in ("own", "local"))
    assert_allclose(own[0], own[1])
    assert not np.allclose(alone[0], alone[1], atol=0.05)
    assert world.score(told[0], "own") > 0.6
    # Without public rows there is nothing to do without.
    assert mine.sides == ("combined", "local", "collaboration")
    with pytest.raises(ValueError, match="'combined', 'local', 'collaboration'; got 'own'"):
        mine.predict(world.X_new, using="own")


def test_own_rows_alone_for_numbers():
    world = World("numbers")
    rows, target = drawn(80, 9, "numbers")
    mine = world.personal(public=rows, public_target=target + 500)
    errors = [np.abs(mine.predict(world.X_new, using=using) - world.y_new).mean() for using in ("own", "local")]
    assert errors[0] < np.abs(world.y_new - world.y.mean()).mean()
    assert errors[0] != errors[1]


def test_left_out_predictions_are_joined_by_the_order_of_the_share(world, mine):
    assert not (world.order == np.arange(N_OWN)).all()
    by_hand, score = np.empty_like(world.left_out), mine.benefit_.collaboration.score.value
    by_hand[world.order] = world.left_out
    assert_allclose(score, log_loss(world.y, by_hand), atol=SETTLED)
    random = np.random.default_rng(0)
    wrong = np.mean([log_loss(world.y, random.permutation(by_hand)) for _ in range(50)])  # in any order
    assert score < wrong - 0.2
    assert mine.benefit_.metric == "log loss"
    assert score < mine.benefit_.constant


@pytest.mark.parametrize("case", ["again", "another order", "from disk"])
@pytest.mark.slow
def test_a_model_is_equal_for_equal_seeds_whatever_the_order_of_the_share_and_where_the_party_is_kept(
    world, mine, case
):
    turned = np.random.default_rng(8).permutation(N_OWN) if case == "another order" else np.arange(N_OWN)
    party = local_party(*party_state(world.party)) if case == "from disk" else world.party
    assert (type(party) is LocalParty) == (case == "from disk")
    model = world.model(told=world.left_out[turned])
    again = personalise(party, model, world.X, world.y, order=world.order[turned], random_state=0)
    assert again.benefit_ == mine.benefit_
    assert_allclose(again.predict_proba(world.X_new), mine.predict_proba(world.X_new))


@pytest.mark.slow
def test_rows_that_were_not_shared_are_not_judged(world):
    first = np.flatnonzero(world.order < 25)  # the order is secret and drawn anew: so the same rows in every run
    kept = world.order[first]
    model = world.model(told=world.left_out[first])
    mine = personalise(world.party, model, world.X, world.y, order=kept, random_state=0)
    assert (mine.benefit_.n_judged, mine.benefit_.n_rows) == (25, N_OWN)
    expected = log_loss(world.y[kept], world.left_out[first], labels=world.h.classes_)
    assert_allclose(mine.benefit_.collaboration.score.value, expected, atol=SETTLED)


@pytest.mark.slow
def test_the_model_without_the_party_judges_all_own_rows(world):
    mine = world.personal(world.model(left_out=False, without=True))
    assert mine.benefit_.basis == "without the party"
    said = world.without.predict_proba(world.g(world.party.obfuscate(world.X)))
    assert_allclose(mine.benefit_.collaboration.score.value, log_loss(world.y, said), atol=SETTLED)


@pytest.mark.slow
def test_a_model_with_neither_is_pooled_evenly_and_not_judged(world):
    mine = world.personal(world.model(left_out=False))
    assert mine.benefit_.basis is None
    assert mine.benefit_.weights == {"local": 0.5, "collaboration": 0.5}
    assert "cannot be said" in mine.benefit_.sentence
    assert world.score(mine, "combined") > 0.6


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2))
def test_the_pool_is_insurance_against_a_useless_model(world, seed):
    noise = np.random.default_rng(seed).dirichlet(np.ones(3), size=N_OWN)
    rows = np.random.default_rng(seed).normal(size=(90, 4))
    useless = RandomForestClassifier(20, random_state=seed).fit(rows, np.arange(90) % 3)
    mine = world.personal(world.model(told=noise, estimator=useless))
    assert mine.benefit_.weights["collaboration"] < 0.35
    assert world.score(mine, "combined") >= world.score(mine, "local") - 0.03


@pytest.mark.slow
def test_the_report_does_not_flatter():
    """Where labels are noise, no choice among candidates looks better than chance by much."""
    random = np.random.default_rng(3)
    world = World()
    y = random.integers(2, size=N_OWN)
    secret = np.random.RandomState(4)
    party = Party("a", obfuscator("pca", 4), fit_on=drawn(60, 2)[0], random_state=secret).fit(world.X, y)
    share, order = party.share_with_order(drawn(30, 3)[0])
    scores = []
    for seed in range(2):
        told = np.random.default_rng(seed).dirichlet(np.ones(2), size=N_OWN)
        h = LogisticRegression().fit(world.g(share.representation), share.target)
        model = PartyModel(party="a", integration_function=world.g, estimator=h, left_out=told)
        benefit = party.personalise(model, world.X, y, random_state=seed).benefit_
        scores.append(benefit.combined.score.value)
        assert benefit.combined_gain.low < 0.05
        assert benefit.local.loss > 0.6
    assert np.mean(scores) < 0.72


@pytest.mark.slow
def test_classes_that_only_others_have(world):
    own = world.y < 2
    X, y = world.X[own], world.y[own]
    party = Party("a", obfuscator("pca", 4), fit_on=drawn(60, 2)[0]).fit(X, y)
    Z = world.g(party.share(drawn(30, 3)[0]).representation)
    more, labels = drawn(200, 9)
    h = LogisticRegression().fit(world.g(party.obfuscate(more)), labels)
    model = PartyModel(party="a", integration_function=world.g, estimator=h, left_out=h.predict_proba(Z))
    X_public, y_public = drawn(20, 10)
    for public in ({}, {"public": X_public, "public_target": y_public}):
        mine = party.personalise(model, X, y, random_state=0, **public)
        assert mine.classes_.tolist() == [0, 1, 2]
        assert (mine.predict(world.X_new) == 2).any()
        assert (mine.predict(world.X_new, using="local") == 2).any() == bool(public)


@pytest.mark.slow
@pytest.mark.parametrize("n_of_other", [0, 1])
def test_one_class_of_its_own_and_a_single_row_of_another(world, n_of_other):
    rows = np.concatenate([np.flatnonzero(world.y == 0)[:10], np.flatnonzero(world.y == 1)[:n_of_other]])
    X, y = world.X[rows], world.y[rows]
    party = Party("a", obfuscator("pca", 4), fit_on=drawn(60, 2)[0]).fit(X, y)
    share = party.share(drawn(30, 3)[0])
    told = world.h.predict_proba(world.g(share.representation))
    model = PartyModel(party="a", integration_function=world.g, estimator=world.h, left_out=told)
    mine = party.personalise(model, X, y, random_state=0)
    assert np.isfinite(mine.predict_proba(world.X_new)).all()


@pytest.mark.slow
def test_texts_and_a_model_without_probabilities():
    world = World(estimator=LinearSVC(), relabel=lambda y: np.array(["mild", "grave", "none"])[y])
    mine = world.personal(world.model(left_out=False, without=True))
    assert set(mine.predict(world.X_new)) <= {"mild", "grave", "none"}
    assert mine.predict(world.X_new).dtype.kind in "UO"
    assert world.score(mine, "combined") > 0.6


@pytest.mark.nightly
def test_texts_of_a_frame_are_those_of_an_array():
    """With public rows without targets, whose labels are an empty array."""
    words = np.array(["low", "middle", "high"])
    world = World(relabel=lambda y: words[y])
    options = {"public": drawn(60, 2)[0], "random_state": 0}
    wanted = world.party.personalise(world.model(), world.X, world.y, **options).predict(world.X_new)
    assert (wanted == world.y_new).mean() > 0.6
    for kind in (object, "str", "category"):
        series = pd.Series(world.y, dtype=kind)
        found = world.party.personalise(world.model(), world.X, series, **options)
        assert (found.predict(world.X_new) == wanted).all()


@pytest.mark.slow
def test_unlabelled_public_rows_may_help(world):
    X_public = drawn(60, 11)[0]
    mine = world.personal(public=X_public)
    assert any("label spreading" in name for name in mine.benefit_.own_models)
    assert world.score(mine, "local") > 0.6


def test_numbers():
    world = World("numbers")
    mine = world.personal(public=drawn(20, 12, "numbers")[0], public_target=drawn(20, 12, "numbers")[1])
    assert mine.benefit_.metric == "RMSE"
    errors = {
        using: np.sqrt(np.mean((mine.predict(world.X_new, using=using) - world.y_new) ** 2))
        for using in ("local", "collaboration", "combined")
    }
    assert errors["combined"] < 1.05 * min(errors["local"], errors["collaboration"])
    assert errors["local"] < 0.7 * world.y_new.std()
    assert_allclose(mine.predict(world.X_new, using="collaboration"), world.party.predict(world.X_new, world.model()))
    by_hand = np.empty(N_OWN)
    by_hand[world.order] = world.left_out
    assert_allclose(mine.benefit_.collaboration.score.value, np.sqrt(np.mean((by_hand - world.y) ** 2)))
    assert_allclose(sum(mine.benefit_.weights.values()), 1)
    assert not hasattr(mine, "classes_")
    with pytest.raises(AttributeError, match="number"):
        mine.predict_proba(world.X_new)


@pytest.mark.slow
def test_frames_and_gaps(world):
    from sklearn.compose import make_column_transformer
    from sklearn.decomposition import PCA
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    def table(X, y):
        frame = pd.DataFrame(X[:, :4], columns=list("abcd")).assign(ward=np.where(X[:, 4] > 0, "north", "south"))
        frame.loc[2, "a"] = np.nan
        return frame

    f = make_pipeline(
        make_column_transformer((SimpleImputer(), list("abcd")), (OneHotEncoder(sparse_output=False), ["ward"])), PCA(4)
    )
    X, X_new = table(world.X, world.y), table(world.X_new, world.y_new)
    party = Party("a", f).fit(X, world.y)
    share = party.share(X_new[:30])
    Z = world.g(share.representation)
    h = LogisticRegression().fit(Z, share.target)
    told = cross_val_predict(h, Z, share.target, cv=5, method="predict_proba")
    model = PartyModel(party="a", integration_function=world.g, estimator=h, left_out=told)
    mine = party.personalise(model, X, world.y, random_state=0)
    assert (mine.predict(X_new, using="local") == world.y_new).mean() > 0.5
    turned = X_new[["ward", *"dcba"]]
    assert (mine.predict(turned, using="local") == mine.predict(X_new, using="local")).all()


@pytest.mark.slow
def test_refusals(world):
    model = world.model()
    with pytest.raises(AgreementError, match="rows and targets of fit"):
        world.party.personalise(model, world.X[::-1], world.y[::-1])
    with pytest.raises(AgreementError, match="rows and targets of fit"):
        world.party.personalise(model, world.X, world.y[::-1])
    fresh = Party("a", obfuscator("pca", 4)).fit(world.X, world.y)
    with pytest.raises(AgreementError, match="has shared nothing"):
        fresh.personalise(model, world.X, world.y)
    for order in (None, world.order[:-1], np.zeros(N_OWN, dtype=int), world.order + 1):
        with pytest.raises(AgreementError, match="Party 'a'"):
            personalise(world.party, model, world.X, world.y, order=order)
    with pytest.raises(AgreementError, match="public_target"):
        world.personal(public_target=[1, 2])
    with pytest.raises(AgreementError, match="public_target must have one entry per row"):
        world.personal(public=world.X_new[:3], public_target=[1, 2])
    with pytest.raises(AgreementError, match="another kind"):
        party = Party("a", obfuscator("pca", 4), fit_on=drawn(60, 2)[0]).fit(world.X, world.y.astype(str))
        party.personalise(world.model(left_out=False), world.X, world.y.astype(str))


def test_neither_text_form_shows_a_row(mine, world):
    text = repr(mine) + repr(mine.benefit_) + mine.benefit_.sentence
    assert not any(f"{entry:.3f}" in text for entry in np.abs(world.X[:20]).ravel() if entry > 1)


def test_a_personal_model_is_saved_and_read_without_foreign_contents(world, mine, tmp_path):
    mine.save(tmp_path / "a.dcstate")
    read = PersonalModel.load(tmp_path / "a.dcstate")
    assert read.sides == mine.sides
    assert read.benefit_ == mine.benefit_
    for side in mine.sides:
        assert_allclose(read.predict_proba(world.X_new, side), mine.predict_proba(world.X_new, side), atol=1e-6)
    facts, members = mine._contents()
    forged = skops.io.dumps({"encoder": FunctionTransformer(np.linalg.norm)})
    for spoilt in (members | {"personal.skops": forged}, {**members, "common.dcmodel": b"{}"}, {}):
        with pytest.raises(ExchangeError):
            PersonalModel.from_bytes(pack(PersonalModel.kind, facts, spoilt))


KINDS = ["pca", "kernel-pca", "umap", "random-projection"]


@contextmanager
def suppress_codes(*codes):
    """Pass over a refusal with one of the codes; anything else is an error."""
    try:
        yield
    except ExchangeError as error:
        if error.code not in codes:
            raise


def after_a_restart(party):
    facts, members = party_state(party)
    return local_party(json.loads(json.dumps(facts)), members)


def same_bits(first, second):
    return first.shape == second.shape and first.tobytes() == second.tobytes()


@pytest.fixture
def table(rng):
    return rng.normal(size=(60, 7)), np.arange(60) % 2


@pytest.mark.parametrize(("standardize", "public"), [(False, False), (True, True)], ids=["own-rows", "scaled-fit_on"])
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.nightly) if k == "umap" else k for k in KINDS])
def test_every_obfuscator_maps_to_the_same_bits_after_a_restart(kind, standardize, public, table, rng):
    X, y = table
    fit_on = rng.normal(size=(50, 7)) if public else None
    options = {"n_epochs": 20} if kind == "umap" else {}
    party = Party("a", obfuscator(kind, 4, standardize=standardize, **options), fit_on=fit_on).fit(X, y)
    at_home = after_a_restart(party)
    for rows in (X, X[:1], rng.normal(size=(23, 7))):
        assert same_bits(at_home.obfuscate(rows), party.obfuscate(rows))


@pytest.mark.parametrize("shape", [(100, 600), (40, 90), (600, 40)])
def test_wide_tables_too(shape, rng):
    """PCA of a wide table keeps a part of a larger array, and the linear algebra below sees the gaps."""
    X = rng.normal(size=shape)
    for standardize in (False, True):
        party = Party("a", obfuscator("pca", 5, standardize=standardize)).fit(X, np.arange(shape[0]) % 2)
        assert same_bits(after_a_restart(party).obfuscate(X), party.obfuscate(X))


def test_other_transformers_come_back(table):
    X, y = table
    for f in (
        FactorAnalysis(3, random_state=None),
        make_pipeline(QuantileTransformer(n_quantiles=20), FunctionTransformer(np.log1p), PCA(2)),
    ):
        party = Party("a", f).fit(X, y)
        assert same_bits(after_a_restart(party).obfuscate(X), party.obfuscate(X))


def test_the_form_of_the_table_comes_back(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    party = Party(3, PCA(2)).fit(frame, y)
    at_home = after_a_restart(party)
    h = LinearRegression().fit(party.obfuscate(frame), y)
    model = PartyModel(party=3, integration_function=LinearMap(3, np.eye(2)), estimator=h)
    predictor = at_home.predictor(model)
    assert same_bits(predictor(frame[list("gfedcba")].assign(other=1)), party.predict(frame, model))
    with pytest.raises(ObfuscationError, match=r"Party 3: 1 of the 7 columns.*\['c'\]"):
        predictor(frame.drop(columns="c"))


def test_it_predicts_alone(table, rng):
    X, y = table
    anchor = rng.normal(size=(40, 7))
    parties = [Party(name, obfuscator("pca", 4)).fit(X, y) for name in "ab"]
    analyst = dc.Analyst(dc.LTI(3), LogisticRegression())
    model = analyst.fit([party.share(anchor) for party in parties]).party_model("a")
    at_home = after_a_restart(parties[0])
    assert (at_home.predict(X, model) == parties[0].predict(X, model)).all()
    assert same_bits(at_home.predict_proba(X, model), parties[0].predict_proba(X, model))
    assert repr(at_home) == "LocalParty('a')"


@pytest.mark.parametrize("kind", ["pca", "random-projection"])
def test_the_rows_are_not_in_the_state(kind, table):
    X, y = table
    facts, members = party_state(Party("a", obfuscator(kind, 4, standardize=True)).fit(X, y))
    everything = json.dumps(facts).encode() + b"".join(members.values())
    assert not any(row.tobytes() in everything for row in X)


def test_what_cannot_be_stored_is_refused(table):
    X, y = table
    with refused_with("STATE_UNSUPPORTED"):
        party_state(Party("a", make_pipeline(FunctionTransformer(lambda rows: 2 * rows), PCA(2))).fit(X, y))
    with refused_with("STATE_UNSUPPORTED"):
        party_state(Party("a", StrangersPCA(2)).fit(X, y))
    with pytest.raises(NotFittedError):
        party_state(Party("a", PCA(2)))


@pytest.mark.nightly
def test_umap_that_maps_new_rows_itself_is_refused(table):
    with refused_with("STATE_UNSUPPORTED"):
        party_state(Party("a", obfuscator("umap", 2, out_of_sample="umap")).fit(*table))


class StrangersPCA(PCA):
    """A type that nobody has looked at."""


def test_a_type_that_is_not_trusted_is_refused_before_it_is_made(table):
    import skops.io

    X, y = table
    facts, members = party_state(Party("a", PCA(2)).fit(X, y))
    members["obfuscator.skops"] = skops.io.dumps(Traitor(2).fit(X))
    with refused_with("STATE_DAMAGED"):
        local_party(facts, members)


class Traitor(PCA):
    def __setstate__(self, state):
        pytest.fail("it was constructed")


def test_another_version_of_scikit_learn_is_refused(table):
    X, y = table
    facts, members = party_state(Party("a", PCA(2)).fit(X, y))
    with refused_with("VERSION_MISMATCH"):
        local_party(facts | {"sklearn": "0.17.1"}, members)


@pytest.mark.parametrize("missing", ["party", "form", "gaps", "sklearn", "rotation_order", "obfuscator.skops"])
def test_a_state_with_a_part_missing_is_damaged(missing, table, rng):
    X, y = table
    facts, members = party_state(Party("a", PCA(2), fit_on=rng.normal(size=(20, 7))).fit(X, y))
    for part in (facts, members):
        part.pop(missing, None)
    with refused_with("STATE_DAMAGED"):
        local_party(facts, members)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_state_is_refused_or_the_same(place, byte, cut):
    X = np.random.default_rng(0).normal(size=(30, 4))
    party = Party("a", PCA(2), fit_on=X[:20]).fit(X[20:], np.arange(10))
    facts, members = party_state(party)
    for name, data in members.items():
        at = int(place * len(data))
        changed = data[:at] if cut else data[:at] + bytes([byte]) + data[at + 1 :]
        with suppress_codes("STATE_DAMAGED", "VERSION_MISMATCH"):
            local_party(facts, members | {name: changed})


@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    above=st.integers(0, 3),
    step=st.sampled_from([1, 2, -1, -3]),
    transposed=st.booleans(),
)
def test_arrays_with_gaps_map_to_the_same_bits(rows, columns, above, step, transposed):
    """Linear algebra below looks at how an array lies in memory."""
    whole = np.sin(np.arange(float((rows + above) * columns * abs(step)))).reshape(rows + above, -1)
    part = whole[:rows, ::step]
    f = PCA().fit(np.random.default_rng(0).normal(size=(12, columns)))
    f.components_ = np.asfortranarray(part)[::-1] if transposed else part
    X = np.random.default_rng(1).normal(size=(12, columns))
    party = Party("a", FrozenEstimator(f)).fit(X, np.arange(12) % 2)
    assert same_bits(after_a_restart(party).obfuscate(X), party.obfuscate(X))


@pytest.mark.parametrize("strides", [[8, 8], [0, 8], [16, 4], [8], [8, 16, 4]])
def test_gaps_that_do_not_fit_are_refused(strides, table):
    X, y = table
    facts, members = party_state(Party("a", PCA(2)).fit(X, y))
    with refused_with("STATE_DAMAGED"):
        local_party(facts | {"gaps": {"0": strides}}, members)
