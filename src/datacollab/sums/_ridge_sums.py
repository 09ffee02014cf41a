r"""Ridge regression from sums over rows: the sums of a party, and how the analyst solves their total.

With v a row in the common map and t its target, a party's part is :math:`\sum u u^\top` of

.. math:: u = [v;\; \eta t;\; \eta],

whose blocks are :math:`\sum v v^\top`, :math:`\sum v t^\top`, the sums of both, and the number of rows.  The total is
that of all rows in one place, so the fit is ridge regression on all of them [1]_.

References
----------
.. [1] Fanì et al. (2024). Accelerating heterogeneous federated learning with closed-form classifiers. ICML, PMLR 235.
.. [2] Wang, Fienberg, Smola (2015). Privacy for free: posterior sampling and stochastic gradient Monte Carlo. ICML,
   PMLR 37.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from .._frames import plain_column
from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..linalg import below_zero, gaussian_sigma, largest_noise
from ._class_link import POINTS, WEIGHTS, ClassLink, class_link
from ._masked_sum import not_of_rows
from ._recommended import TABLE
from ._words import standard_normal

# Length of targets and of the constant beside rows of length 1; see docs/sums.
_ETA = 0.5
_PENALTIES = np.geomspace(1e-3, 30.0, 25)
_LEAST_PENALTY = 1e-3
# Factor of the degrees of freedom in generalised cross-validation, against overfitting.
_COST_OF_FREEDOM = 1.2
# Penalties with more degrees of freedom, over the number of rows, are not considered.
_MOST_FREEDOM = 0.95
# Residuals are taken to be at least this part of the target's sum of squares: noise may make them negative.
_LEAST_RESIDUAL = 1e-3
# With fewer rows in the total, the model has noise of its own; see docs/results/sums.
_ENOUGH_ROWS = 600
# The most variance that this noise has, over that of the fit.
_MOST_SPREAD = 0.25
# Residuals are taken to be at least this part of the target's sum of squares for it: noise makes them too small.
_LEAST_UNEXPLAINED = 0.25
# Totals whose numbers agree up to one over this have one model.
_SAME = 2.0**16
# Far above the error of fixed-point numbers, 2^-33 for each party.
_ROUNDING = 1e-6
# Least number of rows, over the standard deviation of its noise.
_LEAST_CLARITY = 1.0
# A model of fewer rows says much of each.
_FEWEST_ROWS = 10
LEAST_KEPT = 0.1
"""Part of a fit that is kept of any class: it moves probabilities little, and keeps the order of rows."""
# Standard deviations that are taken off the variance that the fit of a class explains; see docs/sums.
_CAUTION = 0.5
# Numbers far below the upper limit over this count as equal in logarithms; see `_shift`.
_LOG_RANGE = 1000.0
# How far limits reach beyond nine tenths of the numbers, in their range; see docs/sums.
_FENCE = 2.0
# Numbers are clipped only where noise, which is a part of the range, would be so many times as large with them.
_LEAST_GAIN = 1.5
# Own rows that count as much as that a party is like the others.
_ROWS_OF_PRIOR = 30


def _one_per_row(y: ArrayLike) -> NDArray[Any]:
    target = plain_column(y)
    if target.ndim != 1:
        raise AgreementError(f"Sums: expected one target per row, got an array of shape {target.shape}.")
    return target


def check_mapped(v: FloatArray, n_components: int, name: str) -> None:
    """Refuse rows that are none of a common map of so many columns, as raw rows are not."""
    if v.ndim != 2 or v.shape[1] != n_components or not (np.einsum("ij,ij->i", v, v) <= 1 + 2e-9).all():
        raise AgreementError(
            f"{name}: expected rows of the common map, {n_components} numbers of length 1 at most; got shape {v.shape}."
        )


def class_indicators(y: ArrayLike, classes: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which class each target is, shape (n_rows, n_classes); AgreementError if it is none of the classes."""
    indicators = _one_per_row(y)[:, None] == np.asarray(classes)
    if not indicators.any(axis=1).all():
        raise AgreementError("Sums: a target is none of the classes agreed on. Correct it, or leave the row out.")
    return np.asarray(indicators)


