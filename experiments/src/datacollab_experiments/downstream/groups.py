"""Groups of parties with one target, beside all parties with one analyst.

Digits, four groups of three parties with 40 rows each; 500 public rows are the anchor, and all others are tested on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import BaseIntegrator, Collaboration
from datacollab.model import PartyModel

from ..groups import Centre, GroupAnalyst
from .measuring import Measured, Wanted

__all__ = ["SECTION", "WANTED", "World", "accuracies", "federated_averaging", "logistic_model", "measured", "world"]

SECTION = "groups"

N_GROUPS, N_EACH, N_ROWS, N_ANCHORS = 4, 3, 40, 500
N_ROUNDS, N_PASSES = 20, 5
SETTINGS: dict[str, tuple[int, BaseIntegrator]] = {
    "PCA 16, KTI 10": (16, dc.KTI(10)),
    "PCA 24, KTI 30": (24, dc.KTI(30, center=True, alpha=0.01)),
    "PCA 24, LTI 24": (24, dc.LTI(24, fit_intercept=True)),
}
"""Columns of the parties' PCA, and the integration method."""


@dataclass(frozen=True, eq=False)
class World:
    """A draw of parties, with the shares that they sent."""

    parties: dict[Any, dc.Party]
    own: dict[str, tuple[NDArray[np.float64], NDArray[np.int64]]]
    shares: dict[Any, dc.Share]
    public: tuple[NDArray[np.float64], NDArray[np.int64]]
    test: tuple[NDArray[np.float64], NDArray[np.int64]]

    def accuracy(self, models: Mapping[Any, PartyModel]) -> float:
        """Mean over parties of the accuracy on the same test rows."""
        X, y = self.test
        return float(np.mean([np.mean(self.parties[k].predict(X, model) == y) for k, model in models.items()]))


def measured(seed: int) -> Iterator[Measured]:
    """Accuracies on the rows left of one draw, and how far targets of groups are from that of all parties at once."""
    for setting, (n_columns, integrator) in SETTINGS.items():
        data = f"digits 4x3x40, {setting}"
        for method, value in accuracies(world(seed, n_columns), integrator).items():
            measure = "sine" if method.startswith("angle") else "accuracy"
            yield Measured(section=SECTION, data=data, method=method, measure=measure, seed=seed, value=value)


def world(seed: int, n_columns: int) -> World:
    """Deal rows to groups of parties, the anchor and the test, and let all parties share."""
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(seed).permutation(len(X))
    n_own = N_GROUPS * N_EACH * N_ROWS
    rows = np.split(order[:n_own], N_GROUPS * N_EACH)
    anchor, test = order[n_own : n_own + N_ANCHORS], order[n_own + N_ANCHORS :]
    own = {f"{k:02}": (X[each], y[each]) for k, each in enumerate(rows)}
    f = dc.obfuscator("pca", n_components=n_columns)
    parties = {k: dc.Party(k, clone(f), random_state=100 * seed + int(k)).fit(*each) for k, each in own.items()}
    shares = {k: party.share(X[anchor]) for k, party in parties.items()}
    return World(parties, own, shares, (X[anchor], y[anchor]), (X[test], y[test]))


