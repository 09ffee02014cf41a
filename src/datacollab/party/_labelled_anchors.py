"""Rows of the anchor, with targets that the party's own model gives them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, Interval, StrOptions
from ..errors import ObfuscationError
from ._defence import Defence
from ._gaussian_noise import SMALLEST_DELTA, gaussian_sigma, noisy
from ._labeller import KernelModel, best_labels, usable_gamma
from ._numeric_targets import are_numbers
from ._promise import Promise
from ._published import Published

__all__ = ["LabelledAnchors"]

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
