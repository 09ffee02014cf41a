"""What the analyst makes of sums: the class means of all rows, and a discriminant as if from rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, ortho_group
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import datacollab as dc
from datacollab import GEP, KTI, LTI, MPP, ODC, PartyModel
from datacollab.analyst import _class_sums as mixtures
from datacollab.analyst import fit_class_sums
from datacollab.analyst._class_sums import (
    ClassMeans,
    ClassMixture,
    class_mixture,
    linear_discriminant,
    pooled_means,
    shrunk_means,
)
from datacollab.errors import AgreementError, NumericalError
from datacollab.model import LinearMap
from datacollab.share import ClassSums

TINY = 1e-9


class World:
    """Two parties' rows of three classes, behind linear maps of their own, with noise as wanted."""

    def __init__(self, seed=0, n_rows=60, noise=TINY, clip=1e6, labelled=False, shift=0.0):
        rng = np.random.default_rng(seed)
        self.centers = 3 * rng.normal(size=(3, 4))
        self.anchor_target = np.arange(90) % 3
        self.anchor = self.centers[self.anchor_target] + rng.normal(size=(90, 4))
        self.target = {party: rng.integers(0, 3, size=n_rows) for party in "ab"}
        self.rows = {party: self.centers[y] + rng.normal(size=(n_rows, 4)) for party, y in self.target.items()}
        self.maps = {party: rng.normal(size=(4, 4)) for party in "ab"}
        self.shifts = {party: shift * rng.normal(size=4) for party in "ab"}
        self.noise, self.clip, self.labelled, self.rng = noise, clip, labelled, rng

    def f(self, party, X):
        return X @ self.maps[party] + self.shifts[party]

    def sums(self, party, **changes):
        A, X = self.f(party, self.anchor), self.f(party, self.rows[party])
        rows = X - A.mean(axis=0)
        rows *= np.minimum(1, self.clip / np.linalg.norm(rows, axis=1))[:, None]
        codes = np.eye(3)[self.target[party]]
        fields = {
            "party": party,
            "classes": np.array(["no", "perhaps", "yes"]),
            "sums": codes.T @ rows + self.noise * self.rng.normal(size=(3, 4)),
            "counts": codes.sum(axis=0) + self.noise / self.clip * self.rng.normal(size=3),
            "anchor_representation": A,
            "anchor_target": np.array(["no", "perhaps", "yes"])[self.anchor_target] if self.labelled else None,
            "clip": self.clip,
            "noise": self.noise,
        }
        return ClassSums(**fields | changes)

    def messages(self):
        return [self.sums(party) for party in "ab"]

    def pooled(self, integrator):
        """All rows as the integration functions map them, and their classes."""
        g = integrator.integration_functions_
        mapped = np.vstack([g[party](self.f(party, X)) for party, X in self.rows.items()])
        return mapped, np.concatenate(list(self.target.values()))


@pytest.mark.parametrize("shift", [0.0, 5.0])
@pytest.mark.parametrize(
    "integrator", [LTI(4), LTI(4, fit_intercept=True), LTI(3), ODC(), GEP(4), MPP(4)], ids=lambda each: repr(each)
)
def test_pooled_means_are_those_of_the_mapped_rows(integrator, shift):
    """The naive way: map every row, and average by class."""
    world = World(shift=shift)
    sums = {each.party: each for each in world.messages()}
    integrator.fit({party: each.anchor_representation for party, each in sums.items()})
    told = pooled_means(sums, integrator.integration_functions_)
    rows, y = world.pooled(integrator)
    assert_allclose(told.means, [rows[y == c].mean(axis=0) for c in range(3)], rtol=1e-6, atol=1e-7)
    assert_allclose(told.counts, np.bincount(y), rtol=1e-6)


