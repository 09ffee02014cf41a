"""Sums over classes, with differential privacy of features and labels, beside rows with noise and parties alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import Collaboration, fit_class_sums
from datacollab.analyst._class_sums import ClassMeans, class_mixture, linear_discriminant
from datacollab.errors import RepeatableSecretWarning
from datacollab.party import Defence, GaussianMechanism, NoisyClassSums
from datacollab.risk.attacks import one_run_epsilon

from .measuring import Measured, Wanted

__all__ = ["SECTION", "WANTED", "measured"]

SECTION = "class sums"
DELTA = 1e-5
EPSILONS = (2.0, 4.0, 8.0)
N_CLASSES, N_COMPONENTS, N_PUBLIC, N_TEST = 10, 16, 300, 397
N_RELEASES = 10_000
RELEASES = f"{N_RELEASES} releases"

Rows = NDArray[np.intp]


def measured(seed: int) -> Iterator[Measured]:
    """All figures of one seed: a split of digits into public rows, test rows and parties."""
    for data, n_parties, n_rows, n_kinds in (
        ("digits 10x100", 10, 100, N_CLASSES),
        ("digits 10x20", 10, 20, N_CLASSES),
        ("digits 50x20", 50, 20, N_CLASSES),
        ("digits 10x100, two classes each", 10, 100, 2),
    ):
        split = Split(seed, n_parties, n_rows, n_kinds)
        for method, value in accuracies(split):
            yield Measured(section=SECTION, data=data, method=method, measure="accuracy", seed=seed, value=value)
    for epsilon in EPSILONS:
        for method, value in (
            ("one run", shown_by_one_run(epsilon, seed)),
            (RELEASES, shown_by_releases(epsilon, seed)),
        ):
            measure = f"epsilon shown of {epsilon:g}"
            yield Measured(section=SECTION, data="extremal", method=method, measure=measure, seed=seed, value=value)


class Split:
    """Public rows, which serve as anchor; test rows; and the rows of each party."""

    def __init__(self, seed: int, n_parties: int, n_rows: int, n_kinds: int) -> None:
        self.X, self.y = dc.datasets.load("digits")
        order = np.random.default_rng(seed).permutation(len(self.X))
        self.seed = seed
        self.public, self.test, rest = np.split(order, [N_PUBLIC, N_PUBLIC + N_TEST])
        self.own: list[Rows] = []
        for k in range(n_parties):
            kinds = (n_kinds * k + np.arange(n_kinds)) % N_CLASSES
            self.own.append(rest[np.isin(self.y[rest], kinds)][:n_rows])
            rest = np.setdiff1d(rest, self.own[-1], assume_unique=True)

    def score(self, predicted: NDArray[np.int64]) -> float:
        return float(np.mean(predicted == self.y[self.test]))


def accuracies(split: Split) -> Iterator[tuple[str, float]]:
    """By method, the mean over parties."""
    X, y, A = split.X, split.y, split.X[split.public]
    test = X[split.test]
    yield "Local", mean(split.score(alone().fit(X[own], y[own]).predict(test)) for own in split.own)
    yield "Local, with public rows", mean(split.score(local_mixture(split, own)) for own in split.own)
    both = [np.concatenate([own, split.public]) for own in split.own]
    yield "Local+Public, labelled", mean(split.score(alone().fit(X[own], y[own]).predict(test)) for own in both)
    pooled = np.concatenate(split.own)
    yield "Central", split.score(alone().fit(X[pooled], y[pooled]).predict(test))
    for epsilon in EPSILONS:
        parties = fitted(split, GaussianMechanism(epsilon, DELTA))
        shares = [party.share(A) for party in parties]
        analyst = dc.Analyst(dc.LTI(N_COMPONENTS, fit_intercept=True), alone())
        yield f"rows with noise, epsilon {epsilon:g}", predicted(split, parties, analyst.fit(shares))
    for epsilon in EPSILONS:
        parties = fitted(split, NoisyClassSums(epsilon, DELTA, classes=range(N_CLASSES)))
        sums = [party.class_sums(A, unproven=True) for party in parties]
        yield f"class sums, epsilon {epsilon:g}", predicted(split, parties, fit_class_sums(sums))
        without = fit_class_sums(sums, anchor_weight=0)
        yield f"class sums, means alone, epsilon {epsilon:g}", predicted(split, parties, without)
    parties = fitted(split, NoisyClassSums(4.0, DELTA))
    sums = [party.class_sums(A, y[split.public], unproven=True) for party in parties]
    yield "class sums, anchor labelled, epsilon 4", predicted(split, parties, fit_class_sums(sums))


def alone() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


def local_mixture(split: Split, own: Rows) -> NDArray[np.int64]:
    """What the analyst does with sums and unlabelled public rows, done by one party, with its own sums and no noise."""
    f = dc.obfuscator("pca", n_components=N_COMPONENTS).fit(split.X[split.public])
    Z, rows, test = (f.transform(split.X[each]) for each in (split.public, own, split.test))
    kinds, codes = np.unique(split.y[own], return_inverse=True)
    counts = np.bincount(codes).astype(np.float64)
    means = np.eye(len(kinds))[codes].T @ rows / counts[:, None]
    if len(kinds) == 1:
        return np.full(len(test), kinds[0])
    told = ClassMeans(counts, means, np.zeros((N_COMPONENTS, N_COMPONENTS)))
    return np.asarray(linear_discriminant(kinds, class_mixture(told, Z)).predict(test))


def fitted(split: Split, defence: Defence) -> list[dc.Party]:
    f, public = dc.obfuscator("pca", n_components=N_COMPONENTS), split.X[split.public]
    parties = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatableSecretWarning)
        for k, own in enumerate(split.own):
            party = dc.Party(k, f, fit_on=public, defences=[defence], random_state=1000 * split.seed + k)
            parties.append(party.fit(split.X[own], split.y[own]))
    return parties


def predicted(split: Split, parties: list[dc.Party], collaboration: Collaboration) -> float:
    test = split.X[split.test]
    return mean(split.score(party.predict(test, collaboration.party_model(party.name))) for party in parties)


def mean(values: Iterator[float]) -> float:
    return float(np.mean(list(values)))


def shown_by_one_run(epsilon: float, seed: int) -> float:
    """Canaries on the axes, one for each class and column, each a record or its opposite; half of them are guessed."""
    rng, n_columns = np.random.default_rng(seed), 60
    anchor = rng.normal(size=(200, n_columns))
    mechanism = NoisyClassSums(epsilon, DELTA, classes=range(N_CLASSES))
    clip = mechanism.clip(anchor)
    coins = rng.choice([-1.0, 1.0], size=(N_CLASSES, n_columns))
    canaries = (coins[:, :, None] * np.eye(n_columns)).reshape(-1, n_columns)
    labels = np.repeat(np.arange(N_CLASSES), n_columns)
    state = np.random.RandomState(seed)
    told = mechanism.release(anchor.mean(axis=0) + clip * canaries, labels, anchor, None, state).rows
    sure = np.abs(told) >= np.median(np.abs(told))
    right = int((np.sign(told) == coins)[sure].sum())
    return one_run_epsilon(right, int(sure.sum()), coins.size, DELTA)


def shown_by_releases(epsilon: float, seed: int) -> float:
    """Two tables that differ in a record with features opposite, released many times, told apart by the best test.

    The threshold is chosen on one half; on the other, its rates with Clopper-Pearson bounds of 95 % give the largest
    epsilon that they refute.
    """
    rng = np.random.default_rng(seed)
    anchor = rng.normal(size=(50, 2))
    mechanism = NoisyClassSums(epsilon, DELTA, classes=(0, 1))
    center, state = anchor.mean(axis=0), np.random.RandomState(seed)
    far = np.array([[100.0, 0.0]])

    def told(record: NDArray[np.float64]) -> NDArray[np.float64]:
        rows, labels = np.vstack([anchor[:1], center + record]), np.array([0, 1])
        return np.array(
            [mechanism.release(rows, labels, anchor, None, state).rows[1, 0] for _ in range(N_RELEASES // 2)]
        )

    there, opposite = told(far), told(-far)
    half = len(there) // 2
    thresholds = np.quantile(opposite[:half], 1 - np.geomspace(2e-3, 0.3, 30))
    bounds = [_refuted(there[:half] > each, opposite[:half] > each) for each in thresholds]
    chosen = thresholds[int(np.argmax(bounds))]
    return _refuted(there[half:] > chosen, opposite[half:] > chosen)


def _refuted(hits: NDArray[np.bool_], false: NDArray[np.bool_]) -> float:
    n, n_hits, n_false = len(hits), int(hits.sum()), int(false.sum())
    tpr = beta.ppf(0.025, n_hits, n - n_hits + 1) if n_hits else 0.0
    fpr = beta.ppf(0.975, n_false + 1, n - n_false) if n_false < n else 1.0
    return max(0.0, math.log((tpr - DELTA) / fpr)) if tpr > DELTA else 0.0


def _wanted(
    data: str,
    method: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    beside: str | None = None,
    measure: str = "accuracy",
) -> Wanted:
    return Wanted(
        section=SECTION, data=data, method=method, measure=measure, at_least=at_least, at_most=at_most, beside=beside
    )


_SKEWED = "digits 10x100, two classes each"

WANTED: tuple[Wanted, ...] = (
    _wanted("digits 10x100", "class sums, epsilon 2", at_least=0.749),
    _wanted("digits 10x100", "class sums, epsilon 4", at_least=0.839),
    _wanted("digits 10x100", "class sums, epsilon 8", at_least=0.849),
    # Rows with noise, of which labels are not even covered.
    _wanted("digits 10x100", "class sums, epsilon 4", beside="rows with noise, epsilon 4", at_least=0.3),
    _wanted("digits 10x100", "class sums, epsilon 8", beside="rows with noise, epsilon 8", at_least=0.1),
    # It pays where parties have few rows, or lack classes.
    _wanted("digits 10x20", "class sums, epsilon 8", beside="Local", at_least=0.1),
    _wanted("digits 50x20", "class sums, epsilon 4", beside="Local", at_least=0.1),
    *(_wanted(_SKEWED, f"class sums, epsilon {epsilon:g}", beside="Local", at_least=0.5) for epsilon in EPSILONS),
    # What attacks show must be below what is promised, and the attack on the extremal pair well above nothing.
    *(
        _wanted("extremal", method, measure=f"epsilon shown of {epsilon:g}", at_most=epsilon)
        for epsilon in EPSILONS
        for method in ("one run", RELEASES)
    ),
    _wanted("extremal", RELEASES, measure="epsilon shown of 4", at_least=1.0),
)
