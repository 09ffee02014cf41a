"""One trial: every way to predict, made-up rows among them, scored on the test rows for each party."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

import datacollab as dc
from datacollab.analyst import Collaboration
from datacollab.errors import DataCollabWarning

from . import library
from .draws import Draw, Rows, draw, losses, score
from .settings import Setting
from .tables import Array, load_table

# A column of at most so many values is one of categories or counts: it gets no values in between.
_FEW = 10
# Fewer bins blur a column; more leave each of them less than its noise.
_N_BINS = 8


def copula_rows(X: Array, n_rows: int, generator: np.random.Generator) -> Array:
    """Rows of a Gaussian copula fitted to some rows.

    Each column's ranks become normal scores; the scores' correlations, shrunk towards none, are drawn from; and the
    column's own quantiles turn draws into values.  Ties hide a part of the correlations of categories.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    """
    n_samples = len(X)
    # One row has no ranks: it is all there is to repeat.
    if n_samples == 1:
        return np.repeat(X, n_rows, axis=0)
    scores = special.ndtri(stats.rankdata(X, axis=0) / (n_samples + 1))
    scores -= scores.mean(axis=0)
    scale = scores.std(axis=0)
    scores /= np.where(scale > 0, scale, 1.0)
    # Few rows overstate correlations.
    shrinkage = _shrinkage(scores)
    # (1 - s) ZᵀZ/n + s I without the matrix: it has as many entries as an image has pairs of pixels.
    drawn = np.sqrt(1 - shrinkage) / np.sqrt(n_samples) * generator.standard_normal((n_rows, n_samples)) @ scores
    drawn += np.sqrt(shrinkage) * generator.standard_normal((n_rows, X.shape[1]))
    return _quantiles(X, special.ndtr(drawn))


def _shrinkage(scores: Array) -> float:
    r"""Weight of the identity that Schäfer and Strimmer (2005) derive for correlations.

    :math:`\sum_{i \ne j} \widehat{\mathrm{Var}}(r_{ij}) / \sum_{i \ne j} r_{ij}^2`, by sums over pairs of rows
    instead of pairs of columns.
    """
    n, columns = scores.shape
    squares = (scores**2).sum(axis=0)
    products = scores @ scores.T  # (n, n)
    all_pairs = float((products**2).sum()) - float((squares**2).sum())  # Σ_{i≠j} (Σ_k z_ki z_kj)²
    fourth = float(((scores**2).sum(axis=1) ** 2).sum()) - float((scores**4).sum())  # Σ_{i≠j} Σ_k z_ki² z_kj²
    # Too little to estimate a correlation: columns are drawn independently.
    if n < 3 or columns < 2 or all_pairs <= 0:
        return 1.0
    mean_square = all_pairs / n**2
    variance = n / (n - 1) ** 3 * (fourth - all_pairs / n)
    return float(np.clip(variance / (mean_square * n**2 / (n - 1) ** 2), 0.0, 1.0))


def _quantiles(X: Array, levels: Array) -> Array:
    """Values of each column at some levels, shape of `levels`: between observed ones, but not where these are few."""
    ordered = np.sort(X, axis=0)
    few = (np.diff(ordered, axis=0) > 0).sum(axis=0) < _FEW
    # An observed value at each level, and between two of them where there are many.
    steps = np.minimum((levels * len(X)).astype(np.intp), len(X) - 1)
    values = np.take_along_axis(ordered, steps, axis=0)
    places = (np.arange(1, len(X) + 1)) / (len(X) + 1)
    for column in np.flatnonzero(~few):
        values[:, column] = np.interp(levels[:, column], places, ordered[:, column])
    return values


def noisy_marginal_rows(X: Array, n_rows: int, bounds: Array, noise: float, generator: np.random.Generator) -> Array:
    r"""Rows drawn, column by column, from histograms over declared ranges with Gaussian noise.

    A row that is replaced changes two counts by one in each column, so the histograms' sensitivity is
    :math:`\sqrt{2 d}`; their noise is `noise` times that, which makes all of them together one Gaussian mechanism.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    bounds : ndarray of shape (2, n_columns)
    noise : float
        Standard deviation for sensitivity 1.
    """
    low, high = bounds
    bins = np.clip(((X - low) / (high - low) * _N_BINS).astype(np.intp), 0, _N_BINS - 1)
    counts = (bins[:, :, None] == np.arange(_N_BINS)).sum(axis=0).astype(float)  # (n_columns, n_bins)
    counts += noise * np.sqrt(2 * X.shape[1]) * generator.standard_normal(counts.shape)
    # Noise makes counts negative, which are no frequencies.
    weights = np.maximum(counts, 0.0)
    weights[weights.sum(axis=1) == 0] = 1.0
    edges = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    drawn = (generator.random((n_rows, X.shape[1], 1)) > edges).sum(axis=2).clip(0, _N_BINS - 1)
    made: Array = low + (drawn + generator.random(drawn.shape)) / _N_BINS * (high - low)
    return made


