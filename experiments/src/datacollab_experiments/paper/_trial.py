"""One random draw of parties, anchors and test rows, and how every method does on it."""

import copy
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from datacollab._validation import FloatArray, PartyName
from datacollab.analyst import BaseIntegrator
from datacollab.anchor import SampleAnchor, SMOTEAnchor
from datacollab.datasets import Dataset, PartySplit, split_parties
from datacollab.errors import PrivateRowsWarning, SuppressedRowsWarning
from datacollab.estimators import Central, Local
from datacollab.party import Microaggregation, Party, obfuscator
from datacollab.share import Share

from ._condition import Condition
from ._methods import BASELINES, method

# The defence's default size of groups, and the intervals of numeric targets.
_K = 5
_BINS = 10


def make_defended_party(
    name: PartyName, f_k: Any, own: Any, others: FloatArray, task: str, random_state: np.random.RandomState
) -> Party:
    """A fitted party that shares means of five rows or more, and any obfuscator.

    Parameters
    ----------
    others : ndarray of shape (n_others, n_features)
        Rows to fit on instead, a random half of them.
    task : {"classification", "regression"}
        Numeric targets stand in ten intervals for classes.
    random_state : RandomState
        Source of the choice of half, of the rotation and of the defence.
    """
    defence = Microaggregation(_K, n_bins=_BINS if task == "regression" else None)
    party = Party(name, f_k, fit_on=others, defences=(defence,), random_state=random_state)
    with warnings.catch_warnings():
        # Small parties have classes of a few rows, and some data sets have a row twice.  Both go into the scores.
        warnings.simplefilter("ignore", SuppressedRowsWarning)
        warnings.simplefilter("ignore", PrivateRowsWarning)
        return party.fit(own.X, own.y)


