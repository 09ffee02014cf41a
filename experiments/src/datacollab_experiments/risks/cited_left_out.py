"""What left-out predictions beside h, a linear ridge regression, tell of another party.

f_k is PCA on public rows, aligned by ODC.  On digits, 12 columns, the attacker has 300 rows and the other party 120 of
nine classes and one of the tenth, which is sought; on diabetes, 8 columns, 200 rows and 20, whose mean is sought.
"Told" is the chance that what was recovered is more like what is sought than like another row of the class, or mean of
as many rows, that nobody has: correlations, after the attacker's own mean is subtracted.  Shrinkage is towards the
attacker's own moments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.model import LandmarkRidgeClassifier, LandmarkRidgeRegressor

from ..pays.draws import Rows
from ..solvers.mnist_parties import Array

SOUGHT = 9
"""Class of which the other party has one row."""
SHRINKAGE = 1e-2
"""About the best of several for rounded predictions, in hindsight, which favours the attacker."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What a party has: h, its own mapped rows and targets, what h says of them left out, and how many rows there are.

    `tolerance` is to what probabilities are rounded.
    """

    h: LandmarkRidgeClassifier | LandmarkRidgeRegressor
    rows: Array
    target: NDArray[Any]
    left_out: Array
    n_rows: int
    tolerance: float

    @property
    def targets(self) -> Array:
        """What h is fitted to: one column for each class, or the numbers."""
        if isinstance(self.h, LandmarkRidgeRegressor):
            return self.target[:, None]
        return np.asarray((self.target[:, None] == self.h.classes_).astype(float))

    @property
    def coefficients(self) -> Array:
        return self.h.coefficients_.reshape(self.rows.shape[1], -1)


@dataclass(frozen=True, eq=False)
class Recovered:
    """Of all other rows together: sums of the m columns of targets, of rows times these, (m, d), and the mean row."""

    totals: Array
    sums: Array
    mean: Array


@dataclass(frozen=True, eq=False)
class World:
    """Two parties: what the first sees, exactly and rounded, and the second one's rows.

    Of what is recovered `part` is sought, which ought to be `sought`; without any attack it would be thought to be
    `usual`, and might as well be one of `others`.
    """

    exact: Seen
    rounded: Seen
    other_rows: Array
    other_target: NDArray[Any]
    part: Callable[[Recovered], Array]
    sought: Array
    usual: Array
    others: Array


def classes(seed: int) -> World:
    """Digits; the other party has one row of class 9."""
    X, y = dc.datasets.load("digits")
    order = np.random.RandomState(seed).permutation(len(X))
    own, others, public = np.split(order, [300, 500])
    one, *unknown = others[y[others] == SOUGHT]
    others = np.append(others[y[others] != SOUGHT][:120], one)
    seen, rounded, theirs, unknown_rows = exchanged(X, y, (own, others, unknown, public), 12, seed)
    return World(
        exact=seen,
        rounded=rounded,
        other_rows=theirs.X,
        other_target=theirs.y,
        part=lambda found: found.sums[SOUGHT],
        sought=theirs.X[theirs.y == SOUGHT][0],
        usual=seen.rows[seen.target == SOUGHT].mean(axis=0),
        others=unknown_rows,
    )


def numbers(seed: int) -> World:
    """Diabetes; the mean of the other party's 20 rows is sought."""
    X, y = dc.datasets.load("diabetes")
    X = StandardScaler().fit_transform(X)
    random = np.random.RandomState(seed)
    own, others, unknown, public = np.split(random.permutation(len(X)), [200, 220, 340])
    seen, rounded, theirs, unknown_rows = exchanged(X, y, (own, others, unknown, public), 8, seed)
    return World(
        exact=seen,
        rounded=rounded,
        other_rows=theirs.X,
        other_target=theirs.y,
        part=lambda found: found.mean,
        sought=theirs.X.mean(axis=0),
        usual=seen.rows.mean(axis=0),
        others=np.array([random.permutation(unknown_rows)[: len(others)].mean(axis=0) for _ in range(100)]),
    )


