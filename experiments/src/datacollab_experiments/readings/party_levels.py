"""Whether a head knows its party: common, with free or shrunken intercepts of parties, or at each party's own level.

Tables are dealt to 3, 5 and 10 parties of at most 80 rows, half of which are tested on, each party's by its own model.
Obfuscators are PCA with eight columns at most, integration is LTI with an intercept from 100 public rows.  Rows are
dealt at random ("alike"), by Dirichlet mixes of classes or of fifths of the numbers ("label skew", concentration .5),
or at random with made-up differences: logarithms of odds, or half standard deviations, that are standard normal
("levels").  "real" takes schools, districts and clusters as parties.

Of the heads, "ridge" is the analyst's own.  A cell is a table, a kind of deal and a number of parties; it is clearly
worse where the loss is more than 1 % and more than two standard errors above that of the common head.

    python -m datacollab_experiments.readings.party_levels [--seeds 10] [--n-jobs 2] [--output FILE]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.datasets import split_parties
from datacollab.model import (
    ALPHAS,
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    at_level,
)

from ..harness import markdown, r_table
from ..pays.tables import load_table

__all__ = ["cells", "main", "report"]

Floats = NDArray[np.float64]

N_PUBLIC, MOST_ROWS, FEWEST_ROWS, FEWEST_OF_A_CLASS, N_COLUMNS = 100, 80, 30, 5, 8
N_PARTIES = (3, 5, 10)
DEALT = ("breast-cancer", "digits", "hmda", "fair", "diabetes", "randhie")
REAL = ("Hsb82", "Exam", "Contraception", "guPrenat")
KINDS = ("alike", "label skew", "levels")
SETTINGS = [(name, kind) for name in DEALT for kind in KINDS if (name, kind) != ("digits", "levels")]
SETTINGS += [(name, "real") for name in REAL]
COMMON, FREE, SHRUNKEN, LEVEL = METHODS = ("common", "free", "shrunken", "own level")
_PENALTIES = (np.inf, 64.0, 16.0, 4.0, 1.0)
"""Of intercepts of parties in a ridge regression, as many rows as shrink them by half."""
_OF_ODDS = (np.inf, 10.0, 3.0, 1.0, 0.3)
_FREE = 1e-4
_FLOOR = 1e-6


@lru_cache
def table(name: str) -> tuple[Floats, NDArray[Any], NDArray[Any] | None]:
    """Standardised columns, classes or numbers, and the party of each row if it is known."""
    party = None
    if name in ("breast-cancer", "hmda", "diabetes", "digits"):
        bundled = load_table(name)
        every = np.arange(len(bundled.y))
        X, y = bundled.matrix(every, every), bundled.y
    elif name == "fair":
        rows = sm.datasets.fair.load_pandas().data
        X, y = rows.drop(columns="affairs"), (rows["affairs"] > 0).to_numpy(np.int64)
    elif name == "randhie":
        rows = sm.datasets.randhie.load_pandas().data
        X, y = rows.drop(columns="mdvis"), np.log1p(rows["mdvis"].to_numpy(np.float64))
    else:
        sha256, of_party, target, columns = _REAL[name]
        rows = r_table(f"mlmRev/{name}", sha256)
        party, y = rows[of_party].to_numpy(), rows[target].to_numpy()
        y = y.astype(np.float64) if y.dtype.kind in "fi" else np.unique(y.astype(str), return_inverse=True)[1]
        X = pd.get_dummies(rows[columns], drop_first=True)
        if name == "Contraception":
            X = X.assign(square=X["age"] ** 2)
    X = np.asarray(X, dtype=np.float64)
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y, party


_REAL = {
    "Hsb82": (
        "90a3dc27f09a5e060936f964c1e28366b9700f4e7c9a76baddaf017025696f7e",
        "school",
        "mAch",
        ["minrty", "sx", "ses"],
    ),
    "Exam": (
        "5b9ac03397922ad308f901cbf59c32f9527639d3a214edd8c85e1ff5aa574597",
        "school",
        "normexam",
        ["standLRT", "sex", "intake"],
    ),
    "Contraception": (
        "d7a82e15d2b67dc245eff15d685e3fab4dcbdca726a3b41f0f36c423b2bb8dd0",
        "district",
        "use",
        ["age", "livch", "urban"],
    ),
    "guPrenat": (
        "21b85be1a059c8220b57c9afd9d085dd581794f7c2218b1324671d21eacdc613",
        "cluster",
        "prenat",
        ["childAge", "motherAge", "birthOrd", "momEd", "husEd"],
    ),
}


def dealt(name: str, kind: str, n_parties: int, seed: int) -> tuple[Floats, NDArray[Any], list[Any], NDArray[np.intp]]:
    """Rows and targets, each party's places to train and to test on, and those of public rows."""
    X, y, party = table(name)
    rng = np.random.default_rng([seed, n_parties])
    if party is not None:
        sizes = pd.Series(party).value_counts()
        names = rng.choice(sizes[sizes >= FEWEST_ROWS].index.to_numpy(), n_parties, replace=False)
        own = [rng.permutation(np.flatnonzero(party == each))[:MOST_ROWS] for each in names]
        rest = rng.permutation(np.flatnonzero(~np.isin(party, names)))
    else:
        codes = y if y.dtype.kind != "f" else np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y)
        n_rows = min(MOST_ROWS, (len(y) - N_PUBLIC) // n_parties)
        scheme: Literal["label-skew", "iid"] = "label-skew" if kind == "label skew" else "iid"
        split = split_parties(X, codes, n_parties, n_rows, scheme=scheme, random_state=int(rng.integers(2**31)))
        own, rest = list(split.indices.values()), split.rest
    if kind == "levels":
        model = LogisticRegression(C=0.1, max_iter=5000).fit(X, y) if y.dtype.kind != "f" else None
        y = y.copy()
        for rows, level in zip(own, rng.normal(size=n_parties), strict=True):
            if model is None:
                y[rows] += 0.5 * table(name)[1].std() * level
            else:
                y[rows] = rng.random(len(rows)) < expit(model.decision_function(X[rows]) + level)
    halves = [np.array_split(rng.permutation(rows), 2) for rows in own]
    return X, y, halves, rest[:N_PUBLIC]


def cells(name: str, kind: str, n_parties: int, seed: int) -> Iterator[dict[str, Any]]:
    """Loss and accuracy of every head and method; none if nearly all rows have one class."""
    warnings.simplefilter("ignore")
    X, y, halves, public = dealt(name, kind, n_parties, seed)
    width = min(X.shape[1], N_COLUMNS)
    of_classes = y.dtype.kind != "f"
    counts = np.bincount(y[np.concatenate([train for train, _ in halves])], minlength=2) if of_classes else None
    if counts is not None and np.sort(counts)[-2] < FEWEST_OF_A_CLASS:
        return
    parties, shares = [], []
    for k, (train, _) in enumerate(halves):
        f = dc.obfuscator("pca", width, random_state=seed)
        parties.append(dc.Party(f"p{k}", f, random_state=seed).fit(X[train], y[train]))
        shares.append(parties[-1].share(X[public]))
    heads: dict[str, Any] = {"ridge": LandmarkRidgeRegressor(kernel="linear")}
    if of_classes:
        logistic, forest = LogisticRegression(max_iter=2000), CalibratedForestClassifier(50, random_state=seed)
        heads = {"ridge": LandmarkRidgeClassifier(kernel="linear"), "logistic": logistic, "forest": forest}
    for head, model in heads.items():
        estimator = make_pipeline(StandardScaler(), model) if head == "logistic" else model
        analyst = dc.Analyst(dc.LTI(width, fit_intercept=True), estimator, left_out=True)
        made = analyst.fit(shares)
        models = [made.party_model(party.name) for party in parties]
        tests = [
            model.transform(party.obfuscate(X[test]))
            for party, model, (_, test) in zip(parties, models, halves, strict=True)
        ]
        said = {COMMON: [_said(made.estimator_, Z) for Z in tests]}
        said[LEVEL] = [_said(model.estimator, Z) for model, Z in zip(models, tests, strict=True)]
        known = made.estimator_.classes_ if of_classes else None
        if head != "forest":
            rows = list(made.representations_.values())
            target = np.concatenate([share.target for share in shares])
            said |= _with_intercepts(rows, target, tests, known, seed, logistic=head == "logistic")
        truth = np.concatenate([y[test] for _, test in halves])
        everybody = np.concatenate(said[COMMON])
        elsewhere = {COMMON: everybody, LEVEL: np.concatenate([_moved(everybody, made, each.name) for each in parties])}
        for method, found in said.items():
            figures = _scores(np.concatenate(found), truth, known, y.std())
            if method in elsewhere:
                n_times = len(elsewhere[method]) // len(truth)
                figures["everybody"] = _scores(elsewhere[method], np.tile(truth, n_times), known, y.std())["loss"]
            yield {"table": name, "kind": kind, "K": n_parties, "seed": seed, "head": head, "method": method} | figures


def _listed(task: tuple[str, str, int, int]) -> list[dict[str, Any]]:
    return list(cells(*task))


def _said(estimator: Any, Z: Floats) -> Floats:
    return np.asarray(estimator.predict_proba(Z) if hasattr(estimator, "predict_proba") else estimator.predict(Z))


def _moved(said: Floats, made: dc.Collaboration, party: Any) -> Floats:
    """What a party's model says of everybody's rows."""
    level = made.levels_.get(party)
    return said if level is None else at_level(said, level) if said.ndim == 2 else said + level


def _scores(said: Floats, truth: NDArray[Any], classes: NDArray[Any] | None, unit: float) -> dict[str, float]:
    """Log loss and accuracy, or root mean squared error in standard deviations of the table."""
    if classes is None:
        return {"loss": float(np.sqrt(np.mean((said - truth) ** 2)) / unit), "accuracy": np.nan}
    given = np.where(truth[:, None] == classes, said, 0.0).sum(axis=1)
    right = classes[said.argmax(axis=1)] == truth
    return {"loss": float(-np.log(np.maximum(given, _FLOOR)).mean()), "accuracy": float(right.mean())}


def _with_intercepts(
    rows: list[Floats],
    target: NDArray[Any],
    tests: list[Floats],
    classes: NDArray[Any] | None,
    seed: int,
    *,
    logistic: bool,
) -> dict[str, list[Floats]]:
    """What heads say whose columns include one for each party: free, or with the penalty that predicts best."""
    Z, places = np.vstack(rows), np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    D = np.eye(len(rows))
    if logistic:
        scaler = StandardScaler().fit(Z)

        def columns(Z: Floats, places: Any, penalty: float) -> Floats:
            return np.hstack([scaler.transform(Z), D[places] / np.sqrt(penalty)])

        model = LogisticRegression(max_iter=2000)
        cv = StratifiedKFold(min(5, int(np.bincount(places).min())), shuffle=True, random_state=seed)
        folds = list(cv.split(Z, places))
        losses = {each: _folded(model, columns(Z, places, each), target, folds) for each in _OF_ODDS}
        found = {}
        for method, penalty in ((FREE, _FREE), (SHRUNKEN, min(losses, key=lambda each: losses[each]))):
            fitted = LogisticRegression(max_iter=2000).fit(columns(Z, places, penalty), target)
            found[method] = [
                _said(fitted, columns(rows, np.full(len(rows), k), penalty)) for k, rows in enumerate(tests)
            ]
        return found
    ridge = LandmarkRidgeRegressor if classes is None else LandmarkRidgeClassifier
    found = {}
    for method, penalties in ((FREE, (_FREE,)), (SHRUNKEN, _PENALTIES)):
        best = None
        for penalty in penalties:
            for alpha in ALPHAS:
                part = np.sqrt(alpha / penalty)
                model = ridge(kernel="linear", alphas=(alpha,))
                left_out = model.fit_left_out(np.hstack([Z, part * D[places]]), target)
                loss = _scores(left_out, target, classes, 1.0)["loss"]
                if best is None or loss < best[0]:
                    best = loss, part, model
        assert best is not None
        _, part, model = best
        found[method] = [
            _said(model, np.hstack([rows, np.tile(part * D[k], (len(rows), 1))])) for k, rows in enumerate(tests)
        ]
    return found


def _folded(model: Any, columns: Floats, target: NDArray[Any], folds: list[Any]) -> float:
    """Log loss over folds; infinite for none."""
    total, classes = 0.0, np.unique(target)
    for train, test in folds:
        fitted = model.fit(columns[train], target[train]) if len(np.unique(target[train])) > 1 else None
        if fitted is None:
            return np.inf
        probabilities = np.zeros((len(test), len(classes)))
        probabilities[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(columns[test])
        total += len(test) * _scores(probabilities, target[test], classes, 1.0)["loss"]
    return total


def report(found: pd.DataFrame) -> str:
    """Means over tables, numbers of parties and seeds, and how many cells are clearly worse or better."""
    lines = []
    keys = ["table", "K"]
    for (head, is_number, kind), some in found.assign(number=found["accuracy"].isna()).groupby(
        ["head", "number", "kind"]
    ):
        losses = some.pivot_table(index=[*keys, "seed"], columns="method", values="loss")
        accuracy = some.pivot_table(index=[*keys, "seed"], columns="method", values="accuracy", dropna=False)
        line = [kind, f"{head}, {'RMSE' if is_number else 'log loss'}"]
        for method in METHODS:
            if method not in losses:
                line.append("")
                continue
            part = losses[method] / losses[COMMON] - 1
            mean, error = part.groupby(keys).mean(), part.groupby(keys).sem()
            clear = (mean.abs() > 2 * error) & (mean.abs() > 0.01)
            beside = "" if method == COMMON else f" ({(clear & (mean > 0)).sum()}, {(clear & (mean < 0)).sum()})"
            line.append(f"{losses[method].mean():.3f}{beside}")
        n_cells = losses.groupby(keys).ngroups
        right = "" if is_number else f"{accuracy[COMMON].mean():.3f} → {accuracy[LEVEL].mean():.3f}"
        lines.append([*line, str(n_cells), right, f"{some['everybody'][some['method'] == LEVEL].mean():.3f}"])
    head = ["deal", "head, loss", *METHODS, "cells", "accuracy, common → own level", "own level, everybody's rows"]
    return markdown(head, sorted(lines, key=lambda line: ([*KINDS, "real"].index(line[0]), line[1])))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, help="a CSV file of all figures")
    options = parser.parse_args(arguments)
    tasks = [(*setting, K, seed) for seed in range(options.seeds) for setting in SETTINGS for K in N_PARTIES]
    found = pd.DataFrame()
    with get_context("fork").Pool(options.n_jobs) as pool:
        for number, figures in enumerate(pool.imap(_listed, tasks)):
            found = pd.concat([found, pd.DataFrame(figures)])
            if options.output is not None and (number + 1) % len(SETTINGS) == 0:
                found.to_csv(options.output, index=False)
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
