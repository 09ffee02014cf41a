"""Rows of the anchor, with targets that the party's own model gives them.

* Models that a party makes at home to find targets for anchor rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem

from .._validation import FloatArray, Interval, StrOptions
from ..errors import ObfuscationError
from ..linalg import median_gamma
from ._defence import Defence, Promise, Published, are_numbers
from ._gaussian_noise import SMALLEST_DELTA, gaussian_sigma, noisy

__all__ = ["KernelModel", "LabelledAnchors", "best_labels", "offsets_for_counts", "usable_gamma"]


RIDGES = (1e-2, 1e-1, 1.0)
WIDTHS = (0.5, 1.0, 2.0)
"""Of the kernel, in multiples of one over the median squared distance."""
MOST_LANDMARKS = 500
N_TREES = 200
FIRST_TREES = 50
"""Enough to see, mostly, that a forest would not be the best of the models."""
_STEPS, _STEPS_AT_FULL_LENGTH = 200, 20
"""Of the search for offsets, whose steps become shorter after the first ones."""

Score = Callable[[FloatArray], FloatArray]
"""From rows (n_rows, n_columns) to outputs (n_rows, n_classes), or (n_rows, 1) for numbers."""


def best_labels(
    X: FloatArray, y: NDArray[Any], new: FloatArray, *, numeric: bool, generator: np.random.RandomState
) -> NDArray[Any]:
    """Targets of new rows from the model that does best on own rows that it was not fitted on.

    The candidates are kernel ridge models of three widths, each with the best of three penalties by leave-one-out, and
    a random forest by its out-of-bag rows: of few trees first, and of all where these could make it the best.  Of
    equals, the first is taken.  Its scores of classes are raised or lowered until each class is its answer for as many
    own rows, left out, as there are of that class: models of few rows are timid, and a rare class would hardly be
    named.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    new : ndarray of shape (n_new, n_columns)
    numeric : bool
        Whether targets are numbers rather than classes.
    generator : RandomState

    Returns
    -------
    ndarray of shape (n_new,)
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        return np.full(len(new), y[0], dtype=y.dtype)
    left_out, score = max(_kernel_models(X, y, numeric, generator), key=lambda pair: _fit(pair[0], y, numeric))
    if forest := _better_forest(X, y, numeric, generator, _fit(left_out, y, numeric)):
        left_out, score = forest
    if numeric:
        return np.asarray(score(new)[:, 0], dtype=np.float64)
    offsets = offsets_for_counts(left_out, np.bincount(codes))
    return np.asarray(classes[(score(new) + offsets).argmax(axis=1)])


def offsets_for_counts(scores: FloatArray, counts: NDArray[np.intp]) -> FloatArray:
    """What to add to each class's scores for it to be the largest in as many rows as wanted, or nearly.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    counts : ndarray of shape (n_classes,)
        Rows wanted of each class, `n_rows` together.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    offsets = best = np.zeros(len(counts))
    nearest = np.inf
    for step in range(_STEPS):
        missing = counts - np.bincount((scores + offsets).argmax(axis=1), minlength=len(counts))
        if (distance := np.abs(missing).sum()) < nearest:
            nearest, best = distance, offsets
        if not distance:
            break
        offsets = offsets + scores.std() * missing / len(scores) / (1 + step / _STEPS_AT_FULL_LENGTH)
    return best


def usable_gamma(X: FloatArray) -> float:
    """One over the median squared distance between rows; 1 where more than half of the pairs are equal."""
    gamma = median_gamma(X) if len(X) > 1 else np.inf
    return gamma if np.isfinite(gamma) else 1.0


def _kernel_models(
    X: FloatArray, y: NDArray[Any], numeric: bool, generator: np.random.RandomState
) -> Iterator[tuple[FloatArray, Score]]:
    """Each model's scores of the own rows, left out, and what scores new ones; a column for each class, or one."""
    gamma = usable_gamma(X)
    for width in WIDTHS:
        model = KernelModel(width * gamma, RIDGES[0], numeric).fit(X, y, generator)
        for each in (model, *(model.with_ridge(ridge) for ridge in RIDGES[1:])):
            yield each.left_out_scores, each.scores


