"""A defence of which no row comes out: sums over classes, with noise that covers features and labels.

* What a table adds up to, class by class, and how far one record can move that.
"""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, Interval, check_single_targets
from ..errors import ObfuscationError, SuppressedRowsWarning
from ._defence import Defence, Promise, Published
from ._gaussian_noise import SMALLEST_DELTA, clipped, gaussian_epsilon, gaussian_sigma, noisy

__all__ = ["ADDED", "REPLACED", "NoisyClassSums", "class_vector"]


REPLACED = 2.0
"""Largest move when one record is replaced by any other, in multiples of C; see `class_vector`."""
ADDED = math.sqrt(2)
"""Largest move when one record is added or left out, in multiples of C."""


def class_vector(
    X: FloatArray, codes: NDArray[np.intp], n_classes: int, center: FloatArray, radius: float
) -> FloatArray:
    r"""Sums of clipped rows by class, and C times how many there are, shape (n_classes, n_columns + 1).

    .. math:: s(D) = \sum_i u(x_i, y_i), \qquad u(x, c) = e_c \otimes (v(x), C), \qquad
              v(x) = (x - m) \min(1, C / \|x - m\|)

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    codes : ndarray of shape (n_rows,)
        Number of each row's class; rows of a negative one add nothing.
    n_classes : int
    center : ndarray of shape (n_columns,)
        m, which must not depend on the rows.
    radius : float
        C, which must not either.

    Notes
    -----
    **Replacing a record** (x, c) by any other (x', c') moves s by :math:`u(x', c') - u(x, c)`.

    * Same class, :math:`c = c'`: the counts stay, and the sum moves by :math:`v' - v`, where both are in a ball of
      radius C: at most :math:`2C`, attained by opposite points of the sphere.
    * Other class: the two parts lie in different blocks, at right angles, each of length at most
      :math:`\sqrt{C^2 + C^2}`.  Together :math:`\sqrt{4 C^2} = 2C` at most, attained by any two points of the sphere.
    * A record of none of the classes adds zero: at most :math:`\sqrt 2 C`, from or to one of a class.

    So the sensitivity is exactly 2C, and counts in multiples of C cost nothing beyond the sums.  Counts in multiples
    of less save nothing either: the first case remains.

    **Adding or leaving out** a record moves s by :math:`\|u\| \le \sqrt 2 C`, attained on the sphere.

    Neither depends on the number of classes or of columns.
    """
    contributions = np.column_stack([clipped(X - center, np.zeros_like(center), radius), np.full(len(X), radius)])
    vector = np.zeros((n_classes, contributions.shape[1]))
    counted = codes >= 0
    np.add.at(vector, codes[counted], contributions[counted])
    return vector


_TEXTS = "OSU"


