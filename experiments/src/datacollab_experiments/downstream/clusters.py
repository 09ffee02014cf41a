"""Clusters without labels, against k-means on everybody's rows in one place; and rows of kinds that nobody has."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import AnchorScaled, Collaboration, integrate, novelty
from datacollab.errors import RepeatableSecretWarning
from datacollab.estimators import DataCollaborationClusterer
from datacollab.party import Microaggregation

from .report import Figure, read_wanted
from .tables import penguins

SECTION = "clusters"
WITH_CENTRAL = "ARI with Central"
WITH_TRUTH = "ARI with truth"
NOVELTY = "AUC of novelty"


@dataclass(frozen=True)
class _Table:
    name: str
    load: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    n_parties: int
    n_each: int
    n_components: int
    n_clusters: int
    standardize: bool = True

    @property
    def data(self) -> str:
        return f"{self.name} {self.n_parties}x{self.n_each}"


def _penguins() -> tuple[NDArray[Any], NDArray[Any]]:
    X, species = penguins()
    return X.to_numpy(), species


_TABLES = (
    _Table("wine", lambda: load_wine(return_X_y=True), 4, 20, 13, 3),
    _Table("breast", lambda: load_breast_cancer(return_X_y=True), 5, 40, 15, 2),
    _Table("penguins", _penguins, 5, 30, 4, 3),
    _Table("digits", lambda: load_digits(return_X_y=True), 5, 80, 40, 10, standardize=False),
)
_NOVEL = "digits 4x80"
_N_NOVEL = 2
_N_TEST = 300
_N_COMPONENTS = 16


def measure(seed: int) -> Iterator[Figure]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatableSecretWarning)
        yield from _measure(seed)


def _measure(seed: int) -> Iterator[Figure]:
    for table in _TABLES:
        for method, measure, value in _clusters(table, seed):
            yield table.data, method, measure, value
    for method, value in _novelty(seed):
        yield _NOVEL, method, NOVELTY, value


def _clusters(table: _Table, seed: int) -> Iterator[tuple[str, str, float]]:
    X, y = table.load()
    order = np.random.default_rng(seed).permutation(len(X))
    own, public = np.split(order, [table.n_parties * table.n_each])
    rows = X[own]
    target = y[own]
    anchor = X[public]
    owner = np.repeat(np.arange(table.n_parties), table.n_each)
    kmeans = KMeans(table.n_clusters, n_init=10, random_state=seed)
    central_model = make_pipeline(StandardScaler(), kmeans) if table.standardize else kmeans
    central = central_model.fit_predict(rows)

    # As many components as columns or nearly so: an affine map can then undo all of f.
    f = dc.obfuscator("pca", table.n_components, standardize=table.standardize)
    affine = dc.LTI(table.n_components, fit_intercept=True)
    kernel = dc.KTI(table.n_components, center=True)
    prefix = ""
    if table.standardize:
        prefix = "kmeans__"
    alike: dict[str, Any] = {"estimator": kmeans, "random_state": seed}
    variants: dict[str, Any] = {
        "DC LTI": DataCollaborationClusterer(f, affine, **alike),
        "DC LTI scaled": DataCollaborationClusterer(f, AnchorScaled(affine), **alike),
        "DC KTI": DataCollaborationClusterer(f, kernel, **alike),
        "DC KTI scaled": DataCollaborationClusterer(f, AnchorScaled(kernel), **alike),
        "DC groups": DataCollaborationClusterer(
            f, AnchorScaled(affine), fit_on="anchor", defences=[Microaggregation(k=3)], **alike
        ),
    }
    again = clone(central_model).set_params(**{f"{prefix}random_state": seed + 1000}).fit_predict(rows)
    yield "Central", WITH_TRUTH, adjusted_rand_score(target, central)
    # k-means itself is not sure: this is how far it agrees with itself.
    yield "Central begun again", WITH_CENTRAL, adjusted_rand_score(central, again)
    yield from _local(central_model, rows, owner, central, target)
    for name, variant in variants.items():
        # Small clusters are a matter of what is sent, and not measured here.
        variant.set_params(least_rows=1)
        labels = variant.fit_predict(rows, groups=owner, anchor=anchor)
        yield name, WITH_CENTRAL, adjusted_rand_score(central, labels)
        yield name, WITH_TRUTH, adjusted_rand_score(target, labels)


def _local(
    model: KMeans | Pipeline, rows: NDArray[Any], owner: NDArray[Any], central: NDArray[Any], target: NDArray[Any]
) -> Iterator[tuple[str, str, float]]:
    """Within each party, for its clusters have no names at the others."""
    scores = []
    for party in np.unique(owner):
        mine = owner == party
        labels = clone(model).fit_predict(rows[mine])
        scores.append([adjusted_rand_score(of[mine], labels) for of in (central, target)])
    yield "Local", WITH_CENTRAL, float(np.mean(scores, axis=0)[0])
    yield "Local", WITH_TRUTH, float(np.mean(scores, axis=0)[1])


def _novelty(seed: int) -> Iterator[tuple[str, float]]:
    """Each party has two kinds of digits; two kinds nobody has but the anchor, which is not told apart."""
    X, y = load_digits(return_X_y=True)
    generator = np.random.default_rng(seed)
    kinds = generator.permutation(10)
    order = generator.permutation(len(X))
    novel = kinds[:_N_NOVEL]
    held = kinds[_N_NOVEL:].reshape(4, 2)
    own = [order[np.isin(y[order], pair)][:80] for pair in held]
    rest = generator.permutation(np.setdiff1d(order, np.concatenate(own)))
    test = rest[:_N_TEST]
    public = rest[_N_TEST:]
    is_novel = np.isin(y[test], novel)

    def lof(rows: NDArray[Any]) -> LocalOutlierFactor:
        return LocalOutlierFactor(novelty=True).fit(rows)

    yield "Central", roc_auc_score(is_novel, -lof(X[np.concatenate(own)]).score_samples(X[test]))
    yield "Local", float(np.mean([roc_auc_score(is_novel, -lof(X[rows]).score_samples(X[test])) for rows in own]))
    yield "Public", roc_auc_score(is_novel, -lof(X[public]).score_samples(X[test]))

    # The regularisation keeps eight components of few rows from collapsing.
    whole = PCA(_N_COMPONENTS).fit(X[np.concatenate(own)])
    rows = whole.transform(X[np.concatenate(own)])
    mixture = GaussianMixture(8, reg_covar=0.1 * rows.var(axis=0).mean(), max_iter=500, random_state=0).fit(rows)
    yield "Central mixture", roc_auc_score(is_novel, -mixture.score_samples(whole.transform(X[test])))

    f = dc.obfuscator("pca", _N_COMPONENTS)
    ways: dict[str, dict[str, Any]] = {
        "DC": {},
        "DC groups": {"fit_on": X[public], "defences": [Microaggregation(k=3)]},
    }
    for name, options in ways.items():
        parties = [dc.Party(k, f, random_state=seed * 10 + k, **options).fit(X[rows]) for k, rows in enumerate(own)]
        integrated = integrate(party.share(X[public]) for party in parties)
        analyst_only = lof(integrated.combined)
        sent = novelty(integrated)
        yield f"{name} mixture", _mean_auc(is_novel, parties, sent, X[test])
        if not integrated.repeated:
            seen = [sent.party_model(party.name).transform(party.obfuscate(X[test])) for party in parties]
            yield f"{name} LOF", float(np.mean([roc_auc_score(is_novel, -analyst_only.score_samples(Z)) for Z in seen]))


def _mean_auc(is_novel: NDArray[Any], parties: list[dc.Party], found: Collaboration, rows: NDArray[Any]) -> float:
    """Over the parties, each scoring all rows by its own model."""
    scores = [party.predict(rows, found.party_model(party.name)) for party in parties]
    return float(np.mean([roc_auc_score(is_novel, each) for each in scores]))


WANTED = read_wanted(SECTION)