def logistic_model() -> Pipeline:
    """Return a logistic model of standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))


def accuracies(world: World, integrator: BaseIntegrator) -> dict[str, float]:
    """Return accuracies by method, and the sine of the angle between the targets of groups and of all parties."""
    names = list(world.shares)
    groups = {f"group {g}": names[N_EACH * g : N_EACH * (g + 1)] for g in range(N_GROUPS)}
    analysts = {name: GroupAnalyst(name, integrator, logistic_model()) for name in groups}
    messages = [analysts[name].message([world.shares[k] for k in members]) for name, members in groups.items()]
    target = Centre(list(groups)).target(messages)
    finished = {name: analyst.finish(target) for name, analyst in analysts.items()}
    vote = Centre().vote([analysts[name].head(each) for name, each in finished.items()], messages)
    sums = Centre().linear_model(
        # Forty rows of ten classes at each of three parties: a class can be rare in a group.
        [analysts[name].moments(each, least=1) for name, each in finished.items()],
    )
    flat = dc.Analyst(integrator, logistic_model()).fit(world.shares.values())
    alone = [
        dc.Analyst(integrator, logistic_model()).fit([world.shares[k] for k in members]) for members in groups.values()
    ]

    def with_models(models: Mapping[Any, PartyModel]) -> dict[Any, PartyModel]:
        return _models([analysts[name].adopt(each, models[name]) for name, each in finished.items()])

    averaged = _averaged(finished, world)
    own = list(world.own.values())
    pooled = [np.concatenate(each) for each in zip(*own, strict=True)]
    with_public = [[np.concatenate(pair) for pair in zip(each, world.public, strict=True)] for each in own]
    return {
        "Local": float(np.mean([logistic_model().fit(*each).score(*world.test) for each in own])),
        "Local+Public": float(np.mean([logistic_model().fit(*each).score(*world.test) for each in with_public])),
        "Central": float(logistic_model().fit(*pooled).score(*world.test)),
        "DC flat": world.accuracy(_models([flat])),
        "DC one group": world.accuracy(_models(alone)),
        "DC groups, own model": world.accuracy(_models(list(finished.values()))),
        "DC groups, vote": world.accuracy(with_models(vote)),
        "DC groups, sums": world.accuracy(with_models(sums)),
        "DC groups, averaging": world.accuracy(averaged),
        "angle to flat": float(np.sin(subspace_angles(flat.integrator_.target_, target.target)).max()),
    }


def _models(collaborations: list[Collaboration]) -> dict[Any, PartyModel]:
    return {k: each.party_model(k) for each in collaborations for k in each.parties}


def _averaged(finished: Mapping[str, Collaboration], world: World) -> dict[Any, PartyModel]:
    """Return models of federated averaging between groups, in the common space."""
    tables = []
    for each in finished.values():
        target = np.concatenate([world.shares[k].target for k in each.representations_])
        tables.append((np.vstack(list(each.representations_.values())), target))
    common = federated_averaging(tables)
    return {k: each for collaboration in finished.values() for k, each in _with(collaboration, common).items()}


def federated_averaging(tables: list[tuple[NDArray[np.float64], NDArray[np.int64]]]) -> Pipeline:
    """Average a logistic model over clients with equally many rows; each passes over its rows five times a round.

    Columns are scaled by their spread over all clients' rows, which averaging in earnest would have to ask for as well.
    """
    scaler = StandardScaler().fit(np.vstack([rows for rows, _ in tables]))
    tables = [(scaler.transform(rows), target) for rows, target in tables]
    classes = np.unique(np.concatenate([target for _, target in tables]))
    model = SGDClassifier(loss="log_loss", alpha=1e-3, learning_rate="constant", eta0=0.05, random_state=0)
    model.partial_fit(*tables[0], classes=classes)
    coefficients, intercepts = np.zeros_like(model.coef_), np.zeros_like(model.intercept_)
    for _ in range(N_ROUNDS):
        updates = []
        for rows, target in tables:
            model.coef_, model.intercept_ = coefficients.copy(), intercepts.copy()
            for _ in range(N_PASSES):
                model.partial_fit(rows, target)
            updates.append((model.coef_, model.intercept_))
        # Clients are equally large.
        coefficients, intercepts = (np.mean(each, axis=0) for each in zip(*updates, strict=True))
    model.coef_, model.intercept_ = coefficients, intercepts
    return make_pipeline(scaler, model)


def _with(collaboration: Collaboration, estimator: object) -> dict[Any, PartyModel]:
    return {
        k: PartyModel(party=k, integration_function=g, estimator=estimator)
        for k, g in collaboration.integrator_.integration_functions_.items()
    }


def _wanted() -> Iterator[Wanted]:
    def bound(setting: str, method: str, measure: str = "accuracy", **bounds: Any) -> Wanted:
        return Wanted(section=SECTION, data=f"digits 4x3x40, {setting}", method=method, measure=measure, **bounds)

    first = "PCA 16, KTI 10"
    yield bound(first, "DC flat", at_least=0.898)
    yield bound(first, "DC groups, vote", at_least=0.884)
    yield bound(first, "DC groups, averaging", at_least=0.887)
    for setting in SETTINGS:
        yield bound(setting, "DC groups, vote", beside="DC flat", at_least=-0.02)
        yield bound(setting, "DC groups, vote", beside="DC one group", at_least=0.025)
        yield bound(setting, "DC groups, vote", beside="Local", at_least=0.1)
        yield bound(setting, "DC groups, sums", beside="DC one group", at_least=0.01)
        yield bound(setting, "angle to flat", "sine", at_most=1e-8 if "LTI" in setting else 1e-5)


WANTED: tuple[Wanted, ...] = tuple(_wanted())