def exchanged(
    X: Array, y: NDArray[Any], parts: Sequence[Any], n_columns: int, seed: int
) -> tuple[Seen, Seen, Rows, Array]:
    """What a party sees exactly and rounded, the other's mapped rows, and rows of nobody mapped as these.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    parts : sequence of array of int
        Rows of the party, of the other one, of nobody, and public ones, of which the first half is the anchor.
    n_columns : int
    seed : int
    """
    own, others, unknown, public = parts
    anchor, learnt_from = np.array_split(public, 2)
    f = dc.obfuscator("pca", n_components=n_columns)
    parties = [
        dc.Party(name, f, fit_on=X[learnt_from], random_state=np.random.RandomState([seed, number]))
        for number, name in enumerate(("curious", "other"))
    ]
    shares = [party.fit(X[rows], y[rows]).share(X[anchor]) for party, rows in zip(parties, (own, others), strict=True)]
    h: Any = (
        LandmarkRidgeRegressor(kernel="linear") if y.dtype.kind == "f" else LandmarkRidgeClassifier(kernel="linear")
    )
    collaboration = dc.Analyst(dc.ODC(reference="consensus"), h, left_out=True, strata=None).fit(shares)
    mine, theirs = (collaboration.representations_[party.name] for party in parties)
    # The same fit once more, for what the library gives only rounded.
    exact = h.fit_left_out(np.vstack([mine, theirs]), np.concatenate([share.target for share in shares]))
    assert np.array_equal(h.coefficients_, collaboration.estimator_.coefficients_)
    seen = Seen(h, mine, shares[0].target, exact[: len(own)], len(own) + len(others), tolerance=1e-12)
    rounded = replace(seen, left_out=collaboration.left_out_["curious"], tolerance=1e-2)
    unknown_rows = collaboration.party_model("other").transform(parties[1].obfuscate(X[unknown]))
    return seen, rounded, Rows(theirs, shares[1].target), unknown_rows


def leverages(seen: Seen) -> tuple[Array, Array]:
    r"""Leverage of each own row, and how well it is known: one over its error, up to a factor.

    A row left out has residuals :math:`r / (1 - \ell)`.  Of probabilities, scores follow by logarithms, up to a
    constant for each row, and are the worse known the smaller these are.
    """
    h = seen.h
    residuals = seen.targets - (seen.rows @ seen.coefficients + h.intercept_)
    if isinstance(h, LandmarkRidgeRegressor):
        left = seen.targets - seen.left_out[:, None]
        return 1 - (residuals / left)[:, 0], np.abs(residuals[:, 0])
    least = 3 * seen.tolerance
    p = np.maximum(seen.left_out, seen.tolerance / 2)
    left = seen.targets - (np.log(p) - h.offsets_) / h.scale_
    weights = np.where(p > least, p, 1e-9) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    residuals, left = (each - (weights * each).sum(axis=1, keepdims=True) for each in (residuals, left))
    information = (weights * residuals**2).sum(axis=1)
    second = np.sort(p, axis=1)[:, -2]
    known = np.where(second > least, np.sqrt(information) * second, 0.0)
    return 1 - information / (weights * residuals * left).sum(axis=1), known