def test_noise_in_pooled_sums_has_the_covariance_that_is_said():
    """Over many draws of the parties' noise, with maps that do not bring the anchors' means together."""
    world, rng = World(noise=0.5, clip=2.0, shift=3.0), np.random.default_rng(1)
    maps = {party: LinearMap(party, rng.normal(size=(4, 3)), rng.normal(size=3)) for party in "ab"}
    origins = [maps[party](world.sums(party).anchor_representation).mean(axis=0) for party in "ab"]
    totals, counts = [], []
    for _ in range(2000):
        told = pooled_means({party: world.sums(party) for party in "ab"}, maps)
        totals.append(told.counts[0] * (told.means[0] - np.mean(origins, axis=0)))
        counts.append(told.counts[0])
    # Five standard deviations of a variance among 2000.
    assert_allclose(np.var(counts), 2 * (0.5 / 2.0) ** 2, rtol=0.16)
    whitened = np.linalg.solve(np.linalg.cholesky(told.noise), np.cov(totals, rowvar=False))
    whitened = np.linalg.solve(np.linalg.cholesky(told.noise), whitened.T)
    assert_allclose(whitened, np.eye(3), atol=0.16)


def test_counts_below_their_noise_are_raised_to_it():
    world = World(noise=4.0, clip=2.0)
    sums = {party: world.sums(party, counts=np.array([-50.0, 0.1, 30.0])) for party in "ab"}
    maps = LTI(4).fit({party: each.anchor_representation for party, each in sums.items()}).integration_functions_
    assert_allclose(pooled_means(sums, maps).counts, [np.sqrt(8), np.sqrt(8), 60])


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_discriminant_is_scikit_learns_where_the_moments_are(seed, n_classes, d):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % n_classes
    X = rng.normal(size=(40, d)) @ rng.normal(size=(d, d)) + 2 * rng.normal(size=(n_classes, d))[y]
    theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    ours = linear_discriminant(np.arange(n_classes), ClassMixture(theirs.means_, theirs.covariance_, theirs.priors_))
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-5 * np.abs(theirs.coef_).max())
    new = rng.normal(size=(30, d))
    assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-5)


