"""What a party does with its defences, and with public rows to fit on."""

import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import datacollab as dc
import datacollab.party
from datacollab.errors import (
    AnchorError,
    NoGuaranteeError,
    ObfuscationError,
    PrivateRowsWarning,
    RepeatableSecretWarning,
    SharedBeforeError,
    SuppressedRowsWarning,
)
from datacollab.party import Defence, GaussianMechanism, GaussianNoise, Microaggregation, Published
from datacollab.party._defended_rows import RowDigests
from datacollab.party._party import random_rotation

EXPORTED = [
    value
    for name in datacollab.party.__all__
    if isinstance(value := getattr(datacollab.party, name), type)
    and issubclass(value, Defence)
    and value is not Defence
]


def example(defence_class):
    return defence_class(epsilon=4.0) if defence_class is GaussianMechanism else defence_class()


ANCHOR_CLASSES = np.arange(40) % 3
WRONG = [
    *((Microaggregation, name, value) for name, value in [("k", 1), ("k", 2.5), ("n_bins", 0), ("n_bins", "many")]),
    (GaussianNoise, "scale", 0),
    (Microaggregation, "small_classes", "drop"),
]


@pytest.fixture
def table(rng):
    return rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6)), np.arange(60) % 3


@pytest.fixture
def public(rng):
    return rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6))


@pytest.fixture
def anchor(rng):
    return rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))


def state():
    return np.random.RandomState(0)


class TestEveryDefence:
    @pytest.mark.parametrize("defence_class", EXPORTED)
    def test_is_a_small_estimator_that_learns_nothing(self, rng, defence_class):
        defence = example(defence_class)
        X, y, A = rng.normal(size=(60, 3)), np.arange(60) % 2, rng.normal(size=(50, 3))
        before, parameters = (X.copy(), y.copy(), A.copy()), defence.get_params()
        given = {"anchor_representation": A, "random_state": 0}
        published, shared, _ = defence.apply(X, y, **given)
        assert published.shape == (len(shared), 3)
        assert_array_equal(shared, y)
        for array, copy_ in zip((X, y, A), before, strict=True):
            assert_array_equal(array, copy_)
        assert defence.get_params() == parameters == clone(defence).get_params()
        assert set(vars(defence)) == set(parameters)
        again, *_ = defence.apply(X, y, **given)
        assert_array_equal(again, published)

    @pytest.mark.parametrize("defence_class", EXPORTED)
    def test_leaves_the_anchor_and_predictions_alone(self, table, public, anchor, defence_class):
        X, y = table
        plain = dc.Party("a", PCA(3), fit_on=public, random_state=state()).fit(X, y)
        defended = dc.Party("a", PCA(3), fit_on=public, defences=[example(defence_class)], random_state=state())
        defended.fit(X, y)
        share = defended.share(anchor, ANCHOR_CLASSES)
        assert_array_equal(share.anchor_representation, plain.share(anchor).anchor_representation)
        assert_array_equal(defended.obfuscate(X), plain.obfuscate(X))
        rows = {row.tobytes() for row in defended.obfuscate(X)}
        assert not rows & {row.tobytes() for row in share.representation}
        assert plain.share(anchor).one_to_one
        assert not share.one_to_one

    @pytest.mark.parametrize("defence_class", EXPORTED)
    def test_is_applied_once_and_leaves_in_one_order(self, table, public, anchor, defence_class):
        X, y = table
        party = dc.Party("a", PCA(3), fit_on=public, defences=[example(defence_class)]).fit(X, y)
        first, order = party.share_with_order(anchor, ANCHOR_CLASSES)
        second, other_order = party.share_with_order(anchor, ANCHOR_CLASSES)
        for other in (second, *(each.share(anchor, ANCHOR_CLASSES) for each in (copy.copy(party), copied(party)))):
            assert_array_equal(other.representation, first.representation)
            assert_array_equal(other.target, first.target)
        assert_array_equal(order, other_order)
        assert not np.array_equal(order, np.sort(order))

    @pytest.mark.parametrize("defence_class", EXPORTED)
    def test_copies_made_before_the_first_share_share_the_same(self, table, public, anchor, defence_class):
        party = dc.Party("a", PCA(3), fit_on=public, defences=[example(defence_class)]).fit(*table)
        other = copy.deepcopy(party)
        first, second = (each.share(anchor, ANCHOR_CLASSES) for each in (party, other))
        assert_array_equal(first.representation, second.representation)
        if example(defence_class).needs_anchor:
            with pytest.raises(AnchorError, match="another anchor"):
                copy.deepcopy(other).share(anchor[::-1], ANCHOR_CLASSES[::-1])
            with pytest.raises(TypeError, match="each stored copy would draw noise of its own"):
                pickle.dumps(dc.Party("a", PCA(3), fit_on=public, defences=[example(defence_class)]).fit(*table))

    @pytest.mark.parametrize(("defence_class", "name", "value"), WRONG)
    def test_parameters_are_checked(self, rng, defence_class, name, value):
        given = {"anchor_representation": rng.normal(size=(20, 2))}
        with pytest.raises(ValueError, match=f"The '{name}' parameter of {defence_class.__name__} must be"):
            defence_class(**{name: value}).apply(rng.normal(size=(20, 2)), np.zeros(20), **given)

    def test_is_found_by_these_tests(self):
        assert {c.__name__ for c in EXPORTED} == {"GaussianMechanism", "GaussianNoise", "Microaggregation"}