def _better_forest(
    X: FloatArray, y: NDArray[Any], numeric: bool, generator: np.random.RandomState, best: float
) -> tuple[FloatArray, Score] | None:
    """A forest's out-of-bag scores, and what scores new rows; None where its fit is not above the best one."""
    kind: Any = RandomForestRegressor if numeric else RandomForestClassifier
    forest = kind(FIRST_TREES, oob_score=True, warm_start=True, random_state=generator)
    with warnings.catch_warnings():
        # Of rows that every tree has seen: their scores are taken for zero.
        warnings.simplefilter("ignore", UserWarning)
        forest.fit(X, y)
        if _fit(_out_of_bag(forest), y, numeric) + _gain_of_more_trees(forest, y, numeric) <= best:
            return None
        forest.set_params(n_estimators=N_TREES).fit(X, y)
    left_out = _out_of_bag(forest)
    if _fit(left_out, y, numeric) <= best:
        return None
    return left_out, (lambda new: forest.predict(new)[:, None]) if numeric else forest.predict_proba


def _out_of_bag(forest: Any) -> FloatArray:
    """What the trees that have not seen a row say of it, a column for each class, or one."""
    if isinstance(forest, RandomForestRegressor):
        return np.asarray(forest.oob_prediction_[:, None])
    return np.asarray(np.nan_to_num(forest.oob_decision_function_))


def _gain_of_more_trees(forest: Any, y: NDArray[Any], numeric: bool) -> float:
    """How much a forest's out-of-bag fit would rise at most, on average, with any number of trees.

    A mean of T trees is off the mean of all by their variance over T, in the square.  What lies between a and b with
    mean m has a variance of (b - m)(m - a) at most, and of T trees one in e has not seen a row.
    """
    told, truth = _out_of_bag(forest), _indicators(y, numeric)
    variance = (truth.max(axis=0) - told) * (told - truth.min(axis=0))
    return float(variance.mean() / (forest.n_estimators / math.e - 1))


def _fit(left_out: FloatArray, y: NDArray[Any], numeric: bool) -> float:
    """Minus the mean squared error: of numbers, or of class indicators."""
    return -float(np.mean((_indicators(y, numeric) - left_out) ** 2))


def _indicators(y: NDArray[Any], numeric: bool) -> FloatArray:
    """Numbers as they are, shape (n_rows, 1), or a column for each class."""
    return np.asarray(y[:, None] if numeric else y[:, None] == np.unique(y), dtype=np.float64)


