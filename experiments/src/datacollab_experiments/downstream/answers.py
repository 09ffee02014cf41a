"""Anchor predictions in place of a model: what is distilled from them, where they are refused, and what they tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

import datacollab as dc
from datacollab.errors import AnchorError
from datacollab.model import AnchorPredictions
from datacollab.own._distil import AnchorRidge, remoteness
from datacollab.risk.attacks import membership

from .measuring import Measured, Wanted
from .tables import penguins

__all__ = ["SECTION", "WANTED", "measured"]

SECTION = "answers"
DIGITS = "digits 6x60"
REAL, SMOTE, SMOTE_OF_FEW, UNIFORM = ANCHORS = ("real anchor", "SMOTE", "SMOTE of 100 rows", "uniform")
"""Public rows; as many rows interpolated between all of these, or between a hundred; and drawn from their box."""
_ACCURACY, _R2, _REMOTE, _REFUSED = "accuracy", "R2 of answers left out", "remoteness", "refused"
_MEMBERS = "membership AUC of the others' rows"

Rows = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """A table dealt to parties, a public part, and rows to test on.

    Attributes
    ----------
    name : str
    parties : list of (ndarray, ndarray)
    public : (ndarray, ndarray)
    test : (ndarray, ndarray)
    n_components : int
    """

    name: str
    parties: list[tuple[Rows, NDArray[Any]]]
    public: tuple[Rows, NDArray[Any]]
    test: tuple[Rows, NDArray[Any]]
    n_components: int


def measured(seed: int) -> Iterator[Measured]:
    """All figures of one seed."""
    for table in tables(seed):
        for data, method, measure, value in _of(table, seed):
            yield Measured(section=SECTION, data=data, method=method, measure=measure, seed=seed, value=float(value))


def tables(seed: int) -> Iterator[Table]:
    """Digits, and three tables by which the checks of an anchor were calibrated besides."""
    X, y = dc.datasets.load("digits")
    yield _dealt(DIGITS, np.asarray(X), np.asarray(y), seed, n_parties=6, n_rows=60, n_public=400, n_components=16)
    bunch = load_breast_cancer()
    yield _dealt("breast 4x40", bunch.data, bunch.target, seed, n_parties=4, n_rows=40, n_public=200, n_components=10)
    X, y = penguins()
    yield _dealt("penguins 4x20", X.to_numpy(), y, seed, n_parties=4, n_rows=20, n_public=120, n_components=4)
    bunch = load_diabetes()
    yield _dealt("diabetes 4x40", bunch.data, bunch.target, seed, n_parties=4, n_rows=40, n_public=150, n_components=8)


def _dealt(
    name: str, X: Rows, y: NDArray[Any], seed: int, *, n_parties: int, n_rows: int, n_public: int, n_components: int
) -> Table:
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    if name != DIGITS:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    own = [slice(n_rows * k, n_rows * (k + 1)) for k in range(n_parties)]
    start = n_parties * n_rows
    public, test = slice(start, start + n_public), slice(start + n_public, None)
    return Table(name, [(X[each], y[each]) for each in own], (X[public], y[public]), (X[test], y[test]), n_components)


def _forest(y: NDArray[Any]) -> Any:
    kind = RandomForestRegressor if y.dtype.kind == "f" else RandomForestClassifier
    return kind(random_state=0, n_jobs=1)


def _score(told: NDArray[Any], y: NDArray[Any]) -> float:
    """Accuracy, or R2 of numbers."""
    if y.dtype.kind == "f":
        return 1.0 - float(((y - told) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    return float(np.mean(told == y))


def _of(table: Table, seed: int) -> Iterator[tuple[str, str, str, float]]:
    X_test, y_test = table.test
    pooled = np.vstack([X for X, _ in table.parties]), np.concatenate([y for _, y in table.parties])
    X_public, y_public = table.public
    if table.name == DIGITS:
        yield table.name, "Central", _ACCURACY, _score(_forest(y_test).fit(*pooled).predict(X_test), y_test)
        local = [_score(_forest(y).fit(X, y).predict(X_test), y_test) for X, y in table.parties]
        yield table.name, "Local", _ACCURACY, float(np.mean(local))
        with_public = [
            _forest(y).fit(np.vstack([X, X_public]), np.concatenate([y, y_public])).predict(X_test)
            for X, y in table.parties
        ]
        yield table.name, "Local+Public", _ACCURACY, float(np.mean([_score(each, y_test) for each in with_public]))
    for kind in ANCHORS:
        if (made := _anchor(kind, table, seed)) is not None:
            yield from _with_anchor(table, kind, made)


def _anchor(kind: str, table: Table, seed: int) -> Rows | None:
    X, y = table.public
    if kind == REAL:
        return X
    if kind != UNIFORM:
        if y.dtype.kind == "f" or (kind == SMOTE_OF_FEW and table.name != DIGITS):
            return None
        source = slice(100 if kind == SMOTE_OF_FEW else None)
        return np.asarray(dc.SMOTEAnchor(n_samples=len(X)).sample(X[source], y[source], random_state=seed)[0])
    low, high = X.min(axis=0), X.max(axis=0)
    return np.random.default_rng(seed + 1000).uniform(low, high, size=X.shape)


def _with_anchor(table: Table, kind: str, anchor: Rows) -> Iterator[tuple[str, str, str, float]]:
    f = dc.obfuscator("pca", n_components=table.n_components)
    parties = [dc.Party(k, f).fit(X, y) for k, (X, y) in enumerate(table.parties)]
    integrator = dc.KTI(n_components=table.n_components, alpha=0.1)
    analyst = dc.Analyst(integrator, _forest(table.test[1]))
    yield from _learned(table, kind, anchor, parties, analyst.fit(party.share(anchor) for party in parties))


def _learned(
    table: Table, who: str, anchor: Rows, parties: list[Any], collaboration: Any
) -> Iterator[tuple[str, str, str, float]]:
    X_test, y_test = table.test
    answers = [collaboration.anchor_predictions(party.name) for party in parties]
    models = [collaboration.party_model(party.name) for party in parties]
    by_model = [_score(party.predict(X_test, model), y_test) for party, model in zip(parties, models, strict=True)]
    yield table.name, f"{who}: model", _ACCURACY, float(np.mean(by_model))
    refused = 0
    for party, (X, _), each in zip(parties, table.parties, answers, strict=True):
        try:
            party.distil(anchor, each, rows=X)
        except AnchorError:
            refused += 1
    yield table.name, f"{who}: ridge on answers", _REFUSED, refused / len(parties)
    ridges = [AnchorRidge().fit(anchor, each.values) for each in answers]
    said = [_said(ridge, each, X_test) for ridge, each in zip(ridges, answers, strict=True)]
    yield table.name, f"{who}: ridge on answers", _ACCURACY, float(np.mean([_score(told, y_test) for told in said]))
    yield table.name, f"{who}: ridge on answers", _R2, float(np.mean([ridge.r2_ for ridge in ridges]))
    near = [remoteness(X, anchor) for X, _ in table.parties]
    yield table.name, f"{who}: ridge on answers", _REMOTE, float(np.mean(near))
    if table.name != DIGITS:
        return
    mean = AnchorPredictions(
        party="all", values=np.mean([each.values for each in answers], axis=0), classes=answers[0].classes
    )
    told = _said(AnchorRidge().fit(anchor, mean.values), mean, X_test)
    yield table.name, f"{who}: ridge on the mean of all answers", _ACCURACY, _score(told, y_test)
    if who == REAL:
        trees = [
            party.distil(anchor, each, DecisionTreeClassifier(max_depth=8, random_state=0))
            for party, each in zip(parties, answers, strict=True)
        ]
        yield (
            table.name,
            f"{who}: tree of depth 8 on answers",
            _ACCURACY,
            float(np.mean([_score(tree.predict(X_test), y_test) for tree in trees])),
        )
    yield from _membership(table, who, parties[0], models[0], ridges[0], answers[0])


def _said(ridge: Any, answers: AnchorPredictions, X: Rows) -> NDArray[Any]:
    told = ridge.predict(X)
    return np.asarray(told if answers.classes is None else answers.classes[told.argmax(axis=1)])


def _membership(
    table: Table, who: str, party: Any, model: Any, ridge: Any, answers: AnchorPredictions
) -> Iterator[tuple[str, str, str, float]]:
    """How well the first party tells the others' rows, with their targets, from strangers', by what it was sent."""
    X, y = (np.concatenate([each[i] for each in table.parties[1:]]) for i in range(2))
    sides: dict[str, Callable[[Any], Any]] = {
        "model": lambda rows: model.predict_proba(party.obfuscate(rows)),
        "ridge on answers": lambda rows: ridge.predict(rows),
    }
    assert answers.classes is not None
    for name, tell in sides.items():
        members, strangers = (
            tell(rows)[np.arange(len(rows)), np.searchsorted(answers.classes, target)]
            for rows, target in ((X, y), table.test)
        )
        yield table.name, f"{who}: {name}", _MEMBERS, membership(members, strangers).auc


def _wanted(
    method: str,
    measure: str,
    *,
    data: str = DIGITS,
    at_least: float | None = None,
    at_most: float | None = None,
    beside: str | None = None,
) -> Wanted:
    return Wanted(
        section=SECTION, data=data, method=method, measure=measure, at_least=at_least, at_most=at_most, beside=beside
    )


WANTED = (
    _wanted("real anchor: model", _ACCURACY, at_least=0.89),
    _wanted("real anchor: ridge on answers", _ACCURACY, at_least=0.93),
    _wanted("real anchor: ridge on answers", _ACCURACY, at_least=0.01, beside="real anchor: model"),
    _wanted("SMOTE: ridge on answers", _ACCURACY, at_least=0.92),
    *(
        _wanted(f"{kind}: ridge on answers", _REFUSED, data=data, at_most=0.0)
        for data in (DIGITS, "breast 4x40", "penguins 4x20")
        for kind in ("real anchor", "SMOTE")
    ),
    _wanted("real anchor: ridge on answers", _REFUSED, data="diabetes 4x40", at_most=0.0),
    *(
        _wanted("uniform: ridge on answers", _REFUSED, data=data, at_least=0.9)
        for data in (DIGITS, "breast 4x40", "diabetes 4x40")
    ),
)
"""For means over seeds."""