def copied(party):
    """As after a restart."""
    return pickle.loads(pickle.dumps(party))


def test_the_order_leads_back_to_the_own_rows(table, anchor):
    X, y = table
    party = dc.Party("a", PCA(3)).fit(X, y)
    share, order = party.share_with_order(anchor)
    assert_allclose(share.representation, party.obfuscate(X)[order], atol=1e-12)
    assert_array_equal(share.target, y[order])
    assert sorted(order) == list(range(60))


def test_suppressed_rows_are_missing_from_the_order(rng, anchor):
    X, y = rng.normal(size=(43, 6)), np.array([7] * 3 + [0, 1] * 20)
    party = dc.Party("a", PCA(3), defences=[Microaggregation(5)])
    with pytest.warns(SuppressedRowsWarning, match="3 of 43 rows"):
        party.fit(X, y)
    share, order = party.share_with_order(anchor)
    assert sorted(order) == list(range(3, 43))
    assert_array_equal(share.target, y[order])
    expected, *_ = Microaggregation(5).apply(party.obfuscate(X)[3:], y[3:])
    assert_allclose(share.representation, expected[order - 3], atol=1e-12)


def test_defences_come_one_after_the_other(table, anchor):
    X, y = table
    y = np.where(np.arange(60) < 2, 9, y)
    party = dc.Party("a", PCA(3), defences=[Microaggregation(4), Microaggregation(12)], shuffle=False)
    with pytest.warns(SuppressedRowsWarning):
        party.fit(X, y)
    share, order = party.share_with_order(anchor)
    once, left, _ = Microaggregation(4).apply(party.obfuscate(X)[2:], y[2:])
    twice, left, _ = Microaggregation(12).apply(once, left)
    assert_array_equal(order, np.arange(2, 60))
    assert_allclose(share.representation, twice, atol=1e-12)
    assert_array_equal(share.target, left)


def test_another_anchor_is_refused_where_it_would_draw_noise_again(table, public, anchor):
    party = dc.Party("a", PCA(3), fit_on=public, defences=[GaussianMechanism(4.0)]).fit(*table)
    first = party.share(anchor)
    with pytest.raises(AnchorError, match="Party 'a'.*defended for another anchor.*average it away"):
        party.share(anchor[::-1])
    with pytest.raises(AnchorError, match="another anchor"):
        party.guarantee(anchor[1:])
    assert_array_equal(np.sort(party.share(anchor).representation[:, 0]), np.sort(first.representation[:, 0]))