def fences(values: FloatArray, *, scale: str | None = None) -> tuple[float, float]:
    """Return limits of numbers that a few of them, far from the rest, do not widen; on the scale of `RidgeSums`.

    They reach to the smallest and largest number, but no farther from the 5 % and 95 % quantiles than twice the
    distance of these two, if the range would be half as wide again otherwise.
    """
    if scale == "log":
        above = values[values > 0]
        if not above.size:
            return 0.0, 1.0
        low, high = fences(np.log(above))
        within = above[(np.log(above) >= low) & (np.log(above) <= high)]
        least = float(within.min()) if values.min() > 0 else 0.0
        return least, float(within.max())
    low, high = np.quantile(values, [0.05, 0.95])
    width = high - low
    if width == 0 and (values != low).any():
        # Where nearly all are equal, the others say how far apart numbers are.
        width = np.quantile(np.abs(values[values != low] - low), 0.95)
    least = float(values.min())
    most = float(values.max())
    low = max(least, float(low - _FENCE * width))
    high = min(most, float(high + _FENCE * width))
    if most - least >= _LEAST_GAIN * (high - low):
        return low, high
    return least, most


@dataclass(frozen=True, eq=False)
class RidgeFromSums:
    """A linear model in the common map.

    Attributes
    ----------
    coefficients : ndarray of shape (n_components, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    alpha : float
        The penalty chosen.
    n_rows : float
        Rows in the total, with noise.
    spread : float
        Variance of the model's own noise along a direction, times the eigenvalue of S + alpha I there, where S is the
        matrix of centred moments; 0 if it has none.
    reliability : tuple of float
        By class, from .1 to 1, the part of the fit that is kept; empty for numbers, and in a model that was read.
    link : ClassLink or None
        How outputs become probabilities; None for numbers.
    residual : float
        Standard deviation of encoded numbers around the outputs.
    """

    coefficients: FloatArray
    intercept: FloatArray
    alpha: float
    n_rows: float
    spread: float = 0.0
    reliability: tuple[float, ...] = ()
    link: ClassLink | None = None
    residual: float = 0.0

    def predict(self, v: FloatArray) -> FloatArray:
        """Return the outputs of mapped rows, shape (n_rows, n_outputs)."""
        return np.asarray(v @ self.coefficients + self.intercept)

    def move_intercept(self, n_rows: float, mean_v: ArrayLike, mean_t: ArrayLike) -> RidgeFromSums:
        """Return the model with the intercept of a party that has rows with these means, in the map and encoded.

        It moves by their mean residual times n / (n + 30): a random intercept, for institutions that explain 3 % of
        the variance that is left.
        """
        mean = np.asarray(mean_v, dtype=np.float64)[None]
        residual = np.asarray(mean_t, dtype=np.float64) - self.predict(mean)[0]
        return replace(self, intercept=self.intercept + n_rows / (n_rows + _ROWS_OF_PRIOR) * residual)


@dataclass(frozen=True)
class TotalFigures:
    """Numbers of rows that a total tells beside the model; all with noise.

    Attributes
    ----------
    n_rows : float
    class_counts : tuple of float
        Rows of each class; empty for numbers.
    """

    n_rows: float
    class_counts: tuple[float, ...]