def list_published(
    party: Party, X: FloatArray, rows: NDArray[np.int64], anchor: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return those of a party's rows that it shares, and their representations.

    `X` are all its rows, and `rows` numbers of some of them, of which those are left out that a defence suppresses.
    """
    if not party.defences:
        return rows, party.obfuscate(X)[rows]
    # Unshuffled, published rows can be matched with the originals.
    in_order = copy.copy(party)
    in_order.shuffle = False
    share, order = in_order.share_with_order(anchor)
    published = rows[np.isin(rows, order)]
    return published, share.representation[np.searchsorted(order, published)]


# Data sets whose columns are pixels, all on one scale.
_IMAGES = {"digits", "mnist", "fashion-mnist"}

# Factors of kernel PCA's median heuristic, which takes the median distance for the standard deviation.
_BANDWIDTH_FACTORS = {"median": 1.0, "median-squared": 0.5**0.5}

# Metric of the parties with k mod 3 = 0, 1, 2 (section "Datasets and Common Experimental Setup").
_UMAP_METRICS = ("correlation", "cosine", "euclidean")


@dataclass(frozen=True)
class Score:
    """How one method did in one trial.

    Attributes
    ----------
    value : float
        Accuracy, or root mean squared error in the target's units; the mean over parties.
    steps : mapping of str to float
        Wall times in seconds: "construct" the integration functions of all parties, "represent" the test rows of all
        parties, "train" the model and "predict"; "train" and "predict" alone for a baseline.  Obfuscation is shared
        by all methods and not among them.
    """

    method: str
    seed: int
    value: float
    steps: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """Wall time of all steps."""
        return sum(self.steps.values())


@dataclass(frozen=True, eq=False)
class FittedParties:
    """Parties that have fitted f_k, before there is an anchor, and their representations of the test rows."""

    split: PartySplit
    parties: dict[PartyName, Party]
    test_representations: dict[PartyName, FloatArray]


@dataclass(frozen=True, eq=False)
class Trial:
    """Parties that have obfuscated, their shares, and rows to test on.

    The anchor has shape (n_anchors, n_features), and each of `test_representations` (n_test, n_components): the test
    rows through a party's f_k.  `X_public` are the real rows that the anchor consists of, or was made from; `unused`
    are numbers of the data set's rows that are nowhere in the trial.
    """

    seed: int
    split: PartySplit
    parties: dict[PartyName, Party]
    anchor: FloatArray
    anchor_target: NDArray[Any]
    shares: list[Share]
    X_test: FloatArray
    y_test: NDArray[Any]
    test_representations: dict[PartyName, FloatArray]
    X_public: FloatArray
    y_public: NDArray[Any]
    unused: NDArray[np.int64]


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
    others = ""
    if condition.n_fit:
        others = f", {condition.n_fit} rows to fit on"
    raise ValueError(
        f"{condition.n_parties} parties of {condition.n_per_party} rows{others}, {condition.n_test} test rows and "
        f"{anchors} need {condition.n_rows} rows, but {data.name} has {n_rows}. Lower some of these numbers."
    )


def fit_parties(condition: Condition, data: Dataset, seed: int) -> FittedParties:
    """Draw the parties and the test rows, and let every party fit f_k, whatever the condition says of anchors."""
    split = _split(condition, data, seed)
    others = data.X[split.rest[len(split.rest) - condition.n_fit :]]
    parties: dict[PartyName, Party] = {}
    # A generator for each party, so that none depends on how many there are.
    for k, (name, own) in enumerate(split.items(), start=1):
        f_k = make_obfuscator(condition, data, k, np.random.RandomState([seed, k]))
        if condition.defence == "none":
            parties[name] = Party(name, f_k).fit(own.X, own.y)
        else:
            random_state = np.random.RandomState([seed, k, 2])
            parties[name] = make_defended_party(name, f_k, own, others, data.task, random_state)
    # Every party maps the same test rows, before anchors are drawn.
    X_test = data.X[split.rest[: condition.n_test]]
    return FittedParties(split, parties, {name: party.obfuscate(X_test) for name, party in parties.items()})


def draw_trial(condition: Condition, data: Dataset, seed: int, fitted: FittedParties | None = None) -> Trial:
    """Draw parties, anchor and test rows at random, and let every party obfuscate once.

    Parameters
    ----------
    fitted : FittedParties, optional
        The result of `fit_parties` for the same condition, anchors and hyperparameters apart, and the same seed.

    Raises
    ------
    ValueError
        When the condition takes more rows than the data have, or a class has too few for a balanced anchor.
    """
    rows = draw_rows(condition, data, seed)
    fitted = fitted or fit_parties(condition, data, seed)
    anchor, anchor_target = _make_anchor(condition, rows.X_public, rows.y_public, data.task, seed)

    # Each share shuffles rows, so every trial has generators of its own, whoever else uses the parties.
    parties = {name: copy.copy(party) for name, party in fitted.parties.items()}
    for k, party in enumerate(parties.values(), start=1):
        party.random_state = np.random.RandomState([seed, k, 1])
    return replace(
        rows,
        parties=parties,
        anchor=anchor,
        anchor_target=anchor_target,
        shares=[party.share(anchor, anchor_target) for party in parties.values()],
        test_representations=fitted.test_representations,
    )


def draw_rows(condition: Condition, data: Dataset, seed: int) -> Trial:
    """A trial before anybody obfuscates, without anchor, parties and shares: all that the baselines need."""
    check_size(condition, data)
    X = data.X
    y = data.y
    split = _split(condition, data, seed)
    # The last rows are those that defended parties fit on.
    test = split.rest[: condition.n_test]
    rest = split.rest[condition.n_test : len(split.rest) - condition.n_fit]
    public = _draw_public(condition, rest, y[rest], data.task, seed)
    return Trial(
        seed=seed,
        split=split,
        parties={},
        anchor=np.empty((0, X.shape[1])),
        anchor_target=np.empty(0),
        shares=[],
        X_test=X[test],
        y_test=y[test],
        test_representations={},
        X_public=X[public],
        y_public=y[public],
        unused=np.setdiff1d(rest, public),
    )


def score_method(
    trial: Trial, name: str, condition: Condition, task: str, own: Mapping[str, Any] | None = None
) -> Score:
    """Integrate, train and predict with one method on a trial.

    Parameters
    ----------
    name : str
        One of `BASELINES`, or a name that `method` knows.
    own : mapping, optional
        A method of one's own, as `method` takes it.
    """
    forest = RandomForestClassifier if task == "classification" else RandomForestRegressor
    measure = accuracy_score if task == "classification" else root_mean_squared_error
    model = forest(random_state=trial.seed)
    clock = _Clock()
    # A method of one's own may have the name of a baseline.
    if name in BASELINES and not own:
        predictions = _baseline_predictions(trial, name, model, clock)
    else:
        predictions = _method_predictions(trial, method(name, condition, own), model, clock)
    value = float(np.mean([measure(trial.y_test, predicted) for predicted in predictions.values()]))
    return Score(name, trial.seed, value, clock.steps)


def _split(condition: Condition, data: Dataset, seed: int) -> PartySplit:
    scheme: Any = condition.split
    return split_parties(
        data.X,
        data.y,
        condition.n_parties,
        condition.n_per_party,
        scheme=scheme,
        concentration=condition.concentration,
        random_state=seed,
    )


class _Clock:
    """Wall time by step."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.steps[step] = time.perf_counter() - start


def _method_predictions(
    trial: Trial, integrator: BaseIntegrator, model: Any, clock: _Clock
) -> dict[PartyName, NDArray[Any]]:
    """Integrate and train as `Analyst` does, in steps that can be timed."""
    with clock("construct"):
        integrator.fit(
            {share.party: share.anchor_representation for share in trial.shares}, trial.shares[0].anchor_target
        )
    own = integrator.transform({share.party: share.representation for share in trial.shares})
    # scikit-learn's trees see no difference below 1e-7, and a narrow kernel gives entries smaller than that.
    pooled = make_pipeline(StandardScaler(), model)
    with clock("train"):
        pooled.fit(np.vstack(list(own.values())), np.concatenate([share.target for share in trial.shares]))
    with clock("represent"):
        # The test rows of all parties at once, as each would map them alone.
        represented = integrator.transform(trial.test_representations)
    with clock("predict"):
        return {party: pooled.predict(rows) for party, rows in represented.items()}


def _baseline_predictions(trial: Trial, name: str, model: Any, clock: _Clock) -> dict[PartyName, NDArray[Any]]:
    X, y, groups = trial.split.pooled()
    if name == "Central":
        with clock("train"):
            central = Central(model).fit(X, y)
        with clock("predict"):
            return {"all": central.predict(trial.X_test)}
    if name == "Local+Public":
        n_public = len(trial.y_public)
        parties = list(trial.split)
        # Every party adds the same public rows to its own.
        X = np.vstack([X, *[trial.X_public] * len(parties)])
        y = np.concatenate([y, *[trial.y_public] * len(parties)])
        groups = np.concatenate([groups, np.repeat(parties, n_public)])
    with clock("train"):
        local = Local(model).fit(X, y, groups=groups)
    with clock("predict"):
        return {party: estimator.predict(trial.X_test) for party, estimator in local.estimators_.items()}


def _draw_public(
    condition: Condition, rows: NDArray[np.int64], y: NDArray[Any], task: str, seed: int
) -> NDArray[np.int64]:
    """Numbers of the rows that the anchor consists of, or is made from."""
    # Balanced classes, as the paper's anchors have.
    sampler = SampleAnchor(condition.n_public, balanced=task == "classification")
    drawn, _ = sampler.sample(rows[:, np.newaxis], y, random_state=seed)
    return drawn[:, 0].astype(np.int64)


def _make_anchor(
    condition: Condition, X_public: FloatArray, y_public: NDArray[Any], task: str, seed: int
) -> tuple[FloatArray, NDArray[Any]]:
    if condition.n_sources is None:
        return X_public, y_public
    smote = SMOTEAnchor(condition.n_anchors, n_neighbors=condition.n_neighbors, include_sources=True, task=task)
    anchor, anchor_target = smote.sample(X_public, y_public, random_state=seed)
    return anchor, np.asarray(anchor_target)


def make_obfuscator(condition: Condition, data: Dataset, k: int, random_state: np.random.RandomState) -> Any:
    """f_k of the k-th party, not yet fitted."""
    # Images keep their pixels' own scale under PCA, tables have columns in different units.
    standardize = True if condition.obfuscator != "pca" else data.name not in _IMAGES
    options: dict[str, Any] = {}
    if condition.obfuscator == "kernel-pca":
        options = {"bandwidth_factor": _BANDWIDTH_FACTORS[condition.kernel_width]}
    if condition.obfuscator == "umap":
        options = {"out_of_sample": condition.out_of_sample, "metric": _UMAP_METRICS[k % 3]}
    return obfuscator(
        condition.obfuscator, condition.n_components, random_state=random_state, standardize=standardize, **options
    )