class NoisyClassSums(Defence):
    r"""Publish noisy sums and counts of each class, and no row: differential privacy of features and labels.

    With :math:`v_i` the difference of a row's representation from the mean of the anchor's, moved towards zero until it
    is no longer than C, the median of that length among the anchor's rows,

    .. math:: \sum_{i: y_i = c} v_i + N(0, s^2 I), \qquad |\{i: y_i = c\}| + N(0, s^2 / C^2),
              \qquad s = \sigma(\varepsilon, \delta) \, 2 C

    leave for each class c, by `Party.class_sums`; `Party.share` refuses.  It is a party's only defence.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float, default=1e-5
        From 1e-12 on, and below 1; well below one over the number of rows.
    classes : array-like of shape (n_classes,) or None, default=None
        All classes that there can be, agreed on without looking at private rows.  None takes those of the anchor's
        targets.

    Warns
    -----
    SuppressedRowsWarning
        At the party alone, when rows are of none of the classes; they add nothing.

    Raises
    ------
    ObfuscationError
        When there are no classes to go by, or texts where targets are numbers; when more than half of the anchor's rows
        lie at their mean, so that C is zero.

    Notes
    -----
    **What is promised.** All these numbers together move by at most 2C when one record is replaced by any other,
    features and label (proof: ``datacollab.party._noisy_class_sums``), and the noise is calibrated to that by the
    analytic Gaussian mechanism [1]_. So whoever sees what leaves can hardly tell whether a record was this or any
    other, of the same class or not. The number of rows is not sent; that a record is in the table at all is covered
    too, by a smaller epsilon (`epsilon_of_presence`).

    **What it rests on.**  C, the mean, f_k and the classes must not depend on private rows: `Party.guarantee` looks
    whether f_k was fitted on public rows, and whether own rows are among them.  That public rows are public and the
    classes agreed on it cannot see.  Noise is rounded to a grid, so that its last bits tell nothing; the time that
    things take is not covered, nor is what the party does or says besides, such as warnings and errors at home.

    **What it costs.**  The noise of a class's mean is :math:`s / n_c` in each column, so that a class wants dozens
    of rows over all parties; see the page on class sums for figures.

    References
    ----------
    .. [1] Balle and Wang (2018). Improving the Gaussian mechanism for differential privacy: analytical calibration and
       optimal denoising. ICML, PMLR 80, 394-403.

    Examples
    --------
    >>> import datacollab as dc
    >>> from datacollab.party import NoisyClassSums
    >>> X, y = dc.datasets.load("digits")
    >>> public = X[300:600]
    >>> f, defence = dc.obfuscator("pca", n_components=8), NoisyClassSums(epsilon=4.0, classes=range(10))
    >>> party = dc.Party("a", f, fit_on=public, defences=[defence]).fit(X[:300], y[:300])
    >>> party.class_sums(public)
    ClassSums(party='a', classes=10, sums=(10, 8), anchor_representation=(300, 8), anchor_target=None, epsilon=4.0)
    """

    needs_anchor: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, SMALLEST_DELTA, 1, closed="left")],
        "classes": ["array-like", None],
    }

    def __init__(self, epsilon: float, delta: float = 1e-5, *, classes: ArrayLike | None = None) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes

    def clip(self, anchor_representation: FloatArray) -> float:
        """C, the largest distance from the anchor's mean with which a row enters.

        Raises
        ------
        ObfuscationError
            When it is zero.
        """
        centred = anchor_representation - anchor_representation.mean(axis=0)
        clip = float(np.median(np.linalg.norm(centred, axis=1)))
        if not clip > 0:
            raise ObfuscationError(
                "NoisyClassSums: more than half of the anchor's rows lie at their mean, so the bound on a row's length "
                "is zero. Take an anchor whose rows differ."
            )
        return clip

    def noise(self, anchor_representation: FloatArray) -> float:
        """Standard deviation of the noise in every entry of the sums; that of the counts is this over C."""
        return gaussian_sigma(self.epsilon, self.delta) * REPLACED * self.clip(anchor_representation)

    @property
    def epsilon_of_presence(self) -> float:
        """What is promised, with the same delta, of whether a record is in the table or not: below `epsilon`."""
        return gaussian_epsilon(gaussian_sigma(self.epsilon, self.delta) * REPLACED / ADDED, self.delta)

    @property
    def is_private(self) -> bool:
        """True."""
        return True

    def promise(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> Promise | None:
        """Of each record, its features and its label."""
        if self.classes is None and anchor_target is None:
            return None
        return Promise(
            epsilon=self.epsilon,
            delta=self.delta,
            change=(
                "if one row were replaced by any other, its features and its label, with all other rows and the number "
                "of rows unchanged"
            ),
            not_covered=(
                "No row leaves, and no label. Which classes there are is agreed on beforehand and not covered. The "
                "number of rows is not in the message, and each message by itself also hides whether a row is in the "
                f"table at all, with an epsilon of {self._presence_rounded_up}."
            ),
            clip=self.clip(anchor_representation),
            noise=self.noise(anchor_representation),
        )

    @property
    def _presence_rounded_up(self) -> str:
        return f"{math.ceil(self.epsilon_of_presence * 100) / 100:.2f}"

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        anchor_target: NDArray[Any] | None,
        generator: np.random.RandomState,
    ) -> Published:
        assert anchor_representation is not None  # release() refuses otherwise
        classes = self._agreed_classes(target, anchor_target)
        codes = _codes(target, classes)
        _warn_of_others(codes)
        clip, center = self.clip(anchor_representation), anchor_representation.mean(axis=0)
        vector = class_vector(representation, codes, len(classes), center, clip)
        vector = noisy(vector, self.noise(anchor_representation), generator)
        return Published(rows=vector[:, :-1], target=classes, own_rows=None, counts=vector[:, -1] / clip)

    def _agreed_classes(self, target: NDArray[Any], anchor_target: NDArray[Any] | None) -> NDArray[Any]:
        """In ascending order, whatever order they were given in."""
        given = anchor_target if self.classes is None else np.asarray(self.classes)
        if given is None:
            raise ObfuscationError(
                "NoisyClassSums: which classes there are must not be learnt from private rows, and the anchor has no "
                "targets. Give those that were agreed on, as classes=[...]."
            )
        check_single_targets(given, "NoisyClassSums: classes", ObfuscationError)
        if given.ndim != 1:
            raise ObfuscationError(f"NoisyClassSums: classes must be a list of them; got shape {given.shape}.")
        classes = np.unique(given)
        if len(classes) < 2 or (self.classes is None and classes.dtype.kind == "f"):
            raise ObfuscationError(
                f"NoisyClassSums: at least two classes are wanted, as classes=[...]; got {len(classes)} of type "
                f"{classes.dtype}. Sums over classes do not serve for targets that are numbers."
            )
        if (classes.dtype.kind in _TEXTS) != (target.dtype.kind in _TEXTS):
            raise ObfuscationError(
                f"NoisyClassSums: the classes are of type {classes.dtype}, and targets of type {target.dtype}, so none "
                "would be found. Agree on one coding."
            )
        return np.asarray(classes)


def _codes(target: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Number of each row's class, shape (n_rows,); -1 of those that have none of them."""
    codes = np.full(len(target), -1, dtype=np.intp)
    for number, label in enumerate(classes):
        codes[target == label] = number
    return codes


def _warn_of_others(codes: NDArray[np.intp]) -> None:
    n_missing = int((codes < 0).sum())
    # A warning is seen at the party alone.  An error would show others that nothing left, and so what the rows are.
    if n_missing:
        warnings.warn(
            f"NoisyClassSums: {n_missing} of {len(codes)} rows are of none of the classes agreed on, and add nothing. "
            "Agree on all classes before the first sums leave.",
            SuppressedRowsWarning,
            stacklevel=2,
        )