def test_noise_does_not_come_from_numpys_global_generator(table, anchor):
    published = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - what a careless script does
        party = dc.Party("a", PCA(3), defences=[GaussianNoise()], shuffle=False).fit(*table)
        published.append(party.share(anchor).representation)
    assert not np.equal(*published).any()


def test_a_number_repeats_everything_and_is_a_warning(table, public, anchor):
    shares = []
    for _ in range(2):
        party = dc.Party("a", PCA(3), fit_on=public, defences=[GaussianNoise()], random_state=3)
        with pytest.warns(RepeatableSecretWarning, match="rebuild the rotation and the noise"):
            party.fit(*table)
        shares.append(party.share(anchor))
    assert_array_equal(shares[0].representation, shares[1].representation)
    assert_array_equal(shares[0].anchor_representation, shares[1].anchor_representation)


class Failing(Defence):
    def _defend(self, representation, target, anchor_representation, generator):
        raise KeyError(f"secret {representation[0, 0]}")


class Shortening(Defence):
    def _defend(self, representation, target, anchor_representation, generator):
        return Published(rows=representation[1:], target=target, own_rows=np.arange(len(representation)))


def test_a_failing_defence_lets_nothing_leave(table, anchor):
    party = dc.Party("clinic", PCA(3), defences=[Failing()])
    with pytest.raises(ObfuscationError, match=r"Party 'clinic': a defence failed \(KeyError\)") as caught:
        party.fit(*table)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
    with pytest.raises(ObfuscationError, match="Party 'clinic': Shortening must give 60 rows.*Nothing left the party"):
        dc.Party("clinic", PCA(3), defences=[Shortening()]).fit(*table)


@pytest.mark.parametrize("given", [Microaggregation(), ["microaggregation"], None, [PCA()]])
def test_what_is_no_defence_is_refused(table, given):
    with pytest.raises(TypeError, match="Party 'a': defences must be a list"):
        dc.Party("a", PCA(3), defences=given).fit(*table)


class TestPublicRows:
    def test_the_map_is_learnt_from_them_alone(self, table, public, anchor):
        X, y = table
        f = make_pipeline(StandardScaler(), PCA(3))
        maps = [dc.Party("a", f, fit_on=public, random_state=state()).fit(rows, y) for rows in (X, 5 * X[::-1] + 1)]
        assert_array_equal(maps[0].obfuscate(anchor), maps[1].obfuscate(anchor))

    def test_it_is_that_of_a_half_of_them_rotated(self, table, public):
        X, y = table
        seen = []

        class Spy(PCA):
            def fit(self, X, y=None):
                seen.append(X)
                return super().fit(X)

        party = dc.Party("a", Spy(3), fit_on=public).fit(X, y)
        assert seen[0].shape == (40, 6)
        assert {row.tobytes() for row in seen[0]} < {row.tobytes() for row in public}
        plain, rotated = PCA(3).fit(seen[0]).transform(X), party.obfuscate(X)
        assert_allclose(rotated @ rotated.T, plain @ plain.T, atol=1e-9)
        assert not np.allclose(np.abs(rotated), np.abs(plain))

    def test_parties_do_not_share_a_map(self, table, public, anchor):
        shares = [dc.Party("a", PCA(3), fit_on=public).fit(*table).share(anchor) for _ in range(2)]
        grams = [A.anchor_representation @ A.anchor_representation.T for A in shares]
        assert not np.allclose(*grams, rtol=1e-3)

    def test_predictions_go_the_same_way_as_shares(self, table, public, anchor):
        X, y = table
        parties = [dc.Party(name, PCA(4), fit_on=public).fit(X[rows], y[rows]) for name, rows in
                   [("a", slice(30)), ("b", slice(30, 60))]]  # fmt: skip
        collaboration = dc.Analyst(dc.LTI(4), LogisticRegression()).fit([party.share(anchor) for party in parties])
        model = collaboration.party_model("a")
        assert_allclose(parties[0].transform(X, model), model.transform(parties[0].obfuscate(X)), atol=1e-12)

    def test_frames_with_categories(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"age": rng.normal(size=90), "ward": ["north", "south", "east"] * 30})
        f = make_pipeline(
            make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["ward"])), PCA(2)
        )
        party = dc.Party("a", f, fit_on=frame[30:], defences=[Microaggregation(5)]).fit(frame[:30], np.arange(30) % 2)
        assert party.share(frame[30:]).representation.shape == (30, 2)

    def test_too_few_are_refused(self, table, public):
        with pytest.raises(ObfuscationError, match="fit_on has 4 rows, but it needs 5 at least"):
            dc.Party("a", PCA(3), fit_on=public[:4]).fit(*table)
        assert dc.Party("a", PCA(3), fit_on=public[:5]).fit(*table).obfuscate(public).shape == (80, 3)
        with pytest.raises(TypeError, match="fit_on must be public rows.*got str of shape"):
            dc.Party("a", PCA(3), fit_on="anchor").fit(*table)
        with pytest.raises(ObfuscationError, match="failed in transform.*6 columns, but 4 in fit"):
            dc.Party("a", PCA(3), fit_on=public[:, :4]).fit(*table)

    def test_own_rows_among_them_are_a_warning(self, table, public):
        X, y = table
        mixed = np.vstack([public, X[:3]])
        with pytest.warns(PrivateRowsWarning, match="3 of 83 rows in fit_on are also among its private rows"):
            dc.Party("a", PCA(3), fit_on=mixed).fit(X, y)


