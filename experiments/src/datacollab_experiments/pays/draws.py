"""Rows of each party, public rows, the anchor, and scores of predictions on test rows."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, roc_auc_score, root_mean_squared_error

from datacollab.anchor import SMOTEAnchor
from datacollab.datasets import split_parties

from .settings import Setting
from .tables import Array, Table

# Smallest probability in a log loss.
FLOOR = 1e-6


def score(metric: str, y: NDArray[Any], predicted: Array) -> float:
    """AUC, accuracy or RMSE.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Classes from 0 on, or numbers.
    predicted : ndarray of shape (n_rows, n_classes) or (n_rows,)
        Probabilities of all classes of the table, or numbers.
    """
    if metric == "RMSE":
        return float(root_mean_squared_error(y, predicted))
    if metric == "AUC":
        return float(roc_auc_score(y, predicted[:, 1]))
    return float(accuracy_score(y, predicted.argmax(axis=1)))


def losses(y: NDArray[Any], predicted: Array) -> Array:
    """Log losses or squared errors, row by row."""
    if predicted.ndim == 1:
        return np.asarray((y - predicted) ** 2)
    # A probability of zero for the truth would make all losses infinite.
    return np.asarray(-np.log(np.maximum(predicted[np.arange(len(y)), y], FLOOR)))


def spread(probabilities: Array, classes: NDArray[Any], n_classes: int) -> Array:
    """Probabilities of some classes as columns of all, shape (n_rows, n_classes)."""
    # A class that a party never saw has probability 0 there.
    everything = np.zeros((len(probabilities), n_classes))
    everything[:, np.asarray(classes, dtype=np.intp)] = probabilities
    return everything


# Concentration of the Dirichlet distribution of skewed splits.
CONCENTRATION = 0.5

MOST_ROWS = 6000
# The standard error of an accuracy is below .016.
MOST_TEST = 1000
N_ANCHORS = 300


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows and their targets."""

    X: Array
    y: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Draw:
    """Everybody's rows in one trial.

    Attributes
    ----------
    public : Rows
        Nobody but the evaluation sees their targets where they are not labelled.
    anchor : ndarray of shape (n_anchors, n_columns)
    anchor_target : ndarray of shape (n_anchors,) or None
    test : Rows
        Rows of the whole table: every party wants to predict everybody's rows.
    held : Rows
        Rows that nobody holds, for attacks.
    bounds : ndarray of shape (2, n_columns)
        Declared range of each column of the matrix.
    target_range : tuple of float
        Declared range of numbers to predict.
    """

    setting: Setting
    seed: int
    task: str
    metric: str
    n_classes: int
    parties: dict[str, Rows]
    public: Rows
    anchor: Array
    anchor_target: NDArray[Any] | None
    test: Rows
    held: Rows
    bounds: Array
    target_range: tuple[float, float]
    standardize: bool

    @property
    def labelled(self) -> Rows | None:
        """Public rows with targets, if these are known."""
        if self.setting.labelled:
            return self.public
        return None

    @property
    def n_components(self) -> int:
        """Columns of the intermediate representation: three quarters of the table's."""
        most = self.setting.most_columns
        # PCA of n rows has n - 1 directions; two thirds of n leave out those that are noise.
        n_fit = self.setting.n_public or len(self.anchor)
        if self.setting.f == "own":
            n_fit = self.setting.n_per_party
        return int(max(2, min(most, math.ceil(0.75 * self.anchor.shape[1]), 2 * n_fit // 3)))


def draw(table: Table, setting: Setting, seed: int) -> Draw:
    """Draw one trial.

    Raises
    ------
    ValueError
        When the table has too few rows.
    """
    random = np.random.RandomState([seed, 17])
    # Large tables are cut, so that a draw takes minutes at most.
    pool = random.permutation(len(table.y))[:MOST_ROWS]
    n_private = setting.n_parties * setting.n_per_party
    if len(pool) < n_private + setting.n_public + 100:
        raise ValueError(f"{setting.label}: {len(table.y)} rows are too few for parties, public and 100 test rows.")
    # Regions of a table without its public rows' medians: who owns which row does not hang on what is public.
    matrix = table.matrix(pool, pool[:0])
    split = split_parties(
        matrix,
        table.y[pool],
        setting.n_parties,
        setting.n_per_party,
        scheme=setting.split,
        concentration=CONCENTRATION,
        random_state=random,
    )
    public, test, held = np.split(pool[split.rest], [setting.n_public, setting.n_public + MOST_TEST])

    def rows(index: NDArray[np.intp]) -> Rows:
        return Rows(table.matrix(index, public), table.y[index])

    anchor, anchor_target = make_anchor(table, setting, rows(public), seed)
    return Draw(
        setting=setting,
        seed=seed,
        task=table.task,
        metric=table.metric,
        n_classes=len(np.unique(table.y)) if table.task == "classification" else 0,
        parties={name: rows(pool[index]) for name, index in split.indices.items()},
        public=rows(public),
        anchor=anchor,
        anchor_target=anchor_target,
        test=rows(test),
        held=rows(held[:1500]),
        bounds=table.bounds,
        target_range=table.target_range,
        standardize=table.standardize,
    )


def make_anchor(table: Table, setting: Setting, public: Rows, seed: int) -> tuple[Array, NDArray[Any] | None]:
    """The public rows; with fewer than 300, these and rows between them; with none, rows uniform in declared ranges."""
    # Without public rows the declaration is all that parties have in common.
    if not setting.n_public:
        return table.uniform(N_ANCHORS, np.random.default_rng([seed, 18])), None
    target = public.y if setting.labelled else None
    if setting.n_public >= N_ANCHORS:
        return public.X, target
    # Fewer public rows than 300 are filled up by points between them.
    sampler = SMOTEAnchor(N_ANCHORS, include_sources=True)
    return sampler.sample(public.X, target, random_state=np.random.RandomState([seed, 18]))