class TestMixture:
    def told(self, rng, d=3, n_classes=4, noise=1.0):
        root = rng.normal(size=(d, d))
        return ClassMeans(
            rng.uniform(2, 50, size=n_classes), 2 * rng.normal(size=(n_classes, d)), noise * root @ root.T
        )

    def posterior(self, told, found, Z, codes, weight):
        """Written out, with densities of another library."""
        T = np.cov(Z, rowvar=False, bias=True)
        logs = np.array([multivariate_normal(mean, found.covariance).logpdf(Z) for mean in found.means]).T
        logs = logs + np.log(found.priors)
        rows = np.where(
            codes >= 0, np.take_along_axis(logs, np.maximum(codes, 0)[:, None], 1)[:, 0], logsumexp(logs, 1)
        )
        means = sum(
            multivariate_normal(mean, T / n + told.noise / n**2).logpdf(said)
            for mean, said, n in zip(found.means, told.means, told.counts, strict=True)
        )
        ridge = mixtures.RIDGE * weight * len(Z) / 2 * np.trace(np.linalg.solve(found.covariance, T))
        return weight * rows.sum() + (told.counts * np.log(found.priors)).sum() + means - ridge

    @pytest.mark.parametrize(
        ("seed", "labelled", "weight"),
        [(0, "none", 0.2), (1, "none", 3.0), (0, "some", 1.0), (1, "some", 3.0), (0, "all", 1.0), (2, "all", 0.2)],
    )
    def test_no_step_lowers_the_posterior_and_the_last_is_a_maximum(self, monkeypatch, seed, labelled, weight):
        rng = np.random.default_rng(seed)
        told = self.told(rng)
        truth = rng.integers(0, 4, size=80)
        Z = told.means[truth] + rng.normal(size=(80, 3))
        codes = {"none": np.full(80, -1), "some": np.where(np.arange(80) < 20, truth, -1), "all": truth}[labelled]
        monkeypatch.setattr(mixtures, "TOLERANCE", 1e-10)
        reached = []
        for steps in (0, 1, 2, 3, 10, 2000):
            monkeypatch.setattr(mixtures, "MOST_STEPS", steps)
            found = class_mixture(told, Z, codes, anchor_weight=weight)
            reached.append(self.posterior(told, found, Z, codes, weight))
        assert (np.diff(reached) >= -1e-8 * np.abs(reached[0])).all()
        for _ in range(20):
            root = np.linalg.cholesky(found.covariance) + 1e-3 * np.tril(rng.normal(size=(3, 3)))
            priors = found.priors * np.exp(1e-3 * rng.normal(size=4))
            near = ClassMixture(found.means + 1e-3 * rng.normal(size=(4, 3)), root @ root.T, priors / priors.sum())
            assert self.posterior(told, near, Z, codes, weight) <= reached[-1] + 1e-9 * np.abs(reached[-1])

    def test_without_noise_and_anchor_weight_means_are_those_told(self, rng):
        told = self.told(rng, noise=1e-18)
        Z = rng.normal(size=(50, 3))
        found = class_mixture(told, Z, anchor_weight=0)
        assert_allclose(found.means, told.means, atol=1e-9)
        assert_allclose(found.covariance, np.cov(Z, rowvar=False, bias=True))
        assert_allclose(found.priors, told.counts / told.counts.sum())

    def test_with_nothing_but_noise_labelled_anchor_rows_decide(self, rng):
        """Its own discriminant, but for the ridge."""
        y = np.arange(120) % 4
        Z = 2 * rng.normal(size=(4, 3))[y] + rng.normal(size=(120, 3))
        told = ClassMeans(np.full(4, 1e-6), rng.normal(size=(4, 3)), 1e12 * np.eye(3))
        found = class_mixture(told, Z, y)
        theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(Z, y)
        assert_allclose(found.means, theirs.means_, atol=1e-6)
        assert_allclose(found.priors, theirs.priors_, atol=1e-6)
        ridge = mixtures.RIDGE * np.cov(Z, rowvar=False, bias=True)
        assert_allclose(found.covariance, theirs.covariance_ + ridge, rtol=1e-5, atol=1e-6)

    def test_shrinking_is_the_posterior_mean_of_a_normal_prior(self, rng):
        """By conditioning the joint normal distribution of what is and what is told, one class at a time."""
        told, center = self.told(rng), rng.normal(size=3)
        root = rng.normal(size=(3, 3))
        T = root @ root.T
        for mean, said, n in zip(shrunk_means(told, center, T), told.means, told.counts, strict=True):
            gain = T @ np.linalg.inv(T + told.noise / n**2)
            assert_allclose(mean, center + gain @ (said - center), rtol=1e-8)

    def test_unlabelled_rows_help_where_the_noise_is_large(self, rng):
        """Four clusters, noise of their own size: the anchor's rows tell where they are, the sums which is which."""
        centers = 6 * np.vstack([np.eye(3), -np.ones(3)])
        Z = centers[np.arange(400) % 4] + rng.normal(size=(400, 3))
        told = ClassMeans(np.full(4, 30.0), centers + 2 * rng.normal(size=(4, 3)), 2.0**2 * 30.0**2 * np.eye(3))
        with_rows, without = class_mixture(told, Z), class_mixture(told, Z, anchor_weight=0)
        errors = [np.linalg.norm(found.means - centers, axis=1).mean() for found in (with_rows, without)]
        assert errors[0] < 0.3 < 1.0 < errors[1]