@dataclass(frozen=True)
class RidgeSums:
    r"""The statistics of ridge regression in a common map.

    Parameters
    ----------
    n_components : int
        D, columns of the common map.
    classes : sequence, optional
        All classes, agreed on; `limits` instead for numbers.
    limits : (float, float), optional
        The declared range of a numeric target, clipped to it.
    noise : float
        s: standard deviation of the noise on the diagonal of the total; off it, :math:`s/\sqrt 2`.
    scale : {"log"}, optional
        Sum up logarithms of a number whose limits are not below 0, such as a cost or a duration.  Before,
        c = max(0, b/1000 - a) is added, with limits (a, b): zeros are allowed.  Predictions are less c again.

    Raises
    ------
    AgreementError
        If neither or both of `classes` and `limits` are given, or they make no sense.

    Examples
    --------
    >>> RidgeSums(256, classes=range(10)).n_numbers
    35778
    """

    n_components: int
    classes: Sequence[Any] | None = None
    limits: tuple[float, float] | None = None
    noise: float = TABLE.noise
    scale: str | None = None

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(np.asarray(self.classes).tolist()))
        if (self.classes is None) == (self.limits is None):
            raise AgreementError("RidgeSums: give either classes or limits.")
        if self.classes is not None and len(self.classes) < 2:
            raise AgreementError(f"RidgeSums: expected at least two classes, got {len(self.classes)}.")
        # NumPy turns mixed types into text: 1 and "1" are then one class.
        if self.classes is not None and len(np.unique(np.asarray(self.classes).astype(str))) < len(self.classes):
            raise AgreementError("RidgeSums: two of the classes are the same. Name each class once.")
        if self.limits is not None and not -math.inf < self.limits[0] < self.limits[1] < math.inf:
            raise AgreementError(f"RidgeSums: expected limits (low, high) with low below high, got {self.limits}.")
        if self.scale not in (None, "log") or (self.scale == "log" and (self.limits is None or self.limits[0] < 0)):
            raise AgreementError(
                f"RidgeSums: expected no scale, or 'log' with limits of 0 or more; got {self.scale!r} with limits "
                f"{self.limits}. Leave out the scale, or subtract the lower limit from the target."
            )

    @property
    def n_outputs(self) -> int:
        """Return the number of columns of the target: one per class, or one."""
        return 1 if self.classes is None else len(self.classes)

    @property
    def size(self) -> int:
        """Return the number of rows and columns of the matrix of sums."""
        return self.n_components + self.n_outputs + 1

    @property
    def n_numbers(self) -> int:
        """Return how many numbers a party adds up: the matrix is symmetric."""
        return self.size * (self.size + 1) // 2

    @property
    def noise_of_each(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        i, j = np.triu_indices(self.size)
        return np.where(i == j, self.noise, self.noise / math.sqrt(2))

    @property
    def sensitivity(self) -> float:
        r"""Bound of how far replacing one row moves the matrix, in the Frobenius norm: :math:`\sqrt 2 B^2`.

        B is the largest length of u.
        """
        return math.sqrt(2) * (1 + _ETA**2 * self._most_square + _ETA**2)

    @property
    def _most_square(self) -> float:
        """Return the largest square of an encoded target: a number in [-1, 1], or indicators less 1/C."""
        return 1.0 if self.classes is None else 1 - 1 / self.n_outputs

    def noise_of_n_rows(self, noise: float) -> float:
        """Return the noise in the number of rows, if that on the diagonal is `noise`."""
        return noise / _ETA**2

    def noise_for(self, epsilon: float, delta: float = 1e-5) -> float:
        """Return the s with which the total is (epsilon, delta)-differentially private for replacing one row.

        Epsilon is above 0, and delta from 1e-12 on: well below one over the number of rows.  It raises ValueError if
        one is outside its range.

        Examples
        --------
        >>> round(RidgeSums(256, classes=range(10)).noise_for(8.0), 2)
        1.25
        """
        return gaussian_sigma(epsilon, delta) * self.sensitivity

    def encode(self, y: ArrayLike) -> FloatArray:
        """Return targets as columns: classes as indicators less 1/C, numbers moved from `limits` to [-1, 1].

        It raises AgreementError if a target is missing, no number or none of the classes.
        """
        target = _one_per_row(y)
        if self.limits is not None:
            try:
                numbers = target.astype(np.float64)
            except (TypeError, ValueError):
                # numpy's own message quotes a target.
                raise AgreementError("RidgeSums: a target is no number. Correct it, or leave the row out.") from None
            if not np.isfinite(numbers).all():
                raise AgreementError("RidgeSums: a target is missing or not finite. Leave such rows out.")
            low, high = self._to_scale(np.asarray(self.limits))
            clipped = self._to_scale(np.clip(numbers, *self.limits))
            return np.asarray((2 * clipped - low - high)[:, None] / (high - low))
        assert self.classes is not None
        return np.asarray(class_indicators(target, self.classes) - 1 / self.n_outputs)

    def _to_scale(self, numbers: FloatArray) -> FloatArray:
        if self.scale is None:
            return numbers
        return np.asarray(np.log(numbers + self._shift))

    def _from_scale(self, numbers: FloatArray) -> FloatArray:
        if self.scale is None:
            return numbers
        return np.asarray(np.exp(numbers) - self._shift)

    @property
    def _shift(self) -> float:
        """Return what is added before logarithms are taken, and taken off after: c = max(0, b/1000 - a), limits (a, b).

        So zeros have a logarithm, and the largest number is at most about a thousand times the smallest.
        """
        assert self.limits is not None
        return max(0.0, self.limits[1] / _LOG_RANGE - self.limits[0])

    def decode(self, outputs: FloatArray, residual: float = 0.0) -> NDArray[Any]:
        """Return predictions: the class with the largest output, or numbers within `limits`.

        Numbers are in the unit of the target.  On the scale of logarithms they are means of :math:`e^z - c` over
        normal z around the output, with the standard deviation `residual` of encoded numbers and c added by `encode`,
        and clipped to the limits.
        """
        if self.limits is None:
            return np.asarray(np.asarray(self.classes)[outputs.argmax(axis=1)])
        low, high = self._to_scale(np.asarray(self.limits))
        if self.scale is None:
            return np.asarray((np.clip(outputs[:, 0], -1.0, 1.0) * (high - low) + low + high) / 2)
        # Gauss and Hermite's points and weights make the mean over z.
        around = np.clip(outputs[:, :1] + residual * POINTS, -1.0, 1.0)
        numbers = self._from_scale((around * (high - low) + low + high) / 2)
        return np.asarray(np.clip(numbers @ WEIGHTS, *self.limits))

    def part(self, v: FloatArray, y: ArrayLike) -> FloatArray:
        """Return the sums of a party, shape (n_numbers,), over its rows v in the common map and their targets y.

        It raises AgreementError if they are no such rows, or do not fit each other, or as `encode` raises it.
        """
        check_mapped(v, self.n_components, "RidgeSums")
        t = self.encode(y)
        if len(t) != len(v):
            raise AgreementError(f"RidgeSums: there are {len(v)} rows and {len(t)} targets. Give one target per row.")
        u = np.hstack([v, _ETA * t, np.full((len(v), 1), _ETA)])
        return np.asarray((u.T @ u)[np.triu_indices(self.size)])

    def solve(
        self, total: FloatArray, *, noise: float | None = None, least_penalty: float = TABLE.least_penalty
    ) -> RidgeFromSums:
        """Fit ridge regression to a total.

        The penalty is the geometric mean of those with the largest Gaussian evidence and the smallest generalised
        cross-validation score, both from the total alone, and no smaller than `least_penalty` says.

        A model of few rows says much of each.  With n rows in the total, fewer than 600, and noise in it, the model is
        a draw around the fit: from the posterior of the coefficients, with 600/n - 1 of its variance, and at most a
        quarter (Wang, Fienberg and Smola, 2015).  One total always gives one model.

        Each class's fit is shrunk towards the class's share of rows: by the variance that it explains beyond chance and
        noise, over the variance of its outputs.  Few rows of a class may leave nothing.

        Parameters
        ----------
        total : ndarray of shape (n_numbers,)
        noise : float, optional
            Standard deviation of all noise in the total, that of colluding parties included; s by default.  With 0, the
            model has no noise of its own.
        least_penalty : float
            The smallest penalty, as a multiple of the largest eigenvalue of the noise.

        Raises
        ------
        NumericalError
            If the total cannot be sums of rows: fewer than ten rows, beyond the noise, or as `impossible` says.  If the
            number of rows is smaller than its noise, so that nobody can tell.
        """
        D = self.n_components
        M = self._matrix(total)
        if noise is None:
            noise = self.noise
        n = M[-1, -1] / _ETA**2
        noise_of_n = self.noise_of_n_rows(noise)
        if np.isfinite(M).all() and n < _LEAST_CLARITY * noise_of_n:
            raise NumericalError(
                f"The total says that there are {n:.0f} rows, with noise of {noise_of_n:.0f}: too much for a model. "
                "Agree on less noise (a larger epsilon), or on more rows."
            )
        if not np.isfinite(M).all() or n < max(2.0, _FEWEST_ROWS - 3 * noise_of_n):
            raise NumericalError(
                f"The total says that there are {n:.0f} rows; at least {_FEWEST_ROWS} are needed. Have the parties "
                "compare how many rows each of them added."
            )
        # Centred moments: S of rows, B of rows with targets, and the sum of squares of the targets.
        n, mean_v, mean_t = self.means(total)
        S = M[:D, :D] - n * np.outer(mean_v, mean_v)
        B = M[:D, D:-1] / _ETA - n * np.outer(mean_v, mean_t)
        # Noise makes the sum of squares negative if the target hardly varies.
        least = (noise * math.sqrt(self.n_outputs) + _ROUNDING) / _ETA**2
        square = max(float(np.trace(M[D:-1, D:-1]) / _ETA**2 - n * mean_t @ mean_t), least)
        if wrong := self.impossible(total, noise=noise):
            raise NumericalError(not_of_rows(wrong))
        e, U = scipy.linalg.eigh(S)
        # Noise may make eigenvalues of directions without rows negative.
        e = np.maximum(e, 0.0)
        Z = U.T @ B
        least = max(_LEAST_PENALTY, least_penalty * noise * math.sqrt(2 * D))
        alpha = self._penalty(e, (Z**2).sum(axis=1), square, n, least)
        coefficients = U @ (Z / (e + alpha)[:, None])
        spread = 0.0
        # A draw from the posterior in place of its mean: a model of few rows says less of each [2]_.
        if noise > 0 and n < _ENOUGH_ROWS:
            residual, freedom = self._fitted(e, (Z**2).sum(axis=1), square, np.array([alpha]))
            variance = max(residual[0], _LEAST_UNEXPLAINED * square) / max(n - 1 - freedom[0], n / 4) / self.n_outputs
            spread = float(min(_MOST_SPREAD, _ENOUGH_ROWS / n - 1) * variance)
            coefficients = coefficients + math.sqrt(spread) * U @ (
                (U.T @ self._normal(total)) / np.sqrt(e + alpha)[:, None]
            )
        fit = RidgeFromSums(coefficients, mean_t - mean_v @ coefficients, alpha, float(n), spread)
        # The moments' own noise, and that of the mean of rows, times the target's mean.
        noise_of_moments = (noise / math.sqrt(2) / _ETA) ** 2 * (1 + mean_t**2)
        if self.classes is not None:
            return self._shrink(fit, e, Z, (mean_v, mean_t), noise_of_moments)
        # Noise in the moments would look like explained variance.
        explained = float((1 / (e + alpha)) @ (Z[:, 0] ** 2 - noise_of_moments[0]))
        unexplained = max(square - max(explained, 0.0), _LEAST_RESIDUAL * square)
        # Numbers between -1 and 1 have no larger deviation, whatever the noise says.
        return replace(fit, residual=min(1.0, math.sqrt(unexplained / n)))

    def _shrink(
        self, fit: RidgeFromSums, e: FloatArray, Z: FloatArray, means: tuple[FloatArray, FloatArray], noise: FloatArray
    ) -> RidgeFromSums:
        """Shrink each class's fit, and add its link.

        `e` and `Z` are the eigenvalues and the moments along each, `means` those of rows and targets, and `noise` the
        variance of each class's moments.
        """
        n = fit.n_rows
        mean_v, mean_t = means
        shrunk = 1 / (e + fit.alpha)
        shares = mean_t + 1 / self.n_outputs
        bounded = np.clip(shares, 1 / n, 1 - 1 / n)
        # The variance of an indicator, and the part of it that the columns explain beyond noise.
        square = n * bounded * (1 - bounded)
        explained = shrunk @ Z**2
        beyond = np.maximum(explained - noise * shrunk.sum(), 0.0)
        residual = np.maximum(square - beyond, _LEAST_UNEXPLAINED * square) / n
        # If a class had nothing to do with the columns, each direction would explain this in the mean.
        by_chance = shrunk[:, None] * (residual * e[:, None] + noise)
        surely = explained - by_chance.sum(axis=0)
        deviation = np.sqrt(2 * (by_chance**2).sum(axis=0))
        freedom = shrunk @ e
        of_outputs = (shrunk**2 * e) @ Z**2 + fit.spread * freedom
        of_class = of_outputs
        if self.n_outputs == 2:
            # The moments of both classes say the same, with noise of their own: their mean has less.
            surely = np.full(2, surely.mean())
            deviation = np.full(2, deviation.mean() / math.sqrt(2))
            of_class = np.full(2, of_outputs.mean())
        # Only the part beyond chance and noise counts, less half a standard deviation of it; see docs/sums.
        certain = (surely - _CAUTION * deviation) / np.maximum(of_class, np.finfo(float).tiny)
        kept = np.clip(certain, LEAST_KEPT, 1.0)
        coefficients = fit.coefficients * kept
        return replace(
            fit,
            coefficients=coefficients,
            intercept=mean_t - mean_v @ coefficients,
            reliability=tuple(kept.tolist()),
            link=class_link(shares, kept**2 * of_outputs / n, residual * freedom / n, n),
        )

    def means(self, total: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the number of rows in a total or a part, and their means in the map and of encoded targets."""
        D = self.n_components
        column = self._matrix(total)[:, -1] / _ETA
        n = float(column[-1] / _ETA)
        return n, column[:D] / n, column[D:-1] / _ETA / n

    def figures(self, total: FloatArray) -> TotalFigures:
        """Return the numbers of rows that a total, shape (n_numbers,), tells."""
        D = self.n_components
        M = self._matrix(total)
        n = float(M[-1, -1] / _ETA**2)
        if self.classes is None:
            return TotalFigures(n_rows=n, class_counts=())
        # Indicators are added up less 1/C.
        counts = M[D:-1, -1] / _ETA**2 + n / self.n_outputs
        return TotalFigures(n_rows=n, class_counts=tuple(counts.tolist()))

    def impossible(self, total: FloatArray, *, noise: float | None = None) -> str | None:
        """Return why no rows can give a total, as the end of a sentence; None if rows can, as far as noise lets see.

        Each bound allows for the noise in its numbers: a total of rows is refused with a chance below 1e-13.

        Parameters
        ----------
        total : ndarray of shape (n_numbers,)
        noise : float, optional
            As in `solve`.
        """
        D = self.n_components
        m = self.n_outputs
        M = self._matrix(total)
        figures = self.figures(total)
        n = figures.n_rows
        if noise is None:
            noise = self.noise
        # A sum of uuᵀ has no negative eigenvalue, whatever the rows are: a check of all sums at once.
        if wrong := below_zero(M, noise):
            return wrong
        of_number = largest_noise(1, noise)
        rounding = _ROUNDING * (1 + abs(n))
        # No mapped row is longer than 1: the trace less n is 0 at most, with the noise of D numbers and that of n.
        if np.trace(M[:D, :D]) - n > of_number * math.hypot(math.sqrt(D), 1 / _ETA**2) + rounding:
            return "rows of the common map are longer than 1"
        most = self._most_square
        beyond = float(np.trace(M[D:-1, D:-1])) - _ETA**2 * n * most
        spare = of_number * math.hypot(math.sqrt(m), most) + rounding
        if beyond > spare or (self.classes is not None and beyond < -spare):
            return "targets are beyond their range"
        spare = of_number * math.hypot(math.sqrt(0.5), 1 / m) + rounding
        if _ETA**2 * min(figures.class_counts, default=0.0) < -spare:
            return "a class has fewer than no rows"
        return None

    def _normal(self, total: FloatArray) -> FloatArray:
        """Draw from a total, which no party has, so that it has one model; shape (n_components, n_outputs).

        Totals of the same rows that were added up in another order give the same.  Classes' numbers add up to 0.
        """
        key = hashlib.sha256(np.round(total * _SAME).astype("<i8").tobytes()).digest()
        drawn = standard_normal(key, self.n_components * self.n_outputs)
        normal = drawn.reshape(self.n_components, self.n_outputs)
        if self.classes is None:
            return normal
        return np.asarray((normal - normal.mean(axis=1, keepdims=True)) / math.sqrt(1 - 1 / self.n_outputs))

    def _matrix(self, total: FloatArray) -> FloatArray:
        """Return a total or a part as a symmetric matrix, shape (size, size)."""
        M = np.zeros((self.size, self.size))
        M[np.triu_indices(self.size)] = total
        return M + np.triu(M, 1).T

    def _penalty(self, e: FloatArray, squares: FloatArray, square: float, n: float, least: float) -> float:
        """Choose the penalty from the eigenvalues, the squared moments along each, and the target's sum of squares."""
        m = self.n_outputs
        # The negative logarithm of the Gaussian evidence, and generalised cross-validation, for each penalty.
        grid = np.r_[least, _PENALTIES[least < _PENALTIES]]
        unexplained = np.maximum(square - 1 / (e + grid[:, None]) @ squares, _LEAST_RESIDUAL * square)
        evidence = m * np.log1p(e / grid[:, None]).sum(axis=1) + (n - 1) * m * np.log(unexplained / n / m)
        residual, freedom = self._fitted(e, squares, square, grid)
        freedom = _COST_OF_FREEDOM * (1 + freedom)
        with np.errstate(divide="ignore"):
            gcv = np.where(freedom < _MOST_FREEDOM * n, residual / (1 - freedom / n) ** 2, np.inf)
        return float(np.sqrt(grid[np.argmin(evidence)] * grid[np.argmin(gcv)]))

    @staticmethod
    def _fitted(
        e: FloatArray, squares: FloatArray, square: float, penalties: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the residual sum of squares and the degrees of freedom, but for the intercept's, for each penalty."""
        shrunk = 1 / (e + penalties[:, None])
        residual = square - 2 * shrunk @ squares + shrunk**2 @ (squares * e)
        return np.maximum(residual, _LEAST_RESIDUAL * square), shrunk @ e