def bins_of(y: NDArray[np.float64], target_range: tuple[float, float], n_bins: int = 4) -> NDArray[np.intp]:
    """Numbers as classes: equal parts of their declared range."""
    low, high = target_range
    return np.clip(((y - low) / (high - low) * n_bins).astype(np.intp), 0, n_bins - 1)


LOCAL = "Local"
LOCAL_PUBLIC = "Local+Public"
AVERAGE = "average of locals"
PUBLIC = "public alone"
TODAY = "today"
CHOSEN = "DC*"
POOL = "pool"
SUMS = "sums"
CENTRAL = "Central+Public"
COPULA = "synthetic rows"
NOISY = "synthetic rows, DP"
COMBINED = "sums and own"
EXACT_SUMS = "sums, no noise"
CLASS_SUMS = "class sums, noise once"
METHODS = (
    *(LOCAL, LOCAL_PUBLIC, PUBLIC, AVERAGE, COPULA, NOISY, TODAY, CHOSEN, POOL),
    *(SUMS, COMBINED, EXACT_SUMS, CLASS_SUMS, CENTRAL),
)

# Parties scored in a trial, the first ones: more of one draw tell little more.
N_SCORED = 2


class ScoredTrial:
    """Scores and seconds, as they are found.

    Attributes
    ----------
    scores : dict of str to float
        "score|method|party", "loss|method|party" and "benefit|end|party".
    """

    def __init__(self, drawn: Draw) -> None:
        self.drawn = drawn
        self.scored = list(drawn.parties)[:N_SCORED]
        self.scores: dict[str, float] = {}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add to a step's seconds of this process."""
        started = time.process_time()
        yield
        self.seconds[step] = self.seconds.get(step, 0.0) + time.process_time() - started

    def add(self, method: str, party: str, predicted: Array) -> None:
        """Score one party's predictions of the test rows."""
        test = self.drawn.test
        self.scores[f"score|{method}|{party}"] = score(self.drawn.metric, test.y, predicted)
        self.scores[f"loss|{method}|{party}"] = float(losses(test.y, predicted).mean())

    def add_common(self, method: str, predicted: Array) -> None:
        """Score predictions that are the same at every party."""
        for party in self.scored:
            self.add(method, party, predicted)