class TestFit:
    def test_small_noise_gives_the_discriminant_of_all_rows(self):
        """As if rows had been sent: the same predictions, but for the anchor's part in the covariance."""
        world = World(n_rows=400, labelled=True)
        collaboration = fit_class_sums(world.messages(), anchor_weight=1e-3)
        rows, y = world.pooled(collaboration.integrator_)
        theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(rows, y)
        names = np.array(["no", "perhaps", "yes"])
        agreement = np.mean(collaboration.estimator_.predict(rows) == names[theirs.predict(rows)])
        assert agreement > 0.98
        assert_allclose(collaboration.estimator_.means_, theirs.means_, atol=0.02 * np.abs(theirs.means_).max())

    @pytest.mark.parametrize("labelled", [True, False])
    def test_nothing_hangs_on_names_orders_or_rotations(self, labelled):
        world = World(noise=5.0, clip=4.0, labelled=labelled)
        first, second = world.messages()
        rows = world.f("a", world.rows["a"])
        before = fit_class_sums([first, second]).party_model("a").predict_proba(rows)
        swapped = fit_class_sums([second, first]).party_model("a").predict_proba(rows)
        assert_allclose(swapped, before, atol=1e-6)
        Q = ortho_group.rvs(4, random_state=1)
        turned = {"sums": second.sums @ Q, "anchor_representation": second.anchor_representation @ Q}
        fields = {name: getattr(second, name) for name in second.__dataclass_fields__}
        other = fit_class_sums([first, ClassSums(**fields | turned)]).party_model("a").predict_proba(rows)
        assert_allclose(other, before, atol=1e-6)

    def test_both_parties_models_agree_on_rows_that_both_map(self):
        world = World(noise=5.0, clip=4.0)
        collaboration = fit_class_sums(world.messages())
        said = [collaboration.party_model(party).predict(world.f(party, world.anchor)) for party in "ab"]
        assert_array_equal(*said)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_the_model_crosses_as_plain_numbers(self, tmp_path, n_classes):
        world = World(noise=5.0, clip=4.0)
        messages = world.messages()
        if n_classes == 2:
            cut = [{"classes": [0, 1], "sums": each.sums[:2], "counts": each.counts[:2]} for each in messages]
            fields = [{name: getattr(each, name) for name in each.__dataclass_fields__} for each in messages]
            messages = [ClassSums(**whole | part) for whole, part in zip(fields, cut, strict=True)]
        model = fit_class_sums(messages).party_model("b")
        model.save(tmp_path / "b.dcmodel")
        loaded = PartyModel.load(tmp_path / "b.dcmodel")
        rows = world.f("b", world.rows["b"])
        assert_array_equal(loaded.predict(rows), model.predict(rows))
        assert_allclose(loaded.predict_proba(rows), model.predict_proba(rows), atol=1e-9)

    @pytest.mark.parametrize(
        ("change", "error", "words"),
        [
            (lambda a, b: [], AgreementError, "No class sums"),
            (lambda a, b: [a, a], AgreementError, "Two messages carry the name 'a'"),
            (lambda a, b: a, TypeError, "A list of class sums"),
            (lambda a, b: [a, "b"], TypeError, "got str"),
            (lambda a, b: [a, World().sums("b", classes=["no", "some", "yes"])], AgreementError, "different classes"),
            (
                lambda a, b: [
                    World(labelled=True).sums("a"),
                    World(labelled=True).sums("b", anchor_target=np.full(90, "no")),
                ],
                AgreementError,
                "different anchor targets",
            ),
            (
                lambda a, b: [a, World().sums("b", anchor_representation=b.anchor_representation[1:])],
                AgreementError,
                "numbers of anchor rows differ",
            ),
        ],
    )
    def test_what_does_not_agree_is_refused(self, change, error, words):
        with pytest.raises(error, match=words):
            fit_class_sums(change(*World().messages()))

    def test_kernels_cannot_map_sums(self):
        with pytest.raises(AgreementError, match="only a linear function maps sums"):
            fit_class_sums(World().messages(), KTI(4))
        with pytest.raises(TypeError, match="must be an integration method"):
            fit_class_sums(World().messages(), "LTI")
        for weight in (-1.0, np.inf, "auto"):
            with pytest.raises(ValueError, match="anchor_weight must be a number"):
                fit_class_sums(World().messages(), anchor_weight=weight)

    def test_too_small_an_anchor_is_refused(self):
        world = World()
        world.anchor, world.anchor_target = world.anchor[:4], world.anchor_target[:4]
        with pytest.raises(NumericalError, match="the 4 anchor rows do not spread in all 4 directions"):
            fit_class_sums(world.messages(), LTI(4))


def test_digits_from_parties_to_predictions():
    """The whole way, with few enough epsilon to mean something: far above guessing, and skew costs nothing."""
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(0).permutation(len(X))
    public, own, test = order[:300], order[300:1300], order[1300:]
    own = own[np.argsort(y[own], kind="stable")]  # each party has one class or two
    f, defence = dc.obfuscator("pca", n_components=16), dc.party.NoisyClassSums(4.0, classes=range(10))
    state = np.random.RandomState(0)
    parties = [
        dc.Party(k, f, fit_on=X[public], defences=[defence], random_state=state).fit(X[rows], y[rows])
        for k, rows in enumerate(np.array_split(own, 10))
    ]
    sums = [party.class_sums(X[public], unproven=True) for party in parties]
    collaboration = fit_class_sums(sums)
    scores = [np.mean(party.predict(X[test], collaboration.party_model(party.name)) == y[test]) for party in parties]
    assert min(scores) > 0.8