def test_rotations_are_uniform():
    generator = np.random.RandomState(0)
    matrices = np.array([random_rotation(3, generator) for _ in range(4000)])
    assert_allclose(matrices @ matrices.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (4000, 3, 3)), atol=1e-12)
    # Entries of a uniform orthogonal matrix have mean 0 and variance 1/n; a reflection is as likely as none.
    assert np.abs(matrices.mean(axis=0)).max() < 4 * np.sqrt(1 / 3 / 4000)
    assert_allclose((matrices**2).mean(axis=0), 1 / 3, atol=0.03)
    assert abs(np.mean(np.linalg.det(matrices) > 0) - 0.5) < 0.04


def shifted_by(values):
    return lambda X: X - values


class TestGuarantee:
    def party(self, public, defences=None, obfuscator=None, **options):
        defences = (GaussianMechanism(4.0, 1e-6),) if defences is None else defences
        f = make_pipeline(StandardScaler(), PCA(3)) if obfuscator is None else obfuscator
        return dc.Party("a", f, fit_on=public, defences=defences, **options)

    def test_says_what_is_promised_and_what_is_not(self, table, public, anchor):
        party = self.party(public).fit(*table)
        guarantee = party.guarantee(anchor)
        assert (guarantee.epsilon, guarantee.delta, guarantee.n_rows) == (4.0, 1e-6, 60)
        A = party.share(anchor).anchor_representation
        assert guarantee.clip == pytest.approx(np.median(np.linalg.norm(A - A.mean(axis=0), axis=1)))
        assert guarantee.noise == pytest.approx(dc.linalg.gaussian_sigma(4.0, 1e-6) * 2 * guarantee.clip)
        assert "Labels (targets) and row counts are released exactly and are not covered" in str(guarantee)
        assert "(4, 1e-06)-differentially private" in guarantee.statement

    def test_the_share_keeps_it(self, table, public, anchor):
        """Of one party, as above of the mechanism: the noise is what the guarantee says."""
        X, y = table
        party = self.party(public, shuffle=False).fit(np.tile(X, (20, 1)), np.tile(y, 20))
        share, guarantee = party.share(anchor), party.guarantee(anchor)
        rows, center = party.obfuscate(np.tile(X, (20, 1))), share.anchor_representation.mean(axis=0)
        lengths = np.linalg.norm(rows - center, axis=1)[:, None]
        clipped = center + (rows - center) * np.minimum(1, guarantee.clip / lengths)
        noise = (share.representation - clipped) / guarantee.noise
        assert np.mean(noise**2) == pytest.approx(1, abs=5 * np.sqrt(2 / noise.size))

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"defences": ()}, "no GaussianMechanism among its defences"),
            ({"defences": (Microaggregation(3),)}, "no GaussianMechanism"),
            ({"defences": (Microaggregation(3), GaussianMechanism(4.0))}, "Microaggregation comes before"),
            ({"defences": (GaussianNoise(), GaussianMechanism(4.0))}, "GaussianNoise comes before"),
            ({"public": None}, "with every scaler and bandwidth in it, was fitted on its private rows"),
            ({"random_state": np.random.RandomState(0)}, "anyone who knows that can subtract it"),
            ({"obfuscator": FrozenEstimator(PCA(3).fit(np.eye(6)))}, "holds a FrozenEstimator"),
            (
                {"obfuscator": make_pipeline(FrozenEstimator(StandardScaler().fit(np.eye(6))), PCA(3))},
                "holds a FrozenEstimator",
            ),
            ({"obfuscator": FunctionTransformer(lambda X: X - X.mean(axis=0))}, "maps a row differently"),
            (
                {"obfuscator": FunctionTransformer(np.clip, kw_args={"a_min": np.zeros(6), "a_max": None})},
                r"holds a ndarray of shape \(6,\)",
            ),
            ({"obfuscator": FunctionTransformer(shifted_by(np.ones(6)))}, "holds a function with values of its own"),
            ({"obfuscator": FunctionTransformer(partial(np.add, 1.0))}, "holds a partial with values of its own"),
        ],
    )
    def test_is_refused_with_a_reason(self, table, public, anchor, changes, reason):
        party = self.party(**{"public": public, **changes}).fit(*table)
        with pytest.raises(NoGuaranteeError, match=f"Party 'a': no epsilon can be stated, for .*{reason}"):
            party.guarantee(anchor)

    def test_a_row_that_moves_others_is_why_microaggregation_may_not_come_first(self, rng):
        X, far = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
        far[1:] = X[1:]
        for defence, moved in ((Microaggregation(3), 10), (GaussianNoise(), 40)):
            pair = [defence.apply(rows, np.zeros(40), random_state=0)[0] for rows in (X, far)]
            assert (pair[0] != pair[1]).any(axis=1).sum() >= moved

    def test_is_refused_where_private_rows_are_called_public(self, table, public, anchor):
        X, y = table
        party = self.party(public).fit(X, y)
        with pytest.raises(NoGuaranteeError, match="2 rows of the anchor are also among its private rows"):
            party.guarantee(np.vstack([anchor, X[:2]]))
        with pytest.warns(PrivateRowsWarning):
            party = self.party(np.vstack([public, X[:1]])).fit(X, y)
        with pytest.raises(NoGuaranteeError, match="1 rows of fit_on are also among its private rows"):
            party.guarantee(anchor)

    def test_what_follows_a_mechanism_takes_nothing_from_it(self, table, public, anchor):
        defences = (GaussianMechanism(2.0), Microaggregation(3), GaussianNoise())
        assert self.party(public, defences).fit(*table).guarantee(anchor).epsilon == 2.0
        twice = (GaussianMechanism(3.0), GaussianMechanism(1.0))
        assert self.party(public, twice).fit(*table).guarantee(anchor).epsilon in (1.0, 3.0)

    def test_binds_the_anchor(self, table, public, anchor):
        party = self.party(public).fit(*table)
        party.guarantee(anchor)
        with pytest.raises(AnchorError, match="another anchor, or a guarantee was given for that"):
            party.share(anchor[::-1])
        assert party.share(anchor, ANCHOR_CLASSES).representation.shape == (60, 3)

    @pytest.mark.parametrize("hide", [lambda X: X.astype(np.float32), lambda X: X + 1e-9, lambda X: X * (1 - 1e-9)])
    def test_rounded_private_rows_are_found(self, table, public, anchor, hide):
        X, y = table
        with pytest.warns(PrivateRowsWarning, match="60 of 140 rows in fit_on"):
            party = self.party(np.vstack([public, hide(X)])).fit(X, y)
        with pytest.raises(NoGuaranteeError, match="60 rows of fit_on are also among its private rows"):
            party.guarantee(anchor)
        party = self.party(public).fit(X, y)
        with pytest.raises(NoGuaranteeError, match="7 rows of the anchor are also among its private rows"):
            party.guarantee(np.vstack([anchor, hide(X[:7])]))

    def test_later_changes_of_a_defence_change_no_promise(self, table, public, anchor):
        mechanism = GaussianMechanism(4.0)
        party = self.party(public, [mechanism]).fit(*table)
        mechanism.set_params(epsilon=0.1)
        assert party.guarantee(anchor).epsilon == 4.0