@dataclass(eq=False)
class KernelModel:
    """Kernel ridge regression on the target, or on an indicator of each class of which the largest wins.

    Parameters
    ----------
    gamma : float
        Of the Gaussian kernel.
    ridge : float
    numeric : bool
        Whether the target is a number.
    """

    gamma: float
    ridge: float
    numeric: bool

    def fit(self, X: FloatArray, y: NDArray[Any], generator: np.random.RandomState) -> Self:
        """Fit rows X, shape (n_rows, n_columns), to targets y, shape (n_rows,)."""
        # With as many landmarks as rows this is the kernel itself; the constant stands for an intercept.
        n_landmarks = min(len(X), MOST_LANDMARKS)
        self._map = Nystroem("rbf", gamma=self.gamma, n_components=n_landmarks, random_state=generator).fit(X)
        self._classes = np.unique(y)
        self._decomposed = scipy.linalg.svd(self._features(X), full_matrices=False)
        self._wanted = _indicators(y, self.numeric)
        return self._solved()

    def with_ridge(self, ridge: float) -> Self:
        """What a fit with another penalty gives, from the same landmarks and for little."""
        other = copy(self)
        other.ridge = ridge
        return other._solved()

    def _solved(self) -> Self:
        (U, s, Vt), T = self._decomposed, self._wanted
        kept = s**2 / (s**2 + self.ridge)
        self._coefficients = Vt.T @ ((s / (s**2 + self.ridge))[:, None] * (U.T @ T))
        # What a model without the row would say of it.
        residuals = (T - U @ (kept[:, None] * (U.T @ T))) / (1 - (U**2) @ kept)[:, None]
        self.left_out_scores = np.asarray(T - residuals)
        return self

    def scores(self, X: FloatArray) -> FloatArray:
        """Outputs for new rows, shape (n_rows, 1) or (n_rows, n_classes)."""
        return np.asarray(self._features(X) @ self._coefficients)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Targets of new rows, shape (n_rows,)."""
        outputs = self.scores(X)
        return outputs[:, 0] if self.numeric else np.asarray(self._classes[outputs.argmax(axis=1)])

    def _features(self, X: FloatArray) -> FloatArray:
        return np.column_stack([self._map.transform(X), np.ones(len(X))])


MOST_LABELS = 300
"""Anchor rows that are labelled at most, where no number is said."""
RIDGE_OF_TEACHER = 0.1
ROWS_OF_TEACHER = 10
"""Own rows of a teacher where none is said: about as few as a model can learn from."""


class LabelledAnchors(Defence):
    r"""Publish rows of the anchor with targets that a model fitted at home gives them; no own row or target leaves.

    The model learns from the representation of the own rows and their targets: kernel ridge regression or a random
    forest, whichever does better on rows that it was not fitted on.  For anchors without targets.

    Parameters
    ----------
    n_rows : int or "auto", default="auto"
        Anchor rows that are published, drawn at random; all where the anchor has no more.  The more there are for each
        own row, the more is told of these.  "auto" takes as many as there are own rows, and 300 at most.
    epsilon : float or None, default=None
        Above 0.  None promises nothing.  A number has teachers vote, see Notes.
    delta : float, default=1e-5
        From 1e-12 on, and below 1; well below one over the number of own rows.
    n_teachers : int or None, default=None
        With `epsilon`: how many teachers there are.  None makes one for ten own rows.
    regression : bool or "auto", default="auto"
        Whether targets are numbers.  "auto" asks without `epsilon` whether they are floating-point, and not all whole
        or of more than twenty kinds; with it, whether there are `bounds`, for what targets are must not decide what is
        published.
    bounds : tuple of float or None, default=None
        With `epsilon` and numeric targets: between which they lie.  To be known beforehand, not looked up in the table.

    Raises
    ------
    ObfuscationError
        When there are fewer own rows than teachers, or with `epsilon`, when bounds are missing where targets are said
        to be numbers or have a floating-point type, or when numbers are wanted and the type is none of numbers.

    Notes
    -----
    Without `epsilon` nothing is proven.  Predictions tell something of the rows that a model was fitted on, most where
    it was fitted on few; `n_rows` limits how many.  Up to 300, how many own rows there are is seen where
    `n_rows` is "auto".

    With `epsilon` the own rows are divided among T teachers at random, each of which fits a small model and labels the
    published anchor rows; targets are those with most votes, once noise was added [1]_.  Replacing one own row, its
    target included, changes one teacher, and that takes one vote from a class and gives one to another, for each of the
    n published rows: :math:`\sqrt{2n}` in the Euclidean norm for all votes together.  So they are one Gaussian
    mechanism with noise :math:`\sigma(\varepsilon, \delta) \sqrt{2n}`.  Numbers are clipped to `bounds` and averaged,
    which changes by :math:`(b - a) \sqrt{n} / T` together.  Which classes occur, the type of
    targets and the number of own rows are taken as public.

    The noise has to be small beside the number of teachers: with n = 10 and an epsilon of 4 it is five votes, so that
    some 200 own rows are the least of which anything is left.

    References
    ----------
    .. [1] Papernot et al. (2017). Semi-supervised knowledge transfer for deep learning from private training data.
       ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party import LabelledAnchors
    >>> rng = np.random.default_rng(0)
    >>> own, anchor = rng.normal(size=(100, 2)), rng.normal(size=(500, 2))
    >>> published, target = LabelledAnchors(n_rows=50).apply(
    ...     own, own[:, 0] > 0, anchor_representation=anchor, random_state=0
    ... )
    >>> published.shape
    (50, 2)
    >>> bool(np.mean(target == (published[:, 0] > 0)) > 0.8)
    True
    """

    needs_anchor: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_rows": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "delta": [Interval(Real, SMALLEST_DELTA, 1, closed="left")],
        "n_teachers": [Interval(Integral, 1, None, closed="left"), None],
        "regression": ["boolean", StrOptions({"auto"})],
        "bounds": [tuple, list, None],
    }

    def __init__(
        self,
        n_rows: int | str = "auto",
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        n_teachers: int | None = None,
        regression: bool | str = "auto",
        bounds: ArrayLike | None = None,
    ) -> None:
        self.n_rows = n_rows
        self.epsilon = epsilon
        self.delta = delta
        self.n_teachers = n_teachers
        self.regression = regression
        self.bounds = bounds

    @property
    def is_private(self) -> bool:
        """Whether `epsilon` is a number."""
        return self.epsilon is not None

    def promise(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> Promise | None:
        """Of each row with its target."""
        if self.epsilon is None:
            return None
        return Promise(
            epsilon=self.epsilon,
            delta=self.delta,
            change=(
                "if one row were replaced by any other, features and target, with all other rows and the number of "
                "rows unchanged"
            ),
            not_covered="Which classes (targets) occur is taken as public, and so is the number of rows.",
        )

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        anchor_target: NDArray[Any] | None,
        generator: np.random.RandomState,
    ) -> Published:
        assert anchor_representation is not None  # release() refuses otherwise
        n_rows = min(len(target), MOST_LABELS) if self.n_rows == "auto" else int(self.n_rows)
        chosen = generator.permutation(len(anchor_representation))[:n_rows]
        rows = anchor_representation[chosen]
        numeric = self._is_numeric(target)
        if self.epsilon is None:
            labels = best_labels(representation, target, rows, numeric=numeric, generator=generator)
        else:
            # The kernel's width is the anchor's, for it must not depend on the rows of other teachers.
            gamma = usable_gamma(anchor_representation)
            teachers = self._teachers(len(target), generator)
            model = KernelModel(gamma, RIDGE_OF_TEACHER, numeric)
            answers = np.array(
                [model.fit(representation[own], target[own], generator).predict(rows) for own in teachers]
            )
            labels = self._mean(answers, generator) if numeric else self._vote(answers, np.unique(target), generator)
        return Published(rows=rows, target=labels, own_rows=None, anchor_rows=chosen)

    def _is_numeric(self, target: NDArray[Any]) -> bool:
        """Whether numbers are published; with a promise no target's value decides this, nor whether it is refused."""
        if self.epsilon is None:
            return are_numbers(target) if self.regression == "auto" else bool(self.regression)
        numeric = self.bounds is not None if self.regression == "auto" else bool(self.regression)
        if numeric and target.dtype.kind not in "biuf":
            raise ObfuscationError(
                f"LabelledAnchors: with bounds or regression=True targets must be numbers; got type {target.dtype}. "
                "Leave out bounds, or say regression=False, where they are classes."
            )
        if self.regression == "auto" and not numeric and target.dtype.kind == "f":
            # As classes, numbers would be published as they are.
            self._checked_bounds()
        return numeric

    def _teachers(self, n_rows: int, generator: np.random.RandomState) -> list[NDArray[np.intp]]:
        """Own rows of each teacher, drawn without looking at them."""
        n_teachers = max(1, n_rows // ROWS_OF_TEACHER) if self.n_teachers is None else self.n_teachers
        if n_rows < n_teachers:
            raise ObfuscationError(
                f"LabelledAnchors: {n_rows} rows are fewer than n_teachers={n_teachers}. Lower n_teachers."
            )
        return np.array_split(generator.permutation(n_rows), n_teachers)

    def _vote(self, answers: NDArray[Any], classes: NDArray[Any], generator: np.random.RandomState) -> NDArray[Any]:
        """Classes with most votes after noise, shape (n_published,)."""
        assert self.epsilon is not None
        votes = (answers[:, :, None] == classes).sum(axis=0).astype(np.float64)
        sigma = gaussian_sigma(self.epsilon, self.delta) * np.sqrt(2 * len(votes))
        return np.asarray(classes[noisy(votes, sigma, generator).argmax(axis=1)])

    def _mean(self, answers: NDArray[Any], generator: np.random.RandomState) -> NDArray[Any]:
        """Means of clipped answers with noise, shape (n_published,)."""
        assert self.epsilon is not None
        low, high = self._checked_bounds()
        means = np.clip(answers, low, high).mean(axis=0)
        sensitivity = (high - low) * np.sqrt(len(means)) / len(answers)
        return np.clip(noisy(means, gaussian_sigma(self.epsilon, self.delta) * sensitivity, generator), low, high)

    def _checked_bounds(self) -> tuple[float, float]:
        bounds = np.asarray(() if self.bounds is None else self.bounds)
        if bounds.shape != (2,) or not bounds[0] < bounds[1]:
            raise ObfuscationError(
                "LabelledAnchors: with epsilon and numeric targets, bounds=(low, high) must say between which numbers "
                "targets lie. Take them from what is known of the quantity, not from the table. Where floating-point "
                "targets are classes, say regression=False."
            )
        return float(bounds[0]), float(bounds[1])