def recovered(seen: Seen, shrinkage: float) -> Recovered:
    r"""What follows of all other rows together from h and the leverages of one's own.

    A leverage is :math:`1/n + (x - m)^\top M (x - m)`, quadratic in x, with m the mean of all n rows and M the inverse
    of their second moments about it plus the penalty.  h's coefficients are M times the sums of rows about m with
    their targets, and its intercepts give the targets' means.

    Parameters
    ----------
    seen : Seen
    shrinkage : float
        Towards everybody's rows being like one's own.  With 0 leverages are believed, with infinity they are not
        looked at.
    """
    h, X, n = seen.h, seen.rows, seen.n_rows
    d, mean = X.shape[1], X.mean(axis=0)
    guess = np.linalg.inv(n * np.cov(X, rowvar=False, bias=True) + h.alpha_ * np.eye(d))
    root = np.linalg.cholesky(guess)
    U = (X - mean) @ root
    # Where M = root (I + D) rootᵀ and the mean is off by δ, leverages differ from 1/n + |u|² by uᵀDu + vᵀu + c, with
    # v = -2 (I + D) rootᵀδ.
    D, v = np.zeros((d, d)), np.zeros(d)
    if np.isfinite(shrinkage):
        leverage, known = leverages(seen)
        above = np.triu_indices(d)
        products = U[:, above[0]] * U[:, above[1]] * np.where(above[0] == above[1], 1, 2)
        design = np.column_stack([products, U, np.ones(len(U))]) * known[:, None]
        wanted = (leverage - 1 / n - (U**2).sum(axis=1)) * known
        pull = np.sqrt(shrinkage * (design**2).sum() / design.shape[1]) * np.eye(design.shape[1])
        found = np.linalg.lstsq(np.vstack([design, pull]), np.append(wanted, np.zeros(len(pull))), rcond=None)[0]
        D[above], v = found[: len(above[0])], found[len(above[0]) : -1]
        D += np.triu(D, 1).T
    mean = mean + np.linalg.solve(root.T, np.linalg.solve(np.eye(d) + D, -v / 2))
    totals = n * (h.intercept_ + mean @ seen.coefficients)
    sums = np.linalg.solve(root @ (np.eye(d) + D) @ root.T, seen.coefficients) + np.outer(mean, totals)
    return Recovered(
        totals=totals - seen.targets.sum(axis=0),
        sums=(sums - X.T @ seen.targets).T,
        mean=(n * mean - X.sum(axis=0)) / (n - len(X)),
    )


def correlation(a: Array, b: Array) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def told(world: World, seen: Seen, shrinkage: float) -> tuple[float, float]:
    """Correlation of what was recovered with what is sought, and how often it is more like this than like others."""
    found = world.part(recovered(seen, shrinkage))
    likeness = correlation(found - world.usual, world.sought - world.usual)
    others = [correlation(found - world.usual, other - world.usual) for other in world.others]
    return correlation(found, world.sought), float(np.mean(likeness > np.array(others)))


def to_decimals(seen: Seen, decimals: int) -> Seen:
    return replace(seen, left_out=seen.left_out.round(decimals), tolerance=10.0**-decimals)


def left_out_figures(draws: int) -> list[list[str]]:
    of_classes, of_numbers = ([make(seed) for seed in range(draws)] for make in (classes, numbers))
    row, mean = "the one row of a class", "mean of 20 rows, targets numbers"
    return [
        *attacked(row, "exact", of_classes, [world.exact for world in of_classes]),
        *attacked(row, "four decimals", of_classes, [to_decimals(world.exact, 4) for world in of_classes]),
        *attacked(row, "three decimals", of_classes, [to_decimals(world.exact, 3) for world in of_classes]),
        *attacked(row, "as the library rounds", of_classes, [world.rounded for world in of_classes]),
        *attacked(row, "none: h alone", of_classes, [world.exact for world in of_classes], (np.inf,)),
        *attacked(mean, "exact", of_numbers, [world.exact for world in of_numbers]),
        *attacked(mean, "as the library rounds", of_numbers, [world.rounded for world in of_numbers]),
        *attacked(mean, "none: h alone", of_numbers, [world.exact for world in of_numbers], (np.inf,)),
    ]


def attacked(
    what: str,
    given: str,
    worlds: Sequence[World],
    seen: Sequence[Seen],
    shrinkages: Sequence[float] = (0.0, SHRINKAGE),
) -> list[list[str]]:
    """A row of the table for each shrinkage."""
    rows = []
    for shrinkage in shrinkages:
        found = np.array([told(world, one, shrinkage) for world, one in zip(worlds, seen, strict=True)])
        error = found[:, 1].std() / np.sqrt(len(found))
        figures = [f"{np.median(found[:, 0]):.2f}", f"{found[:, 1].mean():.2f} ± {1.96 * error:.2f}"]
        rows.append([what, given, f"{shrinkage:g}" if np.isfinite(shrinkage) else "", *figures])
    return rows