class TestSharedBefore:
    """A second fit of the same rows spends noise once more, or gives a difference away."""

    def party(self, public, defence, **options):
        return dc.Party("clinic", PCA(3), fit_on=public, defences=[defence], **options)

    @pytest.mark.parametrize("defence", [Microaggregation(3), GaussianNoise(), GaussianMechanism(4.0)], ids=str)
    def test_is_refused(self, table, public, anchor, defence):
        X, y = table
        party = self.party(public, defence).fit(X[:-1], y[:-1])
        party.fit(X[:-1], y[:-1]).share(anchor, ANCHOR_CLASSES)
        party.share(anchor, ANCHOR_CLASSES)
        for again in (copied(party).fit(X, y), copy.deepcopy(party).fit(X, y), party.fit(X, y)):
            with pytest.raises(SharedBeforeError, match="Party 'clinic': 59 of its rows were shared after an earlier"):
                again.share(anchor, ANCHOR_CLASSES)

    def test_is_no_matter_for_other_rows_or_without_a_share(self, rng, table, public, anchor):
        X, y = table
        party = self.party(public, Microaggregation(3)).fit(X[:30], y[:30]).fit(X[:30], y[:30])
        party.share(anchor)
        party.fit(X[30:], y[30:]).share(anchor)
        undefended = dc.Party("a", PCA(3)).fit(X, y)
        undefended.share(anchor)
        undefended.fit(X, y).share(anchor)

    def test_adds_up_where_it_is_allowed(self, table, public, anchor):
        party = self.party(public, GaussianMechanism(1.0), share_again=True)
        found = []
        for _ in range(3):
            party.fit(*table)
            found.append(party.guarantee(anchor))
            party.share(anchor, ANCHOR_CLASSES)
        assert [each.n_shares for each in found] == [1, 2, 3]
        assert found[0].epsilon == 1.0 < found[1].epsilon < found[2].epsilon < 3.0
        assert found[2].mu == pytest.approx(np.sqrt(3) * found[0].mu)
        # What was promised for the third share stays promised once it has left.
        assert party.guarantee(anchor) == found[2]

    def test_what_was_shared_without_a_promise_leaves_none(self, table, public, anchor):
        party = self.party(public, GaussianNoise(), share_again=True).fit(*table)
        party.share(anchor)
        party.defences = [GaussianMechanism(4.0)]
        with pytest.raises(NoGuaranteeError, match="shared before, and nothing was promised then"):
            party.fit(*table).guarantee(anchor)