def measure(
    setting: Setting, seed: int, *, data_dir: Path | None = None
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """All scores of one trial but those of sums, and seconds of its steps."""
    # Fixed seeds are wanted here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataCollabWarning)
        trial = ScoredTrial(draw(load_table(setting.dataset, data_dir), setting, seed))
        _without_collaboration(trial)
        _synthetic(trial)
        if setting.defence == "sums":
            _with_public(trial)
        else:
            _collaborating(trial, {TODAY: library.todays_way, CHOSEN: library.choose_way})
    return trial.scores, trial.seconds


def measure_sums(
    setting: Setting, seed: int, *, data_dir: Path | None = None
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Scores of one trial's sums under masks, and of other models from sums."""
    trial = ScoredTrial(draw(load_table(setting.dataset, data_dir), setting, seed))
    ways = {SUMS: library.by_sums, EXACT_SUMS: library.by_exact_sums}
    if trial.drawn.task == "classification":
        # Means of classes exist for classes alone.
        ways[CLASS_SUMS] = library.by_class_sums
    for method, way in ways.items():
        with trial.timed(method):
            trial.add_common(method, way(trial.drawn)(trial.drawn.test.X))
    with trial.timed(COMBINED):
        for name, predict in library.by_sums_and_own(trial.drawn, trial.scored).items():
            trial.add(COMBINED, name, predict(trial.drawn.test.X))
    return trial.scores, trial.seconds


def _without_collaboration(trial: ScoredTrial) -> None:
    drawn = trial.drawn
    X = drawn.test.X
    with trial.timed(LOCAL):
        for name in trial.scored:
            trial.add(LOCAL, name, library.alone(drawn.parties[name], drawn, public=False, thorough=True)(X))
    with trial.timed(AVERAGE):
        # Federated averaging in one shot: probabilities, or numbers, are averaged.
        every = [library.alone(own, drawn, public=False)(X) for own in drawn.parties.values()]
        trial.add_common(AVERAGE, np.mean(every, axis=0))
    _public_alone(trial)
    with trial.timed(CENTRAL):
        # The ceiling: all rows in one place, which is what privacy forbids.
        trial.add_common(CENTRAL, library.central(library.pooled(drawn.parties), drawn)(X))


def _public_alone(trial: ScoredTrial) -> None:
    drawn = trial.drawn
    if drawn.labelled is not None:
        with trial.timed(PUBLIC):
            predict = library.alone(drawn.labelled, drawn, public=False, thorough=True)
            trial.add_common(PUBLIC, predict(drawn.test.X))


def _synthetic(trial: ScoredTrial) -> None:
    drawn = trial.drawn
    for method in (COPULA, NOISY):
        with trial.timed(method):
            made = {name: make_rows(own, drawn, method == NOISY, name) for name, own in drawn.parties.items()}
            predict = library.central(library.pooled(made), drawn)
            trial.add_common(method, predict(drawn.test.X))


def make_rows(own: Rows, drawn: Draw, noisy: bool, name: str) -> Rows:
    """As many made-up rows as a party has, of each of its classes; numbers go along as a column of their own."""
    generator = np.random.default_rng(library.secrets(drawn, f"synthetic {name}").randint(2**31, size=4))
    # A copula takes the number as one column more.
    if drawn.task == "regression" and not noisy:
        both = copula_rows(np.column_stack([own.X, own.y]), len(own), generator)
        return Rows(both[:, :-1], both[:, -1])
    numbers = drawn.task == "regression"
    classes = own.y
    bounds = drawn.bounds
    entries = own.X
    if numbers:
        # Histograms are made for each quarter of the target's range, as for classes.
        classes = bins_of(own.y, drawn.target_range)
        bounds = np.column_stack([drawn.bounds, drawn.target_range])
        entries = np.column_stack([own.X, own.y])
    made = []
    for each in np.unique(classes):
        rows = entries[classes == each]
        if noisy:
            made.append(noisy_marginal_rows(rows, len(rows), bounds, library.noise(), generator))
        else:
            made.append(copula_rows(rows, len(rows), generator))
    table = np.vstack(made)
    if numbers:
        return Rows(table[:, :-1], table[:, -1])
    return Rows(table, np.sort(own.y))


def exchange(drawn: Draw) -> tuple[dict[str, dc.Party], list[dc.Share]]:
    """Return all parties, and their shares."""
    parties = {name: library.make_party(drawn, name) for name in drawn.parties}
    return parties, [party.share(drawn.anchor, drawn.anchor_target) for party in parties.values()]


def _collaborating(trial: ScoredTrial, ways: Mapping[str, Callable[[list[dc.Share], Draw], Collaboration]]) -> None:
    """Score the ways, and the pool with the last of them."""
    drawn = trial.drawn
    X = drawn.test.X
    with trial.timed("shares"):
        parties, shares = exchange(drawn)
    for method, way in ways.items():
        with trial.timed(method):
            collaboration = way(shares, drawn)
            for name in trial.scored:
                predict = library.by_model(parties[name], collaboration.party_model(name), drawn)
                trial.add(method, name, predict(X))
    with trial.timed(POOL):
        for name in trial.scored:
            model = collaboration.party_model(name)
            pool, own, told = library.personalise(parties[name], model, drawn.parties[name], drawn)
            predicted = pool(X)
            without = own(X)
            trial.add(POOL, name, predicted)
            if drawn.setting.n_public:
                # The pool's own side has seen the party's rows and the public ones, and nothing else.
                trial.add(LOCAL_PUBLIC, name, without)
            truth = gain(drawn, predicted, without)
            trial.scores |= {f"benefit|{key}|{name}": value for key, value in {**told, "truth": truth}.items()}


def _with_public(trial: ScoredTrial) -> None:
    """Score a party's models without sums, if it has public rows."""
    drawn = trial.drawn
    with trial.timed(LOCAL_PUBLIC):
        for name in trial.scored:
            own = drawn.parties[name]
            predict = library.alone(own, drawn, public=True, thorough=True, stream=library.PERSONAL)
            trial.add(LOCAL_PUBLIC, name, predict(drawn.test.X))


def gain(drawn: Draw, pooled: Array, alone: Array) -> float:
    """Return the gain that parties are told, but on the test rows: of the area, of the log loss, or of the RMSE."""
    if drawn.task == "regression":
        before = score("RMSE", drawn.test.y, alone)
        return 1 - score("RMSE", drawn.test.y, pooled) / before
    if drawn.n_classes == 2:
        return score("AUC", drawn.test.y, pooled) - score("AUC", drawn.test.y, alone)
    return float((losses(drawn.test.y, alone) - losses(drawn.test.y, pooled)).mean())
