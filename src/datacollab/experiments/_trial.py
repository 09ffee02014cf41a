"""One random draw of parties, anchors and test rows, and how every method does on it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._validation import FloatArray, PartyName
from ..analyst import Analyst
from ..anchor import SampleAnchor, SMOTEAnchor
from ..collaboration import Central, Local
from ..datasets import Dataset, PartySplit, split_parties
from ..party import Party, obfuscator
from ..share import Share
from ._condition import Condition
from ._methods import BASELINES, method

__all__ = ["Score", "Trial", "check_size", "draw_trial", "score_method"]

_IMAGES = {"digits", "mnist", "fashion-mnist"}

_UMAP_METRICS = ("correlation", "cosine", "euclidean")
"""Metric of the parties with k mod 3 = 0, 1, 2 (section "Datasets and Common Experimental Setup")."""


@dataclass(frozen=True)
class Score:
    """How one method did in one trial.

    Attributes
    ----------
    method : str
    seed : int
    value : float
        Accuracy, or root mean squared error in the target's units; the mean over parties.
    seconds : float
        Wall time of integration, training and prediction.  Obfuscation is shared by all methods and not in it.
    """

    method: str
    seed: int
    value: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Trial:
    """Parties that have obfuscated, what they shared, and rows to test on.

    Attributes
    ----------
    seed : int
    split : PartySplit
        The parties' raw rows.
    shares : list of Share
    X_test : ndarray of shape (n_test, n_features)
    y_test : ndarray of shape (n_test,)
    test_representations : dict of party to ndarray of shape (n_test, n_components)
        The test rows through each party's f_k.
    X_public : ndarray of shape (n_public, n_features)
        The real rows that the anchor consists of, or was made from.
    y_public : ndarray of shape (n_public,)
    """

    seed: int
    split: PartySplit
    shares: list[Share]
    X_test: FloatArray
    y_test: NDArray[Any]
    test_representations: dict[PartyName, FloatArray]
    X_public: FloatArray
    y_public: NDArray[Any]


def check_size(condition: Condition, data: Dataset) -> None:
    """Refuse a condition that takes more rows than the data have.

    Raises
    ------
    ValueError
        The message adds the rows up.
    """
    n_rows = len(data.X)
    if condition.n_rows <= n_rows:
        return
    sources = condition.n_sources
    anchors = f"{condition.n_anchors} real anchors" if sources is None else f"{sources} anchor sources"
    raise ValueError(
        f"{condition.n_parties} parties of {condition.n_per_party} rows, {condition.n_test} test rows and {anchors} "
        f"need {condition.n_rows} rows, but {data.name} has {n_rows}. Lower some of these numbers."
    )


def draw_trial(condition: Condition, data: Dataset, seed: int) -> Trial:
    """Draw parties, anchor and test rows at random, and let every party obfuscate once.

    Parameters
    ----------
    condition : Condition
    data : Dataset
        Rows and targets to draw from.
    seed : int
        Of everything random in the trial.

    Returns
    -------
    Trial

    Raises
    ------
    ValueError
        When the condition takes more rows than the data have, or a class has too few for a balanced anchor.
    """
    check_size(condition, data)
    X, y = data.X, data.y
    split = split_parties(X, y, condition.n_parties, condition.n_per_party, random_state=seed)
    test, rest = split.rest[: condition.n_test], split.rest[condition.n_test :]
    X_public, y_public = _draw_public(condition, X[rest], y[rest], data.task, seed)
    anchor, anchor_target = _make_anchor(condition, X_public, y_public, data.task, seed)

    parties = []
    for k, (name, own) in enumerate(split.items(), start=1):
        f_k = _obfuscator(condition, data, k, np.random.RandomState([seed, k]))
        parties.append(Party(name, f_k, random_state=np.random.RandomState([seed, k, 1])).fit(own.X, own.y))
    return Trial(
        seed=seed,
        split=split,
        shares=[party.share(anchor, anchor_target) for party in parties],
        X_test=X[test],
        y_test=y[test],
        test_representations={party.name: party.obfuscate(X[test]) for party in parties},
        X_public=X_public,
        y_public=y_public,
    )


def score_method(trial: Trial, name: str, condition: Condition, task: str) -> Score:
    """Integrate, train and predict with one method on a trial.

    Parameters
    ----------
    trial : Trial
    name : str
        One of `BASELINES`, or a name that `method` knows.
    condition : Condition
    task : {"classification", "regression"}

    Returns
    -------
    Score
    """
    forest = RandomForestClassifier if task == "classification" else RandomForestRegressor
    measure = accuracy_score if task == "classification" else root_mean_squared_error
    start = time.perf_counter()
    model = forest(random_state=trial.seed)
    if name in BASELINES:
        predictions = _baseline_predictions(trial, name, model)
    else:
        # scikit-learn's trees see no difference below 1e-7, and a narrow kernel gives entries smaller than that.
        collaboration = Analyst(method(name, condition), make_pipeline(StandardScaler(), model)).fit(trial.shares)
        predictions = {
            party: collaboration.party_model(party).predict(rows) for party, rows in trial.test_representations.items()
        }
    value = float(np.mean([measure(trial.y_test, predicted) for predicted in predictions.values()]))
    return Score(name, trial.seed, value, time.perf_counter() - start)


def _baseline_predictions(trial: Trial, name: str, model: Any) -> dict[PartyName, NDArray[Any]]:
    X, y, groups = trial.split.pooled()
    if name == "Central":
        return {"all": Central(model).fit(X, y).predict(trial.X_test)}
    if name == "Local+Public":
        n_public, parties = len(trial.y_public), list(trial.split)
        X = np.vstack([X, *[trial.X_public] * len(parties)])
        y = np.concatenate([y, *[trial.y_public] * len(parties)])
        groups = np.concatenate([groups, np.repeat(parties, n_public)])
    local = Local(model).fit(X, y, groups=groups)
    return {party: estimator.predict(trial.X_test) for party, estimator in local.estimators_.items()}


def _draw_public(
    condition: Condition, X: FloatArray, y: NDArray[Any], task: str, seed: int
) -> tuple[FloatArray, NDArray[Any]]:
    sampler = SampleAnchor(condition.n_sources or condition.n_anchors, balanced=task == "classification")
    rows, targets = sampler.sample(X, y, random_state=seed)
    return rows, np.asarray(targets)


def _make_anchor(
    condition: Condition, X_public: FloatArray, y_public: NDArray[Any], task: str, seed: int
) -> tuple[FloatArray, NDArray[Any] | None]:
    if condition.n_sources is None:
        return X_public, y_public
    smote = SMOTEAnchor(condition.n_anchors, n_neighbors=condition.n_neighbors, include_sources=True, task=task)
    return smote.sample(X_public, y_public, random_state=seed)


def _obfuscator(condition: Condition, data: Dataset, k: int, random_state: np.random.RandomState) -> Any:
    # Images keep their pixels' own scale under PCA, tables have columns in different units.
    standardize = True if condition.obfuscator != "pca" else data.name not in _IMAGES
    options: dict[str, Any] = {}
    if condition.obfuscator == "umap":
        # umap-learn's own start is not reproducible with two neighbours; the paper has it all the same.
        init = "spectral" if condition.preset == "paper" else "auto"
        options = {"out_of_sample": condition.out_of_sample, "metric": _UMAP_METRICS[k % 3], "init": init}
    return obfuscator(
        condition.obfuscator, condition.n_components, random_state=random_state, standardize=standardize, **options
    )