class TestRowDigests:
    @given(st.integers(0, 10**6), st.integers(1, 300), st.integers(-6, 6))
    def test_a_row_within_the_tolerance_is_found(self, seed, n_columns, exponent):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, n_columns)) * 10.0**exponent + 10.0 ** rng.integers(-3, 3)
        moved = X + 1e-7 * rng.choice([-1, 1], size=X.shape) * np.abs(X).max(axis=0)
        assert RowDigests(X).count_in(moved) == 20
        if n_columns > 1:
            assert RowDigests(X).count_in(rng.normal(size=(500, n_columns)) * 10.0**exponent) == 0

    def test_a_huge_entry_does_not_make_other_rows_equal(self, rng):
        """What rounding is, public rows say."""
        X, public = rng.normal(size=(20, 2)), rng.normal(size=(30, 2))
        X[3, 1] = 1e160
        assert RowDigests(X[:, 1:], like=public[:, 1:]).count_in(public[:, 1:]) == 0
        assert RowDigests(X, like=public).are_in(np.vstack([public, X[2:5]])).tolist() == [False] * 30 + [True] * 3

    def test_rows_that_differ_in_one_entry_are_others(self, rng):
        X = rng.integers(0, 2, size=(200, 12)).astype(float)
        known = {tuple(row) for row in X[:100]}
        assert RowDigests(X[:100]).count_in(X[100:]) == sum(tuple(row) in known for row in X[100:])
        missing = np.where(X[:100] == 1, np.nan, X[:100])
        assert RowDigests(missing).count_in(missing) == 100
        assert RowDigests(missing[(missing != 0).any(axis=1)]).count_in(np.zeros((5, 12))) == 0

    def test_finds_equal_rows_whatever_holds_them(self, rng):
        X = rng.normal(size=(30, 3))
        frame = pd.DataFrame(X, columns=list("abc"))
        assert RowDigests(X).count_in(np.vstack([X[4:6], rng.normal(size=(5, 3))])) == 2
        assert RowDigests(frame).count_in(frame[["c", "a", "b"]][:7]) == 7
        assert RowDigests(X.tolist()).count_in(X) == 30
        assert RowDigests(X).count_in(X[:, :2]) == 0
        assert RowDigests(frame).count_in(frame.astype(np.float32)) == 30
        assert RowDigests(X).count_in(X + 1e-4) == 0
        assert RowDigests(frame).count_in(frame.rename(columns={"a": "z"})) == 0

    def test_numbers_count_by_value_and_texts_as_they_are(self):
        own = RowDigests(pd.DataFrame({"n": [1, -0.0, 3], "t": ["x", "y", None]}))
        others = pd.DataFrame({"t": ["x", "x", "y", None], "n": [1.0, 2.0, 0.0, 3.0]})
        assert own.count_in(others) == 3

    def test_keeps_none_of_them(self, rng):
        X = rng.normal(size=(30, 3))
        kept = pickle.dumps(vars(RowDigests(X)))
        assert not any(row.tobytes() in kept or row[:1].tobytes() in kept for row in X)
        assert repr(RowDigests(X)) == "RowDigests(30 distinct)"


class TestOneProcess:
    def rows(self):
        X, y = dc.datasets.load("digits")
        split = dc.datasets.split_parties(X, y, n_parties=3, n_per_party=80, random_state=0)
        return X, *split.pooled(), split.rest

    @pytest.mark.slow
    def test_the_estimator_plays_defended_parties(self):
        X, rows, y, owner, rest = self.rows()
        anchor, public = X[rest[:200]], X[rest[300:600]]
        for fit_on, fitted_on in (("anchor", anchor), (public, public)):
            model = dc.DataCollaborationClassifier(
                PCA(8), dc.LTI(8), fit_on=fit_on, defences=[Microaggregation(3)], random_state=0
            )
            model = clone(model).fit(rows, y, groups=owner, anchor=anchor)
            party = model.parties_["party-0"]
            assert_array_equal(party.fit_on, fitted_on)
            published = party.share(anchor).representation
            assert np.unique(published, axis=0, return_counts=True)[1].min() >= 3
            assert model.predict(rows[:5], groups=owner[:5]).shape == (5,)
